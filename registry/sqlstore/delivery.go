package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// NoteDelivery implements registry.Delivering.
func (s *Store) NoteDelivery(ctx context.Context, l registry.Lease, try registry.DeliveryTry) (d registry.Delivery, err error) {
	err = s.write(ctx, func(t *tx) error {
		it, err := t.live(l)
		if err != nil {
			return err
		}
		if try.Message, err = t.ownMessage(it, try.Message); err != nil {
			return err
		}
		try.Error = clean(try.Error)
		if d, err = t.noteTry(try); err != nil {
			return err
		}
		told := d
		told.Target = try.Message.Masked().Target() // events are kept when the batch and its deliveries are not
		told.Error = strings.ReplaceAll(told.Error, d.Target, told.Target)
		return t.event(try.Message.Subject, 0, registry.EventDelivery, actorWorker, told)
	})
	if err != nil {
		return d, fmt.Errorf("note a try to deliver %s: %w", try.Message.ID(), err)
	}
	return d, nil
}

// noteTry notes a try in the message's row. Of an item that was purged meanwhile there is none, and none is made: nobody would remove
// it again, and it has an address.
func (t *tx) noteTry(try registry.DeliveryTry) (d registry.Delivery, err error) {
	m, at := try.Message, fromMicros(t.now)
	subject, err := t.item(m.Subject)
	if errors.Is(err, registry.ErrNotFound) {
		d = registry.Delivery{
			ID: m.ID(), Subject: m.Subject, Kind: m.Kind(), State: m.State, Target: m.Target(), Tries: 1, TriedAt: &at, Status: try.Status, Error: try.Error,
		}
		if try.Error == "" {
			d.SentAt = &at
		}
		return d, nil
	} else if err != nil {
		return d, err
	}
	if err := t.announce(m, ""); err != nil {
		return d, err
	}
	var sent sql.NullInt64
	if try.Error == "" {
		sent = sql.NullInt64{Int64: t.now, Valid: true}
		if m.State == registry.StateCompleted && m.Mail == "" {
			if err := t.toldAfterAll(subject); err != nil {
				return d, err
			}
		}
	}
	err = t.do(`UPDATE delivery SET tries = tries + 1, tried_at = $2, sent_at = COALESCE(sent_at, $3), status = $4, error = $5, closed_at = NULL WHERE id = $1`,
		m.ID(), t.now, sent, try.Status, try.Error)
	if err != nil {
		return d, err
	}
	return scanDelivery(t.row(`SELECT `+deliveryColumns+` FROM delivery WHERE id = $1`, m.ID()))
}

// announce makes the row of a message, which is left as it is when it is there; carrier is the item that goes on with it.
func (t *tx) announce(m registry.DeliverySpec, carrier string) error {
	err := t.insertRows(insertDelivery, [][]any{t.deliveryOf(m, carrier)})
	if err != nil || carrier == "" {
		return err
	}
	return t.do(`UPDATE delivery SET item_id = $2, target = $3, closed_at = NULL WHERE id = $1`, m.ID(), carrier, m.Target())
}

// closeDeliveries notes that nobody goes on any more with what an item was to tell: it is done, or was given up for good.
func (t *tx) closeDeliveries(s shift) error {
	ended := s.status == registry.Aborted || s.status == registry.Deleted
	if !ended && (s.status != registry.Completed || s.it.Action != registry.DeliverMessage) {
		return nil
	}
	err := t.do(`UPDATE delivery SET closed_at = $2 WHERE closed_at IS NULL AND (item_id = $1 AND item_id <> '' OR item_id = '' AND subject = $1)`, s.it.ID, t.now)
	if err != nil {
		return fmt.Errorf("close deliveries of item %s: %w", s.it.ID, err)
	}
	return nil
}

// insertDelivery is the statement that writes deliveryOf rows.
var insertDelivery = insertNew(`INSERT INTO delivery (id, subject, kind, state, target, tries, created_at, status, error, item_id)`,
	`($1, $2, $3, $4, $5, 0, $6, 0, '', $7)`)

