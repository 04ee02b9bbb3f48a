package outbound

import (
	"cmp"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/collection"
)

// This file is this subject's part of one rule: what an attempt writes may name only what its own
// item is about. Whoever has the secret of one worker can so spoil the items that it is given, and
// nobody else's. It is judged in the transaction that writes, so that it holds for workers in the
// same process, too.

// ownMessage is a message as an item may tell it: an item of action deliver the one that it was
// made for, a job that it completed, to the callback that it was submitted under or that its
// collection has now. The Registry alone makes mails.
func (t *Tx) ownMessage(it registry.WorkItem, m registry.DeliverySpec) (registry.DeliverySpec, error) {
	if it.Action == registry.DeliverMessage {
		if own, ok := registry.DeliverySpecIn(it.Spec); ok && own.ID() == m.ID() {
			return own, nil
		}
		return m, fmt.Errorf("%w: item %s does not tell of item %s", registry.ErrInvalid, it.ID, m.Subject)
	}
	if it.ID != m.Subject || it.Action != registry.Ingest {
		return m, fmt.Errorf("%w: item %s does not tell of item %s", registry.ErrInvalid, it.ID, m.Subject)
	}
	if m.Mail != "" || m.State != registry.StateCompleted {
		return m, fmt.Errorf("%w: a job tells its callback that it completed, and nothing else; this is a message of kind %s that it is %q",
			registry.ErrInvalid, m.Kind(), m.State)
	}
	old, err := callbackOf(it)
	if err != nil {
		return m, err
	}
	now, err := collection.ProfileNow(t.Tx, it.Collection)
	if err != nil {
		return m, err
	}
	for _, to := range []*registry.Callback{now.Callback, old} {
		if to != nil && to.URL == m.Callback.URL {
			return registry.DeliverySpec{Subject: it.ID, State: registry.StateCompleted, Callback: *to}, nil
		}
	}
	return m, fmt.Errorf("%w: collection %s has no callback at %s", registry.ErrInvalid, it.Collection, cmp.Or(m.Callback.URL, "no address"))
}
