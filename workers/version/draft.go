// Package version makes a version of an object: it describes, plans, announces and writes it.
//
// A plan names every file of the version with its bytes in staging and its time, so that a repeat
// writes the same bytes (R2). It is announced in the Registry before the first byte is written
// where others read. From then on the version can only be rolled forward, or be abandoned by two
// people while no storage has it complete. Everything written is read back at its destination.
//
// The package takes files as package content lists them, and a name from package identity. It
// writes only to the item's first storage: replicating is another stage.
package version

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/spill"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/content"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/result"
)

// Maker makes versions of objects. Its methods may be called concurrently for different items.
type Maker struct {
	Registry registry.ForWorkers
	Objects  ocfl.Roots
	ARKs     intake.ARKs // judges supplied ARKs
	Payloads payload.Files
	Opener   *content.Opener
	// Identifier identifies the formats of files; nil: only their media types are known.
	Identifier format.Identifier
}

// draft is a version being planned.
type draft struct {
	result.Plan
	Description
	id     registry.Identity
	prior  ocfl.Prior
	space  *spill.Space // for lists of files
	system []staging.File
	small  map[string][]byte // the bytes of system files that are not staged, by name
	plan   *ocfl.Plan
}

// Draft plans the version and stages all generated files, but those of a small version if
// frozen.Small allows that. frozen also has the version's time, its scan and its software: with the
// same frozen values, the same submission gives the same bytes.
func (w *Maker) Draft(ctx context.Context, item *base.Item, d Description, id registry.Identity, frozen result.Plan) (*Drafted, error) {
	dr := &draft{Plan: frozen, Description: d, id: id}
	dr.ObjectID, dr.Place, dr.Version, dr.Minted = id.ARK, id.Place, id.Head+1, id.Minted
	dr.Bag = d.Contents.Kind == registry.BagType
	home, err := w.firstStorage(item)
	if err != nil {
		return nil, err
	}
	dr.space = home.Spill()
	defer dr.space.Close() //nolint:errcheck // nothing depends on a temporary file
	if dr.prior, err = w.previous(ctx, item, home, id); err != nil {
		return nil, err
	}
	dr.Algorithm = dr.prior.Algorithm()
	if dr.Contents, err = w.withDigests(ctx, item, d.Contents, dr.Algorithm); err != nil {
		return nil, err
	}
	if id.Head > 0 && item.Spec().Mode == registry.Update {
		if err := w.inherit(ctx, home, &dr.Description, id); err != nil {
			return nil, err
		}
	}
	if id.Adopted > 0 && item.Spec().Mode == registry.Update {
		if err := w.replaceAdopted(ctx, dr); err != nil {
			return nil, err
		}
	}
	dr.Metadata.PrimaryID = id.ARK
	m := dr.Metadata
	dr.LocalIDs, dr.Title, dr.Creator, dr.Date = m.LocalIDs, firstOf(m.What), firstOf(m.Who), firstOf(m.When)
	if id.EZIDItem != "" {
		dr.EZID = &ezid.Name{ARK: id.ARK, Item: id.EZIDItem, Who: m.Who, What: m.What, When: m.When}
	}
	if dr.system, err = w.systemFiles(ctx, item, home, dr); err != nil {
		return nil, fmt.Errorf("write system files: %w", err)
	}
	if err := w.plan(ctx, item, dr); err != nil {
		return nil, err
	}
	b := storage.NewBatch(w.Payloads.Staging)
	defer b.Close() //nolint:errcheck // it drops what was not published
	small, err := w.list(ctx, item, b, dr)
	if err != nil {
		return nil, err
	}
	if dr.Small {
		return &Drafted{dr.Plan, small}, nil
	}
	if err := stageInventory(ctx, item, b, dr); err != nil {
		return nil, err
	}
	taken, err := b.Publish(ctx)
	if err == nil && len(taken) > 0 {
		err = fmt.Errorf("stage the plan: %s: %w", strings.Join(taken, ", "), storage.ErrExists)
	}
	return &Drafted{Plan: dr.Plan}, err
}

// Announce announces a version in the Registry, before its first byte is written where others read.
// It returns the plan that holds, which is now the item's durable result: the first one announced,
// possibly by an earlier attempt.
func (w *Maker) Announce(ctx context.Context, item *base.Item, d *Drafted) (holds json.RawMessage, err error) {
	in := registry.Intent{ObjectID: d.ObjectID, Version: d.Version}
	if in.Plan, err = json.Marshal(d.Plan); err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	if d.Small {
		in.Staged = d.small.text
		for _, e := range d.small.Changes {
			in.Files = append(in.Files, e.Row(d.Version))
		}
	}
	in, err = w.Registry.Intend(ctx, item.Lease(), in)
	return in.Plan, err
}

