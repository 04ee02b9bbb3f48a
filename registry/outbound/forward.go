package outbound

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// TakeSubscriptions implements registry.Forwarding. It writes nothing while no subscription is
// active.
func (s *Outbound) TakeSubscriptions(ctx context.Context, owner string, lease time.Duration) (out []registry.SubscriptionTurn, err error) {
	if owner == "" || sqldb.Clean(owner) != owner || lease <= 0 {
		return nil, fmt.Errorf("take subscriptions: %w: owner or lease is missing", registry.ErrInvalid)
	}
	var any bool
	err = s.db.Read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM subscription WHERE paused_at IS NULL)`).Scan(&any)
	if err == nil && any {
		err = s.write(ctx, func(t *Tx) (err error) {
			out, err = t.takeSubscriptions(owner, lease)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("take subscriptions: %w", err)
	}
	return out, nil
}

func (t *Tx) takeSubscriptions(owner string, lease time.Duration) (out []registry.SubscriptionTurn, err error) {
	// Writing transactions run one after the other, so the condition still holds when the row is
	// written (R16).
	err = t.Do(`UPDATE subscription SET turn = CASE WHEN owner = $1 THEN turn ELSE turn + 1 END, owner = $1, lease_until = $3
		WHERE paused_at IS NULL AND (owner = $1 OR owner = '' OR lease_until < $2)`, owner, t.Now, t.Now+lease.Microseconds())
	if err != nil {
		return nil, err
	}
	source, err := t.Source()
	if err != nil {
		return nil, err
	}
	all, err := sqldb.Collect(t.Ask(selectSubscription+`WHERE owner = $1 ORDER BY name`, owner), "", scanSubscription)
	for _, b := range all {
		leased := registry.SubscriptionTurn{Subscription: b, Source: source}
		if b.NextTry != nil {
			leased.Wait = max(0, b.NextTry.Sub(sqldb.FromMicros(t.Now)))
		}
		out = append(out, leased)
	}
	return out, err
}

// endLeases ends the leases of all processes that forward events.
func (t *Tx) endLeases() error {
	return t.Do(`UPDATE subscription SET owner = '', lease_until = 0 WHERE owner <> ''`)
}

// NoteForwarded implements registry.Forwarding.
func (s *Outbound) NoteForwarded(ctx context.Context, p registry.SubscriptionProgress) error {
	return s.fencedUpdate(ctx, p.ID, func(t *Tx) (int64, error) {
		return t.Exec(`UPDATE subscription SET told_up_to = $3, told = told + $4, told_at = CASE WHEN $4 > 0 THEN $5 ELSE told_at END,
			failing_since = NULL, tries = 0, error = '', next_try = NULL WHERE id = $1 AND turn = $2`, p.ID, p.Turn, p.Cursor, p.Told, t.Now)
	})
}

// NoteUnforwarded implements registry.Forwarding.
func (s *Outbound) NoteUnforwarded(ctx context.Context, f registry.SubscriptionFailure) error {
	return s.fencedUpdate(ctx, f.ID, func(t *Tx) (int64, error) {
		return t.Exec(`UPDATE subscription SET failing_since = COALESCE(failing_since, $3), tries = tries + 1, error = $4, next_try = $5
			WHERE id = $1 AND turn = $2`, f.ID, f.Turn, t.Now, sqldb.Clean(f.Error), t.Now+f.Wait.Microseconds())
	})
}

// fencedUpdate runs an update of a leased subscription. It returns registry.ErrSubscriptionLost if
// the update changes no row, because another process has the lease.
func (s *Outbound) fencedUpdate(ctx context.Context, id string, update func(*Tx) (int64, error)) error {
	err := s.write(ctx, func(t *Tx) error {
		n, err := update(t)
		if err == nil && n == 0 {
			err = registry.ErrSubscriptionLost
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("save the progress of subscription %s: %w", id, err)
	}
	return nil
}

// ReleaseSubscriptions implements registry.Forwarding.
func (s *Outbound) ReleaseSubscriptions(ctx context.Context, owner string) error {
	err := s.write(ctx, func(t *Tx) error {
		return t.Do(`UPDATE subscription SET owner = '', lease_until = 0, turn = turn + 1 WHERE owner = $1 AND owner <> ''`, owner)
	})
	if err != nil {
		return fmt.Errorf("release subscriptions: %w", err)
	}
	return nil
}
