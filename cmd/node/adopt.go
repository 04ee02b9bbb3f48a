package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/rebuild"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// AdoptOptions says what is adopted, and into which Registry.
type AdoptOptions struct {
	Stored
	Storage    string // its name
	Collection string
	Template   noid.Template // of new ARKs, for a collection without its own
	ReceiptKey *receipt.Key  // signs receipts; nil: that of the folder, if there is one
	DryRun     bool
	Progress   func(rebuild.Adoption)
	Found      func(rebuild.Adopted) error
}

// Adopt takes the objects that others made in a storage into its Registry: see rebuild.Adopt. No other
// process may use the folder of up, or a SQLite database: ErrInUse. A Registry on PostgreSQL may serve
// meanwhile. A Registry that does not know all its own objects is refused.
func Adopt(ctx context.Context, c Common, o AdoptOptions) (report rebuild.Adoption, err error) {
	n, err := start(ctx, c, func(n *Node) error {
		database, roots, err := n.openStored(ctx, o.Stored)
		if err != nil {
			return err
		}
		root, err := roots.Of(o.Storage)
		if err != nil {
			return fmt.Errorf("storage %q is not known; name it: --storage %s=ADDRESS", o.Storage, ShellWord(o.Storage))
		}
		if o.Dir != "" && o.ReceiptKey == nil {
			if o.ReceiptKey, err = (&folder{path: o.Dir}).receiptKey(); err != nil {
				return err
			}
		}
		// Opening would make a missing database, and migrate an old one.
		found, err := sqldb.Examine(ctx, database)
		if err == nil {
			err = found.SchemaErr
		}
		if err != nil {
			return fmt.Errorf("find the database: %w", err)
		}
		to, err := n.openDatabase(ctx, sqlstore.Options{URL: database, ReceiptKey: o.ReceiptKey})
		if err != nil {
			return err
		}
		if err := knowsAll(ctx, to); err != nil {
			return err
		}
		collection, err := to.Collection(ctx, o.Collection)
		if errors.Is(err, registry.ErrNotFound) {
			return fmt.Errorf("%w; make it first, with its owner: holdfast collection create %s", err, ShellWord(o.Collection))
		} else if err != nil {
			return err
		}
		if collection.Profile.Owner == "" {
			return fmt.Errorf("the profile of collection %s has no owner, to whom the objects would belong", o.Collection)
		}
		template, err := o.Template.Of(collection.Profile.NOIDTemplate)
		if err != nil {
			return fmt.Errorf("NOID template of collection %s: %w", o.Collection, err)
		}
		report, err = rebuild.Adopt(ctx, rebuild.AdoptOptions{
			Root: root, To: to, From: to, Collection: collection, AtOnce: o.AtOnce, DryRun: o.DryRun, Software: n.Version, Now: time.Now,
			Mint: func() (string, error) {
				ark, err := template.Mint(rand.Reader)
				return ark.String(), err
			},
			Progress: o.Progress, Found: o.Found,
		})
		return err
	})
	if err != nil {
		return report, err
	}
	return report, n.Close() //nolint:contextcheck // Close must run even if ctx has ended
}

// knowsAll refuses a Registry that may not know objects of its own: it could give one a second ARK.
func knowsAll(ctx context.Context, s *sqlstore.Store) error {
	state, err := s.RebuildState(ctx)
	if err == nil && state.Open() {
		return errRebuilding
	} else if err != nil {
		return err
	}
	mark, err := s.HoldRestored(ctx)
	if err == nil && mark.Open() {
		err = errors.New("this Registry was restored from a backup, and may not know all its objects: run holdfast reconcile first")
	}
	return err
}
