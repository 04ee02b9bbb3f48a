// Package fixitycheck reads one stored file of an object again in every storage that has it, and
// compares it with the Registry's record.
//
// It replaces a wrong or missing file by a right copy from another storage, and records damage
// before it mends it. A file that cannot be read is a system fault and retried. A person is needed
// if no storage has the file right, or if there are files that belong to no version.
//
// Content never changes, so it is read without the object's lock. Mending takes the lock, so that
// an object that is being deleted does not come back. The check of an inventory includes what is
// derived from it (sidecar, the object's root). That changes with every version, so it is read
// under the lock.
package fixitycheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/time/rate"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/tracing"
	"github.com/holdfast/holdfast/workers/pace"
)

// Checker checks stored files. Its methods may be called concurrently.
type Checker struct {
	Registry interface {
		registry.Locking
		registry.Checking
		registry.EventsSigning
		evidence.Source
	}
	Objects ocfl.Roots    // by the names of the Registry's replicas
	Version string        // of the program
	Limiter *rate.Limiter // limits the bytes a second of all checks in the process: see [pace.NewLimiter]
}

// Check checks the file that the item names, and mends it if possible. It may be repeated at any
// point.
func (w *Checker) Check(ctx context.Context, item *base.Item) error {
	file, err := w.Registry.StoredFile(ctx, item.Lease())
	if errors.Is(err, registry.ErrNotFound) {
		return nil // the object was deleted meanwhile
	} else if err != nil {
		return err
	}
	c := &check{Checker: w, item: item, file: file, inventory: ocfl.IsInventory(string(file.File))}
	if c.inventory {
		if gone, err := c.lock(ctx); gone || err != nil {
			return err
		}
	}
	if err := c.expect(ctx); err != nil {
		return err
	}
	if err := c.readAll(ctx); err != nil {
		return err
	}
	if c.inventory {
		if err := c.checkDerived(ctx); err != nil {
			return err
		}
	}
	if c.inventory && file.Version == file.Head {
		if err := c.checkEvidence(ctx); err != nil {
			return err
		}
	}
	if !c.allRight() || len(c.derived) > 0 || !c.evidenceRight() {
		if gone, err := c.lock(ctx); gone || err != nil {
			return err
		}
		// Recorded before anything is mended: after a kill the next attempt would find nothing
		// wrong.
		if err := w.Registry.RecordCheck(ctx, item.Lease(), c.record("found", premis.FixityCheck)); err != nil {
			return err
		}
		if !c.allRight() {
			if err := c.mend(ctx); err != nil {
				return err
			}
		}
	}
	if c.inventory {
		if err := c.repairDerived(ctx); err != nil {
			return err
		}
		if err := c.mendEvidence(ctx); err != nil {
			return err
		}
		if err := c.findForeign(ctx); err != nil {
			return err
		}
	}
	kind := premis.FixityCheck
	if c.mended {
		kind = premis.Replication
	}
	return w.Registry.RecordCheck(ctx, item.Lease(), c.record("checked", kind))
}

// check is the running check of one file.
type check struct {
	*Checker
	item      *base.Item
	file      registry.StoredFile
	inventory bool
	want      ocfl.Stored
	found     []registry.ReplicaCheck // in the order of the file's storages
	derived   []string                // storages where the inventory is right, but not the files derived from it
	foreign   []string                // storages with files of no version
	beside    []string                // storages that have such files only below the object's logs or extensions
	judge     *evidence.Judge
	evidence  []wrongEvidence
	elsewhere []registry.ReplicaCheck // storages without the file's version, of whose evidence there was something to mend
	mended    bool
}

