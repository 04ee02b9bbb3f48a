package outbound

import (
	"cmp"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/collection"
)

// This file has this subject's part of one rule: an attempt's write may name only what its own item
// is about. So whoever steals the secret of one worker can spoil only the items that this worker is
// given. The check runs in the transaction that writes, so it also holds for workers in the same
// process.

// ownMessage returns a message as an item may deliver it, or ErrInvalid. A deliver item has the
// message that it was made for. A job has only the message that it completed, to the callback of
// its submission or to its collection's present one. Only the Registry makes mails.
func (t *Tx) ownMessage(it registry.WorkItem, m registry.DeliverySpec) (registry.DeliverySpec, error) {
	if it.Action == registry.DeliverMessage {
		if own, ok := registry.DeliverySpecIn(it.Spec); ok && own.ID() == m.ID() {
			return own, nil
		}
		return m, fmt.Errorf("%w: item %s delivers no message about item %s", registry.ErrInvalid, it.ID, m.Subject)
	}
	if it.ID != m.Subject || it.Action != registry.Ingest {
		return m, fmt.Errorf("%w: item %s delivers no message about item %s", registry.ErrInvalid, it.ID, m.Subject)
	}
	if m.Mail != "" || m.State != registry.StateCompleted {
		return m, fmt.Errorf("%w: a job delivers only the callback that it completed, not a message of kind %s that it is %q",
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
