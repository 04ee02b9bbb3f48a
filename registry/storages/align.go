package storages

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Bounds of one call of Align.
const (
	objectsAtOnce = 500 // that are looked at, or whose replicas are forgotten, in a transaction
	portions      = 20  // of these
)

// Align implements registry.Aligning.
func (s *Manager) Align(ctx context.Context, r registry.AlignRequest) (out registry.Aligned, err error) {
	k, err := s.known(ctx)
	if err == nil {
		err = s.catalog.PurgeCopies(ctx, r.Keep)
	}
	open := false
	for _, storage := range k {
		open = open || storage.State == registry.StorageFilling || storage.State == registry.StorageRetiring
		if err == nil && storage.State == registry.StorageRetired && !storage.forgotten {
			err = s.forget(ctx, storage.Name)
		}
	}
	if err == nil {
		err = s.recount(ctx, open)
	}
	if open && err == nil {
		out, err = s.walk(ctx, k, r.Outstanding)
	}
	if err != nil {
		return out, fmt.Errorf("bring objects to their storages: %w", err)
	}
	return out, nil
}

// walk looks at the next objects and queues copies of those that lack one, until so many wait or run.
// At the end of all objects it begins anew, or rests if it queued nothing; when nothing waits or runs
// then, it ends what can end.
func (s *Manager) walk(ctx context.Context, k known, outstanding int) (out registry.Aligned, err error) {
	for range portions {
		w, text, err := s.walked(ctx)
		if err != nil {
			return out, err
		}
		events, err := s.work.FeedEnd(ctx)
		if err != nil || w.rests(s.db.Now(), events) {
			return out, err
		}
		if w.After == "" {
			w = walk{Events: events}
		}
		waiting, err := s.outstanding(ctx)
		if err != nil || waiting >= outstanding {
			return out, err
		}
		done, err := s.step(ctx, w, text, outstanding-waiting)
		out.Queued += done.queued
		out.Seen += done.seen
		if err != nil {
			return out, err
		}
		if !done.ended {
			continue
		}
		if waiting+done.queued == 0 {
			out.Ended, err = s.end(ctx, k)
		}
		if err == nil && !done.walk.Queued && len(out.Ended) == 0 {
			err = s.rest(ctx, done.walk)
		}
		return out, err
	}
	return out, nil
}

// walk is how far the walk over all objects is. It is the same for all processes, so a setting keeps it.
type walk struct {
	After  string        `json:"after,omitempty"` // the last object that was looked at; "": it begins
	Events int64         `json:"events"`          // the feed's end when it began
	Queued bool          `json:"queued,omitempty"`
	Took   time.Duration `json:"took,omitempty"`
	Rested time.Time     `json:"rested,omitzero"` // when it ended, and had queued nothing
}

// A walk that queued nothing, perhaps because its copies have failed, would queue nothing again until
// something happens: a copy is requeued or deleted, a version is stored, a profile or a storage changes.
// All of these are events. On a Registry where something always happens, walks take a twentieth of a
// processor at most. An act on a storage begins a walk at once.
const mostRest = 10 * time.Minute

// rests says that the next walk need not begin yet.
func (w walk) rests(now time.Time, events int64) bool {
	if w.Rested.IsZero() {
		return false
	}
	rested := now.Sub(w.Rested).Abs()
	return rested < min(mostShare*w.Took, mostRest) || events == w.Events && rested < mostRest
}

// walked reads how far the walk is. text is the setting's value.
func (s *Manager) walked(ctx context.Context) (w walk, text string, err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT value FROM setting WHERE name = $1`, cursor).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) || err == nil && text == "" {
		return walk{}, "", nil
	} else if err != nil {
		return walk{}, "", err
	}
	if json.Unmarshal([]byte(text), &w) != nil { // a program of another version wrote it
		w = walk{}
	}
	return w, text, nil
}

// outstanding counts the copies that run or could start. Those that wait for something else, such as an
// object's lock, must not keep all others from being queued.
func (s *Manager) outstanding(ctx context.Context) (n int, err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM copying c JOIN work_item i ON i.id = c.item_id
		WHERE i.status = 'running' OR i.status = 'pending' AND i.run_at <= $1`, sqldb.Micros(s.db.Now())).Scan(&n)
	return n, err
}

// object is an object that the walk looks at.
type object struct {
	id, collection string
	head           int
	storages       []string
}

// stepped is what a step of a walk did.
type stepped struct {
	walk         walk // after it
	seen, queued int
	ended        bool // these were the last objects
}

// step looks at the next objects of the walk, up to so many that lack a copy. text is the setting's
// value from which the walk was read.
func (s *Manager) step(ctx context.Context, w walk, text string, most int) (done stepped, err error) {
	begun := s.db.Now()
	all, err := s.profiles.Collections(ctx)
	if err != nil {
		return done, err
	}
	profiles := profilesOf(all)
	objects, err := sqldb.Collect(s.db.Read.Ask(ctx, `SELECT o.id, o.collection, o.head, `+storagesOf+` FROM object o
		WHERE o.id > $1 AND o.head > 0 AND o.gone = '' ORDER BY o.id`+sqldb.Limit(objectsAtOnce), w.After), "list objects",
		func(row sqldb.Scanner) (o object, err error) {
			var storages string
			err = row.Scan(&o.id, &o.collection, &o.head, &storages)
			o.storages = split(storages)
			return o, err
		})
	if err != nil {
		return done, err
	}
	done.ended = len(objects) < objectsAtOnce
	var due []object
	for i, o := range objects {
		w.After = o.id
		done.seen++
		if o.storages = lacking(profiles[o.collection], o.storages); len(o.storages) > 0 {
			due = append(due, o)
		}
		if len(due) == most && i < len(objects)-1 {
			done.ended = false
			break
		}
	}
	w.Took += s.db.Now().Sub(begun)
	last := done.ended
	if last {
		w.After = ""
	}
	err = s.work.Write(ctx, func(t *work.Tx) error {
		done.queued, done.ended = 0, last
		if same, err := unchanged(t, text); err != nil || !same {
			done.ended = false // another process, or an act, was faster
			return err
		}
		for _, o := range due {
			added, err := s.catalog.AddCopy(t, o.id, o.head, o.storages)
			if err != nil && !errors.Is(err, registry.ErrNotFound) {
				return err
			}
			if added {
				done.queued++
			}
		}
		done.walk = w
		done.walk.Queued = w.Queued || done.queued > 0
		return setCursor(t, done.walk.text())
	})
	return done, err
}