// lock locks the object, and reports whether it is gone.
func (c *check) lock(ctx context.Context) (gone bool, err error) {
	if _, err = c.Registry.LockObject(ctx, c.item.Lease(), c.file.ObjectID); err == nil {
		var now registry.StoredFile
		now, err = c.Registry.StoredFile(ctx, c.item.Lease())
		c.file.Head = now.Head // which another job may have raised
	}
	if errors.Is(err, registry.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// expect sets the digest that the file must have. For an inventory that was recorded without a
// digest, the sidecar has it.
func (c *check) expect(ctx context.Context) (err error) {
	c.want = ocfl.Stored{ID: c.file.Stored(c.file.ObjectID), Path: string(c.file.File)}
	for _, algorithm := range []string{ocfl.SHA512, ocfl.SHA256} {
		if digest := c.file.Digests[algorithm]; digest != "" {
			c.want.Algorithm, c.want.Digest = algorithm, digest
			return nil
		}
	}
	if !c.inventory {
		return base.Fatal(fmt.Errorf("no digest by an inventory's algorithm is recorded of %s", c.want.Path))
	}
	for _, name := range c.file.Storages {
		root, err := c.root(name)
		if err != nil {
			return err
		}
		if c.want.Algorithm, c.want.Digest, err = root.Sidecar(ctx, c.want.ID, c.want.Path); err == nil {
			return nil
		} else if !errors.Is(err, ocfl.ErrNotFound) {
			return err
		}
	}
	return base.Fatal(fmt.Errorf("no digest of %s is recorded, and no storage has a sidecar of it", c.want.Path))
}

func (c *check) root(storage string) (*ocfl.Root, error) {
	named, err := c.Objects.Of(storage)
	if err != nil {
		return nil, fmt.Errorf("object %s is in a storage that this worker does not know: %w", c.file.ObjectID, err)
	}
	return named.Root, nil
}

// readAll reads the file in every storage.
func (c *check) readAll(ctx context.Context) error {
	if len(c.file.Storages) == 0 {
		return base.Fatal(fmt.Errorf("no storage is recorded that has version %d of %s", c.file.Version, c.file.ObjectID))
	}
	progress := c.item.Progress("bytes read again", "bytes")
	if c.file.SizeBytes >= 0 {
		progress.SetEnd(c.file.SizeBytes * int64(len(c.file.Storages)))
	}
	for _, name := range c.file.Storages {
		root, err := c.root(name)
		if err != nil {
			return err
		}
		reading, span := tracing.Start(ctx, "copy read")
		got, err := root.Examine(reading, c.want, func(r io.Reader) io.Reader { return pace.Reader(reading, r, c.Limiter, progress.Add) })
		span.End(err)
		if err != nil {
			return fmt.Errorf("read it again in storage %s: %w", name, err)
		}
		outcome := map[ocfl.Condition]registry.CheckOutcome{
			ocfl.Right: registry.CheckGood, ocfl.Wrong: registry.CheckDamaged, ocfl.Gone: registry.CheckMissing,
		}[got]
		c.found = append(c.found, registry.ReplicaCheck{Storage: name, Outcome: outcome})
	}
	return nil
}

// checkDerived checks what is derived from an inventory: its sidecar, and the object's root and
// declaration.
func (c *check) checkDerived(ctx context.Context) error {
	for _, f := range c.found {
		if !f.Outcome.Right() {
			continue // already damaged
		}
		root, err := c.root(f.Storage)
		if err != nil {
			return err
		}
		fine, err := root.Confirmed(ctx, c.want, c.file.Head)
		if err != nil {
			return fmt.Errorf("check sidecar, root and declaration in storage %s: %w", f.Storage, err)
		}
		if !fine {
			c.derived = append(c.derived, f.Storage)
		}
	}
	return nil
}

// findForeign looks for files that belong to no version of the object, and evidence that says something
// else than the record. A person must decide about them. Files in places that OCFL leaves to others say
// nothing about the object's content: the check fails, but the storage does not count as damaged.
func (c *check) findForeign(ctx context.Context) error {
	var files []string
	for _, f := range c.found {
		root, err := c.root(f.Storage)
		if err != nil {
			return err
		}
		foreign, err := root.Foreign(ctx, c.want, c.file.Head, c.known)
		if err != nil {
			return err
		}
		within := func(file string) bool { return !ocfl.Beside(file) }
		for _, file := range foreign {
			files = append(files, fmt.Sprintf("%q in storage %s", file, f.Storage))
		}
		switch {
		case slices.ContainsFunc(foreign, within):
			c.foreign = append(c.foreign, f.Storage)
		case len(foreign) > 0:
			c.beside = append(c.beside, f.Storage)
		}
	}
	other := c.otherEvidence()
	if len(files) == 0 && other == nil {
		return nil
	}
	if err := c.Registry.RecordCheck(ctx, c.item.Lease(), c.record("foreign", premis.FixityCheck)); err != nil {
		return err
	}
	if len(files) == 0 {
		return other
	}
	return base.Fatal(fmt.Errorf("%s has files that belong to no version of it: %s; find out what they are and move them away, then requeue this check",
		c.file.ObjectID, strings.Join(files, ", ")))
}

// known says which files beside the content belong to the object. What others keep beside the content of
// an adopted object is theirs.
func (c *check) known(path string) bool {
	return evidence.Known(path) || c.file.Adopted > 0 && ocfl.Beside(path) && !evidence.Within(path)
}

// place returns the place of a storage among the file's; -1: it does not have the file's version.
func (c *check) place(storage string) int {
	return slices.IndexFunc(c.found, func(f registry.ReplicaCheck) bool { return f.Storage == storage })
}

// outcomes returns the results. A storage also counts as damaged if derived files or evidence are wrong, or
// there are files of no version.
func (c *check) outcomes() []registry.ReplicaCheck {
	out := slices.Clone(c.found)
	for i, f := range out {
		if slices.Contains(c.derived, f.Storage) || slices.Contains(c.foreign, f.Storage) || c.evidenceText(f.Storage) != "" {
			out[i].Outcome = registry.CheckDamaged
		}
	}
	for _, e := range c.evidence {
		if c.place(e.storage) < 0 && !e.Right() {
			out = append(out, registry.ReplicaCheck{Storage: e.storage, Outcome: registry.CheckDamaged})
		}
	}
	return append(out, c.elsewhere...)
}

func (c *check) allRight() bool { return registry.CheckRecord{Replicas: c.found}.Right() }

// mend replaces the file wherever it is not right.
func (c *check) mend(ctx context.Context) (err error) {
	ctx, span := tracing.Start(ctx, "copy mend")
	defer func() { span.End(err) }()
	var good string
	for _, f := range c.found {
		if f.Outcome.Right() {
			good = f.Storage
			break
		}
	}
	byRoot := false
	if good == "" {
		var err error
		if good, err = c.rootCopy(ctx); err != nil {
			return err
		}
		byRoot = good != ""
	}
	if good == "" {
		return base.Fatal(fmt.Errorf("%s of %s is damaged or missing in every storage (%s); restore it from another copy, then requeue this check",
			c.want.Path, c.file.ObjectID, c.text()))
	}
	from, err := c.root(good)
	if err != nil {
		return err
	}
	for i, f := range c.found {
		if f.Outcome.Right() {
			continue
		}
		root, err := c.root(f.Storage)
		if err != nil {
			return err
		}
		if err := c.item.Writable(ctx); err != nil {
			return err
		}
		scratch := fmt.Sprintf("%s-%d", c.item.ID, c.item.Lease().N)
		put := root.Mend
		if byRoot {
			put = root.MendFromRoot
		}
		if err := put(ctx, c.want, from, scratch); err != nil {
			return fmt.Errorf("mend it in storage %s from %s: %w", f.Storage, good, err)
		}
		c.found[i].Outcome, c.mended = registry.CheckRepaired, true
	}
	return nil
}

// rootCopy returns a storage where the inventory in the object's root has the bytes of the
// version's inventory, as it has for the newest version; "" if there is none.
func (c *check) rootCopy(ctx context.Context) (storage string, err error) {
	if !ocfl.IsInventory(c.want.Path) {
		return "", nil
	}
	atRoot := c.want
	atRoot.Path = path.Base(c.want.Path)
	for _, f := range c.found {
		root, err := c.root(f.Storage)
		if err != nil {
			return "", err
		}
		if got, err := root.Examine(ctx, atRoot, nil); err != nil {
			return "", fmt.Errorf("read the root inventory in storage %s: %w", f.Storage, err)
		} else if got == ocfl.Right {
			return f.Storage, nil
		}
	}
	return "", nil
}

// repairDerived repairs what is derived from an inventory, in every storage.
func (c *check) repairDerived(ctx context.Context) error {
	for i, f := range c.found {
		root, err := c.root(f.Storage)
		if err != nil {
			return err
		}
		changed, err := root.Confirm(ctx, c.want, c.file.Head)
		if err != nil {
			return fmt.Errorf("repair sidecar, root and declaration in storage %s: %w", f.Storage, err)
		}
		if changed {
			c.found[i].Outcome, c.mended = registry.CheckRepaired, true
		}
	}
	c.derived = nil
	return nil
}

// text describes the results for people.
func (c *check) text() string {
	var parts []string
	for _, f := range c.outcomes() {
		part := fmt.Sprintf("%v in storage %s", f.Outcome, f.Storage)
		switch {
		case slices.Contains(c.derived, f.Storage):
			part += " (its sidecar, or the object's root inventory, sidecar or declaration)"
		case slices.Contains(c.foreign, f.Storage):
			part += " (files of no version beside it)"
		case slices.Contains(c.beside, f.Storage):
			part += " (files of no version in the object's logs or extensions)"
		case c.evidenceText(f.Storage) != "":
			part += " (its evidence: " + c.evidenceText(f.Storage) + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// record returns the results so far, with one preservation event for all storages.
func (c *check) record(phase string, kind premis.EventType) registry.CheckRecord {
	outcome := "success"
	replicas := c.outcomes()
	if !(registry.CheckRecord{Replicas: replicas}).Right() {
		outcome = "failure"
	}
	return registry.CheckRecord{Replicas: replicas, Events: []registry.Premis{{
		ID:       premis.EventID(c.item.ID, string(kind), fmt.Sprintf("%s %d", phase, c.item.Lease().N)).Value,
		ObjectID: c.file.ObjectID, Version: c.file.Version, ItemID: c.item.ID, Type: string(kind), At: c.item.Now(),
		Agent: "Holdfast " + c.Version, Outcome: outcome,
		Detail: fmt.Sprintf("%s compared by %s: %v", c.want.Path, c.want.Algorithm, c.text()),
	}}}
}
