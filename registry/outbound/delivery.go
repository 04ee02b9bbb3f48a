package outbound

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// NoteDelivery implements registry.Delivering.
func (s *Outbound) NoteDelivery(ctx context.Context, l registry.Lease, try registry.DeliveryTry) (d registry.Delivery, err error) {
	if err := bounds.Check(l, try); err != nil {
		return d, err
	}
	err = s.write(ctx, func(t *Tx) error {
		it, err := t.Live(l)
		if err != nil {
			return err
		}
		if try.Message, err = t.ownMessage(it, try.Message); err != nil {
			return err
		}
		try.Error = sqldb.Clean(try.Error)
		if d, err = t.noteTry(try); err != nil {
			return err
		}
		told := d
		told.Target = try.Message.Masked().Target() // events are kept when the batch and its deliveries are not
		told.Error = strings.ReplaceAll(told.Error, d.Target, told.Target)
		return t.Event(try.Message.Subject, 0, registry.EventDelivery, work.ActorWorker, told)
	})
	if err != nil {
		return d, fmt.Errorf("note a try to deliver %s: %w", try.Message.ID(), err)
	}
	return d, nil
}

// noteTry notes a try in the message's row. Of an item that was purged meanwhile there is none, and
// none is made: nobody would remove it again, and it has an address.
func (t *Tx) noteTry(try registry.DeliveryTry) (d registry.Delivery, err error) {
	m, at := try.Message, sqldb.FromMicros(t.Now)
	subject, err := t.Item(m.Subject)
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
		sent = sql.NullInt64{Int64: t.Now, Valid: true}
		if m.State == registry.StateCompleted && m.Mail == "" {
			if err := t.toldAfterAll(subject); err != nil {
				return d, err
			}
		}
	}
	err = t.Do(`UPDATE delivery SET tries = tries + 1, tried_at = $2, sent_at = COALESCE(sent_at, $3), http_status = $4, error = $5 WHERE id = $1`,
		m.ID(), t.Now, sent, try.Status, try.Error)
	if err != nil {
		return d, err
	}
	return scanDelivery(t.Row(selectDelivery+`WHERE d.id = $1`, m.ID()))
}

// announce makes the row of a message, which is left as it is when it is there; carrier is the item
// that goes on with it.
func (t *Tx) announce(m registry.DeliverySpec, carrier string) error {
	err := t.InsertRows(insertDelivery, [][]any{t.deliveryOf(m, carrier)})
	if err != nil || carrier == "" {
		return err
	}
	return t.Do(`UPDATE delivery SET item_id = $2, target = $3 WHERE id = $1`, m.ID(), carrier, m.Target())
}

// insertDelivery is the statement that writes deliveryOf rows.
var insertDelivery = sqldb.InsertNew(`INSERT INTO delivery (id, subject, kind, state, target, tries, created_at, http_status, error, item_id)`,
	`($1, $2, $3, $4, $5, 0, $6, 0, '', $7)`)

func (t *Tx) deliveryOf(m registry.DeliverySpec, carrier string) []any {
	return []any{m.ID(), m.Subject, m.Kind(), m.State, m.Target(), t.Now, carrier}
}

// carrierOf is an item that goes on with a message about an item of a tenant and collection.
func carrierOf(tenant, collection string, m registry.DeliverySpec, actor string) work.NewItem {
	route, _ := registry.RouteOf(registry.DeliverMessage)
	m.Reason = sqldb.Clean(m.Reason)
	return work.NewItem{
		ID: sqldb.NewID(), Tenant: tenant, Collection: collection, Action: registry.DeliverMessage, Stage: route.First(),
		Status: registry.Pending, Priority: registry.DefaultPriority, Name: m.Title(), Actor: actor, Input: m, Told: m.Masked(),
	}
}

// carry makes the item that goes on with a message about an item.
func (t *Tx) carry(it registry.WorkItem, m registry.DeliverySpec, actor string) (id string, err error) {
	n := carrierOf(it.Tenant, it.Collection, m, actor)
	if err := t.Insert(n); err != nil {
		return "", err
	}
	return n.ID, t.announce(m, n.ID)
}

// carryDigest makes the item that tells operators something, and is its own subject. It is in no
// collection.
func (t *Tx) carryDigest(m registry.DeliverySpec) error {
	n := carrierOf(sqldb.Tenant, "", m, work.ActorRegistry)
	n.ID = m.Subject
	if err := t.Insert(n); err != nil {
		return err
	}
	return t.announce(m, n.ID)
}

// PassOn implements registry.Delivering.
func (s *Outbound) PassOn(ctx context.Context, l registry.Lease, m registry.DeliverySpec) error {
	if err := bounds.Check(l, m); err != nil {
		return err
	}
	err := s.write(ctx, func(t *Tx) error {
		it, err := t.Live(l)
		if err != nil {
			return err
		}
		if it.ID != m.Subject {
			return fmt.Errorf("%w: item %s does not tell of item %s", registry.ErrInvalid, it.ID, m.Subject)
		}
		if m, err = t.ownMessage(it, m); err != nil {
			return err
		}
		var passed bool // an item that was given up since goes on with nothing
		err = t.Get(`SELECT EXISTS (SELECT 1`+fromDelivery+`WHERE d.id = $1 AND c.status NOT IN ('aborted', 'deleted'))`, []any{m.ID()}, &passed)
		if passed || err != nil {
			return err
		}
		_, err = t.carry(it, m, work.ActorWorker)
		return err
	})
	if err != nil {
		return fmt.Errorf("pass delivery %s on: %w", m.ID(), err)
	}
	return nil
}

