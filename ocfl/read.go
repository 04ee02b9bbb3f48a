package ocfl

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// Head describes the object id from the start of its root inventory. It returns ErrNotFound if
// there is no object, or if its first version is not committed yet, or if the layout has no folder for
// such an identifier. It returns ErrIDTaken, and that object, if the folder holds another object.
func (r *Root) Head(ctx context.Context, id string) (Object, error) {
	base, err := r.ObjectKey(id)
	if err != nil {
		return Object{}, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	object, err := r.header(ctx, base)
	if err == nil && object.ID != id {
		err = fmt.Errorf("%w: %q holds %q, not %q", ErrIDTaken, base, object.ID, id)
	}
	return object, err
}

// In describes the object in a folder by its root inventory. ErrNotFound: there is none. If that cannot be read,
// or is not there, the Key is set.
func (r *Root) In(ctx context.Context, folder string) (Object, error) {
	object, err := r.header(ctx, folder)
	if errors.Is(err, ErrNotFound) {
		object.Key = folder
	}
	return object, err
}

// header reads the beginning of the root inventory in the folder base.
func (r *Root) header(ctx context.Context, base string) (Object, error) {
	return r.readHeader(ctx, base, base+"/"+inventoryName)
}

// readHeader reads the beginning of an inventory of the object in base.
func (r *Root) readHeader(ctx context.Context, base, key string) (Object, error) {
	in, err := r.store.Open(ctx, key, 0, -1)
	if err != nil {
		return Object{}, wrapNotFound(err)
	}
	defer in.Close()
	object, err := decodeHeader(in)
	if err != nil {
		return Object{Key: base}, fmt.Errorf("read %q: %w", key, err)
	}
	object.Key = base
	return object, nil
}

// HeadOfVersions describes the object in a folder from the newest inventory in its version folders whose
// beginning can be read. It is for an object whose root inventory is damaged. It returns ErrNotFound if no
// version has such an inventory.
func (r *Root) HeadOfVersions(ctx context.Context, folder string) (out Object, err error) {
	for info, err := range r.store.List(ctx, folder+"/v") {
		if err != nil {
			return out, fmt.Errorf("list the versions in %q: %w", folder, err)
		}
		version, name, _ := strings.Cut(strings.TrimPrefix(info.Key, folder+"/"), "/")
		n, _, ok := parseVersionName(version)
		if !ok || name != inventoryName || n <= out.Head {
			continue
		}
		switch object, err := r.readHeader(ctx, folder, info.Key); {
		case err == nil && object.Head == n:
			out = object
		case err != nil && !isDamage(err):
			return out, err
		}
	}
	if out.Head == 0 {
		err = fmt.Errorf("%w: no version in %q has an inventory that can be read", ErrNotFound, folder)
	}
	return out, err
}

// isDamage reports whether an error is about the text of an inventory, and not about the store.
func isDamage(err error) bool {
	return errors.Is(err, ErrDamaged) || errors.As(err, new(*InventoryError))
}

// wrapNotFound adds ErrNotFound to an error of the store.
func wrapNotFound(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

// decodeHeader reads an inventory until the fields of Object are known.
func decodeHeader(in io.Reader) (Object, error) {
	text := &utf8Reader{r: in}
	d := &decoder{json: json.NewDecoder(text), out: &decoded{faults: newFaults()}}
	token, err := d.json.Token()
	if err == nil && token != json.Delim('{') {
		err = fmt.Errorf("%w: the root is not an object", errSyntax)
	}
	found := map[string]*string{
		"id": &d.out.inv.ID, "type": &d.out.typeID, "digestAlgorithm": &d.out.inv.Algorithm, "head": &d.out.head,
	}
	errDone := errors.New("all is known")
	if err == nil {
		err = d.members(func(key string) error {
			into, ok := found[key]
			if !ok {
				return d.skip()
			}
			delete(found, key)
			if err := d.stringInto(into, "", key); err != nil {
				return err
			}
			if len(found) == 0 {
				return errDone
			}
			return nil
		})
	}
	if text.err != nil {
		return Object{}, text.err
	}
	if err != nil && !errors.Is(err, errDone) {
		return Object{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	n, padding, ok := parseVersionName(d.out.head)
	if !ok || d.out.inv.ID == "" {
		return Object{}, fmt.Errorf("%w: id %q, head %q", ErrDamaged, d.out.inv.ID, d.out.head)
	}
	d.seen = map[string]bool{"type": true}
	d.checkType()
	return Object{ID: d.out.inv.ID, Spec: d.out.inv.Spec, Algorithm: d.out.inv.Algorithm, Head: n, padding: padding}, nil
}

// Inventory returns the inventory of version n of the object id, checked against its sidecar; 0
// means the head. If the version folder has no inventory, it uses the root inventory. It returns
// ErrNotFound if there is no such object or version, and a *DigestError or *InventoryError if the
// inventory is damaged.
func (r *Root) Inventory(ctx context.Context, id string, n int) (*Inventory, error) {
	object, err := r.Head(ctx, id)
	if err != nil {
		return nil, err
	}
	if n < 0 || n > object.Head {
		return nil, fmt.Errorf("%w: %q has no version %d", ErrNotFound, id, n)
	}
	if n == 0 {
		n = object.Head
	}
	inv, err := r.loadInventory(ctx, object.Key+"/"+versionName(n, object.padding))
	if errors.Is(err, ErrNotFound) {
		if inv, err = r.loadInventory(ctx, object.Key); err == nil {
			inv = inv.until(n)
		}
	}
	if err != nil {
		return nil, err
	}
	if inv.ID != id || inv.Head() != n {
		return nil, fmt.Errorf("%q: inventory is that of version %d of %q", object.Key, inv.Head(), inv.ID)
	}
	return inv, nil
}

// Committed is Inventory for a version that is committed, whether or not the root inventory shows it
// already.
func (r *Root) Committed(ctx context.Context, id string, n int) (*Inventory, error) {
	p, err := r.versionOf(ctx, id, n)
	if err != nil {
		return nil, err
	}
	inv, err := r.loadInventory(ctx, p.base+"/"+p.version)
	if err == nil && (inv.ID != id || inv.Head() != n) {
		err = fmt.Errorf("%q: inventory is that of version %d of %q", p.base, inv.Head(), inv.ID)
	}
	return inv, err
}

// until returns the inventory without the versions after n. Its manifest still has their content.
func (inv *Inventory) until(n int) *Inventory {
	if n >= len(inv.Versions) {
		return inv
	}
	old := *inv
	old.Versions = inv.Versions[:n:n]
	return &old
}

// loadInventory reads and checks the inventory in a folder.
func (r *Root) loadInventory(ctx context.Context, folder string) (*Inventory, error) {
	key := folder + "/" + inventoryName
	in, err := r.store.Open(ctx, key, 0, -1)
	if err != nil {
		return nil, wrapNotFound(err)
	}
	defer in.Close()
	// The text says which of the two is needed.
	sums := map[string]hash.Hash{SHA512: sha512.New(), SHA256: sha256.New()}
	out, err := decodeInventory(io.TeeReader(in, io.MultiWriter(sums[SHA512], sums[SHA256])), key)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	if faults := onlyErrors(out.faults.Kept()); len(faults) > 0 {
		return nil, &InventoryError{Key: key, Faults: faults}
	}
	algorithm := out.inv.Algorithm
	sidecar, err := storage.ReadAll(ctx, r.store, key+"."+algorithm, maxSmall)
	if err != nil {
		return nil, fmt.Errorf("read sidecar: %w", err)
	}
	want, ok := parseSidecar(string(sidecar))
	if got := hexSum(sums[algorithm]); !ok || !strings.EqualFold(got, want) {
		return nil, &DigestError{Key: key, Algorithm: algorithm, Want: want, Got: got, Existing: true}
	}
	return &out.inv, nil
}

// parseSidecar returns the digest in the text of an inventory.json.ALGORITHM.
func parseSidecar(text string) (digest string, ok bool) {
	line := strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	digest, name := line, ""
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		digest, name = line[:i], strings.TrimLeft(line[i:], " \t")
	}
	ok = digest != "" && strings.Trim(digest, "0123456789abcdefABCDEF") == "" && name == inventoryName
	return digest, ok
}

// sidecarText returns the content of an inventory.json.ALGORITHM.
func sidecarText(digest string) []byte { return []byte(digest + " " + inventoryName + "\n") }

// OpenFile opens the file with this logical path in version n of the object id (0 for the head). It
// reads the inventory twice on each call, and keeps nothing of it in memory; for many files call
// Inventory once, then OpenContent. It returns ErrNotFound if there is no such object, version or
// file.
func (r *Root) OpenFile(ctx context.Context, id string, n int, logicalPath string) (io.ReadCloser, error) {
	v, err := r.Prior(ctx, id, n)
	if err != nil {
		return nil, err
	}
	digest, content := "", ""
	_, err = v.scan(ctx, scan{state: func(of, path string) error {
		if path == logicalPath {
			digest = of
		}
		return nil
	}})
	if err == nil && digest == "" {
		err = fmt.Errorf("%w: %q has no file %q in %s", ErrNotFound, id, logicalPath, versionName(v.object.Head, v.object.padding))
	}
	if err != nil {
		return nil, err
	}
	_, err = v.scan(ctx, scan{manifest: func(of, path string) error {
		if content == "" && strings.EqualFold(of, digest) {
			content = path
		}
		return nil
	}})
	if err == nil && content == "" {
		err = fmt.Errorf("%w: %q has no content with digest %s", ErrNotFound, id, digest)
	}
	if err != nil {
		return nil, err
	}
	in, err := r.store.Open(ctx, v.object.Key+"/"+content, 0, -1)
	return in, wrapNotFound(err)
}

// OpenContent opens the content with this digest in the object of inv, from offset on. length is in
// bytes; a negative one reads to the end. The digest is not verified.
func (r *Root) OpenContent(ctx context.Context, inv *Inventory, digest string, offset, length int64) (io.ReadCloser, error) {
	key, err := r.ContentKey(inv, digest)
	if err != nil {
		return nil, err
	}
	in, err := r.store.Open(ctx, key, offset, length)
	return in, wrapNotFound(err)
}

// ContentKey returns the key of the content with this digest in the root's store.
func (r *Root) ContentKey(inv *Inventory, digest string) (string, error) {
	base, err := r.ObjectKey(inv.ID)
	if err != nil {
		return "", err
	}
	paths := inv.ContentPaths(digest)
	if len(paths) == 0 {
		return "", fmt.Errorf("%w: %q has no content with digest %s", ErrNotFound, inv.ID, digest)
	}
	return base + "/" + paths[0], nil
}