func (t *tx) deliveryOf(m registry.DeliverySpec, carrier string) []any {
	return []any{m.ID(), m.Subject, m.Kind(), m.State, m.Target(), t.now, carrier}
}

// carrierOf is an item that goes on with a message about an item of a tenant and collection.
func carrierOf(tenant, collection string, m registry.DeliverySpec, actor string) newItem {
	route, _ := registry.RouteOf(registry.DeliverMessage)
	m.Reason = clean(m.Reason)
	return newItem{
		id: newID(), tenant: tenant, collection: collection, action: registry.DeliverMessage, stage: route.First(),
		status: registry.Pending, priority: registry.DefaultPriority, name: m.Title(), actor: actor, input: m, told: m.Masked(),
	}
}

// carry makes the item that goes on with a message about an item.
func (t *tx) carry(it registry.WorkItem, m registry.DeliverySpec, actor string) (id string, err error) {
	n := carrierOf(it.Tenant, it.Collection, m, actor)
	if err := t.insert(n); err != nil {
		return "", err
	}
	return n.id, t.announce(m, n.id)
}

// carryDigest makes the item that tells operators something, and is its own subject. It is in no collection.
func (t *tx) carryDigest(m registry.DeliverySpec) error {
	n := carrierOf(Tenant, "", m, actorRegistry)
	n.id = m.Subject
	if err := t.insert(n); err != nil {
		return err
	}
	return t.announce(m, n.id)
}

// PassOn implements registry.Delivering.
func (s *Store) PassOn(ctx context.Context, l registry.Lease, m registry.DeliverySpec) error {
	err := s.write(ctx, func(t *tx) error {
		it, err := t.live(l)
		if err != nil {
			return err
		}
		if it.ID != m.Subject {
			return fmt.Errorf("%w: item %s does not tell of item %s", registry.ErrInvalid, it.ID, m.Subject)
		}
		if m, err = t.ownMessage(it, m); err != nil {
			return err
		}
		var carrier string
		err = t.get(`SELECT item_id FROM delivery WHERE id = $1`, []any{m.ID()}, &carrier)
		if carrier != "" || err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		_, err = t.carry(it, m, actorWorker)
		return err
	})
	if err != nil {
		return fmt.Errorf("pass delivery %s on: %w", m.ID(), err)
	}
	return nil
}

// tellFailed has it told, in the transaction in which a job fails, that it did. A job that fails at notify is preserved, and
// its receiver does not answer: there is nothing to tell.
func (t *tx) tellFailed(s shift) error {
	if s.status != registry.Failed || s.it.Action != registry.Ingest || s.it.Stage == registry.Notify {
		return nil
	}
	it, err := t.item(s.it.ID)
	if err != nil {
		return err
	}
	callback, err := callbackOf(it)
	if err != nil {
		return err
	}
	if m, told := failure(it.ID, it.RetryCount, callback); told {
		_, err = t.carry(it, m, actorRegistry)
	}
	return err
}

// failure is the message that a job failed after it was sent back some times; told is false when nobody is to be told.
func failure(jobID string, times int, to *registry.Callback) (m registry.DeliverySpec, told bool) {
	if to == nil || to.CompletedOnly {
		return m, false
	}
	return registry.DeliverySpec{Subject: jobID, State: registry.StateFailed, Times: times, Callback: *to}, true
}

// tellBorn has it told of jobs that were born failed that they were: as tellFailed does, for all of them with a few statements.
func (t *tx) tellBorn(jobs []newItem) error {
	var carriers []newItem
	var rows [][]any
	for _, n := range jobs {
		m, told := failure(n.id, 0, n.spec.Profile.Callback)
		if n.status != registry.Failed || !told {
			continue
		}
		carrier := carrierOf(n.tenant, n.collection, m, actorRegistry)
		carriers, rows = append(carriers, carrier), append(rows, t.deliveryOf(m, carrier.id))
	}
	if len(carriers) == 0 {
		return nil
	}
	if err := t.insert(carriers...); err != nil {
		return err
	}
	return t.insertRows(insertDelivery, rows)
}

