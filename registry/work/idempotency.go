package work

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// Keys are the earlier requests with some idempotency keys.
type Keys map[string]keyed

type keyed struct{ itemID, args string }

// Keys looks up earlier requests.
func (t *Tx) Keys(keys []string) (Keys, error) {
	known := Keys{}
	if len(keys) == 0 {
		return known, nil
	}
	err := sqldb.Each(t.Ask(`SELECT idem_key, item_id, fingerprint FROM command WHERE tenant = $2 AND `+t.Among("idem_key"), t.List(keys), sqldb.Tenant),
		"look up idempotency keys", func(row sqldb.Scanner) error {
			var key string
			var k keyed
			err := row.Scan(&key, &k.itemID, &k.args)
			known[key] = k
			return err
		})
	return known, err
}

// Find is [Tx.Keyed] among the looked up requests. It does not ask the database.
func (k Keys) Find(key, args string) (itemID string, ok bool, err error) {
	before, ok := k[key]
	switch {
	case key == "" || !ok:
		return "", false, nil
	case before.args != args:
		return "", false, fmt.Errorf("key %q: %w", key, registry.ErrIdempotencyConflict)
	}
	return before.itemID, true, nil
}

// Add adds a request of this transaction, whose repeats may be in it, too.
func (k Keys) Add(key, args, itemID string) { k[key] = keyed{itemID, args} }

// Keyed returns the item of an earlier request with the same idempotency key. It returns
// ErrIdempotencyConflict if that request had other arguments. ok is false without an earlier
// request.
func (t *Tx) Keyed(key, args string) (itemID string, ok bool, err error) {
	if key == "" {
		return "", false, nil
	}
	known, err := t.Keys([]string{key})
	if err != nil {
		return "", false, err
	}
	return known.Find(key, args)
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
