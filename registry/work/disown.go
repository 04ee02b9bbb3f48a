package work

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// disownedAtOnce is how many attempts one transaction takes from revoked tokens (R25).
const disownedAtOnce = 100

// ofRevoked is true for the attempts a whose token was revoked. They live until they are taken
// away, and write nothing any more.
const ofRevoked = `EXISTS (SELECT 1 FROM token k WHERE k.id = a.token AND k.revoked_at IS NOT NULL)`

// Disown takes from revoked tokens what they have claimed, uncounted, so that other workers have it
// at once. It takes some at a time, so that others write meanwhile. What it leaves when it is
// stopped, the next call takes; the sweep makes one.
func (e *Engine) Disown(ctx context.Context, actor string) error {
	for {
		var taken int
		err := e.Write(ctx, func(t *Tx) (err error) {
			taken, err = t.disown(actor)
			return err
		})
		if err != nil {
			return fmt.Errorf("take away what revoked tokens have claimed: %w", err)
		}
		if taken < disownedAtOnce {
			return nil
		}
	}
}

func (t *Tx) disown(actor string) (taken int, err error) {
	type claimed struct{ item, token string }
	// Items are locked by ascending id everywhere (R11).
	all, err := sqldb.Collect(t.Ask(`SELECT a.item_id, k.name FROM attempt a JOIN token k ON k.id = a.token
		WHERE a.finished_at IS NULL AND k.revoked_at IS NOT NULL ORDER BY a.item_id`+sqldb.Limit(disownedAtOnce)), "", func(row sqldb.Scanner) (c claimed, err error) {
		return c, row.Scan(&c.item, &c.token)
	})
	if err != nil {
		return 0, err
	}
	for _, one := range all {
		it, err := t.Item(one.item)
		if err != nil {
			return 0, err
		}
		why := sqldb.Clean("token " + one.token + " was revoked")
		c, err := t.decide(it, registry.Settlement{Lease: registry.Lease{ItemID: it.ID, N: it.Attempt}, Outcome: registry.OutcomeReleased, Error: why})
		if err != nil {
			return 0, err
		}
		c.Actor = actor
		if err := t.withdraw(it, why, c.Status); err != nil {
			return 0, err
		}
		if err := t.Move(it, c); err != nil {
			return 0, fmt.Errorf("give item %s back: %w", it.ID, err)
		}
	}
	return len(all), nil
}

// disownLeft takes what a revocation left that was stopped half-way.
func (e *Engine) disownLeft(ctx context.Context) error {
	var left bool
	err := e.db.Read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM attempt a WHERE a.finished_at IS NULL AND `+ofRevoked+`)`).Scan(&left)
	if err != nil {
		return fmt.Errorf("look for what revoked tokens have claimed: %w", err)
	}
	if !left {
		return nil
	}
	return e.Disown(ctx, ActorRegistry)
}

// revoked says which of some tokens were revoked.
func (t *Tx) revoked(tokens ...string) (map[string]bool, error) {
	revoked := map[string]bool{}
	if len(tokens) == 0 || len(tokens) == 1 && tokens[0] == "" {
		return revoked, nil
	}
	ids, err := t.Strings(`SELECT id FROM token WHERE `+t.Among("id")+` AND revoked_at IS NOT NULL`, t.List(tokens))
	if err != nil {
		return nil, fmt.Errorf("look for revoked tokens: %w", err)
	}
	for _, id := range ids {
		revoked[id] = true
	}
	return revoked, nil
}

// errRevoked refuses what is asked for by a token that was revoked since it was looked at.
var errRevoked = fmt.Errorf("the token was revoked: %w", registry.ErrClaimLost)
