package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// SettleAndClaim implements registry.Continuing.
func (e *Engine) SettleAndClaim(ctx context.Context, se registry.Settlement, next registry.ClaimRequest) (registry.Verdict, *registry.Claim, error) {
	err := bounds.Check(se, next)
	if err == nil && next.RequestID == "" {
		err = errNoRequestID
	}
	if err != nil {
		return registry.Verdict{}, nil, err
	}
	s := &settling{Settlement: se, next: &next}
	if err := e.settle(ctx, s); err != nil || s.got == nil {
		return s.verdict, nil, err
	}
	s.got.NoteKey = e.NoteKey(s.got.Item.ID)
	return s.verdict, s.got, nil
}

// continuing is an item that may continue in its next stage, with the settlement that asks for it.
type continuing struct {
	*settling
	Shift
}

// wantsToContinue reports whether a settled item may continue in its next stage, as far as that can
// be told without the database. Anything unusual about the item takes the ordinary way, by a
// message and a claim.
func (t *Tx) wantsToContinue(s *settling, it registry.WorkItem, c Change) (bool, error) {
	if s.next == nil || c.act != registry.ActAdvance || c.Stage != s.next.Stage || c.Stage == registry.Report ||
		it.BlockerCount > 0 || it.Note != "" || it.ErrorClass != "" || t.store.hooks.Followed(it) {
		return false, nil
	}
	held, err := t.heldWorker(s.next.Worker)
	return !held, err
}

// continueAll starts the next attempts of items whose present ones were closed by this transaction.
// It returns the other items, which wait like any other. An item continues only if a claim for its
// stage would get it: no other item is ready there, nothing keeps it from starting, and its
// collection has a slot left. So neither the lanes' turns nor priorities change. Nor may its
// collection get ahead of others that wait in an earlier or later stage.
func (t *Tx) continueAll(all []continuing) (waiting []Shift, err error) {
	ahead, err := t.collectionsAhead(all)
	if err != nil {
		return nil, err
	}
	byStage := map[registry.Stage][]continuing{}
	for _, c := range all {
		if ahead[c.Item.Collection] {
			waiting = append(waiting, c.Shift)
		} else {
			byStage[c.Stage] = append(byStage[c.Stage], c)
		}
	}
	stages := registry.Stages()
	slices.Reverse(stages) // what leaves a stage makes room for what enters it
	var started []continuing
	for _, stage := range stages {
		cs := byStage[stage]
		if len(cs) == 0 {
			continue
		}
		may, keptBack, err := t.withinShares(stage, cs)
		if err != nil {
			return nil, err
		}
		does, err := t.enterStage(stage, may)
		if err != nil {
			return nil, err
		}
		for _, c := range may {
			if does[c.Item.ID] {
				started = append(started, c)
			} else {
				waiting = append(waiting, c.Shift)
			}
		}
		waiting = append(waiting, keptBack...)
	}
	return waiting, t.startContinued(started)
}

// mostRivals bounds how many waiting collections are compared. While more wait, nothing continues.
const mostRivals = 16

// depositStages are the stages whose items come from one another.
var depositStages = sqldb.Names(registry.DepositStages())

// collectionsAhead returns the collections whose items may not continue, because another one waits
// that has fewer items running: its jobs would come through the stages later than in turn.
func (t *Tx) collectionsAhead(all []continuing) (ahead map[string]bool, err error) {
	rivals, err := t.Strings(`SELECT DISTINCT l.collection FROM lane l WHERE l.stage IN ` + depositStages + ` AND l.active = 1 AND NOT ` + Shut("l") + `
		AND EXISTS (SELECT 1 FROM work_item r WHERE r.stage = l.stage AND r.collection = l.collection AND r.ready = 1)` + sqldb.Limit(mostRivals))
	if err != nil {
		return nil, fmt.Errorf("look for collections that wait: %w", err)
	}
	collections := slices.Clone(rivals)
	for _, c := range all {
		if !slices.Contains(collections, c.Item.Collection) {
			collections = append(collections, c.Item.Collection)
		}
	}
	if len(rivals) == 0 || len(collections) == 1 {
		return nil, nil //nolint:nilnil // nobody else waits
	}
	running, err := t.Numbers(`SELECT i.collection, COUNT(*) FROM work_item i WHERE `+t.Among("i.collection")+`
		AND i.stage IN `+depositStages+` AND i.status = 'running' GROUP BY i.collection`, t.List(collections))
	if err != nil {
		return nil, fmt.Errorf("count what runs of each collection: %w", err)
	}
	ahead = map[string]bool{}
	for _, c := range collections {
		ahead[c] = len(rivals) == mostRivals || slices.ContainsFunc(rivals, func(r string) bool { return running[r] < running[c] })
	}
	return ahead, nil
}

