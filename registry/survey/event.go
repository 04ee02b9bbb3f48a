package survey

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

const (
	// eventsAtOnce is how many events one statement reads.
	eventsAtOnce = 500
	// clockSlack is how far the times of events may be out of the order of their numbers, because a
	// clock was set back.
	clockSlack = time.Hour
)

// digestOf returns the SHA-256 of a text in hex; "" of none.
func digestOf(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// eventAt returns the number of the first event at or after a time. Events have numbers in the order of
// their times, and times have no index.
func (s *Survey) eventAt(ctx context.Context, at time.Time) (int64, error) {
	var last sql.NullInt64
	if err := s.db.Read.QueryRowContext(ctx, `SELECT MAX(feed_seq) FROM event`).Scan(&last); err != nil {
		return 0, fmt.Errorf("find the feed's end: %w", err)
	}
	low, high := int64(1), last.Int64+1 // the number is in between
	for low < high {
		middle := low + (high-low)/2
		var seq, then int64
		err := s.db.Read.QueryRowContext(ctx, `SELECT feed_seq, at FROM event WHERE feed_seq >= $1 ORDER BY feed_seq LIMIT 1`, middle).Scan(&seq, &then)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			high = middle
		case err != nil:
			return 0, fmt.Errorf("find the event of a time: %w", err)
		case then < sqldb.Micros(at):
			low = seq + 1
		default:
			high = middle
		}
	}
	return low, nil
}

// events calls each for the events of the period that meet a condition, in their order.
func (s *Survey) events(ctx context.Context, q Query, condition string, each func(registry.Event) error) error {
	from, err := s.eventAt(ctx, q.From.Add(-clockSlack))
	if err != nil {
		return err
	}
	end, err := s.eventAt(ctx, q.To.Add(clockSlack))
	if err != nil {
		return err
	}
	for after := from - 1; ; {
		rows, err := sqldb.Collect(s.db.Read.Ask(ctx, `SELECT id, feed_seq, item_id, collection, type, actor, at, data FROM event
			WHERE `+condition+` AND feed_seq > $1 AND feed_seq < $2 AND at >= $3 AND at < $4 ORDER BY feed_seq LIMIT $5`,
			after, end, sqldb.Micros(q.From), sqldb.Micros(q.To), eventsAtOnce), "list events", func(row sqldb.Scanner) (e registry.Event, err error) {
			var at int64
			var data string
			err = row.Scan(&e.ID, &e.Seq, &e.ItemID, &e.Collection, &e.Type, &e.Actor, &at, &data)
			e.At, e.Data = sqldb.FromMicros(at), []byte(data)
			return e, err
		})
		if err != nil {
			return err
		}
		for _, e := range rows {
			if err := each(e); err != nil {
				return err
			}
			after = e.Seq
		}
		if len(rows) < eventsAtOnce {
			return nil
		}
	}
}

// Accesses implements Reader.
func (s *Survey) Accesses(ctx context.Context, q Query, each func(Access) error) error {
	condition := `audited = 1 AND type IN ` + sqldb.Names([]string{
		registry.EventExported, registry.EventFilesRead, registry.EventRestoreFetched, string(registry.ActSubmit),
	})
	return s.events(ctx, q, condition, func(e registry.Event) error {
		a := Access{ID: e.ID, At: e.At, Kind: e.Type, Actor: e.Actor}
		if e.Type == string(registry.ActSubmit) {
			var restore bool
			if a, restore = restoreIn(a, e); !restore {
				return nil
			}
		} else if err := json.Unmarshal(e.Data, &a.Access); err != nil {
			return fmt.Errorf("read access %s: %w", e.ID, err)
		}
		if q.Collection != "" && a.Collection != q.Collection {
			return nil
		}
		return each(a)
	})
}

// Backups implements Reader.
func (s *Survey) Backups(ctx context.Context, q Query, each func(Backup) error) error {
	return s.events(ctx, q, `audited = 1 AND type = '`+registry.EventBackupMade+`'`, func(e registry.Event) error {
		b := Backup{ID: e.ID, At: e.At}
		if err := json.Unmarshal(e.Data, &b.Backup); err != nil {
			return fmt.Errorf("read backup %s: %w", e.ID, err)
		}
		return each(b)
	})
}

// restoreIn fills in an access from the event that made an item, if that is a restore.
func restoreIn(a Access, e registry.Event) (Access, bool) {
	var made struct {
		Stage registry.Stage  `json:"stage"`
		Spec  json.RawMessage `json:"spec"`
	}
	if json.Unmarshal(e.Data, &made) != nil || made.Stage != registry.Restore {
		return a, false
	}
	spec, ok := registry.ObjectSpecIn(made.Spec)
	a.Kind, a.Collection, a.ObjectID, a.Version, a.Reason = RestoreRequested, e.Collection, spec.ObjectID, spec.Version, spec.Reason
	return a, ok
}

// failures counts by cause the jobs and batches that failed.
func (s *Survey) failures(ctx context.Context, q Query) ([]Failure, error) {
	found := map[Failure]int64{}
	titles := map[string]string{} // of the first failure with a fingerprint
	err := s.events(ctx, q, `type = '`+string(registry.ActFail)+`'`, func(e registry.Event) error {
		p, ok := e.Position()
		if !ok || p.Action != registry.Ingest && p.Action != registry.Batch || q.Collection != "" && e.Collection != q.Collection {
			return nil
		}
		var failed struct {
			Error string              `json:"error"`
			Class registry.ErrorClass `json:"error_class"`
		}
		if err := json.Unmarshal(e.Data, &failed); err != nil {
			return fmt.Errorf("read failure %s: %w", e.ID, err)
		}
		cause := registry.CauseOf(p.Stage, failed.Class, "", "", failed.Error)
		key := Failure{Collection: e.Collection, Stage: p.Stage, Class: failed.Class, Cause: cause.Fingerprint()}
		if _, known := titles[key.Cause]; !known {
			if len(titles) >= mostCauses {
				key.Cause = otherCauses
			}
			titles[key.Cause] = cause.Title()
		}
		found[key]++
		return nil
	})
	titles[otherCauses] = "other causes"
	out := make([]Failure, 0, len(found))
	for f, times := range found {
		f.Title, f.Times = titles[f.Cause], times
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Collection, b.Collection), cmp.Compare(b.Times, a.Times), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Cause, b.Cause))
	})
	return out, err
}

// mostCauses is how many causes of failures a report tells apart. Deposits can make any number of them.
const mostCauses = 2_000

// otherCauses stands for all causes beyond mostCauses.
const otherCauses = "other"

// whole adds a float, as sums of large columns come, to a number.
func whole(sum sql.NullFloat64) int64 { return int64(math.Round(sum.Float64)) }
