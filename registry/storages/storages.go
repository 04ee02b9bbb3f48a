// Package storages keeps what is known of the preservation storages beside their names, and brings
// objects to the storages where they belong: those of their collection's profile.
//
// Acts on storages change profiles, so that new versions go to the right places at once. Older objects
// follow: while a storage is filled or retired, [Manager.Align] walks over all objects and makes an
// item for each that lacks a copy. A storage ends being filled or retired when the counts say so.
package storages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/catalog"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Manager keeps the preservation storages. Its methods may be called concurrently.
type Manager struct {
	db       *sqldb.DB
	work     *work.Engine
	catalog  *catalog.Catalog
	profiles *collection.Profiles

	counting  sync.Mutex
	counted   counted
	takesLong time.Duration
}

// New returns the storages of a Registry.
func New(db *sqldb.DB, engine *work.Engine, objects *catalog.Catalog, profiles *collection.Profiles) *Manager {
	return &Manager{db: db, work: engine, catalog: objects, profiles: profiles, takesLong: takesLong}
}

// row is a row of table storage.
type row struct {
	registry.Storage
	places    map[string]int // places in the profiles that named it
	since     int64
	forgot    string
	forgotten bool
}

const selectStorage = `SELECT name, state, offsite, places, reason, actor, since, objects, bytes, forgot, forgotten FROM storage `

func scan(from sqldb.Scanner) (r row, err error) {
	var places string
	var offsite, forgotten int
	err = from.Scan(&r.Name, &r.State, &offsite, &places, &r.Reason, &r.Actor, &r.since, &r.Begun.Objects, &r.Begun.SizeBytes, &r.forgot, &forgotten)
	if err != nil {
		return r, err
	}
	since := sqldb.FromMicros(r.since)
	r.Offsite, r.forgotten, r.Since = offsite == 1, forgotten == 1, &since
	if err := json.Unmarshal([]byte(places), &r.places); err != nil {
		return r, fmt.Errorf("decode the places of storage %s: %w", r.Name, err)
	}
	return r, nil
}

// known are the rows of table storage by name. A storage without one is in use, and not off-site.
type known map[string]row

func knownOf(rows []row, err error) (known, error) {
	k := make(known, len(rows))
	for _, r := range rows {
		k[r.Name] = r
	}
	return k, err
}

func (k known) of(name string) row {
	r, ok := k[name]
	if !ok {
		r.Storage = registry.Storage{Name: name, State: registry.StorageInUse}
	}
	return r
}

func (k known) offsite(name string) bool { return k[name].Offsite }

// leaving says that no profile may name a storage.
func (k known) leaving(name string) bool {
	s := k[name].State
	return s == registry.StorageRetiring || s == registry.StorageRetired
}

func (s *Manager) known(ctx context.Context) (known, error) {
	return knownOf(sqldb.Collect(s.db.Read.Ask(ctx, selectStorage), "list storages", scan))
}

func knownIn(t *work.Tx) (known, error) {
	return knownOf(sqldb.Collect(t.Ask(selectStorage), "list storages", scan))
}

// state is all storages, collections, and the numbers of objects.
func (s *Manager) state(ctx context.Context) (k known, all []registry.Collection, now counted, err error) {
	if k, err = s.known(ctx); err != nil {
		return k, nil, now, err
	}
	if all, err = s.profiles.Collections(ctx); err != nil {
		return k, nil, now, err
	}
	now, err = s.count(ctx)
	return k, all, now, err
}

// Fits returns ErrInvalid for a profile that names a storage which gets no objects any more, or asks
// for more off-site copies than it has off-site storages.
func Fits(t *work.Tx, p registry.Profile) error {
	k, err := knownIn(t)
	if err != nil {
		return err
	}
	far := 0
	for _, name := range p.StorageNames() {
		if k.leaving(name) {
			return fmt.Errorf("%w: storage %q is %v and gets no new objects; name others", registry.ErrInvalid, name, k[name].State)
		}
		if k.offsite(name) {
			far++
		}
	}
	if want := p.Policy().Offsite; far < want {
		return fmt.Errorf("%w: the profile asks for %d off-site copies, and %d of its storages are off-site; say which are with: holdfast storage set NAME --offsite",
			registry.ErrInvalid, want, far)
	}
	return nil
}

