// Package account keeps tokens, the sessions and one-time links that represent them, and the views that
// people saved. It stores hashes, never secrets. It does not know what a token is used for. When a token is revoked, the
// engine withdraws the token's attempts.
package account

import (
	"context"

	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Accounts keeps tokens, sessions, sign-in links and saved views. Its methods may be called concurrently.
type Accounts struct {
	db   *sqldb.DB
	work *work.Engine
	uses uses
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
