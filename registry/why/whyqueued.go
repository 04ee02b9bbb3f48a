package why

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// line is an item's position in its stage.
type line struct {
	place, of   int64 // if above registry.MostInLine: at least so many
	collections int64 // collections that take turns
}

// lineOf returns an item's position by rank among the items of its stage that could start.
func (s *Reasons) lineOf(ctx context.Context, it registry.WorkItem) (l line, err error) {
	scopes, err := s.find.HoldScopes(ctx)
	if err != nil {
		return l, err
	}
	others := `FROM lane l CROSS JOIN work_item i WHERE l.stage = $1 AND l.active = 1 AND NOT ` + work.Shut("l") + `
		AND i.stage = l.stage AND i.collection = l.collection AND i.ready = 1 AND i.id <> $2 AND NOT ` + work.LockedOut
	if scopes[registry.HoldItem] || scopes[registry.HoldBatch] || scopes[registry.HoldVolume] {
		others += ` AND NOT ` + work.HeldBy
	}
	bound := fmt.Sprintf(` LIMIT %d) found`, registry.MostInLine)
	err = s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM (SELECT 1 `+others+` AND i.rank <= $3 AND (i.rank < $3 OR i.id < $2)`+bound,
		it.Stage, it.ID, work.Rank(sqldb.Micros(it.CreatedAt), it.Priority)).Scan(&l.place)
	if err != nil {
		return l, fmt.Errorf("count the items before it: %w", err)
	}
	err = s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM (SELECT 1 `+others+bound, it.Stage, it.ID).Scan(&l.of)
	if err != nil {
		return l, fmt.Errorf("count the items of its stage: %w", err)
	}
	l.place, l.of = l.place+1, l.of+1 // the item itself
	err = s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM lane l WHERE l.stage = $1 AND l.active = 1 AND NOT `+work.Shut("l")+`
		AND EXISTS (SELECT 1 FROM work_item i WHERE i.stage = l.stage AND i.collection = l.collection AND i.ready = 1)`,
		it.Stage).Scan(&l.collections)
	if err != nil {
		return l, fmt.Errorf("count the collections of its stage: %w", err)
	}
	return l, nil
}

// whyQueued explains the item's position, and whether no worker can take it.
func (s *Reasons) whyQueued(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	l, err := s.lineOf(ctx, it)
	if err != nil {
		return err
	}
	f, err := s.work.Fleet(ctx)
	if err != nil {
		return err
	}
	w.Reason, w.Since = registry.ReasonQueued, it.RunAt
	w.Because = []registry.Statement{{Says: registry.SaysPlace, Stage: it.Stage, N: l.place, Of: l.of, Others: l.collections}}
	w.Helps = []registry.Statement{{Says: registry.SaysStartsInTurn}}
	if err := errors.Join(s.whyCrowded(ctx, it, w), s.work.WhyLimited(ctx, it, w), s.work.WhyAlone(ctx, it, w)); err != nil {
		return err
	}
	switch c := f.Of(it.Stage); {
	case c.Capacity > 0:
	case len(c.Held) > 0:
		h := c.Held[0]
		w.Because = append(w.Because, registry.Statement{Says: registry.SaysNoWorker, Stage: it.Stage, Hold: &h})
		w.Actor, w.Helps = h.Actor, []registry.Statement{release(h)}
	default:
		none := registry.Statement{Says: registry.SaysNoWorker, Stage: it.Stage}
		if c.Stopping > 0 {
			none.Says = registry.SaysStopping
		}
		w.Because = append(w.Because, none)
		w.Helps = []registry.Statement{{Says: registry.SaysStart, Stage: it.Stage}}
	}
	return nil
}

// whyCrowded explains if a queued item is kept back because its collection has all slots it may
// have.
func (s *Reasons) whyCrowded(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	c, err := work.SlotSharesAt(it.Stage, sqldb.Micros(s.db.Now()), func(query string, args ...any) (map[string]int64, error) {
		return sqldb.Numbers(s.db.Read.Ask(ctx, query, args...))
	})
	if err != nil {
		return err
	}
	var own bool
	err = s.db.Read.QueryRowContext(ctx, `SELECT COALESCE((SELECT own FROM work_item WHERE id = $1), 0) = 1`, it.ID).Scan(&own)
	if err != nil {
		return fmt.Errorf("look up the source of item %s: %w", it.ID, err)
	}
	if c.KeepsBack(it, own) {
		w.Reason, w.Because = registry.ReasonCrowded, append([]registry.Statement{c.Statement(it)}, w.Because...)
		w.Helps = []registry.Statement{{Says: registry.SaysStartsFreed, Stage: it.Stage}}
	}
	return nil
}
