// Package rebuild reads what storages hold of objects, and enters it into a Registry. So a Registry can
// be made again from the storages alone.
//
// [Find] reads one object in all its storages and judges each copy. [Object.Enter] enters what is right.
// [Run] does both for all objects of the storages, and goes on where it was killed.
//
// The files of a version, its events and its identity come from its signed receipt (docs/evidence.md),
// as a stream. Without a right receipt they come from the OCFL inventory and Holdfast's system files, and
// the version's inventory is kept in memory.
package rebuild

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
)

// Copy is what one storage holds of an object.
type Copy struct {
	Storage string   `json:"storage"`
	Head    int      `json:"head"` // the newest version whose inventory is right; 0: none
	Faults  []string `json:"faults,omitempty"`

	root        ocfl.Named
	inventories map[int]string // of the versions that are right: ALGORITHM:HEX
	unshown     int            // a version that is written, and that the object's inventory does not show; 0: none
	left        string         // a file of a version after the last one that is written, which nobody finished; "": none
	unsealed    string         // the inventory of that version, which is there without its sidecar: its digest; "": it is not
}

// Object is what storages hold of an object.
type Object struct {
	ID string `json:"object_id"`
	registry.Place
	Head   int      `json:"head"` // the newest version that a storage has right; 0: none
	Copies []Copy   `json:"copies"`
	Faults []string `json:"faults,omitempty"` // of the object as a whole

	evidence *evidence.Copies
	recorded *registry.RecordedObject // what the Registry has of it; nil: that is not known
	taken    []registry.TakenID       // local ids that other objects kept
	met      *met
}

// Stored returns the object's identifier in its storages.
func (o *Object) Stored() string { return o.Place.Stored(o.ID) }

func (o *Object) fault(format string, args ...any) {
	o.Faults = append(o.Faults, fmt.Sprintf(format, args...))
}

func (c *Copy) fault(format string, args ...any) {
	c.Faults = append(c.Faults, fmt.Sprintf(format, args...))
}

