// Package outbound keeps what the Registry tells others: callbacks and mails about items, the
// subscriptions that the feed is forwarded to, and the credentials that such requests carry. It
// decides who is told of what, in the transaction that makes it true, and sends nothing itself. A
// message is carried by an item of its own, or by the job that it tells of, whose status is the
// delivery's; its row says what the tries came to.
package outbound

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Outbound is what the Registry tells others.
type Outbound struct {
	db    *sqldb.DB
	work  *work.Engine
	mails bool // mails are made
}

// New returns what an engine tells others.
func New(db *sqldb.DB, engine *work.Engine, mails bool) *Outbound {
	return &Outbound{db: db, work: engine, mails: mails}
}

// Tx is the open transaction.
type Tx struct {
	*work.Tx
	store *Outbound
}

// In is a transaction of the engine, as one of this subject.
func (s *Outbound) In(t *work.Tx) *Tx { return &Tx{Tx: t, store: s} }

func (s *Outbound) write(ctx context.Context, fn func(*Tx) error) error {
	return s.work.Write(ctx, func(t *work.Tx) error { return fn(s.In(t)) })
}

// Join has the engine ask who is told of what becomes of items.
func (s *Outbound) Join(h *work.Hooks) {
	h.Settled = append(h.Settled, func(t *work.Tx, end work.Shift) error {
		in := s.In(t)
		return errors.Join(in.tellFailed(end), in.mailFailed(end), in.mailStopped(end))
	})
	h.Requeued = append(h.Requeued, func(t *work.Tx, it registry.WorkItem, to work.Change) error {
		if it.Stage != registry.Notify || to.Stage != it.Stage {
			return nil
		}
		return s.In(t).aim(it, to.Actor)
	})
	h.Started = func(t *work.Tx, it registry.WorkItem) error {
		spec, err := work.SpecOf(it)
		if err != nil {
			return err
		}
		return s.In(t).MailQueued(it, spec)
	}
	h.Act(registry.ActGiveUp, func(t *work.Tx, it registry.WorkItem, c registry.Command) error { return s.In(t).endTelling(it, c) })
	h.Wanted = func(t *work.Tx, batch registry.WorkItem) (bool, error) { return s.In(t).carries(batch) }
	h.Purged = append(h.Purged, func(t *work.Tx, it registry.WorkItem) error { return s.In(t).purged(it) })
	h.Reclaimed = func(t *work.Tx) error { return s.In(t).endLeases() }
}

// carries says that an item goes on with what is to be told of a batch or one of its jobs, or waits
// for an admin.
func (t *Tx) carries(batch registry.WorkItem) (yes bool, err error) {
	err = t.Get(`SELECT EXISTS (SELECT 1 FROM work_item i JOIN delivery d ON d.subject = i.id JOIN work_item c ON c.id = d.item_id
		WHERE (i.id = $1 OR i.parent_id = $1) AND `+itemGoesOn+`)`, []any{batch.ID}, &yes)
	if err != nil {
		return false, fmt.Errorf("look for messages that were not told: %w", err)
	}
	return yes, nil
}

// purged takes away whom was told of an item, and the items that told them.
func (t *Tx) purged(it registry.WorkItem) error {
	err := t.Do(`DELETE FROM work_item WHERE action = 'deliver' AND status = 'completed' AND id IN (SELECT item_id FROM delivery WHERE subject = $1)`, it.ID)
	if err != nil {
		return err
	}
	return t.Do(`DELETE FROM delivery WHERE subject = $1`, it.ID)
}

// Mails says whether mails are made.
func (s *Outbound) Mails() bool { return s.mails }
