package identity

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/registry"
)

// ezidWait is how long a job waits, uncounted, while EZID does not answer.
const ezidWait = 2 * time.Minute

// Names manages objects' names at EZID (R8). While EZID does not answer, its errors make the item
// wait uncounted.
type Names struct {
	EZID *ezid.Client // nil: this worker has no account
}

// reserve reserves an object's name at EZID without publishing it.
func (n Names) reserve(ctx context.Context, item *base.Item, id registry.Identity) error {
	if n.EZID == nil {
		return errNoEZID
	}
	if err := item.Writable(ctx); err != nil {
		return err
	}
	return waitForEZID(n.EZID.Reserve(ctx, ezid.Name{ARK: id.ARK, Item: id.EZIDItem}))
}

// Publish makes the name of a recorded version's object public, with the version's description.
func (n Names) Publish(ctx context.Context, item *base.Item, name ezid.Name) error {
	if n.EZID == nil {
		return errNoEZID
	}
	if err := item.Writable(ctx); err != nil {
		return err
	}
	if err := n.EZID.Publish(ctx, name); err != nil {
		return waitForEZID(err)
	}
	return item.Event(registry.EventIdentifierPublished, map[string]any{"ark": name.ARK, "at": n.EZID.Host()})
}

// Withdraw makes the name of a deleted object unavailable. known is the item under which EZID has
// it.
func (n Names) Withdraw(ctx context.Context, item *base.Item, ark, known string) error {
	if n.EZID == nil {
		return errNoEZID
	}
	if err := item.Writable(ctx); err != nil {
		return err
	}
	if err := n.EZID.Withdraw(ctx, ezid.Name{ARK: ark, Item: known}); err != nil {
		return waitForEZID(err)
	}
	return item.Event(registry.EventIdentifierWithdrawn, map[string]any{"ark": ark, "at": n.EZID.Host()})
}

// waitForEZID turns an outage of EZID into a wait, and returns other errors unchanged.
func waitForEZID(err error) error {
	if ezid.Away.Is(err) {
		return base.Await(ezidWait, registry.ReasonNotDue, err)
	}
	return err
}

// errNoEZID is the error of an object whose name is at EZID if the worker has no account there.
var errNoEZID error = noEZID{errors.New("the object's name is managed at EZID (its collection has minting: ezid), and this worker has no HOLDFAST_EZID_URL")}

type noEZID struct{ error }

func (noEZID) Remedy() string {
	return "set HOLDFAST_EZID_URL for the workers of process, record and delete, and restart them"
}
