package outbound

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

const selectSubscription = `SELECT id, name, target, filter, told_up_to, told, told_at, turn, rewinds, owner, paused_at, paused_by, paused_why,
	failing_since, tries, error, next_try, created_by, created_at FROM subscription `

func scanSubscription(row sqldb.Scanner) (registry.Subscription, error) {
	var s registry.Subscription
	var filter, pausedBy, pausedWhy string
	var toldAt, pausedAt, failing, next sql.NullInt64
	var created int64
	err := row.Scan(&s.ID, &s.Name, &s.Target, &filter, &s.Cursor, &s.Told, &toldAt, &s.Turn, &s.Rewinds, &s.Owner, &pausedAt, &pausedBy, &pausedWhy,
		&failing, &s.Tries, &s.Error, &next, &s.CreatedBy, &created)
	if err != nil {
		return s, err
	}
	s.ToldAt, s.FailingSince, s.NextTry, s.CreatedAt = sqldb.Optional(toldAt), sqldb.Optional(failing), sqldb.Optional(next), sqldb.FromMicros(created)
	if at := sqldb.Optional(pausedAt); at != nil {
		s.Paused = &registry.SubscriptionPause{Actor: pausedBy, Reason: pausedWhy, At: *at}
	}
	if err := json.Unmarshal([]byte(filter), &s.Filter); err != nil {
		return s, fmt.Errorf("decode filter of subscription %s: %w", s.Name, err)
	}
	return s, nil
}