// withinShares divides items into those whose collections may have another slot of the stage, and
// the others. It does not know whose data lie in our staging, so it counts all items.
func (t *Tx) withinShares(stage registry.Stage, cs []continuing) (may []continuing, keptBack []Shift, err error) {
	if err := t.promote(); err != nil {
		return nil, nil, err
	}
	shares, err := t.sharesAt(stage)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range cs {
		if shares.KeepsBack(c.Item, false) {
			keptBack = append(keptBack, c.Shift)
			continue
		}
		shares.take(turn{WorkItem: c.Item})
		may = append(may, c)
	}
	return may, keptBack, nil
}

// enterStages are the statements of enterStage. The row is running before and after, and is the
// row of an item without a fault: only these columns change.
var enterStages = func() map[registry.Stage]string {
	texts := map[registry.Stage]string{}
	for _, s := range registry.Stages() {
		stage := `'` + string(s) + `'`
		texts[s] = `UPDATE work_item AS i SET stage = ` + stage + `, attempt = i.attempt + 1, tries = 0, losses = 0, run_at = $2, updated_at = $2, room_waited = 0
			WHERE i.blocker_count = 0 AND NOT ` + heldAt(stage) + ` AND NOT ` + lockedOutAt(stage) + `
			AND NOT EXISTS (SELECT 1 FROM work_item r WHERE r.stage = ` + stage + ` AND r.ready = 1)
			AND NOT EXISTS (SELECT 1 FROM alone) AND `
	}
	return texts
}()

// enterStage moves the rows of items to the next stage, as running under their next attempts, and
// returns which items that are. None moves while another item is ready in the stage, or while a
// worker is reserved for a suspect.
func (t *Tx) enterStage(stage registry.Stage, cs []continuing) (does map[string]bool, err error) {
	if len(cs) == 0 {
		return nil, nil //nolint:nilnil // no item moves
	}
	if err := t.promote(); err != nil {
		return nil, err
	}
	ids := make([]string, len(cs))
	for i, c := range cs {
		ids[i] = c.Item.ID
	}
	moved, err := t.Strings(enterStages[stage]+t.Among("i.id")+` RETURNING id`, t.List(ids), t.Now)
	if err != nil {
		return nil, fmt.Errorf("continue items at %s: %w", stage, err)
	}
	does = map[string]bool{}
	for _, id := range moved {
		does[id] = true
	}
	return does, nil
}

// startContinued writes the attempts and events of items that continue, as a settlement and a claim
// would, and answers their claims.
func (t *Tx) startContinued(all []continuing) error {
	var rows [][]any
	var served []Lane
	for _, c := range all {
		it, r := c.Item, *c.next
		r.Token = c.Lease.Token
		if err := Check(it, c.act, c.Status); err != nil {
			return err
		}
		if err := t.movedEvent(c.Shift); err != nil {
			return err
		}
		it.Stage, it.Status, it.Tries, it.RunAt = c.Stage, c.Status, 0, sqldb.FromMicros(t.Now)
		got, row, err := t.started(it, r)
		if err != nil {
			return err
		}
		if err := t.claimEvent(got.Item, r.Worker); err != nil {
			return err
		}
		rows, c.got = append(rows, row), &got
		if l := (Lane{c.Stage, it.Collection}); !slices.Contains(served, l) {
			served = append(served, l)
		}
	}
	if err := t.InsertRows(insertAttempt, rows); err != nil {
		return fmt.Errorf("start attempts: %w", err)
	}
	return t.servedAll(served)
}

// continued returns the attempt that a repeated settlement got when it was made the first time; nil
// if it got none, or if the attempt is over (R9).
func (t *Tx) continued(s *settling) (*registry.Claim, error) {
	l := registry.Lease{ItemID: s.Lease.ItemID}
	err := t.Get(`SELECT a.n FROM attempt a WHERE a.request_id = $1 AND a.item_id = $2 AND a.stage = $3 AND `+live,
		[]any{s.next.RequestID, l.ItemID, s.next.Stage}, &l.N)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none
	} else if err != nil {
		return nil, fmt.Errorf("look up the next attempt of item %s: %w", l.ItemID, err)
	}
	it, err := t.Item(l.ItemID)
	return &registry.Claim{Item: it, Lease: l}, err
}
