package rebuild

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/metadata"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
)

// withoutReceipt enters the versions before one that no right receipt describes, from their OCFL
// inventories and Holdfast's system files.
func (e *entering) withoutReceipt(until int) error {
	for version := e.done + 1; version < until; version++ {
		if e.inventory(version) == "" {
			e.fault("version %d is not entered: no storage has its inventory right", version)
			continue
		}
		if err := e.fromInventory(version); err != nil {
			return err
		}
	}
	return nil
}

func (e *entering) fromInventory(version int) error {
	e.fault("version %d has no right receipt: its files and identity are those of its OCFL inventory and system files; its events, formats and times of checks are missing", version)
	c := e.with(version)
	inv, err := c.root.Committed(e.ctx, e.Stored(), version)
	if err != nil {
		return err
	}
	h, err := e.described(c, inv, version)
	if err != nil {
		return err
	}
	sizes, err := c.sizes(e)
	if err != nil {
		return err
	}
	v := registry.EnteredVersion{
		Padding: e.Padding,
		ObjectVersion: registry.ObjectVersion{
			Version: version, ItemID: h.Item, CreatedAt: h.Created, RecordedAt: h.Created,
			Inventory: e.inventory(version), Replicas: e.replicas(version, nil),
		},
	}
	digests := fixityOf(inv)
	rows := e.rows(version, time.Time{})
	for _, f := range inv.State(version) {
		paths := inv.ContentPaths(f.Digest)
		if len(paths) == 0 {
			return fmt.Errorf("the inventory of version %d has no content of %q", version, f.Path)
		}
		row := registry.File{Path: f.Path, ContentPath: paths[0], Digests: map[string]string{inv.Algorithm: strings.ToLower(f.Digest)}, SizeBytes: -1}
		for algorithm, digest := range digests[paths[0]] {
			row.Digests[algorithm] = digest
		}
		if size, there := sizes[paths[0]]; there {
			row.SizeBytes = size
			v.SizeBytes += size
		} else {
			e.fault("%s is missing in storage %s", paths[0], c.Storage)
		}
		v.Files++
		if err := rows.add(e.ctx, row); err != nil {
			return err
		}
	}
	if err := rows.end(e.ctx); err != nil {
		return err
	}
	e.version(v, registry.EnteredObject{
		MintedFor: h.Item,
		Object: registry.Object{
			Collection: h.Collection, Owner: h.Owner, LocalIDs: h.LocalIDs, Title: h.Title, Creator: h.Creator, Date: h.Date, CreatedAt: h.Named,
		},
	})
	return nil
}

// fixityOf returns the further digests of an inventory by content path and algorithm.
func fixityOf(inv *ocfl.Inventory) map[string]map[string]string {
	out := map[string]map[string]string{}
	for algorithm, entries := range inv.Fixity {
		for _, entry := range entries {
			for _, path := range entry.Paths {
				if out[path] == nil {
					out[path] = map[string]string{}
				}
				out[path][algorithm] = strings.ToLower(entry.Digest)
			}
		}
	}
	return out
}

// sizes returns the sizes of the files in a copy's folder by their paths there.
func (c *Copy) sizes(e *entering) (map[string]int64, error) {
	folder, err := c.root.ObjectKey(e.Stored())
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for info, err := range c.root.Store().List(e.ctx, folder+"/") {
		if err != nil {
			return nil, fmt.Errorf("list %q: %w", folder, err)
		}
		out[strings.TrimPrefix(info.Key, folder+"/")] = info.Size
	}
	return out, nil
}

