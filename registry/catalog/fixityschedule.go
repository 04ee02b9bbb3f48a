package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// maxRechecks bounds how many checks one call queues, and how many it purges, so that no
// transaction gets long (R25).
const maxRechecks = 200

// Recheck implements registry.Rechecking. It finds the checks to purge before the transaction.
func (s *Catalog) Recheck(ctx context.Context, r registry.RecheckRequest) (done registry.Rechecked, err error) {
	old, err := s.completed(ctx, registry.Fixity, r.Keep)
	if err != nil {
		return done, fmt.Errorf("list completed checks: %w", err)
	}
	err = s.write(ctx, func(t *tx) error {
		done = registry.Rechecked{}
		var waiting int
		err := t.Get(`SELECT COUNT(*) FROM stored_file s JOIN work_item i ON i.id = s.item_id
			WHERE s.item_id <> '' AND i.status IN ('pending', 'running')`, nil, &waiting)
		if err != nil {
			return fmt.Errorf("count checks under way: %w", err)
		}
		if done.Queued, err = t.queueChecks(r, min(r.Outstanding-waiting, maxRechecks)); err != nil {
			return err
		}
		if done.Purged, err = t.purgeCompleted(old); err != nil {
			return err
		}
		if err := t.queueOrphanSearch(r.Every); err != nil {
			return err
		}
		return t.Get(`SELECT COUNT(*) FROM stored_file WHERE damaged_at IS NOT NULL`, nil, &done.Damaged)
	})
	if err != nil {
		return done, fmt.Errorf("queue checks of stored files: %w", err)
	}
	return done, nil
}

// recorded is a condition on stored files s: their version is recorded, and the object is not being
// deleted.
const recorded = `EXISTS (SELECT 1 FROM object_version v JOIN object g ON g.id = v.object_id
	WHERE v.object_id = s.object_id AND v.version = s.version AND v.status = 'recorded' AND g.gone = '')`

// queueChecks adds the items of at most so many files that are due: first those that a person asked
// for, then those whose last check is the oldest.
func (t *tx) queueChecks(r registry.RecheckRequest, most int) (queued int, err error) {
	for queued < most {
		n, more, err := t.queueAsked(most - queued)
		queued += n
		if err != nil {
			return queued, err
		} else if !more {
			break
		}
	}
	if r.Every <= 0 || queued >= most {
		return queued, nil
	}
	due, err := t.dueFiles("by schedule", `SELECT s.object_id, s.content_path, s.version FROM stored_file s
		WHERE s.item_id = '' AND s.checked_at <= $1 AND `+recorded+` ORDER BY s.checked_at, s.object_id, s.content_path`+sqldb.Limit(most-queued),
		t.Now-r.Every.Microseconds())
	if err != nil {
		return queued, err
	}
	return queued + len(due), t.addChecks(due)
}

// queueAsked adds the items of the object with the oldest request. more is true if this closed the
// request, because all files are queued or were checked since. Then the next object can follow.
func (t *tx) queueAsked(most int) (queued int, more bool, err error) {
	var id string
	var asked int64
	err = t.Get(`SELECT id, check_asked_at FROM object WHERE check_asked_at IS NOT NULL ORDER BY check_asked_at, id LIMIT 1`, nil, &id, &asked)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	} else if err != nil {
		return 0, false, fmt.Errorf("look up requests for checks: %w", err)
	}
	due, err := t.dueFiles("asked for", `SELECT s.object_id, s.content_path, s.version FROM stored_file s
		WHERE s.object_id = $1 AND s.checked_at < $2 AND s.item_id = '' AND `+recorded+` ORDER BY s.checked_at`+sqldb.Limit(most), id, asked)
	if err != nil {
		return 0, false, err
	}
	if err := t.addChecks(due); err != nil || len(due) == most {
		return len(due), false, err
	}
	if err := t.Do(`UPDATE object SET check_asked_at = NULL WHERE id = $1`, id); err != nil {
		return len(due), false, fmt.Errorf("close a request for checks: %w", err)
	}
	return len(due), true, nil
}

func (t *tx) addChecks(due []registry.ObjectSpec) error {
	for _, spec := range due {
		if _, err := t.addCheck(spec, work.ActorRegistry); err != nil {
			return err
		}
	}
	return nil
}

// dueFiles runs a query for files and returns the spec of the check of each.
func (t *tx) dueFiles(reason, query string, args ...any) (out []registry.ObjectSpec, err error) {
	return sqldb.Collect(t.Ask(query, args...), "list files to check", func(row sqldb.Scanner) (registry.ObjectSpec, error) {
		spec := registry.ObjectSpec{Reason: reason}
		err := row.Scan(&spec.ObjectID, &spec.File, &spec.Version)
		return spec, err
	})
}

