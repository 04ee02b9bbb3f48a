package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/ocfl"
)

// sample is how many recorded objects are looked for in a storage.
const sample = 8

// Inventory is what is known about the objects of storages.
type Inventory interface {
	// Replicated returns the ids, as storages have them, of some objects that are recorded in a storage.
	Replicated(ctx context.Context, storage string, most int) ([]string, error)
	KnowsObject(ctx context.Context, id string) (bool, error)
}

// Belonging is how a storage root agrees with the records about it.
type Belonging struct {
	Missing []string // recorded objects that were looked for in vain
	Found   bool     // a recorded object is there
	Strange string   // an object that is not recorded anywhere, looked for only if nothing was found; "": none
}

// Absent reports whether nothing that is recorded in the storage is there: it is another one, or
// empty.
func (b Belonging) Absent() bool { return !b.Found && len(b.Missing) > 0 }

// Belongs compares a storage root with the records about the storage of this name. It looks for a few
// objects until it finds one; otherwise it looks whether the root has objects of others.
func Belongs(ctx context.Context, root *ocfl.Root, storage string, known Inventory) (b Belonging, err error) {
	recorded, err := known.Replicated(ctx, storage, sample)
	if err != nil {
		return b, err
	}
	for _, id := range recorded {
		switch _, err := root.Head(ctx, id); {
		case err == nil:
			b.Found = true
			return b, nil
		case errors.Is(err, ocfl.ErrNotFound):
			b.Missing = append(b.Missing, id)
		default:
			// A damaged object is there.
			b.Found = true
			return b, nil
		}
	}
	b.Strange, err = unknownObject(ctx, root, known)
	return b, err
}

// Fault returns the fault of a storage that has nothing of what is recorded there; nil if it has.
func (b Belonging) Fault() error {
	switch {
	case !b.Absent():
		return nil
	case b.Strange != "":
		return fmt.Errorf("it is another one: it holds objects that the Registry does not know, such as %s, and none of those that the Registry recorded here, such as %s", b.Strange, b.Missing[0])
	}
	return fmt.Errorf("it has none of the objects that were looked for, such as %s, which the Registry recorded here: its disk was replaced, or it is another one", b.Missing[0])
}

// ErrRootGone says that the place has no storage root, and should have one.
var ErrRootGone = errors.New("there is no storage root, although the Registry knows objects in this storage")

// FixAbsent begins the advice about a storage without what is recorded there. What to do about a loss
// follows.
const FixAbsent = "mount the right volume, or correct the address; if it is the right one and its objects are lost, "
