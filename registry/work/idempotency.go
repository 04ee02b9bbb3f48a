package work

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Fingerprint returns a digest of a request's arguments. A repeat has the same one.
func Fingerprint(args any) (string, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return "", fmt.Errorf("encode arguments: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Keyed returns the item of an earlier request with the same idempotency key. It returns
// ErrIdempotencyConflict if that request had other arguments. ok is false without an earlier
// request.
func (t *Tx) Keyed(key, args string) (itemID string, ok bool, err error) {
	if key == "" {
		return "", false, nil
	}
	var before string
	err = t.Get(`SELECT item_id, fingerprint FROM command WHERE tenant = $1 AND idem_key = $2`, []any{sqldb.Tenant, key}, &itemID, &before)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("look up idempotency key: %w", err)
	case before != args:
		return "", false, fmt.Errorf("key %q: %w", key, registry.ErrIdempotencyConflict)
	}
	return itemID, true, nil
}

// Answer records the item of a request with an idempotency key, in the transaction that carries the
// request out. An empty key records nothing.
func (t *Tx) Answer(key, args, itemID string, act registry.Act, actor string) error {
	if key == "" {
		return nil
	}
	err := t.Do(`INSERT INTO command (id, tenant, idem_key, fingerprint, item_id, kind, actor, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, sqldb.NewID(), sqldb.Tenant, key, args, itemID, act, sqldb.Clean(actor), t.Now)
	if err != nil {
		return fmt.Errorf("record idempotency key: %w", err)
	}
	return nil
}