// described returns what the inventory and the system files of a version say of its identity. What they
// do not say is empty. Created and Named are the times of this and of the first version.
func (e *entering) described(c *Copy, inv *ocfl.Inventory, version int) (h receipt.Header, err error) {
	h.Created, h.Named = inv.Versions[version-1].Created, inv.Versions[0].Created
	owner, err := e.system(c, inv, "mrt-owner.txt")
	if err != nil {
		return h, err
	}
	h.Owner = strings.TrimSpace(owner)
	ingest, err := e.fields(c, inv, "mrt-ingest.txt")
	if err != nil {
		return h, err
	}
	h.Collection, h.Item = ingest["profile"], ingest["job"]
	mom, err := e.fields(c, inv, "mrt-mom.txt")
	if err != nil {
		return h, err
	}
	h.LocalIDs = slices.Compact(slices.Sorted(slices.Values(metadata.SplitLocalIDs(mom["localIdentifier"]))))
	text, err := e.system(c, inv, metadata.ERCFile)
	if err != nil {
		return h, err
	}
	if erc, err := metadata.ReadERC(strings.NewReader(text)); err == nil {
		h.Title, h.Creator, h.Date = first(erc.What), first(erc.Who), first(erc.When)
	}
	return h, nil
}

// profile returns what an object says of its collection's profile: name, owner, collection ARKs, storages
// and digest algorithm. It is empty for a collection of which an object was entered before.
func (e *entering) profile() (p registry.Profile, err error) {
	c := e.with(e.Head)
	if _, known := e.met.collections.Load(e.object.Collection); known {
		return p, nil
	}
	p.Name, p.Owner, p.Storages = e.object.Collection, e.object.Owner, e.storages
	p.DigestAlgorithm, _, _ = strings.Cut(c.inventories[e.Head], ":")
	if slices.Equal(p.Storages, []string{registry.DefaultStorage}) {
		p.Storages = nil // as by default
	}
	// A version with many files is not read into memory for this.
	in, err := c.root.OpenFile(e.ctx, e.Stored(), e.Head, registry.SystemFolder+"mrt-membership.txt")
	if unreadable(err) { // the root inventory, by which it is looked up
		inv, err := c.root.Committed(e.ctx, e.Stored(), e.Head)
		if err != nil {
			return p, err
		}
		members, err := e.system(c, inv, "mrt-membership.txt")
		p.Collections = strings.Fields(members)
		return p, err
	}
	members, err := e.text(e.Head, "mrt-membership.txt", in, err)
	p.Collections = strings.Fields(members)
	return p, err
}

// first returns the first of a description's values; "" if it says that there is none.
func first(values []string) string {
	if len(values) == 0 || strings.HasPrefix(values[0], "(:") {
		return ""
	}
	return values[0]
}

// fields returns the fields of a system file.
func (e *entering) fields(c *Copy, inv *ocfl.Inventory, name string) (map[string]string, error) {
	text, err := e.system(c, inv, name)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	records, err := metadata.ReadANVL(strings.NewReader(text))
	if err != nil {
		e.fault("version %d: %s cannot be read: %v", inv.Head(), name, err)
		return out, nil
	}
	for _, r := range records {
		for _, f := range r {
			out[f.Label] = cmp.Or(out[f.Label], f.Value)
		}
	}
	return out, nil
}

// mostSystem is the largest system file that is read, in bytes.
const mostSystem = 1 << 20

// system returns a system file of a version; "" with a fault if there is none that can be read.
func (e *entering) system(c *Copy, inv *ocfl.Inventory, name string) (string, error) {
	file, there := inv.Lookup(0, registry.SystemFolder+name)
	if !there {
		return e.text(inv.Head(), name, nil, ocfl.ErrNotFound)
	}
	in, err := c.root.OpenContent(e.ctx, inv, file.Digest, 0, -1)
	return e.text(inv.Head(), name, in, err)
}

// text reads a system file that was opened.
func (e *entering) text(version int, name string, in io.ReadCloser, err error) (string, error) {
	if errors.Is(err, ocfl.ErrNotFound) || unreadable(err) {
		e.fault("version %d has no %s", version, name)
		return "", nil
	} else if err != nil {
		return "", err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, mostSystem))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return string(text), nil
}
