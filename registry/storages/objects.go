package storages

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// portionsOfPage bounds how many objects are read for a page of [Manager.StorageObjects].
const portionsOfPage = 20

// CopiesOf implements registry.Storing.
func (s *Manager) CopiesOf(ctx context.Context, o registry.Object) (out registry.ObjectCopies, err error) {
	k, err := s.known(ctx)
	if err != nil {
		return out, err
	}
	c, err := s.profiles.Collection(ctx, o.Collection)
	if err != nil {
		return out, fmt.Errorf("count the copies of %s: %w", o.ID, err)
	}
	var storages []string
	for _, v := range o.Versions {
		for _, r := range v.Replicas {
			if v.Version == o.Head && !r.VerifiedAt.IsZero() {
				storages = append(storages, r.Storage)
			}
		}
	}
	return c.Profile.Policy().Of(k.counting(storages), k.offsite), nil
}

// StorageObjects implements registry.Storing.
func (s *Manager) StorageObjects(ctx context.Context, q registry.StorageObjectsQuery) (registry.Page[registry.StorageObject], error) {
	q.Limit = sqldb.PageSize(q.Limit)
	out, err := s.storageObjects(ctx, q)
	if err != nil {
		return out, fmt.Errorf("list objects that lack copies: %w", err)
	}
	return out, nil
}

func (s *Manager) storageObjects(ctx context.Context, q registry.StorageObjectsQuery) (out registry.Page[registry.StorageObject], err error) {
	k, all, now, err := s.state(ctx)
	if err != nil {
		return out, err
	}
	rows, reached, err := s.listed(ctx, listing{StorageObjectsQuery: q, k: k, profiles: profilesOf(all)}, now.Groups)
	out = sqldb.PageOf(rows, q.Limit, func(last registry.StorageObject) string { return last.ID })
	if out.Next == "" {
		out.Next = reached
	}
	return out, err
}

// listing is a list of objects that lack copies.
type listing struct {
	registry.StorageObjectsQuery

	k        known
	profiles map[string]registry.Profile
}

// has says that objects of a collection with copies in these storages are in the list.
func (l listing) has(collection string, storages []string) bool {
	p := l.profiles[collection]
	switch {
	case l.Collection != "" && l.Collection != collection:
		return false
	case l.Storage == "":
		return l.k.short(p, storages)
	case l.k.leaving(l.Storage):
		return l.k.hinders(l.Storage, p, storages)
	}
	return slices.Contains(lacking(p, storages), l.Storage)
}

// found is an object that may be in the list.
type found struct {
	registry.StorageObject

	there bool // some version of it is in the storage that the list is about
}

// takes says that an object is in the list.
func (l listing) takes(o found) bool {
	if l.Collection != "" && l.Collection != o.Collection {
		return false
	}
	return l.has(o.Collection, o.Storages) || o.Damaged && o.there && l.k[l.Storage].State == registry.StorageRetiring
}

// listed reads the next objects of the list, one more than a page has. reached is the last one that it
// looked at, if it looked at as many as one call may.
func (s *Manager) listed(ctx context.Context, l listing, groups []group) (rows []registry.StorageObject, reached string, err error) {
	first, last, err := s.bounds(ctx, l, groups)
	if err != nil || last == "" {
		return nil, "", err
	}
	after := l.After
	for range portionsOfPage {
		some, err := s.readObjects(ctx, l, after, first, last)
		if err != nil {
			return nil, "", err
		}
		for _, o := range some {
			if l.takes(o) {
				rows = append(rows, o.StorageObject)
			}
			if len(rows) > l.Limit {
				return rows, "", nil
			}
		}
		if len(some) < objectsAtOnce {
			return rows, "", nil
		}
		after = some[len(some)-1].ID
	}
	return rows, after, nil
}

// mostBounds bounds the ids of which the first and the last are looked for.
const mostBounds = 500

// bounds returns the first and the last id between which all objects of the list are; "" if there are
// none. The database compares, since it orders the list.
func (s *Manager) bounds(ctx context.Context, l listing, groups []group) (first, last string, err error) {
	var ids []string
	for _, g := range groups {
		if l.has(g.Collection, g.Storages) {
			ids = append(ids, g.First, g.Last)
		}
	}
	if l.k[l.Storage].State == registry.StorageRetiring {
		some, err := s.db.Column(ctx, `SELECT id FROM (SELECT MIN(f.object_id) AS id FROM stored_file f WHERE f.damaged_at IS NOT NULL
			UNION ALL SELECT MAX(f.object_id) FROM stored_file f WHERE f.damaged_at IS NOT NULL) d WHERE id IS NOT NULL`)
		if err != nil {
			return "", "", err
		}
		ids = append(ids, some...)
	}
	if len(ids) == 0 {
		return "", "", nil
	}
	w := sqldb.Where{Conds: []string{"head > 0"}}
	if len(ids) <= mostBounds {
		w.AddIn("id", ids)
	}
	err = s.db.Read.QueryRowContext(ctx, `SELECT COALESCE(MIN(id), ''), COALESCE(MAX(id), '') FROM object`+w.String(), w.Args...).Scan(&first, &last)
	return first, last, err
}

func (s *Manager) readObjects(ctx context.Context, l listing, after, first, last string) ([]found, error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, `SELECT o.id, o.title, o.collection, o.size_bytes, `+storagesOf+`,
		CASE WHEN EXISTS (SELECT 1 FROM stored_file f WHERE f.object_id = o.id AND f.damaged_at IS NOT NULL) THEN 1 ELSE 0 END,
		CASE WHEN EXISTS (SELECT 1 FROM replica r WHERE r.object_id = o.id AND r.storage = $1) THEN 1 ELSE 0 END, COALESCE(i.id, ''), COALESCE(i.status, '')
		FROM object o LEFT JOIN copying c ON c.object_id = o.id LEFT JOIN work_item i ON i.id = c.item_id
		WHERE o.head > 0 AND o.gone = '' AND o.id > $2 AND o.id >= $3 AND o.id <= $4 ORDER BY o.id`+sqldb.Limit(objectsAtOnce), l.Storage, after, first, last), "read objects",
		func(row sqldb.Scanner) (o found, err error) {
			var storages string
			var damaged, there int
			err = row.Scan(&o.ID, &o.Title, &o.Collection, &o.SizeBytes, &storages, &damaged, &there, &o.Item, &o.Status)
			o.Storages, o.Damaged, o.there = append([]string{}, split(storages)...), damaged == 1, there == 1
			o.ObjectCopies = l.profiles[o.Collection].Policy().Of(l.k.counting(o.Storages), l.k.offsite)
			return o, err
		})
}