// subscription returns a subscription by name, or ErrNotFound.
func (t *Tx) subscription(name string) (registry.Subscription, error) {
	s, err := scanSubscription(t.Row(selectSubscription+`WHERE name = $1`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return s, registry.ErrNotFound
	}
	return s, err
}

// Subscriptions implements registry.Subscribing.
func (s *Outbound) Subscriptions(ctx context.Context) ([]registry.Subscription, error) {
	all, err := s.AllSubscriptions(ctx, `ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("list subscriptions: %w", err)
	}
	return all, nil
}

// AllSubscriptions lists the subscriptions that a SQL clause selects, with how far each is behind
// the feed.
func (s *Outbound) AllSubscriptions(ctx context.Context, which string) ([]registry.Subscription, error) {
	all, err := sqldb.Collect(s.db.Read.Ask(ctx, selectSubscription+which), "", scanSubscription)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	end, err := s.work.FeedEnd(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		b := &all[i]
		if b.Cursor >= end {
			continue
		}
		next, err := s.work.Feed(ctx, registry.FeedQuery{After: b.Cursor, Limit: 1})
		if err != nil {
			return nil, err
		}
		b.Behind = end - b.Cursor
		if len(next) > 0 {
			b.BehindSince = &next[0].At
		}
	}
	return all, nil
}

// changeSubscription runs a person's change of a subscription, and returns the subscription as it
// is afterwards.
func (s *Outbound) changeSubscription(ctx context.Context, what, name string, change func(*Tx) error) (out registry.Subscription, err error) {
	err = s.write(ctx, func(t *Tx) (err error) {
		if sqldb.Clean(name) != name {
			return registry.ErrNotFound // no stored name looks like this
		}
		if err := change(t); err != nil {
			return err
		}
		out, err = t.subscription(name)
		return err
	})
	if err != nil {
		return registry.Subscription{}, fmt.Errorf("%s subscription %s: %w", what, name, err)
	}
	return out, nil
}

// clearFailure is part of every change by a person: it fences the process that forwards, and clears
// the failure.
const clearFailure = `turn = turn + 1, failing_since = NULL, tries = 0, error = '', next_try = NULL`

// PutSubscription implements registry.Subscribing.
func (s *Outbound) PutSubscription(ctx context.Context, r registry.SubscriptionRequest) (registry.Subscription, error) {
	if err := r.Check(); err != nil {
		return registry.Subscription{}, fmt.Errorf("set subscription: %w", err)
	}
	return s.changeSubscription(ctx, "set", r.Name, func(t *Tx) error { return t.putSubscription(r) })
}

func (t *Tx) putSubscription(r registry.SubscriptionRequest) error {
	if err := t.setSubscription(r); err != nil {
		return err
	}
	for _, c := range r.Credentials {
		if err := t.putCredential(c); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) setSubscription(r registry.SubscriptionRequest) error {
	filter, err := json.Marshal(r.Filter)
	if err != nil {
		return fmt.Errorf("encode filter: %w", err)
	}
	have, err := t.subscription(r.Name)
	if errors.Is(err, registry.ErrNotFound) {
		from, err := t.cursorAt(r.From)
		if err != nil {
			return err
		}
		err = t.Do(`INSERT INTO subscription (id, name, target, filter, told_up_to, told, turn, rewinds, owner, lease_until, paused_by, paused_why,
				tries, error, created_by, created_at)
			VALUES ($1, $2, $3, $4, $5, 0, 1, 0, '', 0, '', '', 0, '', $6, $7)`,
			sqldb.NewID(), r.Name, r.Target, string(filter), from, sqldb.Clean(r.Actor), t.Now)
		if err != nil {
			return err
		}
		return t.noteSubscription(r.Name, registry.EventSubscriptionSet, r.Actor, subscriptionEvent{
			Receiver: registry.Subscription{Target: r.Target}.Receiver(), Filter: &r.Filter, Cursor: &from,
		})
	} else if err != nil {
		return err
	}
	if stored, err := json.Marshal(have.Filter); err != nil || have.Target == r.Target && bytes.Equal(stored, filter) {
		return err
	}
	if err := t.Do(`UPDATE subscription SET target = $2, filter = $3, `+clearFailure+` WHERE id = $1`, have.ID, r.Target, string(filter)); err != nil {
		return err
	}
	return t.noteSubscription(r.Name, registry.EventSubscriptionSet, r.Actor, subscriptionEvent{
		Receiver: registry.Subscription{Target: r.Target}.Receiver(), Filter: &r.Filter,
	})
}

// cursorAt resolves a cursor that a person gave: FeedNow is the feed's end. It returns ErrInvalid
// for a cursor beyond the end.
func (t *Tx) cursorAt(cursor int64) (int64, error) {
	var end int64
	if err := t.Get(`SELECT COALESCE(MAX(feed_seq), 0) FROM event`, nil, &end); err != nil {
		return 0, fmt.Errorf("look up the feed's end: %w", err)
	}
	switch {
	case cursor == registry.FeedNow:
		return end, nil
	case cursor < 0:
		return 0, fmt.Errorf("%w: no event has the number %d", registry.ErrInvalid, cursor)
	case cursor > end:
		return 0, fmt.Errorf("%w: the newest event is %d", registry.ErrInvalid, end)
	}
	return cursor, nil
}

// subscriptionEvent is the data of an event about a subscription. It leaves out a webhook's full
// address: the path may be a secret, and more people see events.
type subscriptionEvent struct {
	Receiver string               `json:"receiver,omitempty"`
	Filter   *registry.FeedFilter `json:"filter,omitempty"`
	Cursor   *int64               `json:"cursor,omitempty"`
	Reason   string               `json:"reason,omitempty"`
}

func (t *Tx) noteSubscription(name, kind, actor string, data subscriptionEvent) error {
	return t.Event(registry.SubscriptionOwner(name), 0, kind, actor, data)
}

// retryNow makes a failing subscription try again at once, because its credentials changed. It
// leaves other subscriptions, and collections, alone.
func (t *Tx) retryNow(owner string) error {
	name, ok := registry.OwningSubscription(owner)
	if !ok {
		return nil
	}
	return t.Do(`UPDATE subscription SET `+clearFailure+` WHERE name = $1 AND failing_since IS NOT NULL`, name)
}

// RemoveSubscription implements registry.Subscribing.
func (s *Outbound) RemoveSubscription(ctx context.Context, name, actor string) error {
	err := s.write(ctx, func(t *Tx) error {
		if sqldb.Clean(name) != name {
			return registry.ErrNotFound
		}
		have, err := t.subscription(name)
		if err != nil {
			return err
		}
		if err := t.Do(`DELETE FROM credential WHERE collection = $1`, registry.SubscriptionOwner(name)); err != nil {
			return err
		}
		if err := t.Do(`DELETE FROM subscription WHERE id = $1`, have.ID); err != nil {
			return err
		}
		return t.noteSubscription(name, registry.EventSubscriptionRemoved, actor, subscriptionEvent{Receiver: have.Receiver(), Cursor: &have.Cursor})
	})
	if err != nil {
		return fmt.Errorf("remove subscription %s: %w", name, err)
	}
	return nil
}

// RewindSubscription implements registry.Subscribing.
func (s *Outbound) RewindSubscription(ctx context.Context, name string, cursor int64, reason, actor string) (registry.Subscription, error) {
	return s.changeSubscription(ctx, "rewind", name, func(t *Tx) error {
		have, err := t.subscription(name)
		if err != nil {
			return err
		}
		if cursor, err = t.cursorAt(cursor); err != nil {
			return err
		}
		if err := t.Do(`UPDATE subscription SET told_up_to = $2, rewinds = rewinds + 1, `+clearFailure+` WHERE id = $1`, have.ID, cursor); err != nil {
			return err
		}
		return t.noteSubscription(name, registry.EventSubscriptionRewound, actor, subscriptionEvent{Cursor: &cursor, Reason: sqldb.Clean(reason)})
	})
}

// PauseSubscription implements registry.Subscribing.
func (s *Outbound) PauseSubscription(ctx context.Context, name, reason, actor string) (registry.Subscription, error) {
	return s.changeSubscription(ctx, "pause", name, func(t *Tx) error {
		have, err := t.subscription(name)
		if err != nil {
			return err
		}
		err = t.Do(`UPDATE subscription SET paused_at = COALESCE(paused_at, $2), paused_by = $3, paused_why = $4, owner = '', lease_until = 0, turn = turn + 1
			WHERE id = $1`, have.ID, t.Now, sqldb.Clean(actor), sqldb.Clean(reason))
		if err != nil {
			return err
		}
		return t.noteSubscription(name, registry.EventSubscriptionPaused, actor, subscriptionEvent{Reason: sqldb.Clean(reason)})
	})
}

// ResumeSubscription implements registry.Subscribing.
func (s *Outbound) ResumeSubscription(ctx context.Context, name, actor string) (registry.Subscription, error) {
	return s.changeSubscription(ctx, "resume", name, func(t *Tx) error {
		have, err := t.subscription(name)
		if err != nil || have.Paused == nil && have.FailingSince == nil {
			return err
		}
		err = t.Do(`UPDATE subscription SET paused_at = NULL, paused_by = '', paused_why = '', `+clearFailure+` WHERE id = $1`, have.ID)
		if err != nil {
			return err
		}
		return t.noteSubscription(name, registry.EventSubscriptionResumed, actor, subscriptionEvent{})
	})
}
