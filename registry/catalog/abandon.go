package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Kinds of events about abandoned versions, beside that of the act.
const (
	eventAbandonApproved  = "abandon-approved"
	eventAbandonWithdrawn = "abandon-withdrawn"
	eventAbandoned        = "abandoned"
)

// abandon notes that somebody wants an announced version to be abandoned. When another person asked
// before, this is the consent, if it names that asking: the item goes to the worker that removes
// what it has written.
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
		return fmt.Errorf("%w: who is to agree must be told the reason", registry.ErrInvalid)
	}
	request := ""
	if consent {
		request = a.Request()
	}
	// Two who ask at once must not agree by it, and nobody agrees to another asking than the one
	// that was shown.
	if !c.Confirmed || c.AgreesTo != request {
		needed, err := t.abandons(it, a, consent)
		if err != nil {
			return err
		}
		return &registry.ConfirmationNeeded{ItemID: it.ID, Act: c.Act, Consequences: needed, AgreesTo: request}
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

// abandons says what follows from asking, or from the consent.
func (t *tx) abandons(it registry.WorkItem, a registry.Abandonment, consent bool) ([]string, error) {
	var object string
	var version int
	err := t.Get(`SELECT object_id, version FROM object_version WHERE item_id = $1 AND status = 'intended'`, []any{it.ID}, &object, &version)
	if err != nil {
		return nil, fmt.Errorf("look up what item %s has announced: %w", it.ID, err)
	}
	what := fmt.Sprintf("version %d of %s", version, object)
	if consent {
		return []string{
			a.Text(),
			what + " is given up, and what the job has written of it is removed from the storages",
			"a version that is complete in a storage is not given up: the job fails again and says so",
			"then the job can be requeued, which makes the version anew, or deleted",
		}, nil
	}
	return []string{
		fmt.Sprintf("another admin must agree within %d days; only then is %s given up", int(registry.AskingLasts.Hours()/24), what),
		"a requeue before that takes it back and carries the version on",
	}, nil
}

// withdrawAbandonment forgets what was decided about an item's version when the item is requeued.
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

// abandonVersion forgets a version that the item has announced, and everything by which the item
// would go on with it, in one transaction: see registry.Intent.
func (s *Catalog) abandonVersion(ctx context.Context, l registry.Lease, in registry.Intent) error {
	// Rows of an announced version are seen by nobody. They may be many (R25).
	for _, table := range [][2]string{{"file", "path"}, {"stored_file", "content_path"}} {
		err := s.deleteRows(ctx, table[0], table[1], `object_id = $1 AND version = $2`, []any{in.ObjectID, in.Version}, func(t *tx) (bool, error) {
			a, err := t.abandoning(l, in)
			return a.DoneAt != nil, err
		})
		if err != nil {
			return err
		}
	}
	return s.write(ctx, func(t *tx) error {
		a, err := t.abandoning(l, in)
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

// abandoning returns the decision by which an attempt abandons the version that its item has
// announced. DoneAt says that an earlier call did.
func (t *tx) abandoning(l registry.Lease, in registry.Intent) (registry.Abandonment, error) {
	it, err := t.Live(l)
	if err != nil {
		return registry.Abandonment{}, err
	}
	a, ok := it.Abandonment()
	if !ok || a.ApprovedBy == "" {
		return a, fmt.Errorf("nobody has agreed that its version is abandoned: %w", registry.ErrInvalid)
	}
	if a.DoneAt != nil {
		return a, nil
	}
	if err := t.owns(l.ItemID, in.ObjectID); err != nil {
		return a, err
	}
	recorded, err := t.intended(l, in.ObjectID, in.Version)
	if err == nil && recorded {
		err = fmt.Errorf("version %d of %s is recorded: %w", in.Version, in.ObjectID, registry.ErrIntentOpen)
	}
	return a, err
}

// uncommit notes that an item has announced nothing any more: what it recorded before stays.
func (t *tx) uncommit(itemID string) error {
	var recorded bool
	if err := t.Get(`SELECT EXISTS (SELECT 1 FROM object_version WHERE item_id = $1)`, []any{itemID}, &recorded); err != nil {
		return fmt.Errorf("look what item %s has recorded: %w", itemID, err)
	}
	if recorded {
		return t.Commit(itemID, registry.Preserved)
	}
	return t.Commit(itemID, registry.Uncommitted)
}
