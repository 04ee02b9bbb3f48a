package outbound

import (
	"cmp"
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
		if d, err = t.recordTry(try); err != nil {
			return err
		}
		event := d
		event.Target = try.Message.Masked().Target() // events outlive a purge of the batch and its deliveries
		event.Error = strings.ReplaceAll(event.Error, d.Target, event.Target)
		return t.Event(try.Message.Subject, 0, registry.EventDelivery, work.ActorWorker, event)
	})
	if err != nil {
		return d, fmt.Errorf("record a try to deliver %s: %w", try.Message.ID(), err)
	}
	return d, nil
}

// recordTry records a try in the message's row. If the item was purged meanwhile it adds no row:
// the row holds an address, and nothing would delete it.
func (t *Tx) recordTry(try registry.DeliveryTry) (d registry.Delivery, err error) {
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
	if err := t.addDelivery(m, ""); err != nil {
		return d, err
	}
	var sent sql.NullInt64
	if try.Error == "" {
		sent = sql.NullInt64{Int64: t.Now, Valid: true}
		if m.State == registry.StateCompleted && m.Mail == "" {
			if err := t.clearUntold(subject); err != nil {
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

// addDelivery adds the row of a message, if there is none. carrier is the item that delivers it
// from now on; "" is the job itself.
func (t *Tx) addDelivery(m registry.DeliverySpec, carrier string) error {
	err := t.InsertRows(insertDelivery, [][]any{t.deliveryRow(m, carrier)})
	if err != nil || carrier == "" {
		return err
	}
	return t.Do(`UPDATE delivery SET item_id = $2, target = $3 WHERE id = $1`, m.ID(), carrier, m.Target())
}

// insertDelivery inserts rows of deliveryRow.
var insertDelivery = sqldb.InsertNew(`INSERT INTO delivery (id, subject, kind, state, target, tries, created_at, http_status, error, item_id)`,
	`($1, $2, $3, $4, $5, 0, $6, 0, '', $7)`)

func (t *Tx) deliveryRow(m registry.DeliverySpec, carrier string) []any {
	return []any{m.ID(), m.Subject, m.Kind(), m.State, m.Target(), t.Now, carrier}
}

// messageItem returns a new item that delivers a message about an item of a tenant and collection.
func messageItem(tenant, collection string, m registry.DeliverySpec, actor string) work.NewItem {
	route, _ := registry.RouteOf(registry.DeliverMessage)
	m.Reason = sqldb.Clean(m.Reason)
	return work.NewItem{
		ID: sqldb.NewID(), Tenant: tenant, Collection: collection, Action: registry.DeliverMessage, Stage: route.First(),
		Status: registry.Pending, Priority: registry.DefaultPriority, Name: m.Title(), Actor: actor, Input: m, EventSpec: m.Masked(),
	}
}

// queueMessage adds the item that delivers a message about an item.
func (t *Tx) queueMessage(it registry.WorkItem, m registry.DeliverySpec, actor string) (id string, err error) {
	if of := registry.TraceOf(it.Spec); of.Parent != "" {
		m.Trace = &of
	}
	m.About = called(it.ID, it.Heading())
	n := messageItem(it.Tenant, it.Collection, m, actor)
	if err := t.Insert(n); err != nil {
		return "", err
	}
	return n.ID, t.addDelivery(m, n.ID)
}

// called returns an item's heading; "" if it is only the id.
func called(id, heading string) string {
	if heading == id {
		return ""
	}
	return sqldb.Clean(heading)
}

// queueDigest adds the item that delivers a digest to operators. The message is about this item
// itself, which is in no collection.
func (t *Tx) queueDigest(m registry.DeliverySpec) error {
	n := messageItem(sqldb.Tenant, "", m, work.ActorRegistry)
	n.ID = m.Subject
	if err := t.Insert(n); err != nil {
		return err
	}
	return t.addDelivery(m, n.ID)
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
			return fmt.Errorf("%w: item %s delivers no message about item %s", registry.ErrInvalid, it.ID, m.Subject)
		}
		if m, err = t.ownMessage(it, m); err != nil {
			return err
		}
		var passed bool // an item that was given up delivers nothing
		err = t.Get(`SELECT EXISTS (SELECT 1`+fromDelivery+`WHERE d.id = $1 AND c.status NOT IN ('aborted', 'deleted'))`, []any{m.ID()}, &passed)
		if passed || err != nil {
			return err
		}
		_, err = t.queueMessage(it, m, work.ActorWorker)
		return err
	})
	if err != nil {
		return fmt.Errorf("queue delivery %s as an item: %w", m.ID(), err)
	}
	return nil
}

// queueFailureCallback queues the failure callback in the transaction that fails the job. A job
// that fails at notify gets none: its object is preserved, and it is the receiver that does not
// answer.
func (t *Tx) queueFailureCallback(s work.Shift) error {
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
	if m, wanted := failureMessage(it.ID, it.RetryCount, callback); wanted {
		_, err = t.queueMessage(it, m, work.ActorRegistry)
	}
	return err
}

// failureMessage returns the message that a job failed after so many requeues. wanted is false if
// the receiver wants none.
func failureMessage(jobID string, times int, to *registry.Callback) (m registry.DeliverySpec, wanted bool) {
	if to == nil || to.CompletedOnly {
		return m, false
	}
	return registry.DeliverySpec{Subject: jobID, State: registry.StateFailed, Times: times, Callback: *to}, true
}

// QueueFailureCallbacks queues the failure callbacks of new jobs that were refused, with a constant
// number of statements. It skips the other jobs.
func (t *Tx) QueueFailureCallbacks(jobs []work.NewItem) error {
	var carriers []work.NewItem
	var rows [][]any
	for _, n := range jobs {
		m, wanted := failureMessage(n.ID, 0, n.Spec.Profile.Callback)
		if n.Status != registry.Failed || !wanted {
			continue
		}
		m.Trace, m.About = n.Spec.Trace, called(n.ID, cmp.Or(n.Spec.OwnTitle(), n.Name))
		carrier := messageItem(n.Tenant, n.Collection, m, work.ActorRegistry)
		carriers, rows = append(carriers, carrier), append(rows, t.deliveryRow(m, carrier.ID))
	}
	if len(carriers) == 0 {
		return nil
	}
	if err := t.Insert(carriers...); err != nil {
		return err
	}
	return t.InsertRows(insertDelivery, rows)
}

// callbackOf returns the callback that the job's collection had at the submission, or nil.
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
		return registry.WorkItem{}, fmt.Errorf("redeliver the outcome of item %s: %w", r.ItemID, err)
	}
	return it, nil
}