// Find reads an object in all storages that have it, but for the bytes of its files. Its error is that
// of a storage or of ctx. keys are the trusted keys of receipts; without any every key is trusted. fork is what
// checkpoints say of lost events of the object.
func Find(ctx context.Context, roots ocfl.Roots, keys []receipt.PublicKey, fork evidence.Fork, id string, in registry.Place) (*Object, error) {
	o := &Object{ID: id, Place: in}
	var beside []evidence.Object
	for _, root := range roots {
		c, there, err := find(ctx, root, o.Stored())
		if err != nil {
			return nil, fmt.Errorf("read %s in storage %s: %w", id, root.Name, err)
		}
		if !there {
			continue
		}
		o.Head = max(o.Head, c.Head)
		o.Copies = append(o.Copies, c)
		place, err := evidence.In(root.Root, id, in)
		if err != nil {
			return nil, err
		}
		beside = append(beside, place)
	}
	var err error
	if o.evidence, err = evidence.Compare(ctx, id, keys, fork, beside...); err != nil {
		return nil, err
	}
	for i := range o.Copies {
		c, e := &o.Copies[i], o.evidence.Copies[i]
		for _, f := range e.Faults {
			c.fault("%v", f)
		}
		for _, f := range e.Missing {
			c.fault("%s is missing", f)
		}
		if c.Head < o.Head {
			c.fault("version %d is missing", o.Head)
		}
	}
	for version := 1; version <= o.Head; version++ {
		if err := o.compare(ctx, version); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// compare compares the inventories of a version. If they differ, the right one is that which the version's right
// receipt names, or else that of the first copy. A copy with another one does not count as having the version.
func (o *Object) compare(ctx context.Context, version int) error {
	right := o.inventory(version)
	if !slices.ContainsFunc(o.Copies, func(c Copy) bool { return c.inventories[version] != "" && c.inventories[version] != right }) {
		return nil
	}
	if o.evidence.Right(version) {
		h, err := o.evidence.Header(ctx, version)
		if err != nil {
			return err
		}
		for _, r := range h.Replicas {
			if slices.ContainsFunc(o.Copies, func(c Copy) bool { return c.inventories[version] == r.Inventory }) {
				right = r.Inventory
			}
		}
	}
	for i := range o.Copies {
		if c := &o.Copies[i]; c.inventories[version] != "" && c.inventories[version] != right {
			c.fault("version %d has another inventory than in other storages", version)
			delete(c.inventories, version)
		}
	}
	return nil
}

// inventory returns the digest of a version's inventory, ALGORITHM:HEX; "" if no copy has it right.
func (o *Object) inventory(version int) string {
	if c := o.with(version); c != nil {
		return c.inventories[version]
	}
	return ""
}

// with returns the first copy that has a version right; nil: none.
func (o *Object) with(version int) *Copy {
	for i := range o.Copies {
		if o.Copies[i].inventories[version] != "" {
			return &o.Copies[i]
		}
	}
	return nil
}

// mostMissing is how many versions in a row may lack their inventories, so that a damaged or forged number of
// versions does not keep a rebuild busy for ever.
const mostMissing = 1000

// find reads the inventories of all versions in one storage. id is the object's there. there is false if it
// has no such object.
func find(ctx context.Context, root ocfl.Named, id string) (c Copy, there bool, err error) {
	c = Copy{Storage: root.Name, root: root, inventories: map[int]string{}}
	head, damage, err := headOf(ctx, root, id)
	switch {
	case errors.Is(err, ocfl.ErrNotFound):
		return c, false, nil
	case errors.Is(err, ocfl.ErrIDTaken) && root.InPlace(head): // another object's folder
		return c, false, nil
	case unreadable(err):
		c.fault("%v", err)
		return c, true, nil
	case err != nil:
		return c, false, err
	}
	if damage != nil {
		c.fault("%v: its versions' own inventories count", damage)
	}
	missing := 0 // versions in a row before this one
	for version := 1; ; version++ {
		if missing == mostMissing {
			c.fault("the inventories of %d versions in a row are missing, and the object's inventory says that it has %d versions: nothing after version %d counts", missing, head.Head, version-1)
			return c, true, nil
		}
		folder := head.VersionFolder(version)
		if version > head.Head {
			written, other, err := c.written(ctx, head.Key+"/"+folder)
			if err != nil {
				return c, true, err
			}
			if !written {
				c.left = other
				return c, true, nil
			}
		}
		inventory := folder + "/inventory.json"
		algorithm, digest, err := root.Sidecar(ctx, id, inventory)
		if version > head.Head && errors.Is(err, ocfl.ErrNotFound) {
			c.left = head.Key + "/" + inventory
			c.unsealed, err = c.digest(ctx, c.left, head.Algorithm)
			return c, true, err
		}
		if version > head.Head {
			c.unshown = version
		}
		if errors.Is(err, ocfl.ErrNotFound) {
			missing++
		} else {
			missing = 0
		}
		if unreadable(err) || errors.Is(err, ocfl.ErrNotFound) {
			c.fault("%s: its sidecar cannot be read: %v", inventory, err)
			continue
		} else if err != nil {
			return c, true, err
		}
		condition, err := root.Examine(ctx, ocfl.Stored{ID: id, Path: inventory, Algorithm: algorithm, Digest: digest}, nil)
		if err != nil {
			return c, true, err
		}
		if condition != ocfl.Right {
			c.fault("%s is %s", inventory, condition)
			continue
		}
		c.inventories[version], c.Head = algorithm+":"+digest, version
	}
}

// headOf describes an object by its root inventory in a storage, or if that is damaged by the newest inventory
// of its versions. damage says what is wrong with the root inventory.
func headOf(ctx context.Context, root ocfl.Named, id string) (head ocfl.Object, damage, err error) {
	head, err = root.Head(ctx, id)
	if !unreadable(err) || errors.Is(err, ocfl.ErrIDTaken) {
		return head, nil, err
	}
	folder, keyErr := root.ObjectKey(id)
	if keyErr != nil {
		return head, nil, keyErr
	}
	of, versionErr := root.HeadOfVersions(ctx, folder)
	switch {
	case errors.Is(versionErr, ocfl.ErrNotFound) || versionErr == nil && of.ID != id:
		return head, nil, err
	case versionErr != nil:
		return head, nil, versionErr
	}
	return of, err, nil
}

// digest returns the digest of a file.
func (c *Copy) digest(ctx context.Context, key, algorithm string) (hex string, err error) {
	in, err := c.root.Store().Open(ctx, key, 0, -1)
	if err != nil {
		return "", fmt.Errorf("read %q: %w", key, err)
	}
	defer in.Close()
	h := sha256.New()
	if algorithm == ocfl.SHA512 {
		h = sha512.New()
	}
	if _, err := io.Copy(h, in); err != nil {
		return "", fmt.Errorf("read %q: %w", key, err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// written reports whether the folder of a version has its inventory, with which a version is committed
// (R2), or else a file that it has; "": none.
func (c *Copy) written(ctx context.Context, folder string) (is bool, other string, err error) {
	for info, err := range c.root.Store().List(ctx, folder+"/") {
		if err != nil {
			return false, "", fmt.Errorf("list %q: %w", folder, err)
		}
		if info.Key == folder+"/inventory.json" {
			return true, "", nil
		}
		other = info.Key
	}
	return false, other, nil
}

// interrupted adds the faults of versions that nobody recorded.
func (o *Object) interrupted() {
	for i := range o.Copies {
		if c := &o.Copies[i]; c.unshown > 0 {
			c.fault("version %d is written, but the object's inventory does not show it: its job was interrupted", c.unshown)
		}
	}
}

// leftText says what follows from files that nobody finished.
func leftText(c *Copy) string {
	if c.unsealed != "" { // nothing is written into storages, and a digest that is made up now would vouch for nothing
		return fmt.Sprintf("%s is there without its sidecar, since its job was killed between the two, and is in the way of the next version: to take it over, write the digest %s of it into a sidecar as those of other versions are, and run this again; otherwise move the version's folder away (docs/operating.md, Foreign files)", c.left, c.unsealed)
	}
	return fmt.Sprintf("%s is of a version that was not finished, and is in the way of the next one: move the version's folder away (docs/operating.md, Foreign files)", c.left)
}

// takenText says that an object did not get a local id.
func takenText(id registry.TakenID) string {
	return fmt.Sprintf("its local id %q of %s belongs to %s, too, which keeps it", id.LocalID, id.Owner, id.ObjectID)
}

// unreadable says whether an error is about what is stored, and not about the storage.
func unreadable(err error) bool {
	return err != nil && (errors.As(err, new(*ocfl.DigestError)) || errors.As(err, new(*ocfl.InventoryError)) ||
		errors.Is(err, ocfl.ErrIDTaken) || errors.Is(err, ocfl.ErrDamaged) || errors.Is(err, storage.ErrTooLarge))
}
