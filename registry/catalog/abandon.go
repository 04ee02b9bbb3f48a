package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/wording"
	"github.com/holdfast/holdfast/registry/work"
)

// Kinds of events about an abandoned version, besides the act itself.
const (
	eventAbandonApproved  = "abandon-approved"
	eventAbandonWithdrawn = "abandon-withdrawn"
	eventAbandoned        = "abandoned"
)

// abandon carries out the act that abandons an announced version. It needs two people. The first
// call records the request. A call by another person that names this request approves it, and
// queues the item for the worker that removes what the item wrote.
func (t *tx) abandon(it registry.WorkItem, c registry.Command) error {
	a, asked := it.Abandonment()
	consent := asked && a.Waits(sqldb.FromMicros(t.Now))
	to := registry.Failed
	if consent {
		to = registry.Pending
	}
	if err := work.Check(it, c.Act, to); err != nil {
		return err
	}
	if consent {
		if err := t.twoPeople(a.AskedBy, c.Actor); err != nil {
			return err
		}
	} else if strings.TrimSpace(c.Reason) == "" {
		return fmt.Errorf("%w: give a reason, for the person who approves it", registry.ErrInvalid)
	}
	request := ""
	if consent {
		request = a.Request()
	}
	// Two people who ask at the same moment must not count as an approval, and an approval must
	// name the request that its author saw.
	if !c.Confirmed || c.AgreesTo != request {
		needed, err := t.abandonConsequences(it, a, consent)
		if err != nil {
			return err
		}
		confirm := wording.Confirmation(it.ID, c.Act, needed)
		confirm.AgreesTo = request
		return confirm
	}
	now := sqldb.FromMicros(t.Now)
	if !consent {
		err := t.Event(it.ID, it.Attempt, string(c.Act), c.Actor, work.Moved{From: it.Stage, Stage: it.Stage, Status: to, Reason: sqldb.Clean(c.Reason)})
		if err != nil {
			return err
		}
		return t.setAbandonment(it, registry.Abandonment{Reason: sqldb.Clean(c.Reason), AskedBy: sqldb.Clean(c.Actor), AskedAt: now})
	}
	ch := work.ChangeBy(it, c, to)
	ch.Stage = registry.Process
	if err := t.Move(it, ch); err != nil {
		return err
	}
	a.ApprovedBy, a.ApprovedAt = sqldb.Clean(c.Actor), &now
	if err := t.Event(it.ID, it.Attempt, eventAbandonApproved, c.Actor, a); err != nil {
		return err
	}
	return t.setAbandonment(it, a)
}

func (t *tx) setAbandonment(it registry.WorkItem, a registry.Abandonment) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode who abandons: %w", err)
	}
	return t.SetResult(it, registry.ResultAbandon, raw)
}

// abandonConsequences lists what follows from the request or from its approval.
func (t *tx) abandonConsequences(it registry.WorkItem, a registry.Abandonment, consent bool) ([]registry.Statement, error) {
	var object string
	var version int64
	err := t.Get(`SELECT object_id, version FROM object_version WHERE item_id = $1 AND status = 'intended'`, []any{it.ID}, &object, &version)
	if err != nil {
		return nil, fmt.Errorf("look up the version that item %s announced: %w", it.ID, err)
	}
	if consent {
		return []registry.Statement{
			{Says: registry.SaysAsked, Name: a.AskedBy, Since: &a.AskedAt, Text: a.Reason},
			{Says: registry.SaysAbandoned, N: version, Name: object},
			{Says: registry.SaysCompleteKept},
			{Says: registry.SaysThenRequeue},
		}, nil
	}
	return []registry.Statement{
		{Says: registry.SaysMustAgree, N: version, Name: object, Of: int64(registry.AskingLasts.Hours() / 24)},
		{Says: registry.SaysWithdraws},
	}, nil
}

// withdrawAbandonment drops the request or the approval when the item is requeued.
func (t *tx) withdrawAbandonment(it registry.WorkItem, actor string) error {
	a, asked := it.Abandonment()
	if !asked {
		return nil
	}
	if a.DoneAt == nil {
		if err := t.Event(it.ID, it.Attempt, eventAbandonWithdrawn, actor, a); err != nil {
			return err
		}
	}
	return t.SetResult(it, registry.ResultAbandon, nil)
}

// abandonVersion deletes a version that the item announced, and the results that it would continue
// from: see registry.Intent. The files go first, in portions; the rest goes in one transaction. A
// repeat changes nothing.
func (s *Catalog) abandonVersion(ctx context.Context, l registry.Lease, in registry.Intent) error {
	// Nobody can see the rows of an announced version. There may be many (R25).
	for _, table := range [][2]string{{"file", "path"}, {"stored_file", "content_path"}} {
		err := s.deleteRows(ctx, table[0], table[1], `object_id = $1 AND version = $2`, []any{in.ObjectID, in.Version}, func(t *tx) (bool, error) {
			a, err := t.approvedAbandonment(l, in)
			return a.DoneAt != nil, err
		})
		if err != nil {
			return err
		}
	}
	return s.write(ctx, func(t *tx) error {
		a, err := t.approvedAbandonment(l, in)
		if err != nil || a.DoneAt != nil {
			return err
		}
		err = t.Do(`DELETE FROM object_version WHERE object_id = $1 AND version = $2 AND item_id = $3 AND status = 'intended'`,
			in.ObjectID, in.Version, l.ItemID)
		if err != nil {
			return err
		}
		if err := t.uncommit(l.ItemID); err != nil {
			return err
		}
		it, err := t.Live(l)
		if err != nil {
			return err
		}
		for _, name := range in.Forget {
			delete(it.Results, name)
		}
		now := sqldb.FromMicros(t.Now)
		a.DoneAt = &now
		if err := t.setAbandonment(it, a); err != nil {
			return err
		}
		return t.Event(l.ItemID, l.N, eventAbandoned, "worker", map[string]any{"object_id": in.ObjectID, "version": in.Version, "asked_by": a.AskedBy, "approved_by": a.ApprovedBy})
	})
}

// approvedAbandonment returns the approved decision to abandon the version that an attempt's item
// announced. DoneAt is set if an earlier call carried it out.
func (t *tx) approvedAbandonment(l registry.Lease, in registry.Intent) (registry.Abandonment, error) {
	it, err := t.Live(l)
	if err != nil {
		return registry.Abandonment{}, err
	}
	a, ok := it.Abandonment()
	if !ok || a.ApprovedBy == "" {
		return a, fmt.Errorf("no second person approved to abandon its version: %w", registry.ErrInvalid)
	}
	if a.DoneAt != nil {
		return a, nil
	}
	if err := t.requireLock(l.ItemID, in.ObjectID); err != nil {
		return a, err
	}
	recorded, err := t.requireAnnounced(it.ID, in.ObjectID, in.Version)
	if err == nil && recorded {
		err = fmt.Errorf("version %d of %s is recorded: %w", in.Version, in.ObjectID, registry.ErrIntentOpen)
	}
	return a, err
}

// uncommit records that an item has no announced version any more. A version that it recorded
// before stays.
func (t *tx) uncommit(itemID string) error {
	var recorded bool
	if err := t.Get(`SELECT EXISTS (SELECT 1 FROM object_version WHERE item_id = $1)`, []any{itemID}, &recorded); err != nil {
		return fmt.Errorf("look up what item %s recorded: %w", itemID, err)
	}
	if recorded {
		return t.Commit(itemID, registry.Preserved)
	}
	return t.Commit(itemID, registry.Uncommitted)
}
