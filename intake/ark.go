package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
)

// Objects is where objects are looked up.
type Objects interface {
	KnowsObject(ctx context.Context, id string) (bool, error)
	Object(ctx context.Context, id string) (registry.Object, error)
}

// ARKs judges the ARKs that deposits bring along. Those that have the form of names that are drawn
// here must have the right check character: a slip of the hand would make an object of its own,
// under a name that nobody looks for. What stands under another NAAN may be another institution's,
// and is mistyped only if its object is known under ours.
type ARKs struct {
	Template noid.Template // that names are drawn from where a profile has none; without a NAAN nothing is judged
	Objects  Objects       // nil: none are known
}

// MistypedError says that an ARK has the form of a name that is drawn here and is none.
type MistypedError struct {
	ARK    noid.ARK
	Likely []noid.ARK // what was probably meant, the most likely first
	Known  bool       // the first of them names an object of the same owner
}

// Error implements error.
func (e *MistypedError) Error() string {
	return fmt.Sprintf("%s is mistyped: its check character does not fit the rest, so a letter is wrong, missing or too many, or two are exchanged%s", e.ARK.Base(), e.meant())
}

// mostLikely is how many names are told when none of them names an object, and mostCandidates of
// how many that is any help.
const (
	mostLikely     = 3
	mostCandidates = 20
)

func (e *MistypedError) meant() string {
	names := make([]string, len(e.Likely))
	for i, a := range e.Likely {
		names[i] = a.String()
	}
	switch {
	case len(names) == 0 || len(names) > mostCandidates && !e.Known:
		return ""
	case e.Known || len(names) == 1:
		return "; it was probably meant to be " + names[0]
	case len(names) > mostLikely:
		return fmt.Sprintf("; %d names differ from it by one slip, among them %s", len(names), strings.Join(names[:mostLikely], ", "))
	default:
		return "; it was probably meant to be one of " + strings.Join(names, ", ")
	}
}

// Remedy says what to do.
func (e *MistypedError) Remedy() string {
	return "correct the ARK, or leave it out to have one minted"
}

// ContentFault says that the deposit is at fault.
func (e *MistypedError) ContentFault() bool { return true }

// Judge returns a *MistypedError for an ARK that is mistyped, unless there is an object of that
// name all the same. Any other error says that it could not be looked up.
func (j ARKs) Judge(ctx context.Context, ark noid.ARK, p registry.Profile) error {
	var wrong *MistypedError
	foreign := false
	for _, t := range j.templates(p) {
		if likely, is := t.Mistyped(ark); is {
			wrong = &MistypedError{ARK: ark, Likely: likely}
			foreign = !strings.EqualFold(ark.NAAN, t.NAAN)
			break
		}
	}
	if wrong == nil {
		return nil
	}
	if j.Objects == nil {
		if foreign {
			return nil
		}
		return wrong
	}
	known, err := j.Objects.KnowsObject(ctx, ark.ObjectID())
	if err != nil {
		return fmt.Errorf("look up %s: %w", ark.Base(), err)
	}
	if known {
		return nil
	}
	for _, likely := range wrong.Likely {
		// Of another owner's objects nothing is told.
		o, err := j.Objects.Object(ctx, likely.ObjectID())
		switch {
		case err == nil && o.Owner == p.Owner:
			wrong.Likely, wrong.Known = []noid.ARK{likely}, true
			return wrong
		case err != nil && !errors.Is(err, registry.ErrNotFound):
			return fmt.Errorf("look up %s: %w", likely, err)
		}
	}
	if foreign {
		return nil
	}
	return wrong
}

// mostLookedUp is of how many mistyped rows of one manifest the object that was meant is looked
// for.
const mostLookedUp = 100

// Row returns what judges the rows of one manifest, for [Options].Row. The error that it returns
// says that something could not be looked up.
func (j ARKs) Row(ctx context.Context, p registry.Profile) func(*checkm.Row) ([]checkm.Fault, error) {
	found := 0
	return func(row *checkm.Row) ([]checkm.Fault, error) {
		ark, err := noid.ParseARK(row.PrimaryID)
		if err != nil {
			return nil, nil //nolint:nilerr // it has none, or a wrong one, which is a fault of the row already
		}
		judge := j
		if found >= mostLookedUp && j.Objects != nil {
			judge.Objects = named{j.Objects}
		}
		err = judge.Judge(ctx, ark, p)
		var wrong *MistypedError
		if !errors.As(err, &wrong) {
			return nil, err
		}
		found++
		return []checkm.Fault{{
			Severity: checkm.Error, Rule: checkm.RulePrimaryID, Line: row.Line, Field: "mrt:primaryIdentifier", Found: row.PrimaryID,
			Expected: "an ARK whose check character fits" + wrong.meant(), Fix: wrong.Remedy(),
		}}, nil
	}
}

// named knows which objects there are and tells nothing of them.
type named struct{ Objects }

// Object implements Objects.
func (named) Object(context.Context, string) (registry.Object, error) {
	return registry.Object{}, registry.ErrNotFound
}

// templates are those that names are drawn from for a profile, the profile's own first.
func (j ARKs) templates(p registry.Profile) (out []noid.Template) {
	if t, err := noid.ParseTemplate(p.NOIDTemplate); err == nil {
		if t.NAAN == "" {
			t.NAAN = j.Template.NAAN
		}
		out = append(out, t)
	}
	return append(out, j.Template)
}
