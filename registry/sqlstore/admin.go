package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

const selectCollection = `SELECT mnemonic, tenant, profile, created_at FROM collection `

func scanCollection(row scanner) (registry.Collection, error) {
	var c registry.Collection
	var profile string
	var at int64
	if err := row.Scan(&c.Mnemonic, &c.Tenant, &profile, &at); err != nil {
		return c, err
	}
	c.CreatedAt = fromMicros(at)
	if err := json.Unmarshal([]byte(profile), &c.Profile); err != nil {
		return c, fmt.Errorf("decode profile of %s: %w", c.Mnemonic, err)
	}
	return c, nil
}

// PutCollection implements registry.Administering.
func (s *Store) PutCollection(ctx context.Context, c registry.Collection, actor string) error {
	if err := registry.CheckPriority(c.Profile.Priority); err != nil {
		return fmt.Errorf("save collection %s: %w", c.Mnemonic, err)
	}
	if err := registry.CheckStorages(c.Profile.Storages); err != nil {
		return fmt.Errorf("save collection %s: %w", c.Mnemonic, err)
	}
	profile, err := json.Marshal(c.Profile)
	if err != nil {
		return fmt.Errorf("encode profile of %s: %w", c.Mnemonic, err)
	}
	err = s.write(ctx, func(t *tx) error {
		err := t.do(`INSERT INTO collection (mnemonic, tenant, profile, created_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (mnemonic) DO UPDATE SET profile = $3`, c.Mnemonic, Tenant, string(profile), t.now)
		if err != nil {
			return err
		}
		return t.note(entry{itemID: c.Mnemonic, kind: "collection", actor: actor, data: c.Profile, collection: c.Mnemonic})
	})
	if err != nil {
		return fmt.Errorf("save collection %s: %w", c.Mnemonic, err)
	}
	return nil
}

// Collection implements registry.Reading.
func (s *Store) Collection(ctx context.Context, mnemonic string) (registry.Collection, error) {
	c, err := scanCollection(s.read.QueryRowContext(ctx, selectCollection+`WHERE mnemonic = $1`, mnemonic))
	if errors.Is(err, sql.ErrNoRows) {
		return c, fmt.Errorf("collection %q: %w", mnemonic, registry.ErrNotFound)
	} else if err != nil {
		return c, fmt.Errorf("read collection %q: %w", mnemonic, err)
	}
	return c, nil
}

// Collections implements registry.Reading.
func (s *Store) Collections(ctx context.Context) (out []registry.Collection, err error) {
	rows, err := s.read.QueryContext(ctx, selectCollection+`ORDER BY mnemonic`)
	if err != nil {
		return nil, fmt.Errorf("list collections: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		c, err := scanCollection(rows)
		if err != nil {
			return nil, fmt.Errorf("list collections: %w", err)
		}
		out = append(out, c)
	}
	return out, rows.Err()
}

// Workers implements registry.Reading.
func (s *Store) Workers(ctx context.Context) (out []registry.WorkerInfo, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT id, version, slots, draining, seen_at FROM worker WHERE seen_at > $1
		ORDER BY id`, micros(s.now().Add(-workerAlive)))
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var w registry.WorkerInfo
		var slots string
		var at int64
		if err := rows.Scan(&w.ID, &w.Version, &slots, &w.Draining, &at); err != nil {
			return nil, fmt.Errorf("list workers: %w", err)
		}
		w.SeenAt = fromMicros(at)
		if err := json.Unmarshal([]byte(slots), &w); err != nil {
			return nil, fmt.Errorf("decode worker %s: %w", w.ID, err)
		}
		out = append(out, w)
	}
	return out, rows.Err()
}
