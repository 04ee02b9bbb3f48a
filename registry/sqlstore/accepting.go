package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

const (
	selectAccepting = `SELECT value = 'on', reason, actor, at FROM setting WHERE name = 'accepting'`
	eventAccepting  = "accepting"
)

// scanAccepting reads the row of selectAccepting. Where nobody said anything, submissions are taken.
func scanAccepting(row scanner) (registry.Accepting, error) {
	var a registry.Accepting
	var at int64
	err := row.Scan(&a.On, &a.Reason, &a.Actor, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return registry.Accepting{On: true}, nil
	} else if err != nil {
		return a, fmt.Errorf("look up whether submissions are accepted: %w", err)
	}
	a.Since = fromMicros(at)
	return a, nil
}

// Accepting implements registry.Reading.
func (s *Store) Accepting(ctx context.Context) (registry.Accepting, error) {
	return scanAccepting(s.read.QueryRowContext(ctx, selectAccepting))
}

// accepting returns *registry.NotAccepting while no submissions are taken: what everything asks that lets one in.
func (t *tx) accepting() error {
	a, err := scanAccepting(t.row(selectAccepting))
	if err != nil {
		return err
	}
	if !a.On {
		return &registry.NotAccepting{Accepting: a}
	}
	return nil
}

// SetAccepting implements registry.Administering.
func (s *Store) SetAccepting(ctx context.Context, a registry.Accepting) error {
	value := "off"
	if a.On {
		value = "on"
	}
	a.Reason, a.Actor = clean(a.Reason), clean(a.Actor)
	err := s.write(ctx, func(t *tx) error {
		// A repeat says the same since the same time.
		err := t.do(`INSERT INTO setting (name, value, reason, actor, at) VALUES ('accepting', $1, $2, $3, $4)
			ON CONFLICT (name) DO UPDATE SET value = $1, reason = $2, actor = $3,
				at = CASE WHEN setting.value = $1 THEN setting.at ELSE $4 END`, value, a.Reason, a.Actor, t.now)
		if err != nil {
			return err
		}
		return t.event("", 0, eventAccepting, a.Actor, map[string]string{"value": value, "reason": a.Reason})
	})
	if err != nil {
		return fmt.Errorf("turn accepting submissions %s: %w", value, err)
	}
	return nil
}
