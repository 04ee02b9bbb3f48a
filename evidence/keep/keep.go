// Package keep writes the events of objects beside their bytes (docs/evidence.md): those that
// no receipt has, such as fixity checks, mends and changed terms. So the storages alone tell what
// happened to an object.
package keep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// Keeper writes events that wait into the storages. It may run in several processes at once: all write
// the same bytes.
type Keeper struct {
	Registry interface {
		registry.EventsSigning
		registry.EvidenceKeeping
		evidence.Events
	}
	Objects ocfl.Roots
	// Within is how long routine events wait for others. Anything else is written in the next round, and
	// so are events of which many wait.
	Within time.Duration
}

const (
	objectsAtOnce = 100
	mostSegments  = 16 // of an object in a storage; more are merged
	mostErrors    = 10 // that a round returns
)

// Make writes what waits: first into all storages of an object, and then the Registry notes it. So a
// process that dies at any point leaves events that are written again, with the same result. A storage
// that is not there, or that fails, is left out for the rest of the round. Its error is that of the
// Registry or of ctx, or the first errors of storages and objects.
func (k *Keeper) Make(ctx context.Context) error {
	r := &round{Keeper: k, out: map[string]bool{}}
	for after := ""; ; {
		page, err := k.Registry.WaitingEvidence(ctx, registry.WaitingQuery{Within: k.Within, After: after, Limit: objectsAtOnce})
		if err != nil {
			return err
		}
		for _, w := range page.Rows {
			if err := r.object(ctx, w); err != nil {
				r.failed(fmt.Errorf("events of %s: %w", w.ObjectID, err))
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if after = page.Next; after == "" {
			return errors.Join(r.errs...)
		}
	}
}

// round is one Make.
type round struct {
	*Keeper
	looked bool            // for storages that are not there
	out    map[string]bool // storages that are left out
	errs   []error
}

func (r *round) failed(err error) {
	if len(r.errs) < mostErrors {
		r.errs = append(r.errs, err)
	}
}

// object writes the events of an object that wait.
func (r *round) object(ctx context.Context, w registry.WaitingEvidence) error {
	if !r.looked { // most rounds have nothing to write
		r.looked = true
		for _, root := range r.Objects {
			if err := root.Present(ctx); err != nil {
				r.leaveOut(root.Name, err)
			}
		}
	}
	if w.Deleted {
		return r.deleted(ctx, w)
	}
	all, err := r.Registry.EvidencePlaces(ctx, w.ObjectID)
	if err != nil {
		return err
	}
	var here []registry.EvidencePlace
	var begin []string
	for _, p := range all.Places {
		if p.Seq >= all.Last || r.out[p.Storage] || !slices.Contains(r.Objects.Names(), p.Storage) {
			continue
		}
		here = append(here, p)
		if !p.Begun {
			begin = append(begin, p.Storage)
		}
	}
	if len(begin) > 0 {
		err = r.Registry.BeginEvidence(ctx, w.ObjectID, begin)
	}
	var gone *registry.GoneError
	if errors.As(err, &gone) {
		return nil // its deletion comes in a later round
	} else if err != nil {
		return err
	}
	kept := registry.KeptEvidence{ObjectID: w.ObjectID, Among: r.Objects.Names()}
	for _, p := range here {
		now, err := r.place(ctx, w, p, all)
		if err != nil {
			r.failed(fmt.Errorf("events of %s in storage %s: %w", w.ObjectID, p.Storage, err))
		}
		if now.Seq > p.Seq {
			kept.Places = append(kept.Places, now)
		}
	}
	err = r.Registry.KeptEvidence(ctx, kept)
	if errors.As(err, &gone) {
		// What was just written may have come after the deletion of everything else.
		return r.remove(ctx, w, kept.Places)
	}
	return err
}

// place writes the events that a storage lacks, and returns how far the chain lies there now. It may
// return both that and an error.
func (r *round) place(ctx context.Context, w registry.WaitingEvidence, p registry.EvidencePlace, all registry.EvidencePlaces) (registry.EvidencePlace, error) {
	in, err := r.in(p.Storage, w)
	if err != nil {
		return p, err
	}
	err = evidence.KeepEvents(ctx, r.Registry, r.Registry.SignEvents, p.Seq+1, all.Last, in)
	if err != nil {
		r.judge(p.Storage, err)
		return p, err
	}
	p.Seq, p.Segments = all.Last, p.Segments+1
	if p.Segments <= mostSegments {
		return p, nil
	}
	left, err := evidence.Merge(ctx, r.Registry, all, r.Registry.SignEvents, mostSegments, in)
	if left > 0 {
		p.Segments = left
	}
	return p, err
}

// judge leaves out a storage after an error that is not about an object.
func (r *round) judge(name string, err error) {
	if errors.Is(err, evidence.ErrChanged) || errors.Is(err, registry.ErrNotFound) {
		return
	}
	r.leaveOut(name, err)
}

func (r *round) leaveOut(name string, err error) {
	r.out[name] = true
	r.failed(fmt.Errorf("storage %s: %w", name, err))
}

func (r *round) in(name string, w registry.WaitingEvidence) (evidence.Object, error) {
	root, err := r.Objects.Of(name)
	if err != nil {
		return evidence.Object{}, err
	}
	return evidence.In(root.Root, w.ObjectID, w.Place)
}

// deleted removes what a late write has left of a deleted object.
func (r *round) deleted(ctx context.Context, w registry.WaitingEvidence) error {
	begun, err := r.Registry.BegunEvidence(ctx, w.ObjectID)
	if err != nil {
		return err
	}
	var places []registry.EvidencePlace
	for _, name := range begun {
		if r.out[name] {
			return nil // it is done when the storage is back
		}
		if slices.Contains(r.Objects.Names(), name) {
			places = append(places, registry.EvidencePlace{Storage: name})
		}
	}
	if err := r.remove(ctx, w, places); err != nil {
		return err
	}
	return r.Registry.ForgetEvidence(ctx, w.ObjectID)
}

// remove removes the segments of a deleted object.
func (r *round) remove(ctx context.Context, w registry.WaitingEvidence, places []registry.EvidencePlace) error {
	for _, p := range places {
		in, err := r.in(p.Storage, w)
		if err != nil {
			return err
		}
		files, err := in.List(ctx)
		if err != nil {
			return err
		}
		for _, f := range files.Segments {
			if err := in.Store.Delete(ctx, in.Key(f)); err != nil && !errors.Is(err, storage.ErrNotFound) {
				return err
			}
		}
	}
	return nil
}
