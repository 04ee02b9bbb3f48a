package work

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// withdrawnAtOnce is how many attempts of revoked tokens one transaction withdraws (R25).
const withdrawnAtOnce = 100

// errRevoked refuses a request whose token was revoked after the request was authenticated.
var errRevoked = fmt.Errorf("the token was revoked: %w", registry.ErrClaimLost)

// revokedTokens returns the names of those tokens that were revoked, by their ids. Requests from
// within the Registry's process have the token "".
func (t *Tx) revokedTokens(ids ...string) (names map[string]string, err error) {
	if len(ids) == 0 || len(ids) == 1 && ids[0] == "" {
		return nil, nil
	}
	return t.store.hooks.RevokedTokens(t, ids)
}

// WithdrawRevoked withdraws the live attempts of revoked tokens, uncounted, so that other workers
// can claim their items at once. Each transaction withdraws a few, so that other writes go on
// meanwhile. The sweep withdraws what an interrupted call left.
func (e *Engine) WithdrawRevoked(ctx context.Context, actor string) error {
	for {
		var withdrawn int
		err := e.Write(ctx, func(t *Tx) (err error) {
			withdrawn, err = t.withdrawRevoked(actor)
			return err
		})
		if err != nil {
			return fmt.Errorf("withdraw attempts of revoked tokens: %w", err)
		}
		if withdrawn < withdrawnAtOnce {
			return nil
		}
	}
}

// withdrawLeft finishes what an interrupted [Engine.WithdrawRevoked] left.
func (e *Engine) withdrawLeft(ctx context.Context) error {
	var left bool
	err := e.db.Read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM attempt a WHERE a.finished_at IS NULL AND `+e.hooks.RevokedToken+`)`).Scan(&left)
	if err != nil {
		return fmt.Errorf("look for attempts of revoked tokens: %w", err)
	}
	if !left {
		return nil
	}
	return e.WithdrawRevoked(ctx, ActorRegistry)
}

func (t *Tx) withdrawRevoked(actor string) (withdrawn int, err error) {
	tokens := map[string]string{} // by item
	err = sqldb.Each(t.Ask(`SELECT a.item_id, a.token FROM attempt a
		WHERE a.finished_at IS NULL AND `+t.store.hooks.RevokedToken+` ORDER BY a.item_id`+sqldb.Limit(withdrawnAtOnce)), "", func(row sqldb.Scanner) error {
		var item, token string
		err := row.Scan(&item, &token)
		tokens[item] = token
		return err
	})
	if err != nil {
		return 0, err
	}
	names, err := t.revokedTokens(slices.Collect(maps.Values(tokens))...)
	if err != nil {
		return 0, err
	}
	for _, id := range slices.Sorted(maps.Keys(tokens)) { // items are locked by ascending id (R11)
		it, err := t.Item(id)
		if err != nil {
			return 0, err
		}
		why := sqldb.Clean("token " + names[tokens[id]] + " was revoked")
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
	return len(tokens), nil
}
