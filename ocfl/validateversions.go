package ocfl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// checkVersionInventories checks the inventories in version folders (3.7). One is in memory at a
// time.
func (v *validator) checkVersionInventories(ctx context.Context) error {
	spec := Spec10
	for i, name := range v.root.names {
		if !slices.Contains(v.versions, name) {
			continue
		}
		path := name + "/" + inventoryName
		newest := i == len(v.root.names)-1
		if !v.has(path) {
			v.fault("W010", name, "no inventory")
			v.checkOrphans(name)
			continue
		}
		if newest {
			same, err := v.checkNewestCopy(ctx, path)
			if err != nil {
				return err
			}
			if same {
				// Its faults are those of the inventory in the object's folder, already reported.
				v.checkSidecarNames(name, v.root.inv.Algorithm)
				spec = max(spec, v.root.inv.Spec)
				continue
			}
			v.fault("E064", path, "differs from the inventory in the object's folder")
		}
		old, sums, err := v.readInventory(ctx, path)
		if err != nil {
			return err
		}
		v.addFaults(old)
		if err := v.checkSidecar(ctx, path, old.inv.Algorithm, sums); err != nil {
			return err
		}
		v.checkSidecarNames(name, old.inv.Algorithm)
		if old.inv.Spec != "" {
			if old.inv.Spec < spec {
				v.fault("E103", path, "OCFL %s after a version with %s", old.inv.Spec, spec)
			}
			spec = max(spec, old.inv.Spec)
		}
		v.compareInventories(path, name, old)
		promised := len(v.wants.list)
		v.wants.addInventory(&old.inv, path)
		if len(v.wants.list) > promised { // wants keeps strings of this inventory
			v.held += old.held
		}
		v.checkOldManifest(path, i, old)
	}
	if v.root.inv.Spec != "" && v.root.inv.Spec < spec {
		v.fault("E103", inventoryName, "OCFL %s after a version with %s", v.root.inv.Spec, spec)
	}
	return nil
}

// checkNewestCopy reports whether the inventory of the newest version equals the one in the
// object's folder. If so it checks the sidecar. It does not decode the inventory again, which may
// be large.
func (v *validator) checkNewestCopy(ctx context.Context, path string) (bool, error) {
	in, err := v.tree.open(ctx, path)
	if err != nil {
		return false, fmt.Errorf("read %q: %w", path, err)
	}
	defer in.Close()
	h := newHashes(SHA512)
	if _, err := io.Copy(h, storage.Interruptible(ctx, in)); err != nil {
		return false, fmt.Errorf("read %q: %w", path, err)
	}
	if h.sums()[SHA512] != v.rootDigest[SHA512] {
		return false, nil
	}
	return true, v.checkSidecar(ctx, path, v.root.inv.Algorithm, v.rootDigest)
}

// checkOrphans reports sidecars without their inventory, which was lost.
func (v *validator) checkOrphans(version string) {
	for _, n := range v.below(version) {
		rest, ok := strings.CutPrefix(n.path, version+"/"+inventoryName+".")
		if ok && !strings.Contains(rest, "/") && n.kind == fileNode {
			v.fault("E060", n.path, "the inventory that it is the digest of is missing")
		}
	}
}

// checkSidecarNames reports sidecars of other algorithms than the inventory's.
func (v *validator) checkSidecarNames(version, algorithm string) {
	for _, n := range v.below(version) {
		rest, ok := strings.CutPrefix(n.path, version+"/"+inventoryName+".")
		if ok && rest != algorithm && !strings.Contains(rest, "/") && n.kind == fileNode {
			v.fault("E015", n.path, "a file that does not belong there")
			v.fault("E059", n.path, "a digest of another algorithm than the inventory's, which is %q", algorithm)
		}
	}
}

// compareInventories compares the inventory of a version with that of the object.
func (v *validator) compareInventories(path, version string, old *decoded) {
	root := &v.root.inv
	if old.inv.ID != "" && old.inv.ID != root.ID {
		v.fault("E037", path, "id is %q, that of the object %q", old.inv.ID, root.ID)
		if v.spec != Spec10 {
			v.fault("E110", path, "id is %q, that of the object %q", old.inv.ID, root.ID)
		}
	}
	if old.head != "" && old.head != version {
		v.fault("E040", path, "head is %q in the folder %s", old.head, version)
	}
	if old.inv.ContentDirectory != root.ContentDirectory {
		// The first version sets it (E019) and later ones must not change it (E020). Whichever is
		// wrong, both rules are broken.
		for _, code := range []string{"E019", "E020"} {
			v.fault(code, path, "contentDirectory is %q, that of the object %q", old.inv.ContentDirectory, root.ContentDirectory)
		}
	}
	for i, name := range old.names {
		k := slices.Index(v.root.names, name)
		if k < 0 {
			v.fault("E066", path, "has version %s, which the object lacks", name)
			continue
		}
		v.compareVersions(path, name, old, i, k)
	}
	if n, _, ok := parseVersionName(version); ok {
		for _, name := range v.root.names {
			if k, _, _ := parseVersionName(name); k <= n && !slices.Contains(old.names, name) {
				v.fault("E066", path, "has no version %s", name)
			}
		}
	}
}

// compareVersions compares a version in an older inventory with the same version in the object's
// inventory.
func (v *validator) compareVersions(path, name string, old *decoded, i, k int) {
	a, b := &old.inv.Versions[i], &v.root.inv.Versions[k]
	if a.createdText != b.createdText || a.Message != b.Message || a.hasMessage != b.hasMessage || !sameUser(a.User, b.User) {
		v.fault("W011", path, "created, message or user of %s differ from those of the object", name)
	}
	x, y := a.State, b.State
	for len(x) > 0 || len(y) > 0 {
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].Path < y[0].Path:
			v.fault("E066", path, "%s has %q, the object lacks it", name, x[0].Path)
			x = x[1:]
		case len(x) == 0 || y[0].Path < x[0].Path:
			v.fault("E066", path, "%s lacks %q, the object has it", name, y[0].Path)
			y = y[1:]
		default:
			if !v.sameContent(&old.inv, x[0].Digest, y[0].Digest) {
				v.fault("E066", path, "%s has other content for %q than the object", name, x[0].Path)
			}
			x, y = x[1:], y[1:]
		}
	}
}

// sameContent reports whether a digest of an older inventory and one of the object's inventory have
// the same content. If the algorithms differ, a content path in both decides.
func (v *validator) sameContent(old *Inventory, before, now string) bool {
	root := &v.root.inv
	if old.Algorithm == root.Algorithm {
		return strings.EqualFold(before, now)
	}
	paths := root.ContentPaths(now)
	return slices.ContainsFunc(old.ContentPaths(before), func(p string) bool { return slices.Contains(paths, p) })
}

func sameUser(a, b *User) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// checkOldManifest checks that an older inventory lists every file of its version and those before.
func (v *validator) checkOldManifest(path string, n int, old *decoded) {
	named := newShared(&old.inv).paths
	for _, version := range v.root.names[:n+1] {
		for _, node := range v.below(version + "/" + v.contentDirectory()) {
			if _, ok := slices.BinarySearch(named, node.path); !ok && node.kind == fileNode {
				v.fault("E023", path, "does not name %q", node.path)
			}
		}
	}
}
