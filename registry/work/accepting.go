package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

const (
	selectAccepting = `SELECT value = 'on', reason, actor, at FROM setting WHERE name = 'accepting'`
	eventAccepting  = "accepting"
)

// scanAccepting reads the row of selectAccepting. Without a row, submissions are accepted.
func scanAccepting(row sqldb.Scanner) (registry.Accepting, error) {
	var a registry.Accepting
	var at int64
	err := row.Scan(&a.On, &a.Reason, &a.Actor, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return registry.Accepting{On: true}, nil
	} else if err != nil {
		return a, fmt.Errorf("look up whether submissions are accepted: %w", err)
	}
	a.Since = sqldb.FromMicros(at)
	return a, nil
}

// Accepting implements registry.Submitting.
func (e *Engine) Accepting(ctx context.Context) (registry.Accepting, error) {
	return scanAccepting(e.db.Read.QueryRowContext(ctx, selectAccepting))
}

// Accepting returns a *registry.NotAccepting while submissions are not accepted. Everything that
// admits one calls it.
func (t *Tx) Accepting() error {
	a, err := scanAccepting(t.Row(selectAccepting))
	if err != nil {
		return err
	}
	if !a.On {
		return &registry.NotAccepting{Accepting: a}
	}
	return nil
}

// SetAccepting implements registry.Commanding.
func (e *Engine) SetAccepting(ctx context.Context, a registry.Accepting) error {
	value := "off"
	if a.On {
		value = "on"
	}
	a.Reason, a.Actor = sqldb.Clean(a.Reason), sqldb.Clean(a.Actor)
	err := e.Write(ctx, func(t *Tx) error {
		// A repeated command keeps the time of the first.
		err := t.Do(`INSERT INTO setting (name, value, reason, actor, at) VALUES ('accepting', $1, $2, $3, $4)
			ON CONFLICT (name) DO UPDATE SET value = $1, reason = $2, actor = $3,
				at = CASE WHEN setting.value = $1 THEN setting.at ELSE $4 END`, value, a.Reason, a.Actor, t.Now)
		if err != nil {
			return err
		}
		return t.Event("", 0, eventAccepting, a.Actor, map[string]string{"value": value, "reason": a.Reason})
	})
	if err != nil {
		return fmt.Errorf("turn accepting submissions %s: %w", value, err)
	}
	return nil
}
