// Package account keeps who may ask for what: tokens, and the sessions and one-time links that
// stand for them. It keeps hashes, never secrets, and knows nothing of what is asked for; of the
// engine it takes away the attempts of a token that is revoked.
package account

import (
	"context"

	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Accounts is who may ask for what.
type Accounts struct {
	db   *sqldb.DB
	work *work.Engine
}

// New returns the accounts of a Registry.
func New(db *sqldb.DB, engine *work.Engine) *Accounts { return &Accounts{db: db, work: engine} }

// Join tells the engine which tokens were revoked.
func (s *Accounts) Join(h *work.Hooks) {
	h.RevokedToken = `EXISTS (SELECT 1 FROM token k WHERE k.id = a.token AND k.revoked_at IS NOT NULL)`
	h.RevokedTokens = revokedNames
}

// tx is the open transaction.
type tx struct {
	*work.Tx
	store *Accounts
}

func (s *Accounts) in(t *work.Tx) *tx { return &tx{Tx: t, store: s} }

func (s *Accounts) write(ctx context.Context, fn func(*tx) error) error {
	return s.work.Write(ctx, func(t *work.Tx) error { return fn(s.in(t)) })
}
