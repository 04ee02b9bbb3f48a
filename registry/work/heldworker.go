package work

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// turnedAway is when an item is rung for again that a worker asked for which is to have nothing: soon, since another worker
// may have it, and not at once, since this one may be asked again.
const turnedAway = time.Second

// heldWorker says whether a hold keeps a worker from being given anything.
func (t *Tx) heldWorker(id string) (bool, error) {
	holds, err := t.workerHolds()
	return slices.ContainsFunc(holds, func(h registry.Hold) bool { return h.CoversWorker(id) }), err
}

func (t *Tx) workerHolds() ([]registry.Hold, error) {
	if t.onWorkers != nil {
		return t.onWorkers, nil
	}
	holds, err := sqldb.Collect(t.Ask(SelectHold+`WHERE scope = 'worker'`), "look up holds on workers", ScanHold)
	if err != nil {
		return nil, err
	}
	t.onWorkers = append([]registry.Hold{}, holds...)
	return t.onWorkers, nil
}

// turnAway refuses a worker that is to have nothing. The message that brought the hint is used up, so the item is due again
// soon (R20).
func (t *Tx) turnAway(r registry.ClaimRequest, why registry.Reason) (*registry.NotClaimable, error) {
	err := t.Do(`UPDATE work_item SET nudge_at = $3, nudges = 0
		WHERE id = $1 AND stage = $2 AND status = 'pending' AND nudges > 0 AND nudge_at > $3`,
		r.Hint, r.Stage, t.Now+turnedAway.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("ring for %s again: %w", r.Hint, err)
	}
	return &registry.NotClaimable{ItemID: r.Hint, Reason: why}, nil
}

// closeWindow takes the slots of the workers that a new hold covers out of the relay's window. Their next renewals keep
// them out.
func (t *Tx) closeWindow(h registry.Hold) error {
	ids, err := t.Strings(`SELECT id FROM worker WHERE seen_at > $1`, t.Now-workerAlive.Microseconds())
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	var errs []error
	for _, id := range ids {
		if h.CoversWorker(id) {
			err := t.Do(`UPDATE worker_stage SET capacity = 0, spare = 0 WHERE worker_id = $1`, id)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