// callbackOf is the callback that a job's collection had when it was submitted; nil: none.
func callbackOf(it registry.WorkItem) (*registry.Callback, error) {
	spec, err := specOf(it)
	return spec.Profile.Callback, err
}

// Redeliver implements registry.Administering.
func (s *Store) Redeliver(ctx context.Context, r registry.RedeliverRequest) (it registry.WorkItem, err error) {
	args, err := fingerprint(struct{ ItemID, Reason string }{r.ItemID, r.Reason})
	if err != nil {
		return it, err
	}
	err = s.write(ctx, func(t *tx) error {
		id, known, err := t.keyed(r.IdempotencyKey, args)
		if err == nil && !known {
			if id, err = t.redeliver(r); err == nil {
				err = t.answer(r.IdempotencyKey, args, id, registry.Act(registry.DeliverMessage), r.Actor)
			}
		}
		if err == nil {
			it, err = t.item(id)
		}
		return err
	})
	if err != nil {
		return registry.WorkItem{}, fmt.Errorf("deliver again what became of item %s: %w", r.ItemID, err)
	}
	return it, nil
}

func (t *tx) redeliver(r registry.RedeliverRequest) (id string, err error) {
	it, err := t.item(r.ItemID)
	if err != nil {
		return "", err
	}
	m := registry.DeliverySpec{Subject: it.ID, Times: it.RetryCount, Again: true, Reason: r.Reason}
	switch {
	case it.Action == registry.Batch:
		now, err := t.profileNow(it.Collection)
		if err != nil {
			return "", err
		}
		return t.mailAgain(it, now, r)
	case it.Action != registry.Ingest:
		return "", fmt.Errorf("%w: an item of action %s is not told of", registry.ErrInvalid, it.Action)
	case it.Status == registry.Completed, it.Status == registry.Failed && it.Stage == registry.Notify:
		m.State = registry.StateCompleted
	case it.Status == registry.Failed:
		m.State = registry.StateFailed
	default:
		return "", fmt.Errorf("%w: it is %s, and only what has completed or failed is told of", registry.ErrInvalid, it.State)
	}
	now, err := t.profileNow(it.Collection)
	if err != nil {
		return "", err
	}
	if now.Callback == nil {
		return "", fmt.Errorf("collection %s: %w", it.Collection, registry.ErrNoCallback)
	}
	m.Callback = *now.Callback
	return t.carry(it, m, r.Actor)
}

// profileNow is the profile that a collection has now; none of one that is not there.
func (t *tx) profileNow(collection string) (now registry.Profile, err error) {
	c, err := t.collectionOf(collection)
	if errors.Is(err, registry.ErrNotFound) {
		return now, nil
	}
	return c.Profile, err
}

const deliveryColumns = `id, subject, kind, state, target, tries, tried_at, sent_at, status, error, item_id`

func scanDelivery(row scanner) (d registry.Delivery, err error) {
	var tried, sent sql.NullInt64
	err = row.Scan(&d.ID, &d.Subject, &d.Kind, &d.State, &d.Target, &d.Tries, &tried, &sent, &d.Status, &d.Error, &d.ItemID)
	if tried.Valid {
		at := fromMicros(tried.Int64)
		d.TriedAt = &at
	}
	if sent.Valid {
		at := fromMicros(sent.Int64)
		d.SentAt = &at
	}
	return d, err
}

// Deliveries implements registry.Reading.
func (s *Store) Deliveries(ctx context.Context, itemID string) ([]registry.Delivery, error) {
	return collect(s.read.ask(ctx, `SELECT `+deliveryColumns+` FROM delivery WHERE subject = $1 ORDER BY created_at, id`, clean(itemID)),
		"list deliveries of item "+itemID, scanDelivery)
}
