package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/gabriel-vasile/mimetype"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
)

// plan is a version as it was announced: with the staged files that it names it is everything that a repeat needs to
// write the same bytes, times included (R2).
type plan struct {
	ObjectID  string   `json:"object_id"`
	Version   int      `json:"version"`
	Inventory string   `json:"inventory"` // key of the OCFL inventory to be
	List      string   `json:"list"`      // key of the list of the version's changes, []planned
	Files     int64    `json:"files"`     // in the version's state
	Bytes     int64    `json:"bytes"`
	LocalIDs  []string `json:"local_ids"`
	Title     string   `json:"title"`
	Creator   string   `json:"creator"`
	Date      string   `json:"date"`
	Minted    bool     `json:"minted"`
	Bag       bool     `json:"bag"` // the content was validated as a bag

	Created time.Time `json:"created"`
}

// planned is one change of a version: a file as it is from now on, or one that goes.
type planned struct {
	Path    string            `json:"path"`
	Content string            `json:"content"` // path in the OCFL object; of an earlier version when the bytes are there
	Staged  string            `json:"staged,omitempty"`
	Size    int64             `json:"size"`
	Digests map[string]string `json:"digests,omitempty"`
	MIME    string            `json:"mime,omitempty"`
	Deleted bool              `json:"deleted,omitempty"`
}

// announce freezes the version and makes it known, before its first byte is written anywhere that others read.
func (w *Process) announce(ctx context.Context, item *base.Item, d description, id registry.Identity) (plan, error) {
	spec := item.Spec()
	if spec.Mode == registry.Update && id.Head == 0 {
		return plan{}, base.Content(fmt.Errorf("there is no object %s to update; submit it without --update to add it", id.ARK))
	}
	p := plan{
		ObjectID: id.ARK, Version: id.Head + 1, LocalIDs: d.metadata.LocalIDs, Minted: id.Minted,
		Inventory: staging.Key(item.Lease(), "inventory.json"), List: staging.Key(item.Lease(), "version.jsonl"),
		Title: first(d.metadata.What), Creator: first(d.metadata.Who), Date: first(d.metadata.When),
		Bag: d.contents.kind == registry.BagType, Created: time.Now().UTC().Truncate(time.Second),
	}
	d.metadata.PrimaryID = id.ARK
	system, err := w.systemFiles(ctx, item, d, p)
	if err != nil {
		return plan{}, fmt.Errorf("write system files: %w", err)
	}
	if err := w.draw(ctx, item, d, system, &p); err != nil {
		return plan{}, err
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return plan{}, fmt.Errorf("encode plan: %w", err)
	}
	in, err := w.Registry.Intend(ctx, item.Lease(), registry.Intent{ObjectID: p.ObjectID, Version: p.Version, Plan: raw})
	if err != nil {
		return plan{}, err
	}
	// What was announced first holds, be it an earlier attempt's.
	var holds plan
	if err := json.Unmarshal(in.Plan, &holds); err != nil {
		return plan{}, fmt.Errorf("decode plan: %w", err)
	}
	return holds, nil
}

// draw plans the OCFL version and stages inventory and list.
func (w *Process) draw(ctx context.Context, item *base.Item, d description, system []staging.File, p *plan) error {
	prev, err := w.previous(ctx, item, p)
	if err != nil {
		return err
	}
	inv, content, err := ocfl.NewVersion(prev, ocfl.Change{
		Files: func(yield func(ocfl.File, error) bool) {
			for f, err := range w.files(ctx, d, system) {
				if !yield(ocfl.File{Path: f.Name, Digest: f.Digests[prev.Algorithm], Size: f.SizeBytes}, err) || err != nil {
					return
				}
			}
		},
		Delete: d.deleted, Whole: item.Spec().Mode == registry.Add,
		Message: fmt.Sprintf("%s by Holdfast job %s", item.Spec().Mode, item.ID), Created: p.Created,
		User: user(item.Spec().Submitter),
	})
	var bad *ocfl.PathError
	if errors.As(err, &bad) {
		return base.Content(err)
	} else if err != nil {
		return err
	}
	if err := w.list(ctx, d, system, inv, content, p); err != nil {
		return err
	}
	return w.stageInventory(ctx, inv, p.Inventory)
}

// stageInventory keeps the inventory to be, so that a repeat commits the same bytes.
func (w *Process) stageInventory(ctx context.Context, inv *ocfl.Inventory, key string) error {
	out, err := w.Staging.Create(ctx, key)
	if err != nil {
		return fmt.Errorf("stage inventory: %w", err)
	}
	defer out.Abort() //nolint:errcheck // nothing depends on a writer that is given up
	if err := inv.Encode(out); err != nil {
		return fmt.Errorf("stage inventory: %w", err)
	}
	if _, err := out.Commit(ctx); err != nil {
		return fmt.Errorf("stage inventory: %w", err)
	}
	return nil
}