// addCheck adds the item that checks a stored file. The caller knows that the file has no waiting,
// running or failed check.
func (t *tx) addCheck(spec registry.ObjectSpec, actor string) (id string, err error) {
	id, err = t.addObjectItem(registry.ObjectRequest{Action: registry.FixityCheck, Spec: spec, Actor: actor})
	if err != nil {
		return "", err
	}
	n, err := t.Exec(`UPDATE stored_file SET item_id = $3 WHERE object_id = $1 AND content_path = $2`, spec.ObjectID, spec.File, id)
	if err == nil && n == 0 {
		err = registry.ErrNotFound
	}
	return id, err
}

// queueOrphanSearch adds the item that searches the storages for orphaned data, as often as files
// are checked. The first search comes one interval after this Registry's first start. It adds none
// while one waits or runs, or has failed, since an operator must look at that one.
func (t *tx) queueOrphanSearch(every time.Duration) error {
	if every <= 0 {
		return nil
	}
	var last string
	var at int64
	err := t.Get(`SELECT value, at FROM setting WHERE name = 'sweep'`, nil, &last, &at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return t.noteOrphanSearch("")
	case err != nil:
		return fmt.Errorf("look up the last search for orphaned data: %w", err)
	case at > t.Now-every.Microseconds():
		return nil
	}
	if last != "" {
		it, err := t.Item(last)
		if err == nil && (it.Status == registry.Failed || !it.Status.Settled()) {
			return nil
		} else if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return err
		}
	}
	it, err := t.searchOrphans(registry.OrphanRequest{
		Search: registry.OrphanSearch{Older: registry.LeastOrphanAge, Strays: true, Reason: "by schedule"}, Actor: work.ActorRegistry,
	}, "")
	if err != nil {
		return fmt.Errorf("queue a search for orphaned data: %w", err)
	}
	return t.noteOrphanSearch(it.ID)
}

func (t *tx) noteOrphanSearch(itemID string) error {
	return t.Do(`INSERT INTO setting (name, value, reason, actor, at) VALUES ('sweep', $1, '', $2, $3)
		ON CONFLICT (name) DO UPDATE SET value = $1, at = $3`, itemID, work.ActorRegistry, t.Now)
}

// completed lists completed items of a stage that ended at least so long ago, the oldest first.
func (s *Catalog) completed(ctx context.Context, of registry.Stage, keep time.Duration) ([]string, error) {
	return s.db.Column(ctx, `SELECT id FROM work_item WHERE stage = $1 AND status = 'completed' AND tenant = $2
		AND created_at < $3 AND finished_at <= $3 ORDER BY created_at`+sqldb.Limit(maxRechecks), of, sqldb.Tenant, sqldb.Micros(s.db.Now())-keep.Microseconds())
}

// purgeCompleted purges completed checks and copies. Their findings stay with the files and in the
// objects' events.
func (t *tx) purgeCompleted(ids []string) (purged int, err error) {
	for _, id := range ids {
		it, err := t.Item(id)
		if errors.Is(err, registry.ErrNotFound) || err == nil && it.Status != registry.Completed {
			continue // purged or requeued meanwhile
		} else if err != nil {
			return purged, err
		}
		if err := t.PurgeRows(it, registry.Command{Act: registry.ActPurge, Actor: work.ActorRegistry}); err != nil {
			return purged, err
		}
		purged++
	}
	return purged, nil
}

// AskForCheck implements registry.Rechecking.
func (s *Catalog) AskForCheck(ctx context.Context, r registry.CheckRequest) error {
	if sqldb.Clean(r.ObjectID) != r.ObjectID {
		return fmt.Errorf("ask for a check of object %q: %w", r.ObjectID, registry.ErrNotFound) // no stored id looks like this
	}
	args, err := work.Fingerprint(struct{ Act, Object, Reason string }{registry.EventCheckAskedFor, r.ObjectID, r.Reason})
	if err != nil {
		return err
	}
	err = s.write(ctx, func(t *tx) error {
		if _, done, err := t.Keyed(r.IdempotencyKey, args); err != nil || done {
			return err
		}
		var collection string
		err := t.Get(`UPDATE object SET check_asked_at = $2 WHERE id = $1 AND head > 0 AND gone = '' RETURNING collection`, []any{r.ObjectID, t.Now}, &collection)
		if errors.Is(err, sql.ErrNoRows) {
			return registry.ErrNotFound
		} else if err != nil {
			return err
		}
		err = t.Note(work.Entry{
			ItemID: r.ObjectID, Kind: registry.EventCheckAskedFor, Actor: r.Actor, Collection: collection,
			Data: map[string]string{"object_id": r.ObjectID, "reason": sqldb.Clean(r.Reason)},
		})
		if err != nil {
			return err
		}
		return t.Answer(r.IdempotencyKey, args, r.ObjectID, registry.EventCheckAskedFor, r.Actor)
	})
	if err != nil {
		return fmt.Errorf("ask for a check of object %s: %w", r.ObjectID, err)
	}
	return nil
}
