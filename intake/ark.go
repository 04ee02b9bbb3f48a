package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/mint"
	"github.com/holdfast/holdfast/registry"
)

// Objects is where objects are looked up.
type Objects interface {
	KnowsObject(ctx context.Context, id string) (bool, error)
	Object(ctx context.Context, id string) (registry.Object, error)
}

// ARKs judges the ARKs that deposits bring along. Those that have the form of names that are drawn here must have the right check
// character: a slip of the hand would make an object of its own, under a name that nobody looks for.
type ARKs struct {
	Template mint.Template // that names are drawn from where a profile has none; without a NAAN nothing is judged
	Objects  Objects
}

// MistypedError says that an ARK has the form of a name that is drawn here and is none.
type MistypedError struct {
	ARK    mint.ARK
	Likely []mint.ARK // what was probably meant, the most likely first
	Known  bool       // the first of them names an object of the same owner
}

// Error implements error.
func (e *MistypedError) Error() string {
	return fmt.Sprintf("%s is mistyped: its check character does not fit the rest, so a letter is wrong or two are exchanged%s", e.ARK.Base(), e.meant())
}

func (e *MistypedError) meant() string {
	names := make([]string, len(e.Likely))
	for i, a := range e.Likely {
		names[i] = a.String()
	}
	switch {
	case len(names) == 0:
		return ""
	case e.Known || len(names) == 1:
		return "; it was probably meant to be " + names[0]
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

// Judge returns a *MistypedError for an ARK that is mistyped, unless there is an object of that name all the same. Any other error
// says that it could not be looked up.
func (j ARKs) Judge(ctx context.Context, ark mint.ARK, p registry.Profile) error {
	var wrong *MistypedError
	for _, t := range j.templates(p) {
		if likely, is := t.Mistyped(ark); is {
			wrong = &MistypedError{ARK: ark, Likely: likely}
			break
		}
	}
	if wrong == nil {
		return nil
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
			wrong.Likely, wrong.Known = []mint.ARK{likely}, true
			return wrong
		case err != nil && !errors.Is(err, registry.ErrNotFound):
			return fmt.Errorf("look up %s: %w", likely, err)
		}
	}
	return wrong
}

// templates are those that names are drawn from for a profile, the profile's own first.
func (j ARKs) templates(p registry.Profile) (out []mint.Template) {
	if t, err := mint.ParseTemplate(p.NOIDTemplate); err == nil {
		if t.NAAN == "" {
			t.NAAN = j.Template.NAAN
		}
		out = append(out, t)
	}
	return append(out, j.Template)
}