// rest notes that a walk has ended and queued nothing, unless another process or an act changed it.
func (s *Manager) rest(ctx context.Context, w walk) error {
	return s.work.Write(ctx, func(t *work.Tx) error {
		if same, err := unchanged(t, w.text()); err != nil || !same {
			return err
		}
		return setCursor(t, walk{Events: w.Events, Took: w.Took, Rested: s.db.Now()}.text())
	})
}

// unchanged says that the walk's setting still has this value.
func unchanged(t *work.Tx, text string) (bool, error) {
	var now string
	err := t.Get(`SELECT COALESCE((SELECT value FROM setting WHERE name = $1), '')`, []any{cursor}, &now)
	return now == text, err
}

// text is the value of the walk's setting.
func (w walk) text() string {
	text, _ := json.Marshal(w) // only numbers, texts and times
	return string(text)
}

// end ends the filling of storages that lack nothing, and the retiring of storages that wait for
// nothing. It counts outside of the transaction: no profile names a retiring storage, so once nothing
// writes to it any more, what is counted stays.
func (s *Manager) end(ctx context.Context, k known) (ended []registry.Storage, err error) {
	all, err := s.profiles.Collections(ctx)
	if err != nil {
		return nil, err
	}
	profiles := profilesOf(all)
	free := map[string]bool{} // storages that nothing writes to before the count
	for name, r := range k {
		if r.State == registry.StorageRetiring {
			n, err := s.writers(ctx, name)
			if err != nil {
				return nil, err
			}
			free[name] = n == 0
		}
	}
	now, err := s.countNow(ctx)
	if err != nil {
		return nil, err
	}
	s.counting.Lock()
	s.counted = now
	s.counting.Unlock()
	for name, r := range k {
		switch r.State {
		case registry.StorageFilling:
			if slices.ContainsFunc(now.Groups, func(g group) bool { return slices.Contains(lacking(profiles[g.Collection], g.Storages), name) }) {
				continue
			}
			r.State = registry.StorageInUse
		case registry.StorageRetiring:
			w, err := s.waits(ctx, name, k, profiles, now.Groups)
			if err != nil {
				return ended, err
			}
			if !free[name] || !w.None() {
				continue
			}
			r.State = registry.StorageRetired
		case registry.StorageInUse, registry.StorageRetired:
			continue
		}
		done, err := s.endOne(ctx, r)
		if err != nil {
			return ended, err
		} else if done {
			ended = append(ended, r.Storage)
		}
	}
	return ended, nil
}

// endOne notes that a storage is filled or retired, unless an act on it came first.
func (s *Manager) endOne(ctx context.Context, r row) (done bool, err error) {
	err = s.work.Write(ctx, func(t *work.Tx) error {
		done = false
		if r.State == registry.StorageRetired {
			all, err := collection.All(t)
			if err != nil {
				return err
			}
			var writers int64
			if err := t.Get(selectWriters, []any{r.Name, "%," + r.Name + ",%"}, &writers); err != nil || writers > 0 {
				return err
			}
			for _, c := range all {
				if slices.Contains(c.Profile.StorageNames(), r.Name) {
					return nil // an act put it back
				}
			}
		}
		n, err := t.Exec(`UPDATE storage SET state = $2 WHERE name = $1 AND since = $3 AND state IN ('filling', 'retiring')`, r.Name, r.State, r.since)
		if err != nil || n == 0 {
			return err
		}
		done = true
		return t.Note(work.Entry{ItemID: r.Name, Kind: registry.EventStorage, Actor: work.ActorRegistry, Data: registry.StorageChanged{Storage: r.Name, State: r.State}})
	})
	return done, err
}

// forget removes the rows of the replicas in a retired storage, so that nobody looks for them there.
func (s *Manager) forget(ctx context.Context, name string) error {
	for more := true; more && ctx.Err() == nil; {
		var after string
		if err := s.db.Read.QueryRowContext(ctx, `SELECT forgot FROM storage WHERE name = $1`, name).Scan(&after); err != nil {
			return err
		}
		ids, err := s.db.Column(ctx, `SELECT DISTINCT object_id FROM replica WHERE object_id > $1 AND storage = $2 ORDER BY object_id`+
			sqldb.Limit(objectsAtOnce), after, name)
		if err != nil {
			return err
		}
		last := after
		if more = len(ids) == objectsAtOnce; len(ids) > 0 {
			last = ids[len(ids)-1]
		}
		err = s.work.Write(ctx, func(t *work.Tx) error {
			return errors.Join(
				t.Do(`DELETE FROM replica WHERE object_id > $1 AND object_id <= $2 AND storage = $3`, after, last, name),
				t.Do(`UPDATE storage SET forgot = $2, forgotten = $3 WHERE name = $1 AND state = 'retired'`, name, last, sqldb.Bit(!more)))
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
