package workers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
)

// plan is a version as it was announced: with the staged files that it names it is everything that a repeat needs to
// write the same bytes, times included (R2).
type plan struct {
	ObjectID  string `json:"object_id"`
	Version   int    `json:"version"`
	Inventory string `json:"inventory"` // key of the OCFL inventory to be
	Digest    string `json:"digest"`    // of that inventory, by the object's algorithm
	Algorithm string `json:"algorithm"`
	List      string `json:"list"`  // key of the list of the version's changes, []planned
	Files     int64  `json:"files"` // in the version's state
	Bytes     int64  `json:"bytes"`
	// ListDigest is that of the list; "" where a program of before has planned the version.
	ListDigest string `json:"list_digest,omitempty"`

	LocalIDs []string `json:"local_ids"`
	Title    string   `json:"title"`
	Creator  string   `json:"creator"`
	Date     string   `json:"date"`
	Minted   bool     `json:"minted"`
	Bag      bool     `json:"bag"`               // the content was validated as a bag
	Software string   `json:"software"`          // that made the plan
	NoZone   int64    `json:"no_zone,omitempty"` // files whose time is of an unknown zone, taken for UTC

	// EZID is what EZID is to know of the object when the version is recorded; nil when it does not have the name from us.
	EZID    *ezid.Name      `json:"ezid,omitempty"`
	Scan    *scanned        `json:"scan,omitempty"`    // nil: the item takes none
	Formats *identification `json:"formats,omitempty"` // nil: planned before formats were

	Created time.Time `json:"created"`
}

// draft is a version in the making.
type draft struct {
	plan
	description
	id     registry.Identity
	prev   *ocfl.Inventory
	system []staging.File
	// named are the logical paths that the submission names, to tell them from what the version before has; nil for
	// a first version.
	named map[string]bool
}

// draft plans the version and stages everything of it that is ours. frozen has its time and the software that makes it:
// the same submission gives the same bytes whenever these are the same.
func (w *Process) draft(ctx context.Context, item *base.Item, d description, id registry.Identity, frozen plan) (plan, error) {
	dr := &draft{plan: frozen, description: d, id: id}
	dr.ObjectID, dr.Version, dr.Minted = id.ARK, id.Head+1, id.Minted
	dr.Bag = d.contents.Kind == registry.BagType
	dr.Inventory, dr.List = staging.Key(item.Lease(), "inventory.json"), staging.Key(item.Lease(), "version.jsonl")
	home, err := w.home(item)
	if err != nil {
		return plan{}, err
	}
	if dr.prev, err = w.previous(ctx, item, home, id); err != nil {
		return plan{}, err
	}
	dr.Algorithm = dr.prev.Algorithm
	if dr.contents, err = w.digested(ctx, item, d.contents, dr.Algorithm); err != nil {
		return plan{}, err
	}
	if id.Head > 0 && item.Spec().Mode == registry.Update {
		if err := w.inherit(ctx, home, &dr.description, id); err != nil {
			return plan{}, err
		}
	}
	dr.metadata.PrimaryID = id.ARK
	m := dr.metadata
	dr.LocalIDs, dr.Title, dr.Creator, dr.Date = m.LocalIDs, firstOf(m.What), firstOf(m.Who), firstOf(m.When)
	if id.EZIDItem != "" {
		dr.EZID = &ezid.Name{ARK: id.ARK, Item: id.EZIDItem, Who: m.Who, What: m.What, When: m.When}
	}
	if err := w.name(ctx, dr); err != nil {
		return plan{}, err
	}
	if dr.system, err = w.systemFiles(ctx, item, home, dr); err != nil {
		return plan{}, fmt.Errorf("write system files: %w", err)
	}
	inv, content, err := w.inventory(ctx, item, dr)
	if err != nil {
		return plan{}, err
	}
	if err := w.list(ctx, item, dr, inv, content); err != nil {
		return plan{}, err
	}
	return dr.plan, w.stageInventory(ctx, dr, inv)
}

// announce freezes a version and makes it known, before its first byte is written anywhere that others read. What was
// announced first holds, be it an earlier attempt's.
func (w *Process) announce(ctx context.Context, item *base.Item, p plan) (holds plan, err error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return plan{}, fmt.Errorf("encode plan: %w", err)
	}
	in, err := w.Registry.Intend(ctx, item.Lease(), registry.Intent{ObjectID: p.ObjectID, Version: p.Version, Plan: raw})
	if err != nil {
		return plan{}, err
	}
	if err := json.Unmarshal(in.Plan, &holds); err != nil {
		return plan{}, fmt.Errorf("decode plan: %w", err)
	}
	return holds, nil
}

// previous is the object's head, or an empty inventory for a new object.
func (w *Process) previous(ctx context.Context, item *base.Item, home ocfl.Named, id registry.Identity) (*ocfl.Inventory, error) {
	if id.Head == 0 {
		inv, err := ocfl.New(id.ARK, item.Spec().Profile.Digests())
		return inv, base.Fatal(err) // a profile that asks for what there is not
	}
	if err := w.settle(ctx, home, id); err != nil {
		return nil, err
	}
	inv, err := home.Inventory(ctx, id.ARK, id.Head)
	if err != nil {
		return nil, fmt.Errorf("read version %d of %s: %w", id.Head, id.ARK, err)
	}
	return inv, nil
}

