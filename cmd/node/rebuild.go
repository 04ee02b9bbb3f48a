package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/rebuild"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// Stored says which Registry belongs to which storages.
type Stored struct {
	Database string    // its address; "": that of Dir
	Dir      string    // the folder of up, whose own storage is read, too; "": none
	Storages []Storage // besides
	Keys     []receipt.PublicKey
	AtOnce   int
	Lease    time.Duration // the longest of its workers' (HOLDFAST_LEASE)
}

// RebuildOptions says from what a Registry is made again, and where.
type RebuildOptions struct {
	Stored
	DryRun   bool
	Progress func(rebuild.Report)
	Fault    func(rebuild.Object) error
}

// Rebuild makes a Registry again from its storages: see rebuild.Run. No other process may use the folder
// or the database. It makes nothing in the storages.
func Rebuild(ctx context.Context, c Common, o RebuildOptions) (report rebuild.Report, err error) {
	n, err := start(ctx, c, func(n *Node) error {
		database, roots, err := n.openStored(ctx, o.Stored)
		if err != nil {
			return err
		}
		options := rebuild.Options{
			Roots: roots, Keys: o.Keys, AtOnce: o.AtOnce, DryRun: o.DryRun, Now: time.Now, Progress: o.Progress, Fault: o.Fault,
		}
		if o.DryRun {
			options.To = nothing{}
		} else if options.To, err = n.openAlone(ctx, sqlstore.Options{URL: database}, o.Lease); err != nil {
			return err
		}
		report, err = rebuild.Run(ctx, options)
		return err
	})
	if err != nil {
		return report, err
	}
	return report, n.Close() //nolint:contextcheck // Close must run even if ctx has ended
}

// openStored opens the storages of a Registry that no other process uses, all of which must be there, and
// returns the address of its database. With a folder of up, its own storage is the first.
func (n *Node) openStored(ctx context.Context, s Stored) (database string, roots ocfl.Roots, err error) {
	database, storages := s.Database, s.Storages
	if s.Dir != "" {
		f, err := openFolder(s.Dir)
		if err != nil {
			return "", nil, err
		}
		n.onClose(f.Close)
		own := filepath.Join(absolute(s.Dir), "storage")
		storages = append([]Storage{{Name: registry.DefaultStorage, Address: (&url.URL{Scheme: "file", Path: own}).String()}}, storages...)
		database = cmp.Or(database, DatabaseIn(s.Dir))
	}
	var found foundRoots
	if err := n.meet(ctx, found.find(n, storages)); err != nil {
		return "", nil, err
	}
	roots, err = found.existing()
	return database, roots, err
}

// errNothingThere says that an address has no storage root.
var errNothingThere = errors.New("there is no storage root: mount the right volume, or correct the address")

// existing returns the roots, all of which must be there.
func (f *foundRoots) existing() (ocfl.Roots, error) {
	var errs []error
	for i, root := range f.roots {
		if root.Root == nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.storages[i].what(), errNothingThere))
		}
	}
	return f.roots, errors.Join(errs...)
}

// nothing is the Registry of a dry run, which knows nothing and is told nothing.
type nothing struct{ registry.Rebuilding }

// EnteredHead implements registry.Rebuilding.
func (nothing) EnteredHead(context.Context, string) (int, registry.DeletionStatus, error) {
	return 0, "", nil
}

// EnteredChain implements registry.Rebuilding.
func (nothing) EnteredChain(context.Context, string, int64) (registry.EnteredChain, error) {
	return registry.EnteredChain{}, nil
}

// errRebuilding says that a Registry lacks objects.
var errRebuilding = errors.New("a rebuild of this Registry was interrupted, so it does not know all objects: run the same holdfast rebuild again, which goes on")

// rebuilt refuses a Registry whose rebuild is not done: it would give a second name to objects that it
// does not know yet.
func (d *registryServer) rebuilt(ctx context.Context) error {
	state, err := d.registry.RebuildState(ctx)
	if err == nil && state.Open() {
		err = errRebuilding
	}
	return err
}
