// Package catalog keeps what is preserved: objects and their identifiers, versions announced and
// recorded, their files and where each copy lies, PREMIS events in their chains, receipts, checks,
// restores, deletions. A worker writes of its own item only. It knows nothing of how payloads come
// in.
package catalog

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Catalog is the inventory of objects.
type Catalog struct {
	db         *sqldb.DB
	work       *work.Engine
	receiptKey *receipt.Key // nil: no receipts are signed
}

// New returns the inventory of what an engine's items have stored.
func New(db *sqldb.DB, engine *work.Engine, key *receipt.Key) *Catalog {
	return &Catalog{db: db, work: engine, receiptKey: key}
}

// tx is the open transaction.
type tx struct {
	*work.Tx
	store *Catalog
}

func (s *Catalog) in(t *work.Tx) *tx { return &tx{Tx: t, store: s} }

func (s *Catalog) write(ctx context.Context, fn func(*tx) error) error {
	return s.work.Write(ctx, func(t *work.Tx) error { return fn(s.in(t)) })
}

// Join has the engine ask the catalog.
func (s *Catalog) Join(h *work.Hooks) {
	h.Settled = append(h.Settled, func(t *work.Tx, end work.Shift) error { return s.in(t).endCheck(end) })
	h.Committed = func(t *work.Tx, itemID string) (string, int, bool, error) { return s.in(t).committed(itemID) }
	h.Requeued = append(h.Requeued, func(t *work.Tx, it registry.WorkItem, to work.Change) error {
		return s.in(t).withdrawAbandonment(it, to.Actor)
	})
	h.Act(registry.ActAbandon, func(t *work.Tx, it registry.WorkItem, c registry.Command) error { return s.in(t).abandon(it, c) })
}

// committed is the object that an item has announced a version of, has stored one of or deletes,
// with the version; 0 for a deletion.
func (t *tx) committed(itemID string) (object string, version int, known bool, err error) {
	err = t.Get(`SELECT object_id, version FROM object_version WHERE item_id = $1
		UNION ALL SELECT object_id, 0 FROM deletion WHERE item_id = $1 AND status <> 'approved' ORDER BY 2 LIMIT 1`, []any{itemID}, &object, &version)
	if errors.Is(err, sql.ErrNoRows) {
		return "", 0, false, nil
	}
	return object, version, err == nil, err
}
