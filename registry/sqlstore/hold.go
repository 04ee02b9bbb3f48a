package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// checkHold refuses what would cover nothing, or everything by mistake.
func checkHold(h registry.Hold) error {
	switch h.Scope {
	case registry.HoldAll:
		if h.Key != "" {
			return errors.New("a hold on everything has no key")
		}
		return nil
	case registry.HoldStage, registry.HoldCollection, registry.HoldBatch, registry.HoldItem:
		if h.Key == "" {
			return errors.New("a hold needs a key")
		}
		return nil
	}
	return errors.New("unknown scope")
}

// AddHold implements registry.Administering.
func (s *Store) AddHold(ctx context.Context, h registry.Hold) error {
	if err := checkHold(h); err != nil {
		return fmt.Errorf("hold %s %s: %w", h.Scope, h.Key, err)
	}
	err := s.write(ctx, func(t *tx) error { return t.addHold(h) })
	if err != nil {
		return fmt.Errorf("hold %s %s: %w", h.Scope, h.Key, err)
	}
	return nil
}

func (t *tx) addHold(h registry.Hold) error {
	_, err := t.exec(`INSERT INTO hold (scope, key, reason, actor, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (scope, key) DO UPDATE SET reason = $3, actor = $4`, h.Scope, h.Key, clean(h.Reason), clean(h.Actor), t.now)
	if err != nil {
		return err
	}
	return t.event(h.Key, 0, "hold", h.Actor, map[string]string{"scope": string(h.Scope), "key": h.Key, "reason": h.Reason})
}

// RemoveHold implements registry.Administering.
func (s *Store) RemoveHold(ctx context.Context, scope registry.HoldScope, key, actor string) error {
	err := s.write(ctx, func(t *tx) error { return t.removeHold(scope, key, actor) })
	if err != nil {
		return fmt.Errorf("release hold on %s %s: %w", scope, key, err)
	}
	return nil
}

func (t *tx) removeHold(scope registry.HoldScope, key, actor string) error {
	n, err := t.exec(`DELETE FROM hold WHERE scope = $1 AND key = $2`, scope, key)
	if err != nil {
		return err
	}
	if n == 0 {
		return registry.ErrNotFound
	}
	// Ring for what waited; what another hold covers is skipped when it is offered.
	_, err = t.exec(`UPDATE work_item SET nudge_at = $1, nudges = 0 WHERE status = 'pending' AND nudge_at > $1 AND run_at <= $1`, t.now)
	if err != nil {
		return err
	}
	if err := t.putBack(scope, key); err != nil {
		return err
	}
	t.wake = true
	return t.event(key, 0, "release-hold", actor, map[string]string{"scope": string(scope), "key": key})
}

// Holds implements registry.Administering.
func (s *Store) Holds(ctx context.Context) (out []registry.Hold, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT scope, key, reason, actor, created_at FROM hold ORDER BY scope, key`)
	if err != nil {
		return nil, fmt.Errorf("list holds: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var h registry.Hold
		var at int64
		if err := rows.Scan(&h.Scope, &h.Key, &h.Reason, &h.Actor, &at); err != nil {
			return nil, fmt.Errorf("list holds: %w", err)
		}
		h.CreatedAt = fromMicros(at)
		out = append(out, h)
	}
	return out, rows.Err()
}
