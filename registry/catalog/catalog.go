// Package catalog keeps the inventory of preserved objects: identifiers, announced and recorded
// versions, files and their replicas, chains of PREMIS events, receipts, fixity checks, restores
// and deletions.
//
// A worker's write may name only its own item and that item's object. The package does not know how
// payloads arrive.
package catalog

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

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
	keyNoted   atomic.Bool  // the key is listed as used
}

// New returns the inventory of what the engine's items store. Without a key it signs no receipts.
func New(db *sqldb.DB, engine *work.Engine, key *receipt.Key) *Catalog {
	return &Catalog{db: db, work: engine, receiptKey: key}
}

// tx is the engine's open transaction with this subject's statements.
type tx struct {
	*work.Tx
	store *Catalog
}

func (s *Catalog) in(t *work.Tx) *tx { return &tx{Tx: t, store: s} }

func (s *Catalog) write(ctx context.Context, fn func(*tx) error) error {
	return s.work.Write(ctx, func(t *work.Tx) error { return fn(s.in(t)) })
}

// Join adds the catalog's hooks to the engine.
func (s *Catalog) Join(h *work.Hooks) {
	h.Settled = append(h.Settled, func(t *work.Tx, end work.Shift) error {
		return errors.Join(s.in(t).endCheck(end), s.in(t).endCopy(end))
	})
	h.Committed = func(t *work.Tx, itemID string) (string, int, bool, error) { return s.in(t).committed(itemID) }
	h.Requeued = append(h.Requeued, func(t *work.Tx, it registry.WorkItem, to work.Change) error {
		return s.in(t).withdrawAbandonment(it, to.Actor)
	})
	h.Act(registry.ActAbandon, func(t *work.Tx, it registry.WorkItem, c registry.Command) error { return s.in(t).abandon(it, c) })
}

// committed returns the object that an item deletes, or announced or recorded a version of, with
// that version. The version of a deletion is 0.
func (t *tx) committed(itemID string) (object string, version int, known bool, err error) {
	err = t.Get(`SELECT object_id, version FROM object_version WHERE item_id = $1
		UNION ALL SELECT object_id, 0 FROM deletion WHERE item_id = $1 AND status <> 'approved' ORDER BY 2 LIMIT 1`, []any{itemID}, &object, &version)
	if errors.Is(err, sql.ErrNoRows) {
		return "", 0, false, nil
	}
	return object, version, err == nil, err
}