// tellFailed has it told, in the transaction in which a job fails, that it did. A job that fails at
// notify is preserved, and its receiver does not answer: there is nothing to tell.
func (t *Tx) tellFailed(s work.Shift) error {
	if s.Status != registry.Failed || s.Item.Action != registry.Ingest || s.Item.Stage == registry.Notify {
		return nil
	}
	it, err := t.Item(s.Item.ID)
	if err != nil {
		return err
	}
	callback, err := callbackOf(it)
	if err != nil {
		return err
	}
	if m, told := failure(it.ID, it.RetryCount, callback); told {
		_, err = t.carry(it, m, work.ActorRegistry)
	}
	return err
}

// failure is the message that a job failed after it was sent back some times; told is false when
// nobody is to be told.
func failure(jobID string, times int, to *registry.Callback) (m registry.DeliverySpec, told bool) {
	if to == nil || to.CompletedOnly {
		return m, false
	}
	return registry.DeliverySpec{Subject: jobID, State: registry.StateFailed, Times: times, Callback: *to}, true
}

// TellBorn has it told of jobs that were born failed that they were: as tellFailed does, for all of
// them with a few statements.
func (t *Tx) TellBorn(jobs []work.NewItem) error {
	var carriers []work.NewItem
	var rows [][]any
	for _, n := range jobs {
		m, told := failure(n.ID, 0, n.Spec.Profile.Callback)
		if n.Status != registry.Failed || !told {
			continue
		}
		carrier := carrierOf(n.Tenant, n.Collection, m, work.ActorRegistry)
		carriers, rows = append(carriers, carrier), append(rows, t.deliveryOf(m, carrier.ID))
	}
	if len(carriers) == 0 {
		return nil
	}
	if err := t.Insert(carriers...); err != nil {
		return err
	}
	return t.InsertRows(insertDelivery, rows)
}

// callbackOf is the callback that a job's collection had when it was submitted; nil: none.
func callbackOf(it registry.WorkItem) (*registry.Callback, error) {
	spec, err := work.SpecOf(it)
	return spec.Profile.Callback, err
}

// Redeliver implements registry.Notifying.
func (s *Outbound) Redeliver(ctx context.Context, r registry.RedeliverRequest) (it registry.WorkItem, err error) {
	args, err := work.Fingerprint(struct{ ItemID, Reason string }{r.ItemID, r.Reason})
	if err != nil {
		return it, err
	}
	err = s.write(ctx, func(t *Tx) error {
		id, known, err := t.Keyed(r.IdempotencyKey, args)
		if err == nil && !known {
			if id, err = t.redeliver(r); err == nil {
				err = t.Answer(r.IdempotencyKey, args, id, registry.Act(registry.DeliverMessage), r.Actor)
			}
		}
		if err == nil {
			it, err = t.Item(id)
		}
		return err
	})
	if err != nil {
		return registry.WorkItem{}, fmt.Errorf("deliver again what became of item %s: %w", r.ItemID, err)
	}
	return it, nil
}

func (t *Tx) redeliver(r registry.RedeliverRequest) (id string, err error) {
	it, err := t.Item(r.ItemID)
	if err != nil {
		return "", err
	}
	m := registry.DeliverySpec{Subject: it.ID, Times: it.RetryCount, Again: true, Reason: r.Reason}
	switch {
	case it.Action == registry.Batch:
		now, err := collection.ProfileNow(t.Tx, it.Collection)
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
	now, err := collection.ProfileNow(t.Tx, it.Collection)
	if err != nil {
		return "", err
	}
	if now.Callback == nil {
		return "", fmt.Errorf("collection %s: %w", it.Collection, registry.ErrNoCallback)
	}
	m.Callback = *now.Callback
	return t.carry(it, m, r.Actor)
}

// fromDelivery is messages d, each with the item c that goes on with it, or did, while it is there.
const fromDelivery = ` FROM delivery d LEFT JOIN work_item c ON c.id = d.item_id `

const selectDelivery = `SELECT d.id, d.subject, d.kind, d.state, d.target, d.tries, d.tried_at, d.sent_at, d.http_status, d.error, COALESCE(c.id, '')` + fromDelivery

// itemGoesOn is true of a message whose item c still goes on with it, or failed and waits for an
// admin.
const itemGoesOn = `c.status NOT IN ('completed', 'aborted', 'deleted')`

// jobGoesOn is true of a message that its job tells by itself, and still does, or did when it
// failed: nobody gave that up.
const jobGoesOn = `d.kind = 'callback' AND d.state = '` + string(registry.StateCompleted) + `' AND EXISTS (SELECT 1 FROM work_item j JOIN work_detail w ON w.item_id = j.id
	WHERE j.id = d.subject AND j.stage = '` + string(registry.Notify) + `' AND j.status NOT IN ('completed', 'aborted', 'deleted')
	AND w.results NOT LIKE '%"` + registry.ResultUntold + `":%')`

func scanDelivery(row sqldb.Scanner) (d registry.Delivery, err error) {
	var tried, sent sql.NullInt64
	err = row.Scan(&d.ID, &d.Subject, &d.Kind, &d.State, &d.Target, &d.Tries, &tried, &sent, &d.Status, &d.Error, &d.ItemID)
	if tried.Valid {
		at := sqldb.FromMicros(tried.Int64)
		d.TriedAt = &at
	}
	if sent.Valid {
		at := sqldb.FromMicros(sent.Int64)
		d.SentAt = &at
	}
	return d, err
}

// Deliveries implements registry.DeliveryReader.
func (s *Outbound) Deliveries(ctx context.Context, itemID string) ([]registry.Delivery, error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, selectDelivery+`WHERE d.subject = $1 ORDER BY d.created_at, d.id`, sqldb.Clean(itemID)),
		"list deliveries of item "+itemID, scanDelivery)
}
