package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// adopting is the name of the setting that says how far an adoption is.
const adopting = "adopt"

// AdoptState implements registry.Adopting.
func (s *Catalog) AdoptState(ctx context.Context) (registry.RebuildState, error) {
	return s.readState(ctx, adopting)
}

// SaveAdopt implements registry.Adopting.
func (s *Catalog) SaveAdopt(ctx context.Context, state registry.RebuildState) error {
	return s.saveState(ctx, adopting, state)
}

// StoredAs implements registry.Adopting.
func (s *Catalog) StoredAs(ctx context.Context, stored string) (registry.Object, error) {
	o, err := scanObject(s.db.Read.QueryRowContext(ctx, selectObject+` WHERE o.ocfl_id = $1 AND o.ocfl_id <> '' OR o.id = $1 AND o.ocfl_id = ''`, stored))
	if errors.Is(err, sql.ErrNoRows) {
		return o, fmt.Errorf("an object that is stored as %q: %w", stored, registry.ErrNotFound)
	} else if err != nil {
		return o, fmt.Errorf("look for an object that is stored as %q: %w", stored, err)
	}
	return o, nil
}

// NameAdopted implements registry.Adopting.
func (s *Catalog) NameAdopted(ctx context.Context, o registry.Object, storage string) (ark string, err error) {
	err = s.write(ctx, func(t *tx) error {
		ark = o.ID
		if o.OCFLID != "" {
			err := t.Get(`SELECT id FROM object WHERE ocfl_id = $1 AND ocfl_id <> ''`, []any{o.OCFLID}, &ark)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		n, err := t.Exec(`INSERT INTO object (id, minted_for, tenant, collection, owner, created_at, updated_at, ezid_item, ocfl_id, adopted, padding)
			VALUES ($1, '', $2, $3, $4, $5, $5, '', $6, $7, $8) ON CONFLICT DO NOTHING`,
			ark, sqldb.Tenant, o.Collection, o.Owner, t.Now, o.OCFLID, o.Adopted, o.Padding)
		if err != nil || n > 0 {
			return err
		}
		o.ID = ark // named by an earlier run, or another object's
		return mayAdopt(t.Row(selectNamed, ark, storage), o)
	})
	if err != nil {
		return "", fmt.Errorf("name the object that is stored as %q: %w", o.Stored(), err)
	}
	return ark, nil
}

// MayAdopt implements registry.Adopting.
func (s *Catalog) MayAdopt(ctx context.Context, o registry.Object, storage string) error {
	return mayAdopt(s.db.Read.QueryRowContext(ctx, selectNamed, o.ID, storage), o)
}

const selectNamed = `SELECT ocfl_id, adopted, padding, collection, owner, gone,
	COALESCE((SELECT MAX(r.storage) FROM replica r WHERE r.object_id = o.id AND r.storage <> $2 AND o.head = 0), '')
	FROM object o WHERE o.id = $1`

// mayAdopt says whether the object that selectNamed finds, if any, is what an earlier run named o.
func mayAdopt(row sqldb.Scanner, o registry.Object) error {
	var was registry.Object
	var other string
	err := row.Scan(&was.OCFLID, &was.Adopted, &was.Padding, &was.Collection, &was.Owner, &was.Gone, &other)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look up %s: %w", o.ID, err)
	case was.OCFLID != o.OCFLID || was.Adopted == 0 || was.Gone != "":
		return fmt.Errorf("%w: another object has its ARK, %s", registry.ErrTaken, o.ID)
	case other != "":
		return fmt.Errorf("%w: an adoption of storage %s that was stopped has entered an object of this identifier; run that one to its end", registry.ErrTaken, other)
	case was.Collection != o.Collection || was.Owner != o.Owner:
		return fmt.Errorf("%w: an adoption that was stopped named it %s for collection %s of %s; run that one to its end", registry.ErrTaken, o.ID, was.Collection, was.Owner)
	case was.Adopted > o.Adopted || was.Padding != o.Padding:
		return fmt.Errorf("%w: an adoption that was stopped named it %s when it had %d versions, and now it is another object", registry.ErrTaken, o.ID, was.Adopted)
	}
	return nil
}

// RecordAdopted implements registry.Adopting.
func (s *Catalog) RecordAdopted(ctx context.Context, o registry.AdoptedObject) error {
	sums := make([]*receipt.Manifest, len(o.Versions))
	for i, v := range o.Versions {
		m, err := s.sumFiles(ctx, o.ID, v.Version)
		if err != nil {
			return err
		}
		if m.Files != v.Files || m.Bytes != v.SizeBytes {
			return fmt.Errorf("the inventory of version %d of %s holds %d files of %d bytes, and the version has %d of %d",
				v.Version, o.ID, m.Files, m.Bytes, v.Files, v.SizeBytes)
		}
		sums[i] = m
	}
	err := s.write(ctx, func(t *tx) error {
		var head int
		if err := t.Get(`SELECT head FROM object WHERE id = $1`, []any{o.ID}, &head); err != nil || head > 0 {
			return err
		}
		for _, id := range o.LocalIDs {
			other, err := t.enterID(registry.OwnedID{Owner: o.Owner, LocalID: id}, o.ID)
			if err == nil && other != "" {
				err = fmt.Errorf("local id %q belongs to %s: %w", id, other, registry.ErrTaken)
			}
			if err != nil {
				return err
			}
		}
		if _, err := t.visible(o.ID, o.Head); err != nil {
			return err
		}
		if err := t.Do(`UPDATE object_version SET recorded_at = $2 WHERE object_id = $1`, o.ID, t.Now); err != nil {
			return err
		}
		err := t.Do(`UPDATE object SET head = $2, title = $3, creator = $4, date = $5, files = $6, size_bytes = $7, updated_at = $8, adopted = $2 WHERE id = $1`,
			o.ID, o.Head, sqldb.Clean(o.Title), sqldb.Clean(o.Creator), sqldb.Clean(o.Date), o.Files, o.SizeBytes, t.Now)
		if err != nil {
			return err
		}
		events := o.Events
		for i, v := range o.Versions {
			n := 0
			for n < len(events) && events[n].Version == v.Version {
				n++
			}
			end, _, err := t.writePremis(subject{object: o.ID, version: v.Version, kinds: recordEvents}, events[:n]...)
			if err != nil {
				return err
			}
			events = events[n:]
			err = t.signReceipt("", o.ProfileVersion, registry.VersionRecord{
				ObjectID: o.ID, Version: v.Version, Collection: o.Collection, Owner: o.Owner, Title: o.Title, Creator: o.Creator, Date: o.Date,
				CreatedAt: v.CreatedAt, Replicas: v.Replicas, Inventory: v.Inventory,
			}, sums[i], end)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record the adopted object %s: %w", o.ID, err)
	}
	return nil
}
