package storages

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// group is all objects of a collection whose newest version is in the same storages, verified.
type group struct {
	Collection string   `json:"collection"`
	Storages   []string `json:"storages"` // sorted
	First      string   `json:"first"`    // the first of them, by id
	Last       string   `json:"last"`
	registry.Amount
}

// counted is the last count of all objects.
type counted struct {
	Groups []group       `json:"groups"`
	At     time.Time     `json:"at"`
	Took   time.Duration `json:"took"`
}

// Counting reads all objects, so a count is used again for a while: so that it takes a twentieth of a
// processor at most. Where it takes long, [Manager.Align] counts anew before the count is too old, and keeps
// the count in the database for processes that begin later, so that nobody who asks waits for it.
const (
	mostShare = 20
	mostAge   = 10 * time.Minute
	takesLong = 100 * time.Millisecond
	// mostKept bounds the groups of a count that is kept.
	mostKept = 10_000
)

// keptCount is the setting with the kept count.
const keptCount = "copies"

// young says that a count is used again; lasting, that it is still used by those who would have to wait.
func (c counted) young(now time.Time) bool {
	return now.Sub(c.At).Abs() <= min(mostShare*c.Took, mostAge)
}

func (s *Manager) lasting(c counted, now time.Time) bool {
	return c.Took > s.takesLong && now.Sub(c.At).Abs() <= 2*mostAge
}

// count counts objects, or returns a count that is young enough. In a process that has not counted yet, that
// is the kept one, however old: Align counts soon.
func (s *Manager) count(ctx context.Context) (counted, error) {
	s.counting.Lock()
	defer s.counting.Unlock()
	if now := s.db.Now(); s.counted.young(now) || s.lasting(s.counted, now) {
		return s.counted, nil
	}
	if s.counted.At.IsZero() {
		if c, err := s.kept(ctx); err != nil || c.Took > s.takesLong {
			s.counted = c
			return c, err
		}
	}
	c, err := s.countNow(ctx)
	if err != nil {
		return c, err
	}
	s.counted = c
	return c, nil
}

// recount counts objects anew where that takes long, if the count is old: while storages are filled or
// retired, if it is not young. Meanwhile others use the last count. A process that has not counted yet does so.
func (s *Manager) recount(ctx context.Context, open bool) error {
	s.counting.Lock()
	last, now := s.counted, s.db.Now()
	s.counting.Unlock()
	fresh := func(c counted) bool { return c.young(now) || !open && now.Sub(c.At).Abs() <= mostAge }
	if !last.At.IsZero() && (last.Took <= s.takesLong || fresh(last)) {
		return nil
	}
	c, err := s.kept(ctx) // by another process
	if err == nil && !fresh(c) {
		if c, err = s.countNow(ctx); err == nil && c.Took > s.takesLong {
			err = s.keep(ctx, c)
		}
	}
	if err != nil {
		return err
	}
	s.counting.Lock()
	defer s.counting.Unlock()
	s.counted = c
	return nil
}

// kept returns the kept count, or a zero value.
func (s *Manager) kept(ctx context.Context) (c counted, err error) {
	var text string
	err = s.db.Read.QueryRowContext(ctx, `SELECT value FROM setting WHERE name = $1`, keptCount).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return c, nil
	} else if err != nil {
		return c, fmt.Errorf("read the kept count of copies: %w", err)
	}
	if json.Unmarshal([]byte(text), &c) != nil { // a program of another version wrote it
		c = counted{}
	}
	return c, nil
}

func (s *Manager) keep(ctx context.Context, c counted) error {
	if len(c.Groups) > mostKept {
		return nil
	}
	text, err := json.Marshal(c)
	if err == nil {
		err = s.work.Write(ctx, func(t *work.Tx) error { return set(t, keptCount, string(text)) })
	}
	if err != nil {
		return fmt.Errorf("keep the count of copies: %w", err)
	}
	return nil
}

// storagesOf is the storages that have the newest version of object o, verified.
const storagesOf = `COALESCE((SELECT string_agg(r.storage, ',') FROM replica r WHERE r.object_id = o.id AND r.version = o.head AND r.verified_at > 0), '')`