// ChangeStorage implements registry.Storing.
func (s *Manager) ChangeStorage(ctx context.Context, c registry.StorageChange) (out registry.StorageChanged, err error) {
	c.Reason, c.Actor = sqldb.Clean(c.Reason), sqldb.Clean(c.Actor)
	if err := check(c); err != nil {
		return out, fmt.Errorf("storage %s: %w", c.Name, err)
	}
	k, all, now, err := s.state(ctx)
	if err != nil {
		return out, err
	}
	p, err := plan(c, k, all)
	if err != nil {
		return out, fmt.Errorf("storage %s: %w", c.Name, err)
	}
	if out = p.changed(now, all); c.DryRun {
		return out, nil
	}
	err = s.work.Write(ctx, func(t *work.Tx) error {
		k, err := knownIn(t)
		if err != nil {
			return err
		}
		all, err := collection.All(t)
		if err != nil {
			return err
		}
		if p, err = plan(c, k, all); err != nil {
			return err
		}
		out = p.changed(now, all)
		return s.carryOut(t, p, out)
	})
	if err != nil {
		return registry.StorageChanged{}, fmt.Errorf("storage %s: %w", c.Name, err)
	}
	return out, nil
}

func check(c registry.StorageChange) error {
	err := registry.CheckStorageName(c.Name)
	switch {
	case err != nil:
		return err
	case !slices.Contains(registry.StorageActs(), c.Act):
		return fmt.Errorf("%w: %q is not one of %v", registry.ErrInvalid, c.Act, registry.OneOf(registry.StorageActs()))
	case c.To != "" && c.Act != registry.ActRetire, len(c.Collections) > 0 && c.Act != registry.ActFill:
		return fmt.Errorf("%w: it takes no other storage, and no collections", registry.ErrInvalid)
	case c.To == c.Name:
		return fmt.Errorf("%w: it cannot take its own place", registry.ErrInvalid)
	case c.Act == registry.ActPlace && c.Offsite == nil:
		return fmt.Errorf("%w: say whether it is off-site", registry.ErrInvalid)
	case c.To != "":
		return registry.CheckStorageName(c.To)
	}
	return nil
}

// planned is what an act does.
type planned struct {
	registry.StorageChange
	rows     []row // to be written, the storage's own first
	profiles []registry.StorageProfiles
}

// plan says what an act does, or why it is not possible.
func plan(c registry.StorageChange, k known, all []registry.Collection) (p planned, err error) {
	own := k.of(c.Name)
	p.StorageChange = c
	var change func(collection string, before []string) (after []string)
	switch state := own.State; {
	case c.Act == registry.ActPlace:
		own.Offsite = *c.Offsite
		p.rows = []row{own}
		return p, nil
	case state == registry.StorageRetired:
		return p, fmt.Errorf("%w: it is retired, and what lies there may be out of date; use an empty storage under another name", registry.ErrInvalid)
	case c.Act == registry.ActFill && state == registry.StorageRetiring:
		return p, fmt.Errorf("%w: it is being retired; to take that back: holdfast storage keep %s", registry.ErrInvalid, c.Name)
	case c.Act == registry.ActFill:
		for _, name := range c.Collections {
			if !slices.ContainsFunc(all, func(a registry.Collection) bool { return a.Mnemonic == name }) {
				return p, fmt.Errorf("%w: there is no collection %q", registry.ErrInvalid, name)
			}
		}
		own.State = registry.StorageFilling
		if c.Offsite != nil {
			own.Offsite = *c.Offsite
		}
		change = func(collection string, before []string) []string {
			if slices.Contains(before, c.Name) || c.Collections != nil && !slices.Contains(c.Collections, collection) {
				return before
			}
			return append(slices.Clone(before), c.Name)
		}
	case c.Act == registry.ActRetire:
		own.State, own.places = registry.StorageRetiring, placesOf(own.places)
		change = func(collection string, before []string) []string {
			at := slices.Index(before, c.Name)
			if at < 0 {
				return before
			}
			own.places[collection] = at
			after := slices.Delete(slices.Clone(before), at, at+1)
			if c.To != "" && !slices.Contains(after, c.To) {
				after = slices.Insert(after, at, c.To)
			}
			return after
		}
	case state == registry.StorageRetiring: // it is kept
		places := own.places
		own.State, own.places = registry.StorageInUse, nil
		change = func(collection string, before []string) []string {
			at, named := places[collection]
			if !named || slices.Contains(before, c.Name) {
				return before
			}
			return slices.Insert(slices.Clone(before), min(at, len(before)), c.Name)
		}
	default:
		return p, nil // it is kept already
	}
	p.rows = []row{own}
	if c.To != "" {
		to := k.of(c.To)
		if k.leaving(c.To) {
			return p, fmt.Errorf("%w: storage %q is %v", registry.ErrInvalid, c.To, to.State)
		}
		to.State = registry.StorageFilling
		if c.Offsite != nil {
			to.Offsite = *c.Offsite
		}
		p.rows = append(p.rows, to)
	}
	var faults []error
	for _, a := range all {
		before := a.Profile.StorageNames()
		after := change(a.Mnemonic, before)
		if slices.Equal(before, after) {
			continue
		}
		a.Profile.Storages = after
		if len(after) == 0 {
			faults = append(faults, fmt.Errorf("%w: collection %s has no other storage; give it one first, or say which takes the place: holdfast storage migrate %s NAME",
				registry.ErrInvalid, a.Mnemonic, c.Name))
		} else if err := errors.Join(registry.CheckStorages(after), a.Profile.CheckCopies()); err != nil {
			faults = append(faults, fmt.Errorf("collection %s: %w", a.Mnemonic, err))
		}
		p.profiles = append(p.profiles, registry.StorageProfiles{Collection: a.Mnemonic, Before: before, After: after})
	}
	return p, errors.Join(faults...)
}

