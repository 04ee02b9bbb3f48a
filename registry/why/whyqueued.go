package why

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// mostCounted bounds how many items are counted for a position.
const mostCounted = 10_000

// line is an item's position in its stage.
type line struct {
	place, of   int64 // if above mostCounted: at least so many
	collections int64 // collections that take turns
}

// String describes the position.
func (l line) String() string {
	most := sqldb.HumanCount(mostCounted)
	switch {
	case l.place > mostCounted:
		return "position beyond " + most
	case l.of > mostCounted:
		return fmt.Sprintf("position %d of more than %s", l.place, most)
	}
	return fmt.Sprintf("position %d of %d", l.place, l.of)
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
	bound := fmt.Sprintf(` LIMIT %d) found`, mostCounted)
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
	w.Sentence = fmt.Sprintf("%s for %s", l, it.Stage)
	if l.collections > 1 {
		w.Sentence += fmt.Sprintf(", where %d collections take turns", l.collections)
	}
	w.Act = "nothing: it starts in its turn; a lower priority number brings it forward"
	if err := errors.Join(s.whyCrowded(ctx, it, w), s.work.WhyLimited(ctx, it, w), s.work.WhyAlone(ctx, it, w)); err != nil {
		return err
	}
	switch c := f.Of(it.Stage); {
	case c.Capacity > 0:
	case len(c.Held) > 0:
		h := c.Held[0]
		w.Sentence += fmt.Sprintf("; no worker serves %s: %s", it.Stage, holdSentence(h, it))
		w.Actor, w.Act = h.Actor, releaseAct(h)
	case c.Stopping > 0:
		w.Sentence += fmt.Sprintf("; the last worker that serves %s is stopping", it.Stage)
		w.Act = startAct(it.Stage)
	default:
		w.Sentence += fmt.Sprintf("; no worker serves %s", it.Stage)
		w.Act = startAct(it.Stage)
	}
	return nil
}

// startAct says how a stage gets a worker.
func startAct(s registry.Stage) string {
	if name := s.Function(); name != "" {
		return "start the program that serves " + name
	}
	return fmt.Sprintf("start a worker for %s", s)
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
		w.Reason, w.Sentence = registry.ReasonCrowded, c.Sentence(it)+"; "+w.Sentence
		w.Act = fmt.Sprintf("nothing: it starts when a running one ends; more workers for %s, or a higher HOLDFAST_CONCURRENCY, let more run at once", it.Stage)
	}
	return nil
}
