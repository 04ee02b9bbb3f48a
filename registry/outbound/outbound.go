// Package outbound keeps what the Registry sends to others: callbacks and mails about items,
// subscriptions to the feed, and the credentials of such requests. It decides who gets which
// message, in the transaction that makes the message true. It sends nothing itself.
//
// An item of its own carries a message, or the job that the message is about. That item's status is
// the delivery's status. The message's row keeps the results of the tries.
package outbound

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Outbound keeps messages, subscriptions and credentials.
type Outbound struct {
	db    *sqldb.DB
	work  *work.Engine
	mails bool // whether to make mails
}

// New returns the outbound messages of an engine's items. Without mails it makes none.
func New(db *sqldb.DB, engine *work.Engine, mails bool) *Outbound {
	return &Outbound{db: db, work: engine, mails: mails}
}

// Tx is the engine's open transaction with this subject's statements.
type Tx struct {
	*work.Tx
	store *Outbound
}

// In returns an engine's transaction as one of this subject.
func (s *Outbound) In(t *work.Tx) *Tx { return &Tx{Tx: t, store: s} }

func (s *Outbound) write(ctx context.Context, fn func(*Tx) error) error {
	return s.work.Write(ctx, func(t *work.Tx) error { return fn(s.In(t)) })
}

// Join adds the hooks of outbound messages to the engine.
func (s *Outbound) Join(h *work.Hooks) {
	h.Settled = append(h.Settled, func(t *work.Tx, end work.Shift) error {
		in := s.In(t)
		return errors.Join(in.queueFailureCallback(end), in.mailFailed(end), in.mailStopped(end))
	})
	h.Requeued = append(h.Requeued, func(t *work.Tx, it registry.WorkItem, to work.Change) error {
		if it.Stage != registry.Notify || to.Stage != it.Stage {
			return nil
		}
		return s.In(t).retarget(it, to.Actor)
	})
	h.Started = func(t *work.Tx, it registry.WorkItem) error {
		spec, err := work.SpecOf(it)
		if err != nil {
			return err
		}
		return s.In(t).MailQueued(it, spec)
	}
	h.Act(registry.ActGiveUp, func(t *work.Tx, it registry.WorkItem, c registry.Command) error { return s.In(t).giveUpCallback(it, c) })
	h.Wanted = func(t *work.Tx, batch registry.WorkItem) (bool, error) { return s.In(t).hasOpenDeliveries(batch) }
	h.Purged = append(h.Purged, func(t *work.Tx, it registry.WorkItem) error { return s.In(t).purged(it) })
	h.Reclaimed = func(t *work.Tx) error { return s.In(t).endLeases() }
}

// hasOpenDeliveries says whether an item still delivers a message about a batch or one of its jobs,
// or waits for an operator with one.
func (t *Tx) hasOpenDeliveries(batch registry.WorkItem) (yes bool, err error) {
	err = t.Get(`SELECT EXISTS (SELECT 1 FROM work_item i JOIN delivery d ON d.subject = i.id JOIN work_item c ON c.id = d.item_id
		WHERE (i.id = $1 OR i.parent_id = $1) AND `+itemOpen+`)`, []any{batch.ID}, &yes)
	if err != nil {
		return false, fmt.Errorf("look up open deliveries: %w", err)
	}
	return yes, nil
}

// purged deletes the deliveries about a purged item, and the completed items that carried them.
func (t *Tx) purged(it registry.WorkItem) error {
	err := t.Do(`DELETE FROM work_item WHERE action = 'deliver' AND status = 'completed' AND id IN (SELECT item_id FROM delivery WHERE subject = $1)`, it.ID)
	if err != nil {
		return err
	}
	return t.Do(`DELETE FROM delivery WHERE subject = $1`, it.ID)
}

// SendsMail says whether this Registry makes mails.
func (s *Outbound) SendsMail() bool { return s.mails }
