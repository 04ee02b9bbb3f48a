package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

const selectCollection = `SELECT mnemonic, tenant, profile, version, created_at FROM collection `

func scanCollection(row scanner) (registry.Collection, error) {
	var c registry.Collection
	var profile string
	var at int64
	if err := row.Scan(&c.Mnemonic, &c.Tenant, &profile, &c.Version, &at); err != nil {
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
		have, err := t.collectionOf(c.Mnemonic)
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return err
		}
		version, err := have.Next(c.Mnemonic, c.Version, c.Profile)
		if err != nil || version == have.Version {
			return err
		}
		return t.putProfile(registry.ProfileVersion{Collection: c.Mnemonic, Version: version, Profile: c.Profile, Actor: actor}, string(profile))
	})
	if err != nil {
		return fmt.Errorf("save collection %s: %w", c.Mnemonic, err)
	}
	return nil
}

// putProfile makes a version of a profile the collection's. Creating a collection has made its first version already, by a
// trigger, for programs that know of none.
func (t *tx) putProfile(v registry.ProfileVersion, profile string) error {
	err := t.do(`INSERT INTO collection (mnemonic, tenant, profile, version, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (mnemonic) DO UPDATE SET profile = $3, version = $4`, v.Collection, Tenant, profile, v.Version, t.now)
	if err != nil {
		return err
	}
	err = t.do(`INSERT INTO collection_version (mnemonic, version, profile, actor, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (mnemonic, version) DO UPDATE SET actor = $4, created_at = $5`, v.Collection, v.Version, profile, clean(v.Actor), t.now)
	if err != nil {
		return err
	}
	// Events are told to every subscription, and are there when the version's row is not.
	return t.note(entry{itemID: v.Collection, kind: "collection", actor: v.Actor, collection: v.Collection, data: struct {
		registry.Profile
		Version int `json:"version"`
	}{v.Profile.Masked(), v.Version}})
}

// ProfileVersions implements registry.Reading.
func (s *Store) ProfileVersions(ctx context.Context, mnemonic string, before, limit int) (out []registry.ProfileVersion, err error) {
	if _, err := s.Collection(ctx, mnemonic); err != nil {
		return nil, err
	}
	var w where
	w.add("mnemonic = ?", mnemonic)
	if before > 0 {
		w.add("version < ?", before)
	}
	ask := s.read.ask(ctx, `SELECT mnemonic, version, profile, actor, created_at FROM collection_version `+w.String()+
		fmt.Sprintf(" ORDER BY version DESC LIMIT %d", pageSize(limit)), w.args...)
	return collect(ask, "list versions of the profile of "+mnemonic, func(row scanner) (registry.ProfileVersion, error) {
		var v registry.ProfileVersion
		var profile string
		var at int64
		if err := row.Scan(&v.Collection, &v.Version, &profile, &v.Actor, &at); err != nil {
			return v, err
		}
		v.CreatedAt = fromMicros(at)
		if err := json.Unmarshal([]byte(profile), &v.Profile); err != nil {
			return v, fmt.Errorf("decode version %d of the profile of %s: %w", v.Version, mnemonic, err)
		}
		return v, nil
	})
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
	return collect(s.read.ask(ctx, selectCollection+`ORDER BY mnemonic`), "list collections", scanCollection)
}

// Workers implements registry.Reading.
func (s *Store) Workers(ctx context.Context) (out []registry.WorkerInfo, err error) {
	return collect(s.read.ask(ctx, `SELECT id, version, slots, draining, seen_at FROM worker WHERE seen_at > $1
		ORDER BY id`, micros(s.now().Add(-workerAlive))), "list workers", func(row scanner) (registry.WorkerInfo, error) {
		var w registry.WorkerInfo
		var slots string
		var at int64
		if err := row.Scan(&w.ID, &w.Version, &slots, &w.Draining, &at); err != nil {
			return w, err
		}
		w.SeenAt = fromMicros(at)
		if err := json.Unmarshal([]byte(slots), &w); err != nil {
			return w, fmt.Errorf("decode worker %s: %w", w.ID, err)
		}
		return w, nil
	})
}
