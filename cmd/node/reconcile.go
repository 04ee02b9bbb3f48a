package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/rebuild"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/web/api/checkpoint"
)

// ReconcileOptions says which Registry is compared with which storages.
type ReconcileOptions struct {
	Stored
	// Apply enters what the Registry does not know, and releases a restored Registry if record and
	// storages agree then. Otherwise nothing changes.
	Apply bool
	// Restored: the database was restored by other means than `holdfast backup restore`.
	Restored bool
	// Accepted is why what disagrees is left so; "": a Registry with disagreements is not released.
	Accepted string
	Progress func(rebuild.Comparison)
	Found    func(rebuild.Finding) error
}

// Reconciled is what Reconcile found and did.
type Reconciled struct {
	rebuild.Comparison
	// Older are the storages whose signed checkpoint is newer than the record is with all that the storages
	// have. Without Apply it is empty; see Lost.
	Older []string `json:"older,omitempty"`
	// Unverified are the storages whose newest checkpoint cannot be compared with the record, each with why:
	// it is damaged, or of a key that the Registry does not know. Without Apply it is empty.
	Unverified []string `json:"unverified,omitempty"`
	// Released: the Registry was restored, and may do everything now.
	Released bool `json:"released"`
}

// ErrNotRestored says that a Registry bears no mark of a restore.
var ErrNotRestored = errors.New("this Registry bears no mark of a restore")

// Reconcile compares a Registry with its storages: see rebuild.Reconcile. No other process may use the
// folder, the database or the storages. It writes nothing to the storages.
func Reconcile(ctx context.Context, c Common, o ReconcileOptions) (out Reconciled, err error) {
	n, err := start(ctx, c, func(n *Node) error {
		database, roots, err := n.openStored(ctx, o.Stored)
		if err != nil {
			return err
		}
		// Opening would make a missing database, and migrate an old one.
		found, err := sqldb.Examine(ctx, database)
		if err != nil {
			return fmt.Errorf("find the database: %w", err)
		}
		if found.SchemaErr != nil && !o.Apply {
			return found.SchemaErr
		}
		registry, err := n.openAlone(ctx, sqlstore.Options{URL: database}, o.Lease)
		if err != nil {
			return err
		}
		if o.Apply {
			if err := hold(ctx, registry, o.Restored); err != nil {
				return err
			}
		}
		out.Comparison, err = rebuild.Reconcile(ctx, rebuild.ReconcileOptions{
			Roots: roots, To: registry, Keys: o.Keys, AtOnce: o.AtOnce, Apply: o.Apply, Now: time.Now, Progress: o.Progress, Found: o.Found,
		})
		if err != nil {
			return err
		}
		if !o.Apply { // the record lacks what would be entered
			return nil
		}
		if err := registry.TrustKeys(ctx, o.Keys); err != nil { // the record may be from before one was first used
			return err
		}
		out.Older, out.Unverified, err = older(ctx, registry, roots)
		if err != nil || len(out.Older) > 0 || (!out.Agree() || len(out.Unverified) > 0) && o.Accepted == "" {
			return err
		}
		if err := registry.Reconciled(ctx, o.Accepted, "reconcile"); err != nil {
			return err
		}
		out.Released = true
		return nil
	})
	if err != nil {
		return out, err
	}
	return out, n.Close() //nolint:contextcheck // Close must run even if ctx has ended
}

// hold makes sure that nobody works for a restored Registry on what is compared.
func hold(ctx context.Context, s *sqlstore.Store, restored bool) error {
	mark, err := s.HoldRestored(ctx)
	if err == nil && !mark.Open() {
		err = ErrNotRestored
		if restored {
			_, err = s.MarkRestored(ctx)
		}
	}
	return err
}

// older returns the storages whose newest checkpoint names events that the record does not have, and those
// whose newest checkpoint cannot be compared with it.
func older(ctx context.Context, s *sqlstore.Store, roots ocfl.Roots) (names, unverified []string, err error) {
	for _, root := range roots {
		a, err := checkpoint.Audit(ctx, s, root, "")
		if err != nil {
			return nil, nil, fmt.Errorf("read the checkpoints in storage %s: %w", root.Name, err)
		}
		if a.Older > 0 {
			names = append(names, root.Name)
		}
		if a.Damage != "" {
			unverified = append(unverified, fmt.Sprintf("checkpoint %s in storage %s: %s", a.Name, root.Name, a.Damage))
		}
	}
	return names, unverified, nil
}
