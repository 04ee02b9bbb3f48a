package why

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// mostCounted bounds how many items are counted to tell a position.
const mostCounted = 10_000

// line is where an item stands in its stage.
type line struct {
	place, of   int64 // more than mostCounted: at least so many
	collections int64 // that take turns
}

// String tells the place.
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

// lineOf finds an item's place by rank among those of its stage that nothing keeps from starting.
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
	l.place, l.of = l.place+1, l.of+1 // itself
	err = s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM lane l WHERE l.stage = $1 AND l.active = 1 AND NOT `+work.Shut("l")+`
		AND EXISTS (SELECT 1 FROM work_item i WHERE i.stage = l.stage AND i.collection = l.collection AND i.ready = 1)`,
		it.Stage).Scan(&l.collections)
	if err != nil {
		return l, fmt.Errorf("count the collections of its stage: %w", err)
	}
	return l, nil
}

// whyQueued gives the item's place, and says when there is nobody to take it.
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
	w.Act = "nothing: it is taken in its turn; a lower priority number would bring it forward"
	if err := errors.Join(s.whyCrowded(ctx, it, w), s.work.WhyAlone(ctx, it, w)); err != nil {
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
		w.Act = fmt.Sprintf("start a worker for %s", it.Stage)
	default:
		w.Sentence += fmt.Sprintf("; no worker serves %s", it.Stage)
		w.Act = fmt.Sprintf("start a worker for %s", it.Stage)
	}
	return nil
}

// whyCrowded says of a queued item that its collection has all the slots that it may have, and how
// many these are.
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
		return fmt.Errorf("ask what item %s names: %w", it.ID, err)
	}
	if c.KeepsBack(it, own) {
		w.Reason, w.Sentence = registry.ReasonCrowded, c.Sentence(it)+"; "+w.Sentence
		w.Act = fmt.Sprintf("nothing: it starts when one that runs there ends; more workers for %s, or a higher HOLDFAST_CONCURRENCY, let more run at once", it.Stage)
	}
	return nil
}
