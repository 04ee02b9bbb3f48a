package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/mint"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// Names of durable results that Process leaves.
const (
	resultPlan    = "plan"    // everything that a repeat needs to write the same bytes (R2)
	resultVersion = "version" // the version that this item stored
)

// intentWait is how long a job waits while another one's version of its object is open.
const intentWait = time.Minute

// Process turns staged files into a version of an object: it unpacks and validates, finds or mints the identifier,
// plans the version with Merritt's system files, announces the plan in the Registry, and only then writes it, verified
// at the destination. From the announcement on a repeat writes the same bytes.
type Process struct {
	base.Worker
	Registry registry.Store
	Staging  storage.Store
	Objects  *ocfl.Root
	Template mint.Template
	Random   io.Reader
	Version  string
	Storage  string
	volume   volume

	minting sync.Mutex // guards Random
}

// Stage implements base.Handler.
func (w *Process) Stage() registry.Stage { return registry.Process }

// Work implements base.Handler.
func (w *Process) Work(ctx context.Context, item *base.Item) error {
	var p plan
	err := item.Once(ctx, resultPlan, &p, func(ctx context.Context) (any, error) { return w.plan(ctx, item) })
	if errors.Is(err, registry.ErrIntentOpen) {
		return base.Snooze(intentWait, registry.ReasonLocked, err.Error())
	} else if err != nil {
		return err
	}
	if err := w.commit(ctx, item, p); err != nil {
		return fmt.Errorf("store version %d of %s: %w", p.Version, p.ObjectID, err)
	}
	return item.SetResult(resultVersion, p.Version)
}

// plan prepares a version and announces it. It returns the plan that holds: an earlier attempt's, if that got so far.
func (w *Process) plan(ctx context.Context, item *base.Item) (plan, error) {
	files, err := w.contents(ctx, item)
	if err != nil {
		return plan{}, err
	}
	d, err := w.describe(ctx, item, files)
	if err != nil {
		return plan{}, err
	}
	id, err := w.identify(ctx, item, d)
	if err != nil {
		return plan{}, err
	}
	return w.announce(ctx, item, d, id)
}

// contents yields the producer's files: as downloaded, or as they came out of the container.
func (w *Process) contents(ctx context.Context, item *base.Item) (contents, error) {
	var got downloaded
	if ok, err := item.Result(resultDownload, &got); err != nil {
		return contents{}, err
	} else if !ok {
		return contents{}, errors.New("nothing is noted as downloaded; requeue the item at download")
	}
	c := contents{kind: item.Spec().Type, list: got.List}
	switch c.kind {
	case registry.ContainerType, registry.BagType, registry.AutoType:
		return w.unpack(ctx, item, got)
	default:
		return c, nil
	}
}

// contents is a list of the producer's files.
type contents struct {
	kind registry.PayloadType
	list string // key of the list of staged files
}

func (c contents) all(ctx context.Context, s storage.Store) iter.Seq2[staging.File, error] {
	return staging.ReadList[staging.File](ctx, s, c.list)
}

// identify settles the object's name, minting one when it has none. A minted name is chosen here and belongs to the
// item from the moment the Registry has it, so that no kill can mint twice (R8).
func (w *Process) identify(ctx context.Context, item *base.Item, d description) (registry.Identity, error) {
	const tries = 10
	for range tries {
		proposed, err := w.mint(item)
		if err != nil {
			return registry.Identity{}, err
		}
		id, err := w.Registry.Identify(ctx, item.Lease(), registry.IdentifyRequest{
			Owner: item.Spec().Profile.Owner, Supplied: d.metadata.PrimaryID, LocalIDs: d.metadata.LocalIDs, Proposed: proposed,
		})
		if !errors.Is(err, registry.ErrTaken) {
			return id, err
		}
	}
	return registry.Identity{}, fmt.Errorf("minted %d names that were all taken; give the collection a longer NOID template", tries)
}

func (w *Process) mint(item *base.Item) (string, error) {
	t := w.Template
	if own := item.Spec().Profile.NOIDTemplate; own != "" {
		var err error
		if t, err = mint.ParseTemplate(own); err != nil {
			return "", fmt.Errorf("collection's NOID template: %w", err)
		}
		if t.NAAN == "" {
			if t, err = t.WithNAAN(w.Template.NAAN); err != nil {
				return "", fmt.Errorf("collection's NOID template: %w", err)
			}
		}
	}
	w.minting.Lock()
	defer w.minting.Unlock()
	ark, err := t.Mint(w.Random)
	if err != nil {
		return "", fmt.Errorf("mint: %w", err)
	}
	return ark.String(), nil
}
