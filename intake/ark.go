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

// Objects looks up preserved objects.
type Objects interface {
	KnowsObject(ctx context.Context, id string) (bool, error)
	Object(ctx context.Context, id string) (registry.Object, error)
}

// ARKs checks the ARKs that deposits supply. An ARK in the form of our own names must have the
// right check character, because a typing error would create a separate object under a name that
// nobody looks for. An ARK under a similar NAAN may belong to another institution; it counts as
// mistyped only if the corrected ARK names an object of ours.
type ARKs struct {
	Template noid.Template // the default template for minting; without a NAAN it is ignored
	Objects  Objects       // may be nil
}

// MistypedError says that an ARK looks like one of our names but has a typing error.
type MistypedError struct {
	ARK    noid.ARK
	Likely []noid.ARK // the names that were probably meant, most likely first
	Known  bool       // Likely has one name, that of an object with the same owner
}

// Error implements error.
func (e *MistypedError) Error() string {
	return fmt.Sprintf("%s is mistyped: its check character does not match, so a character is wrong, missing or extra, or two are swapped%s", e.ARK.Base(), e.meant())
}

// mostLikely is how many names a message lists if none of them names an object. mostCandidates is
// how many candidates there may be at all.
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
		return fmt.Sprintf("; %d names differ from it by one typing error, among them %s", len(names), strings.Join(names[:mostLikely], ", "))
	default:
		return "; it was probably meant to be one of " + strings.Join(names, ", ")
	}
}

// Remedy returns what to do.
func (e *MistypedError) Remedy() string {
	return "correct the ARK, or leave it out to have one minted"
}

// ContentFault returns true: the deposit is at fault.
func (e *MistypedError) ContentFault() bool { return true }

// Judge returns a *MistypedError for a mistyped ARK, unless an object of that name exists. Any
// other error says that the look-up failed.
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
		// Do not reveal objects of other owners.
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

// mostLookedUp bounds the mistyped rows of one manifest for which the intended object is looked up.
const mostLookedUp = 100

// Row returns a function that checks the rows of one manifest, for [Options].Row. It returns an
// error if a look-up fails.
func (j ARKs) Row(ctx context.Context, p registry.Profile) func(*checkm.Row) ([]checkm.Fault, error) {
	found := 0
	return func(row *checkm.Row) ([]checkm.Fault, error) {
		ark, err := noid.ParseARK(row.PrimaryID)
		if err != nil {
			return nil, nil //nolint:nilerr // no ARK, or an invalid one, which is already a fault of the row
		}
		judge := j
		if found >= mostLookedUp && j.Objects != nil {
			judge.Objects = idsOnly{j.Objects}
		}
		err = judge.Judge(ctx, ark, p)
		var wrong *MistypedError
		if !errors.As(err, &wrong) {
			return nil, err
		}
		found++
		return []checkm.Fault{{
			Severity: checkm.Error, Rule: checkm.RulePrimaryID, Line: row.Line, Field: "mrt:primaryIdentifier", Found: row.PrimaryID,
			Expected: "an ARK whose check character matches" + wrong.meant(), Fix: wrong.Remedy(),
		}}, nil
	}
}

// idsOnly knows which objects exist, but returns none.
type idsOnly struct{ Objects }

// Object implements Objects.
func (idsOnly) Object(context.Context, string) (registry.Object, error) {
	return registry.Object{}, registry.ErrNotFound
}

// templates returns the templates that may be used for a profile, the profile's own first.
func (j ARKs) templates(p registry.Profile) (out []noid.Template) {
	if t, err := noid.ParseTemplate(p.NOIDTemplate); err == nil {
		if t.NAAN == "" {
			t.NAAN = j.Template.NAAN
		}
		out = append(out, t)
	}
	return append(out, j.Template)
}