// previous returns the object's head, as the base of the plan.
func (w *Maker) previous(ctx context.Context, item *base.Item, home ocfl.Named, id registry.Identity) (ocfl.Prior, error) {
	if id.Head == 0 {
		prior, err := ocfl.NoPrior(id.ARK, item.Spec().Profile.Digests(), w.Objects.Spec(item.Storages))
		return prior, base.Fatal(err) // the profile requires an unsupported digest
	}
	if err := w.ensurePredecessors(ctx, home, id); err != nil {
		return ocfl.Prior{}, err
	}
	prior, err := home.Prior(ctx, id.Stored(), id.Head)
	if err != nil {
		return prior, fmt.Errorf("read version %d of %s: %w", id.Head, id.ARK, err)
	}
	return prior, nil
}

// withDigests returns the contents with digests by the object's own algorithm, which may differ
// from the collection's present one.
func (w *Maker) withDigests(ctx context.Context, item *base.Item, c result.Contents, algorithm string) (result.Contents, error) {
	if algorithm == item.Spec().Profile.Digests() {
		return c, nil
	}
	key := staging.Key(item.Lease(), "digested.jsonl")
	list, err := staging.CreateList[staging.File](ctx, w.Payloads.Staging, key)
	if err != nil {
		return c, err
	}
	defer list.Abort() //nolint:errcheck // nothing depends on a list that is given up
	for f, err := range c.All(ctx, w.Payloads.Staging) {
		if err != nil {
			return c, err
		}
		if f, err = w.Payloads.WithDigest(ctx, item, f, algorithm); err != nil {
			return c, err
		}
		if err := list.Add(f); err != nil {
			return c, err
		}
	}
	err = list.Commit(ctx)
	c.List = list.List()
	return c, err
}

// producers yields the producer's files by logical path.
func (w *Maker) producers(ctx context.Context, dr *draft) iter.Seq2[staging.File, error] {
	return func(yield func(staging.File, error) bool) {
		for f, err := range dr.Contents.All(ctx, w.Payloads.Staging) {
			f.Name = producerPath(f.Name)
			if err == nil && dr.deletes != nil && f.Key == dr.deletes.Key {
				continue // an instruction, kept among the system files
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// files yields the version's new files by logical path: the producer's, then the system files.
func (w *Maker) files(ctx context.Context, dr *draft) iter.Seq2[staging.File, error] {
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

// plan plans the OCFL version. An update keeps files that it does not name, except system files:
// they describe one version.
func (w *Maker) plan(ctx context.Context, item *base.Item, dr *draft) (err error) {
	spec := item.Spec()
	dr.plan, err = ocfl.NewPlan(ctx, dr.prior, ocfl.Change{
		Files: func(yield func(ocfl.File, error) bool) {
			for f, err := range w.files(ctx, dr) {
				var text []byte
				if err == nil {
					text, err = json.Marshal(f)
				}
				if !yield(ocfl.File{Path: f.Name, Digest: f.Digests[dr.Algorithm], Extra: text}, err) || err != nil {
					return
				}
			}
		},
		Delete: dr.deleted, Drop: isSystem, Whole: spec.Mode == registry.Add,
		Message: fmt.Sprintf("%s by Holdfast job %s", spec.Mode, item.ID), Created: dr.Created, User: user(spec),
	}, dr.space)
	var bad *ocfl.PathError
	if errors.As(err, &bad) {
		return base.Content(err)
	}
	return err
}

// isSystem reports whether a logical path is that of a system file.
func isSystem(path string) bool { return strings.HasPrefix(path, registry.SystemFolder) }

// stageInventory stages the planned inventory, so that a repeat commits the same bytes.
func stageInventory(ctx context.Context, item *base.Item, in storage.Creator, dr *draft) error {
	dr.Inventory = staging.Key(item.Lease(), "inventory.json")
	out, err := staging.Create(ctx, in, dr.Inventory, dr.Algorithm)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // an aborted writer leaves nothing that matters
	if err := dr.plan.Encode(ctx, out); err != nil {
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

// user names who requested the version. OCFL wants an address with the name (W007, W008): a mail
// address if the submitter is one, else the ARK of the owner for whom the submitter acts.
func user(spec registry.Spec) *ocfl.User {
	u := &ocfl.User{Name: cmp.Or(spec.Submitter, spec.Profile.Name, spec.Profile.Owner), Address: spec.Profile.Owner}
	if strings.Contains(spec.Submitter, "@") {
		u.Address = "mailto:" + spec.Submitter
	}
	return u
}