func (t *Tx) redeliver(r registry.RedeliverRequest) (id string, err error) {
	it, err := t.Item(r.ItemID)
	if err != nil {
		return "", err
	}
	m, told := outcomeOf(it)
	switch {
	case it.Action == registry.Batch:
		now, err := collection.ProfileNow(t.Tx, it.Collection)
		if err != nil {
			return "", err
		}
		return t.mailAgain(it, now, r)
	case it.Action != registry.Ingest:
		return "", fmt.Errorf("%w: there are no messages about items of action %s", registry.ErrInvalid, it.Action)
	case !told:
		return "", fmt.Errorf("%w: it is %v; only completed and failed jobs have messages", registry.ErrInvalid, it.State)
	}
	now, err := collection.ProfileNow(t.Tx, it.Collection)
	if err != nil {
		return "", err
	}
	if now.Callback == nil {
		return "", fmt.Errorf("collection %s: %w", it.Collection, registry.ErrNoCallback)
	}
	m.Callback, m.Again, m.Reason = *now.Callback, true, r.Reason
	return t.queueMessage(it, m, r.Actor)
}

// RedeliverJobs implements registry.Notifying.
func (s *Outbound) RedeliverJobs(ctx context.Context, r registry.RedeliverJobsRequest) (out registry.Redelivered, err error) {
	args, err := work.Fingerprint(struct{ BatchID, After, Reason string }{r.BatchID, r.After, r.Reason})
	if err != nil {
		return out, err
	}
	err = s.write(ctx, func(t *Tx) error {
		_, known, err := t.Keyed(r.IdempotencyKey, args)
		if err == nil {
			out, err = t.redeliverJobs(r, known)
		}
		if err == nil && !known {
			err = t.Answer(r.IdempotencyKey, args, r.BatchID, registry.Act(registry.DeliverMessage), r.Actor)
		}
		return err
	})
	if err != nil {
		return registry.Redelivered{}, fmt.Errorf("redeliver the outcomes of batch %s: %w", r.BatchID, err)
	}
	return out, nil
}