// digested returns the contents with digests of the object's own algorithm, which need not be the collection's of today.
func (w *Process) digested(ctx context.Context, item *base.Item, c contents, algorithm string) (contents, error) {
	if algorithm == item.Spec().Profile.Digests() {
		return c, nil
	}
	key := staging.Key(item.Lease(), "digested.jsonl")
	list, err := staging.CreateList[staging.File](ctx, w.payloads.staging, key)
	if err != nil {
		return c, err
	}
	defer list.Abort() //nolint:errcheck // nothing depends on a list that is given up
	for f, err := range c.all(ctx, w.payloads.staging) {
		if err != nil {
			return c, err
		}
		if f, err = w.withDigest(ctx, item, f, algorithm); err != nil {
			return c, err
		}
		if err := list.Add(f); err != nil {
			return c, err
		}
	}
	err = list.Commit(ctx)
	c.List, c.Digest = key, list.Digest()
	return c, err
}

// withDigest returns the file with its digest of one more algorithm.
func (w *Process) withDigest(ctx context.Context, item *base.Item, f staging.File, algorithm string) (staging.File, error) {
	if f.Digests[algorithm] != "" {
		return f, nil
	}
	sum, err := w.digestOf(ctx, item, f, algorithm)
	if err != nil {
		return f, err
	}
	all := map[string]string{algorithm: sum}
	for a, s := range f.Digests {
		all[a] = s
	}
	f.Digests = all
	return f, nil
}

// name notes what the submission names.
func (w *Process) name(ctx context.Context, dr *draft) error {
	if dr.Version == 1 {
		return nil
	}
	dr.named = map[string]bool{}
	for f, err := range w.producers(ctx, dr) {
		if err != nil {
			return err
		}
		dr.named[f.Name] = true
	}
	return nil
}

// producers yields the producer's files by logical path.
func (w *Process) producers(ctx context.Context, dr *draft) iter.Seq2[staging.File, error] {
	return func(yield func(staging.File, error) bool) {
		for f, err := range dr.contents.all(ctx, w.payloads.staging) {
			f.Name = producerPath(f.Name)
			if err == nil && dr.deletes != nil && f.Key == dr.deletes.Key {
				continue // an instruction to us, kept among our files
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// files yields the version's new files by logical path: the producer's, then ours.
func (w *Process) files(ctx context.Context, dr *draft) iter.Seq2[staging.File, error] {
	return func(yield func(staging.File, error) bool) {
		for f, err := range w.producers(ctx, dr) {
			if !yield(f, err) || err != nil {
				return
			}
		}
		for _, f := range dr.system {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// inventory plans the OCFL version. An update keeps what it does not name, but none of our files: they tell of one version.
func (w *Process) inventory(ctx context.Context, item *base.Item, dr *draft) (*ocfl.Inventory, []ocfl.ContentFile, error) {
	spec := item.Spec()
	gone := dr.deleted
	for _, f := range dr.prev.State(0) {
		if strings.HasPrefix(f.Path, systemFolder) {
			gone = append(gone, f.Path)
		}
	}
	inv, content, err := ocfl.NewVersion(dr.prev, ocfl.Change{
		Files: func(yield func(ocfl.File, error) bool) {
			for f, err := range w.files(ctx, dr) {
				if !yield(ocfl.File{Path: f.Name, Digest: f.Digests[dr.Algorithm], Size: f.SizeBytes}, err) || err != nil {
					return
				}
			}
		},
		Delete: gone, Whole: spec.Mode == registry.Add,
		Message: fmt.Sprintf("%s by Holdfast job %s", spec.Mode, item.ID), Created: dr.Created, User: user(spec),
	})
	var bad *ocfl.PathError
	if errors.As(err, &bad) {
		return nil, nil, base.Content(err)
	}
	return inv, content, err
}

// stageInventory keeps the inventory to be, so that a repeat commits the same bytes.
func (w *Process) stageInventory(ctx context.Context, dr *draft, inv *ocfl.Inventory) error {
	out, err := stage(ctx, w.payloads.staging, dr.Inventory, dr.Algorithm)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // nothing depends on a writer that is given up
	if err := inv.Encode(out); err != nil {
		return fmt.Errorf("stage inventory: %w", err)
	}
	f, err := out.Commit(ctx, "inventory.json")
	dr.Digest = f.Digests[dr.Algorithm]
	return err
}

func firstOf(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// user names who asked for the version. OCFL wants an address with the name (W007, W008): a mail address where the
// submitter is one, else the ARK of the owner on whose behalf the submitter acts.
func user(spec registry.Spec) *ocfl.User {
	u := &ocfl.User{Name: cmp.Or(spec.Submitter, spec.Profile.Name, spec.Profile.Owner), Address: spec.Profile.Owner}
	if strings.Contains(spec.Submitter, "@") {
		u.Address = "mailto:" + spec.Submitter
	}
	return u
}
