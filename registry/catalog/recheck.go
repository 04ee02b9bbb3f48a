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

// mostRechecks bounds what one call queues, and what it purges, so that no transaction gets long
// (R25).
const mostRechecks = 200

// Recheck implements registry.Rechecking. What is to be purged is looked for outside the
// transaction.
func (s *Catalog) Recheck(ctx context.Context, r registry.RecheckRequest) (done registry.Rechecked, err error) {
	old, err := s.oldChecks(ctx, r.Keep.Microseconds())
	if err != nil {
		return done, fmt.Errorf("look for completed checks: %w", err)
	}
	err = s.write(ctx, func(t *tx) error {
		done = registry.Rechecked{}
		var waiting int
		err := t.Get(`SELECT COUNT(*) FROM stored_file s JOIN work_item i ON i.id = s.item_id
			WHERE s.item_id <> '' AND i.status IN ('pending', 'running')`, nil, &waiting)
		if err != nil {
			return fmt.Errorf("count checks under way: %w", err)
		}
		if done.Queued, err = t.queueChecks(r, min(r.Outstanding-waiting, mostRechecks)); err != nil {
			return err
		}
		if done.Purged, err = t.purgeChecks(old); err != nil {
			return err
		}
		if err := t.queueSweep(r.Every); err != nil {
			return err
		}
		return t.Get(`SELECT COUNT(*) FROM stored_file WHERE damaged_at IS NOT NULL`, nil, &done.Damaged)
	})
	if err != nil {
		return done, fmt.Errorf("queue checks of stored files: %w", err)
	}
	return done, nil
}

// recorded is true for the stored files s of versions that are recorded: the others are still being
// written, or are on their way out.
const recorded = `EXISTS (SELECT 1 FROM object_version v JOIN object g ON g.id = v.object_id
	WHERE v.object_id = s.object_id AND v.version = s.version AND v.status = 'recorded' AND g.gone = '')`

// queueChecks makes the items of at most this many files that are due: first what was asked for,
// then what was not looked at for longest.
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

// queueAsked does the same for the object that was asked for first. more says that all its files
// are under way, or were looked at since, so that it is the next one's turn.
func (t *tx) queueAsked(most int) (queued int, more bool, err error) {
	var id string
	var asked int64
	err = t.Get(`SELECT id, check_asked_at FROM object WHERE check_asked_at IS NOT NULL ORDER BY check_asked_at, id LIMIT 1`, nil, &id, &asked)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	} else if err != nil {
		return 0, false, fmt.Errorf("look for requests for checks: %w", err)
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

// dueFiles lists files as what is to be asked about them.
func (t *tx) dueFiles(reason, query string, args ...any) (out []registry.ObjectSpec, err error) {
	return sqldb.Collect(t.Ask(query, args...), "look for files to check", func(row sqldb.Scanner) (registry.ObjectSpec, error) {
		spec := registry.ObjectSpec{Reason: reason}
		err := row.Scan(&spec.ObjectID, &spec.File, &spec.Version)
		return spec, err
	})
}

// addCheck makes the item that checks a stored file, which has none that waits, runs or failed.
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

// queueSweep makes the item that looks for files in storages which belong to no object, as often as
// stored files are read again: the first time that long after this Registry began, and none while
// one waits, runs or has failed, which somebody has to look at.
func (t *tx) queueSweep(every time.Duration) error {
	if every <= 0 {
		return nil
	}
	var last string
	var at int64
	err := t.Get(`SELECT value, at FROM setting WHERE name = 'sweep'`, nil, &last, &at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return t.noteSweep("")
	case err != nil:
		return fmt.Errorf("look up the last search through the storages: %w", err)
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
		return fmt.Errorf("queue a search through the storages: %w", err)
	}
	return t.noteSweep(it.ID)
}

func (t *tx) noteSweep(itemID string) error {
	return t.Do(`INSERT INTO setting (name, value, reason, actor, at) VALUES ('sweep', $1, '', $2, $3)
		ON CONFLICT (name) DO UPDATE SET value = $1, at = $3`, itemID, work.ActorRegistry, t.Now)
}

// oldChecks lists completed checks that ended so many microseconds ago, the oldest first.
func (s *Catalog) oldChecks(ctx context.Context, keep int64) ([]string, error) {
	return s.db.Column(ctx, `SELECT id FROM work_item WHERE stage = $1 AND status = 'completed' AND tenant = $2
		AND created_at < $3 AND finished_at <= $3 ORDER BY created_at`+sqldb.Limit(mostRechecks), registry.Fixity, sqldb.Tenant, sqldb.Micros(s.db.Now())-keep)
}

// purgeChecks removes completed checks. What they found stands with the files and in the objects'
// histories.
func (t *tx) purgeChecks(ids []string) (purged int, err error) {
	for _, id := range ids {
		it, err := t.Item(id)
		if errors.Is(err, registry.ErrNotFound) || err == nil && it.Status != registry.Completed {
			continue // somebody was faster
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
func (s *Catalog) AskForCheck(ctx context.Context, objectID, reason, actor string) error {
	if sqldb.Clean(objectID) != objectID {
		return fmt.Errorf("ask for a check of object %q: %w", objectID, registry.ErrNotFound) // there can be none
	}
	err := s.write(ctx, func(t *tx) error {
		var collection string
		err := t.Get(`UPDATE object SET check_asked_at = $2 WHERE id = $1 AND head > 0 AND gone = '' RETURNING collection`, []any{objectID, t.Now}, &collection)
		if errors.Is(err, sql.ErrNoRows) {
			return registry.ErrNotFound
		} else if err != nil {
			return err
		}
		return t.Note(work.Entry{
			ItemID: objectID, Kind: registry.EventCheckAskedFor, Actor: actor, Collection: collection,
			Data: map[string]string{"object_id": objectID, "reason": sqldb.Clean(reason)},
		})
	})
	if err != nil {
		return fmt.Errorf("ask for a check of object %s: %w", objectID, err)
	}
	return nil
}
