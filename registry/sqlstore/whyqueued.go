package sqlstore

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

var selectPosition = `SELECT COUNT(CASE WHEN (i.rank, i.id) <= (m.rank, m.id) THEN 1 END), COUNT(*), COUNT(DISTINCT i.collection)
	FROM work_item m JOIN work_item i ON i.tenant = m.tenant AND i.status = 'pending' AND i.stage = m.stage
	WHERE m.id = $1 AND i.run_at <= $2 AND NOT ` + blocked + ` AND NOT ` + heldBy + ` AND NOT ` + lockedOut

// whyQueued gives the item's place by rank among those of its stage that nothing keeps from starting, and says when there
// is nobody to take them.
func (s *Store) whyQueued(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	var before, ready, collections int64
	err := s.read.QueryRowContext(ctx, selectPosition, it.ID, micros(s.now())).Scan(&before, &ready, &collections)
	if err != nil {
		return err
	}
	f, err := s.fleet(ctx)
	if err != nil {
		return err
	}
	w.Reason, w.Since = registry.ReasonQueued, it.RunAt
	w.Sentence = fmt.Sprintf("position %d of %d for %s", before, ready, it.Stage)
	if collections > 1 {
		w.Sentence += fmt.Sprintf(", where %d collections take turns", collections)
	}
	w.Act = "nothing: it is taken in its turn; a lower priority number would bring it forward"
	switch c := f.of(it.Stage); {
	case c.capacity > 0:
	case len(c.held) > 0:
		h := c.held[0]
		w.Sentence += fmt.Sprintf("; no worker serves %s: %s", it.Stage, holdSentence(h, it))
		w.Actor, w.Act = h.Actor, releaseAct(h)
	case c.stopping > 0:
		w.Sentence += fmt.Sprintf("; the last worker that serves %s is stopping", it.Stage)
		w.Act = fmt.Sprintf("start a worker for %s", it.Stage)
	default:
		w.Sentence += fmt.Sprintf("; no worker serves %s", it.Stage)
		w.Act = fmt.Sprintf("start a worker for %s", it.Stage)
	}
	return nil
}