// redeliverJobs queues the deliveries, unless that was done before.
func (t *Tx) redeliverJobs(r registry.RedeliverJobsRequest, done bool) (out registry.Redelivered, err error) {
	batch, err := t.Item(r.BatchID)
	if err != nil {
		return out, err
	}
	if batch.Action != registry.Batch {
		return out, fmt.Errorf("%w: item %s is no batch", registry.ErrInvalid, r.BatchID)
	}
	now, err := collection.ProfileNow(t.Tx, batch.Collection)
	if err != nil {
		return out, err
	}
	if now.Callback == nil {
		return out, fmt.Errorf("collection %s: %w", batch.Collection, registry.ErrNoCallback)
	}
	after := int64(-1)
	if r.After != "" {
		if after, _, err = sqldb.ParseCursor(r.After); err != nil {
			return out, err
		}
	}
	jobs, err := t.outcomes(batch.ID, after)
	if err != nil {
		return out, err
	}
	if len(jobs) > registry.RedeliveredAtOnce {
		jobs = jobs[:registry.RedeliveredAtOnce]
		out.Next = sqldb.Cursor(jobs[len(jobs)-1].row, "")
	}
	var carriers []work.NewItem
	var rows, carried [][]any
	for _, j := range jobs {
		if j.State == "" {
			continue
		}
		m := j.DeliverySpec
		m.Callback, m.Again, m.Reason = *now.Callback, true, r.Reason
		carrier := messageItem(batch.Tenant, batch.Collection, m, r.Actor)
		carriers, rows = append(carriers, carrier), append(rows, t.deliveryRow(m, carrier.ID))
		carried = append(carried, []any{m.ID(), carrier.ID, m.Target()})
	}
	out.Queued = int64(len(carriers))
	if done || len(carriers) == 0 {
		return out, nil
	}
	if err := t.Insert(carriers...); err != nil {
		return out, err
	}
	if err := t.InsertRows(insertDelivery, rows); err != nil {
		return out, err
	}
	return out, t.InsertRows(carryDelivery, carried)
}

// carryDelivery says which items deliver messages from now on.
var carryDelivery = sqldb.UpdateFrom(`UPDATE delivery SET item_id = v.column2, target = v.column3`, `($1, $2, $3)`, `delivery.id = v.column1`)

// outcome is what there is to tell about a job; State is "" if there is nothing yet.
type outcome struct {
	registry.DeliverySpec
	row int64
}

// outcomes returns the outcomes of the jobs of a batch after a row, in their order: one more than
// are redelivered at once.
func (t *Tx) outcomes(batch string, after int64) ([]outcome, error) {
	ask := t.Ask(`SELECT id, action, status, stage, retry_count, row_no FROM work_item WHERE parent_id = $1 AND row_no > $2 ORDER BY row_no`+
		sqldb.Limit(registry.RedeliveredAtOnce+1), batch, after)
	return sqldb.Collect(ask, "list the jobs of batch "+batch, func(row sqldb.Scanner) (o outcome, err error) {
		var it registry.WorkItem
		if err := row.Scan(&it.ID, &it.Action, &it.Status, &it.Stage, &it.RetryCount, &o.row); err != nil {
			return o, err
		}
		o.DeliverySpec, _ = outcomeOf(it)
		return o, nil
	})
}

// outcomeOf returns the message about the outcome of a job, without its receiver; ok is false if it
// has none yet.
func outcomeOf(it registry.WorkItem) (m registry.DeliverySpec, ok bool) {
	m = registry.DeliverySpec{Subject: it.ID, Times: it.RetryCount}
	switch {
	case it.Action != registry.Ingest:
	case it.Status == registry.Completed, it.Status == registry.Failed && it.Stage == registry.Notify:
		m.State = registry.StateCompleted
	case it.Status == registry.Failed:
		m.State = registry.StateFailed
	}
	return m, m.State != ""
}

// fromDelivery selects messages d, each with the item c that delivers it, if that exists.
const fromDelivery = ` FROM delivery d LEFT JOIN work_item c ON c.id = d.item_id `

const selectDelivery = `SELECT d.id, d.subject, d.kind, d.state, d.target, d.tries, d.tried_at, d.sent_at, d.http_status, d.error, COALESCE(c.id, '')` + fromDelivery

// itemOpen is true for a message whose item c still delivers it, or failed and waits for an
// operator.
const itemOpen = `c.status NOT IN ('completed', 'aborted', 'deleted')`

// jobOpen is true for a message that its job delivers at its notify stage, unless that delivery was
// given up or is done.
const jobOpen = `d.kind = 'callback' AND d.state = '` + string(registry.StateCompleted) + `' AND EXISTS (SELECT 1 FROM work_item j JOIN work_detail w ON w.item_id = j.id
	WHERE j.id = d.subject AND j.stage = '` + string(registry.Notify) + `' AND j.status NOT IN ('completed', 'aborted', 'deleted')
	AND w.results NOT LIKE '%"` + registry.ResultUntold + `":%')`

func scanDelivery(row sqldb.Scanner) (d registry.Delivery, err error) {
	var tried, sent sql.NullInt64
	err = row.Scan(&d.ID, &d.Subject, &d.Kind, &d.State, &d.Target, &d.Tries, &tried, &sent, &d.Status, &d.Error, &d.ItemID)
	d.TriedAt, d.SentAt = sqldb.Optional(tried), sqldb.Optional(sent)
	return d, err
}

// Deliveries implements registry.DeliveryReader.
func (s *Outbound) Deliveries(ctx context.Context, itemID string) ([]registry.Delivery, error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, selectDelivery+`WHERE d.subject = $1 ORDER BY d.created_at, d.id`, sqldb.Clean(itemID)),
		"list deliveries of item "+itemID, scanDelivery)
}