func (s *Manager) countNow(ctx context.Context) (counted, error) {
	begun := time.Now()
	rows, err := sqldb.Collect(s.db.Read.Ask(ctx, `SELECT collection, storages, MIN(id), MAX(id), COUNT(*), `+sqldb.Sum("size_bytes")+` FROM
		(SELECT o.id, o.collection, o.size_bytes, `+storagesOf+` AS storages FROM object o WHERE o.head > 0 AND o.gone = '') g
		GROUP BY collection, storages`), "count objects by their storages",
		func(row sqldb.Scanner) (g group, err error) {
			var storages string
			var bytes float64
			err = row.Scan(&g.Collection, &storages, &g.First, &g.Last, &g.Objects, &bytes)
			g.Storages, g.SizeBytes = split(storages), sqldb.Whole(bytes)
			return g, err
		})
	return counted{rows, s.db.Now(), time.Since(begun)}, err
}

// split returns the names of storagesOf in order.
func split(storages string) []string {
	if storages == "" {
		return nil
	}
	names := strings.Split(storages, ",")
	slices.Sort(names)
	return names
}

// lacking returns the storages of a profile that are not among others.
func lacking(p registry.Profile, have []string) (out []string) {
	for _, name := range p.StorageNames() {
		if !slices.Contains(have, name) {
			out = append(out, name)
		}
	}
	return out
}

func sum(a, b registry.Amount) registry.Amount {
	return registry.Amount{Objects: a.Objects + b.Objects, SizeBytes: a.SizeBytes + b.SizeBytes}
}

func profilesOf(all []registry.Collection) map[string]registry.Profile {
	out := make(map[string]registry.Profile, len(all))
	for _, c := range all {
		out[c.Mnemonic] = c.Profile
	}
	return out
}

// StorageNames implements registry.Storing.
func (s *Manager) StorageNames(ctx context.Context, names []string) ([]string, error) {
	k, all, now, err := s.state(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the names of storages: %w", err)
	}
	return k.named(names, all, now.Groups), nil
}

