// Package collection keeps collections and the versions of their profiles. It does not know what is
// deposited. Other subjects read a collection's present profile, or the one that a deposit keeps.
package collection

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Profiles keeps collections and the versions of their profiles. Its methods may be called
// concurrently.
type Profiles struct {
	db   *sqldb.DB
	work *work.Engine
	fits func(*work.Tx, registry.Profile) error
}

// New returns the collections of a Registry. fits refuses profiles that do not fit what other
// subjects keep.
func New(db *sqldb.DB, engine *work.Engine, fits func(*work.Tx, registry.Profile) error) *Profiles {
	return &Profiles{db, engine, fits}
}

// Of returns a collection in a transaction. It returns ErrNotFound if there is none.
func Of(t *work.Tx, mnemonic string) (registry.Collection, error) {
	c, err := scan(t.Row(selectCollection+`WHERE mnemonic = $1`, mnemonic))
	if errors.Is(err, sql.ErrNoRows) {
		return c, fmt.Errorf("collection %q: %w", mnemonic, registry.ErrNotFound)
	}
	return c, err
}

// ProfileNow returns a collection's present profile, or an empty one for an unknown collection.
func ProfileNow(t *work.Tx, collection string) (now registry.Profile, err error) {
	c, err := Of(t, collection)
	if errors.Is(err, registry.ErrNotFound) {
		return now, nil
	}
	return c.Profile, err
}

// OneByOne reports whether releasing a hold on the collection releases its items one by one.
func OneByOne(t *work.Tx, mnemonic string) (bool, error) {
	now, err := ProfileNow(t, mnemonic)
	return now.ReleaseOneByOne, err
}

const selectCollection = `SELECT mnemonic, tenant, profile, version, created_at FROM collection `

func scan(row sqldb.Scanner) (registry.Collection, error) {
	var c registry.Collection
	var profile string
	var at int64
	if err := row.Scan(&c.Mnemonic, &c.Tenant, &profile, &c.Version, &at); err != nil {
		return c, err
	}
	c.CreatedAt = sqldb.FromMicros(at)
	if err := json.Unmarshal([]byte(profile), &c.Profile); err != nil {
		return c, fmt.Errorf("decode profile of %s: %w", c.Mnemonic, err)
	}
	return c, nil
}

// PutCollection implements registry.Profiles.
func (s *Profiles) PutCollection(ctx context.Context, c registry.Collection, actor string) error {
	return s.work.Write(ctx, func(t *work.Tx) error { return s.Save(t, c, actor) })
}

// Save is PutCollection in a transaction.
func (s *Profiles) Save(t *work.Tx, c registry.Collection, actor string) error {
	err := errors.Join(registry.CheckPriority(c.Profile.Priority), registry.CheckStorages(c.Profile.Storages), c.Profile.CheckCopies())
	if err == nil {
		err = s.save(t, c, actor)
	}
	if err != nil {
		return fmt.Errorf("save collection %s: %w", c.Mnemonic, err)
	}
	return nil
}

func (s *Profiles) save(t *work.Tx, c registry.Collection, actor string) error {
	have, err := Of(t, c.Mnemonic)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	next, err := have.Next(c)
	if err != nil || next.Version == have.Version {
		return err
	}
	if err := s.fits(t, next.Profile); err != nil {
		return err
	}
	return putProfile(t, next, actor)
}

// All lists all collections in a transaction, by mnemonic.
func All(t *work.Tx) ([]registry.Collection, error) {
	return sqldb.Collect(t.Ask(selectCollection+`ORDER BY mnemonic`), "list collections", scan)
}

// putProfile saves a collection's next version. A trigger has inserted version 1 with the collection
// already, for programs that do not know versions.
func putProfile(t *work.Tx, c registry.Collection, actor string) error {
	raw, err := json.Marshal(c.Profile)
	if err != nil {
		return fmt.Errorf("encode profile of %s: %w", c.Mnemonic, err)
	}
	profile := string(raw)
	err = t.Do(`INSERT INTO collection (mnemonic, tenant, profile, version, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (mnemonic) DO UPDATE SET profile = $3, version = $4`, c.Mnemonic, sqldb.Tenant, profile, c.Version, t.Now)
	if err != nil {
		return err
	}
	err = t.Do(`INSERT INTO collection_version (mnemonic, version, profile, actor, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (mnemonic, version) DO UPDATE SET actor = $4, created_at = $5`, c.Mnemonic, c.Version, profile, sqldb.Clean(actor), t.Now)
	if err != nil {
		return err
	}
	// Every subscription receives events, and they outlive the version's row.
	return t.Note(work.Entry{ItemID: c.Mnemonic, Kind: registry.EventCollection, Actor: actor, Collection: c.Mnemonic, Data: struct {
		registry.Profile
		Version int `json:"version"`
	}{c.Profile.Masked(), c.Version}})
}

// ProfileVersions implements registry.Profiles.
func (s *Profiles) ProfileVersions(ctx context.Context, mnemonic string, before, limit int) (out []registry.ProfileVersion, err error) {
	if _, err := s.Collection(ctx, mnemonic); err != nil {
		return nil, err
	}
	var w sqldb.Where
	w.Add("mnemonic = ?", mnemonic)
	if before > 0 {
		w.Add("version < ?", before)
	}
	ask := s.db.Read.Ask(ctx, `SELECT mnemonic, version, profile, actor, created_at FROM collection_version `+w.String()+
		fmt.Sprintf(" ORDER BY version DESC LIMIT %d", sqldb.PageSize(limit)), w.Args...)
	return sqldb.Collect(ask, "list versions of the profile of "+mnemonic, func(row sqldb.Scanner) (registry.ProfileVersion, error) {
		var v registry.ProfileVersion
		var profile string
		var at int64
		if err := row.Scan(&v.Collection, &v.Version, &profile, &v.Actor, &at); err != nil {
			return v, err
		}
		v.CreatedAt = sqldb.FromMicros(at)
		if err := json.Unmarshal([]byte(profile), &v.Profile); err != nil {
			return v, fmt.Errorf("decode version %d of the profile of %s: %w", v.Version, mnemonic, err)
		}
		return v, nil
	})
}

// Collection implements registry.Profiles.
func (s *Profiles) Collection(ctx context.Context, mnemonic string) (registry.Collection, error) {
	c, err := scan(s.db.Read.QueryRowContext(ctx, selectCollection+`WHERE mnemonic = $1`, mnemonic))
	if errors.Is(err, sql.ErrNoRows) {
		return c, fmt.Errorf("collection %q: %w", mnemonic, registry.ErrNotFound)
	} else if err != nil {
		return c, fmt.Errorf("read collection %q: %w", mnemonic, err)
	}
	return c, nil
}

// Collections implements registry.Profiles.
func (s *Profiles) Collections(ctx context.Context) (out []registry.Collection, err error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, selectCollection+`ORDER BY mnemonic`), "list collections", scan)
}