// placesOf returns places that can be added to, and that are an object in JSON.
func placesOf(m map[string]int) map[string]int {
	if m == nil {
		return map[string]int{}
	}
	return m
}

// changed says what the plan does to objects that were counted.
func (p planned) changed(now counted, all []registry.Collection) registry.StorageChanged {
	out := registry.StorageChanged{Storage: p.Name, State: registry.StorageInUse, Profiles: p.profiles}
	if len(p.rows) > 0 {
		out.State = p.rows[0].State
	}
	profiles := profilesOf(all)
	for _, c := range p.profiles {
		changed := profiles[c.Collection]
		changed.Storages = c.After
		profiles[c.Collection] = changed
	}
	if p.Act == registry.ActFill || p.Act == registry.ActRetire {
		for _, g := range now.Groups {
			if len(lacking(profiles[g.Collection], g.Storages)) > 0 {
				out.Copies = sum(out.Copies, g.Amount)
			}
		}
	}
	return out
}

// carryOut writes what was planned.
func (s *Manager) carryOut(t *work.Tx, p planned, out registry.StorageChanged) error {
	for _, r := range p.rows {
		places, err := json.Marshal(placesOf(r.places))
		if err != nil {
			return fmt.Errorf("encode the places of storage %s: %w", r.Name, err)
		}
		r.Reason, r.Actor = p.Reason, p.Actor
		if p.Act != registry.ActPlace || r.since == 0 {
			r.since = t.Now
		}
		if p.Act != registry.ActPlace {
			r.Begun = out.Copies
		}
		err = t.Do(`INSERT INTO storage (name, state, offsite, places, reason, actor, since, objects, bytes, forgot, forgotten)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, '', 0)
			ON CONFLICT (name) DO UPDATE SET state = $2, offsite = $3, places = $4, reason = $5, actor = $6, since = $7, objects = $8, bytes = $9`,
			r.Name, r.State, sqldb.Bit(r.Offsite), string(places), r.Reason, r.Actor, r.since, r.Begun.Objects, r.Begun.SizeBytes)
		if err != nil {
			return err
		}
	}
	for _, c := range p.profiles {
		now, err := collection.Of(t, c.Collection)
		if err != nil {
			return err
		}
		now.Profile.Storages = c.After
		if err := s.profiles.Save(t, now, p.Actor); err != nil {
			return err
		}
	}
	if len(p.rows) == 0 {
		return nil
	}
	if err := setCursor(t, ""); err != nil {
		return err
	}
	return t.Note(work.Entry{ItemID: p.Name, Kind: registry.EventStorage, Actor: p.Actor, Data: struct {
		Act     registry.StorageAct `json:"act"`
		To      string              `json:"to,omitempty"`
		Offsite *bool               `json:"offsite,omitempty"`
		Reason  string              `json:"reason,omitempty"`
		registry.StorageChanged
	}{p.Act, p.To, p.Offsite, p.Reason, out}})
}

// cursor is the setting with how far the walk of [Manager.Align] is; "": it begins.
const cursor = "align"

func setCursor(t *work.Tx, to string) error { return set(t, cursor, to) }

// set writes a setting of the Registry's own.
func set(t *work.Tx, name, value string) error {
	return t.Do(`INSERT INTO setting (name, value, reason, actor, at) VALUES ($1, $2, '', $3, $4)
		ON CONFLICT (name) DO UPDATE SET value = $2, at = $4`, name, value, work.ActorRegistry, t.Now)
}

// since says how long something has lasted.
func since(r row, now time.Time) time.Duration { return now.Sub(sqldb.FromMicros(r.since)) }