// previous is the object's head, or an empty inventory for a new object.
func (w *Process) previous(ctx context.Context, item *base.Item, p *plan) (*ocfl.Inventory, error) {
	if p.Version == 1 {
		return ocfl.New(p.ObjectID, item.Spec().Profile.Digests())
	}
	inv, err := w.Objects.Inventory(ctx, p.ObjectID, p.Version-1)
	if err != nil {
		return nil, fmt.Errorf("read version %d of %s: %w", p.Version-1, p.ObjectID, err)
	}
	return inv, nil
}

// files yields the version's files by logical path: the producer's, then ours.
func (w *Process) files(ctx context.Context, d description, system []staging.File) iter.Seq2[staging.File, error] {
	return func(yield func(staging.File, error) bool) {
		for f, err := range d.contents.all(ctx, w.Staging) {
			f.Name = producerPath(f.Name)
			if d.deletes != nil && f.Key == d.deletes.Key {
				continue // an instruction to us, kept among our files
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
		for _, f := range system {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// list stages the version's changes for commit and record.
func (w *Process) list(ctx context.Context, d description, system []staging.File, inv *ocfl.Inventory, content []ocfl.ContentFile, p *plan) error {
	isNew := make(map[string]bool, len(content))
	for _, c := range content {
		isNew[c.Path] = true
	}
	list, err := staging.CreateList[planned](ctx, w.Staging, p.List)
	if err != nil {
		return err
	}
	defer list.Close()         //nolint:errcheck // nothing depends on a list that is given up
	named := map[string]bool{} // what the submission names, to tell it from what stays of the version before
	for f, err := range w.files(ctx, d, system) {
		if err != nil {
			return err
		}
		if p.Version > 1 {
			named[f.Name] = true
		}
		where := inv.ContentPaths(f.Digests[inv.Algorithm])[0]
		e := planned{Path: f.Name, Content: where, Size: f.SizeBytes, Digests: f.Digests}
		if isNew[where] {
			e.Staged = f.Key
		}
		if e.MIME, err = w.mime(ctx, f); err != nil {
			return err
		}
		p.Files, p.Bytes = p.Files+1, p.Bytes+f.SizeBytes
		if err := list.Add(e); err != nil {
			return err
		}
	}
	if p.Version > 1 {
		if err := w.carry(ctx, inv, list, named, p); err != nil {
			return err
		}
	}
	return list.Commit(ctx)
}

// carry goes through what the version before has and the submission does not name: files that stay count, the others
// end with this version.
func (w *Process) carry(ctx context.Context, inv *ocfl.Inventory, list *staging.ListWriter[planned], named map[string]bool, p *plan) error {
	const page = 500
	for after := ""; ; {
		old, err := w.Registry.Files(ctx, p.ObjectID, p.Version-1, after, page)
		if err != nil {
			return err
		}
		for _, f := range old {
			_, stays := inv.Lookup(0, f.Path)
			switch {
			case !stays:
				if err := list.Add(planned{Path: f.Path, Deleted: true}); err != nil {
					return err
				}
			case !named[f.Path]:
				p.Files, p.Bytes = p.Files+1, p.Bytes+f.SizeBytes
			}
		}
		if len(old) < page {
			return nil
		}
		after = old[len(old)-1].Path
	}
}

// mime names a file's format by its content; what the producer says is kept when the content says nothing.
func (w *Process) mime(ctx context.Context, f staging.File) (string, error) {
	const head = 3072
	r, err := w.Staging.Open(ctx, f.Key, 0, head)
	if err != nil {
		return "", fmt.Errorf("identify %s: %w", f.Name, err)
	}
	defer r.Close() //nolint:errcheck // read only
	found, err := mimetype.DetectReader(r)
	if err != nil {
		return "", fmt.Errorf("identify %s: %w", f.Name, err)
	}
	if f.MIMEType != "" && found.Is("application/octet-stream") {
		return f.MIMEType, nil
	}
	return found.String(), nil
}

// stageSystem stages one of our own files with its digest.
func (w *Process) stageSystem(ctx context.Context, item *base.Item, name string, data []byte) (staging.File, error) {
	out, err := newDigested(ctx, w.Staging, staging.Key(item.Lease(), "system/"+name), item.Spec().Profile.Digests())
	if err != nil {
		return staging.File{}, err
	}
	defer out.Close() //nolint:errcheck // nothing depends on a writer that is given up
	if _, err := out.Write(data); err != nil {
		return staging.File{}, fmt.Errorf("stage %s: %w", name, err)
	}
	f, err := out.Commit(ctx)
	f.Name = systemPath(name)
	return f, err
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func user(submitter string) *ocfl.User {
	if submitter == "" {
		return nil
	}
	return &ocfl.User{Name: submitter}
}