// named returns names and those of all storages that an act, a profile or a copy names, sorted.
func (k known) named(names []string, all []registry.Collection, groups []group) []string {
	out := slices.AppendSeq(slices.Clone(names), maps.Keys(k))
	for _, c := range all {
		out = append(out, c.Profile.StorageNames()...)
	}
	for _, g := range groups {
		out = append(out, g.Storages...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Storages implements registry.Storing.
func (s *Manager) Storages(ctx context.Context, names []string) (registry.StorageReport, error) {
	out, err := s.report(ctx, names)
	if err != nil {
		return out, fmt.Errorf("list storages: %w", err)
	}
	return out, nil
}

func (s *Manager) report(ctx context.Context, names []string) (out registry.StorageReport, err error) {
	k, all, now, err := s.state(ctx)
	if err != nil {
		return out, err
	}
	failed, err := s.failed(ctx)
	if err != nil {
		return out, err
	}
	out.At = now.At
	byName := map[string]*registry.Storage{}
	of := func(name string) *registry.Storage {
		if byName[name] == nil {
			r := k.of(name).Storage
			r.Collections, r.Failed = []string{}, failed[name]
			byName[name] = &r
		}
		return byName[name]
	}
	for _, name := range k.named(names, all, now.Groups) {
		of(name)
	}
	profiles := profilesOf(all)
	for _, c := range all {
		for _, name := range c.Profile.StorageNames() {
			of(name).Collections = append(of(name).Collections, c.Mnemonic)
		}
	}
	short := map[string]*registry.CollectionCopies{}
	for _, g := range now.Groups {
		p := profiles[g.Collection]
		if short[g.Collection] == nil {
			short[g.Collection] = &registry.CollectionCopies{Collection: g.Collection, CopyPolicy: p.Policy()}
		}
		short[g.Collection].Objects += g.Objects
		if k.short(p, g.Storages) {
			short[g.Collection].Short = sum(short[g.Collection].Short, g.Amount)
		}
		for _, name := range g.Storages {
			of(name).Objects += g.Objects
		}
		for _, name := range lacking(p, g.Storages) {
			of(name).Missing = sum(of(name).Missing, g.Amount)
		}
	}
	for name, storage := range byName {
		if storage.State == registry.StorageFilling {
			storage.RestSeconds = rest(storage.Missing, k[name].Begun, since(k[name], s.db.Now()))
		}
		if storage.State == registry.StorageRetiring {
			w, err := s.waits(ctx, name, k, profiles, now.Groups)
			if err != nil {
				return out, err
			}
			storage.Waits = &w
			storage.RestSeconds = rest(w.Lacking, k[name].Begun, since(k[name], s.db.Now()))
		}
		out.Storages = append(out.Storages, *storage)
	}
	slices.SortFunc(out.Storages, func(a, b registry.Storage) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range short {
		out.Collections = append(out.Collections, *c)
	}
	slices.SortFunc(out.Collections, func(a, b registry.CollectionCopies) int { return strings.Compare(a.Collection, b.Collection) })
	return out, nil
}

// counting returns those of the storages whose copies count.
func (k known) counting(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return k[name].State == registry.StorageRetired })
}

// short says that an object with copies in these storages has fewer than its profile asks for.
func (k known) short(p registry.Profile, storages []string) bool {
	return !p.Policy().Met(k.counting(storages), k.offsite)
}

// hinders says that an object with copies in these storages keeps one from being retired.
func (k known) hinders(name string, p registry.Profile, storages []string) bool {
	return slices.Contains(storages, name) && !p.Policy().Met(slices.DeleteFunc(slices.Clone(storages), k.leaving), k.offsite)
}

// rest estimates how many seconds are left, from what was missing at the beginning.
func rest(left, begun registry.Amount, took time.Duration) int64 {
	share := func(left, begun int64) float64 {
		if begun <= 0 || left >= begun {
			return 0
		}
		return float64(left) / float64(begun-left)
	}
	return int64(took.Seconds() * max(share(left.Objects, begun.Objects), share(left.SizeBytes, begun.SizeBytes)))
}

// failed counts the copies that failed, by storage.
func (s *Manager) failed(ctx context.Context) (map[string]int64, error) {
	out := map[string]int64{}
	err := sqldb.Each(s.db.Read.Ask(ctx, `SELECT i.volume, i.other_storages, COUNT(*) FROM copying c JOIN work_item i ON i.id = c.item_id
		WHERE i.status = 'failed' GROUP BY i.volume, i.other_storages`), "count failed copies", func(row sqldb.Scanner) error {
		var first, others string
		var n int64
		err := row.Scan(&first, &others, &n)
		for _, name := range append([]string{first}, sqldb.WordsOf[string](others)...) {
			out[name] += n
		}
		return err
	})
	return out, err
}

// waits says what a retiring storage waits for.
func (s *Manager) waits(ctx context.Context, name string, k known, profiles map[string]registry.Profile, groups []group) (w registry.StorageWaits, err error) {
	for _, g := range groups {
		if k.hinders(name, profiles[g.Collection], g.Storages) {
			w.Lacking = sum(w.Lacking, g.Amount)
		}
	}
	if w.Items, err = s.writers(ctx, name); err != nil {
		return w, err
	}
	err = s.db.Read.QueryRowContext(ctx, `SELECT COUNT(DISTINCT f.object_id) FROM stored_file f WHERE f.damaged_at IS NOT NULL
		AND EXISTS (SELECT 1 FROM replica r WHERE r.object_id = f.object_id AND r.storage = $1)`, name).Scan(&w.Damaged)
	return w, err
}

// selectWriters counts the jobs and copies that may still write to a storage, and the batches that may
// still get such jobs. It names the stages so that an index leads to what is not completed.
var selectWriters = `SELECT COUNT(*) FROM work_item WHERE stage IN (` + stages() + `) AND status IN ('prepare', 'pending', 'running', 'failed', 'cancelled')
	AND (action IN ('ingest', 'copy') OR action = 'batch' AND (stage = 'expand' OR status IN ('failed', 'cancelled')))
	AND (volume = $1 OR other_storages LIKE $2)`

// stages returns all stages as a list in SQL.
func stages() string {
	var out []string
	for _, s := range registry.Stages() {
		out = append(out, "'"+string(s)+"'")
	}
	return strings.Join(out, ", ")
}

func (s *Manager) writers(ctx context.Context, name string) (n int64, err error) {
	err = s.db.Read.QueryRowContext(ctx, selectWriters, name, "%,"+name+",%").Scan(&n)
	return n, err
}
