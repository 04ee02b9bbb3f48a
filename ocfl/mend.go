package ocfl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// Stored is a file in an object's folder and the digest that it must have.
type Stored struct {
	ID        string // of the object
	Path      string // below its folder, such as v1/content/a.txt
	Algorithm string // of the digest: SHA512 or SHA256
	Digest    string // hex
}

// Condition is the condition of a stored file.
type Condition string

// The conditions.
const (
	Right Condition = "right"
	Wrong Condition = "wrong" // its bytes differ
	Gone  Condition = "gone"  // it is missing, and the storage root is present
)

// Examine reads a stored file to its end and compares its digest. through may wrap the reader; it
// may be nil. An error says that the file could not be read, for instance because the whole root is
// gone, and is no verdict on the file.
func (r *Root) Examine(ctx context.Context, f Stored, through func(io.Reader) io.Reader) (Condition, error) {
	key, err := r.storedKey(f)
	if err != nil {
		return "", err
	}
	return r.examine(ctx, key, f, through)
}

// Present returns an error if the storage root is missing. A file missing from an unmounted storage
// is not Gone.
func (r *Root) Present(ctx context.Context) error {
	if _, err := r.store.Stat(ctx, r.declarationKey()); err != nil {
		return fmt.Errorf("the storage root is not there: %w", err)
	}
	return nil
}

func (r *Root) storedKey(f Stored) (string, error) {
	base, err := r.ObjectKey(f.ID)
	if err != nil {
		return "", fmt.Errorf("find %q of %q: %w", f.Path, f.ID, err)
	}
	return base + "/" + f.Path, nil
}

func (r *Root) examine(ctx context.Context, key string, f Stored, through func(io.Reader) io.Reader) (Condition, error) {
	h := newHash(f.Algorithm)
	if h == nil {
		return "", fmt.Errorf("examine %q: %q is not a digest algorithm of inventories", key, f.Algorithm)
	}
	in, err := r.store.Open(ctx, key, 0, -1)
	if errors.Is(err, storage.ErrNotFound) {
		if err := r.Present(ctx); err != nil {
			return "", fmt.Errorf("examine %q: %w", key, err)
		}
		return Gone, nil
	} else if err != nil {
		return "", fmt.Errorf("examine %q: %w", key, err)
	}
	defer in.Close()
	from := storage.Interruptible(ctx, in)
	if through != nil {
		from = through(from)
	}
	if _, err := io.CopyBuffer(h, from, make([]byte, 256<<10)); err != nil {
		return "", fmt.Errorf("examine %q: %w", key, err)
	}
	if hexSum(h) != strings.ToLower(f.Digest) {
		return Wrong, nil
	}
	return Right, nil
}

// mendFolder is the folder below the root for the copies that damaged files are replaced with.
const mendFolder = "extensions/holdfast-mending/"

// Mend replaces a stored file that Examine found wrong or gone by a copy from another root. It
// copies the bytes to the name scratch, which the caller chooses, checks their digest, reads them
// back, and then puts them in place in one step. So readers see the old or the right bytes. If the
// copy does not match f, it returns a *DigestError and leaves the file alone. The caller holds the
// object's lock. After an interruption, a second call starts again.
func (r *Root) Mend(ctx context.Context, f Stored, from *Root, scratch string) error {
	return r.mend(ctx, f, from, f.Path, scratch)
}

// MendFromRoot mends the inventory of an object's newest version from the inventory in the object's
// root, which has the same bytes. So it may take both from the same storage.
func (r *Root) MendFromRoot(ctx context.Context, f Stored, from *Root, scratch string) error {
	return r.mend(ctx, f, from, inventoryName, scratch)
}

func (r *Root) mend(ctx context.Context, f Stored, from *Root, path, scratch string) (err error) {
	key, err := r.storedKey(f)
	if err != nil {
		return err
	}
	good, err := from.storedKey(Stored{ID: f.ID, Path: path})
	if err != nil {
		return err
	}
	copied := r.prefix + mendFolder + scratch
	if err := r.store.Delete(ctx, copied); err != nil {
		return fmt.Errorf("mend %q: %w", key, err)
	}
	defer func() {
		if undone := r.store.Delete(context.WithoutCancel(ctx), copied); undone != nil {
			err = errors.Join(err, fmt.Errorf("remove %q: %w", copied, undone))
		}
	}()
	if err := r.copyExact(ctx, copied, from.store, good, f); err != nil {
		return fmt.Errorf("mend %q: %w", key, err)
	}
	if err := r.mustBeRight(ctx, copied, f); err != nil {
		return fmt.Errorf("mend %q: %w", key, err)
	}
	if err := r.put(ctx, key, copied); err != nil {
		return fmt.Errorf("mend %q: %w", key, err)
	}
	return r.mustBeRight(ctx, key, f)
}

// copyExact creates key with the bytes at src if they match f.
func (r *Root) copyExact(ctx context.Context, key string, src storage.Store, srcKey string, f Stored) error {
	in, err := src.Open(ctx, srcKey, 0, -1)
	if err != nil {
		return err
	}
	defer in.Close()
	w, err := r.store.Create(ctx, key)
	if err != nil {
		return err
	}
	defer w.Abort() //nolint:errcheck // nothing depends on an aborted writer
	h := newHash(f.Algorithm)
	if _, err := io.CopyBuffer(io.MultiWriter(w, h), storage.Interruptible(ctx, in), make([]byte, 256<<10)); err != nil {
		return err
	}
	if got := hexSum(h); got != strings.ToLower(f.Digest) {
		return &DigestError{Key: srcKey, Algorithm: f.Algorithm, Want: f.Digest, Got: got, Existing: true}
	}
	_, err = w.Commit(ctx)
	return err
}

func (r *Root) mustBeRight(ctx context.Context, key string, f Stored) error {
	got, err := r.examine(ctx, key, f, nil)
	if err == nil && got != Right {
		err = fmt.Errorf("%q is %s after it was written", key, got)
	}
	return err
}

// put replaces the object at key by the copy, in one step.
func (r *Root) put(ctx context.Context, key, copied string) error {
	_, err := r.store.Stat(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		_, err = storage.Copy(ctx, r.store, key, r.store, copied)
		return err
	}
	if err != nil {
		return err
	}
	return storage.ReplaceFrom(ctx, r.store, key, copied)
}

// Confirm heals what is derived from a version's inventory, which Examine has found right: its
// sidecar, and, unless a later version is committed, the inventory, the sidecar and the declaration
// in the object's root. head is the newest version that the caller knows of: a later version is
// committed even if its inventory is missing. It reports whether it changed anything. The caller holds
// the object's lock.
func (r *Root) Confirm(ctx context.Context, f Stored, head int) (changed bool, err error) {
	return r.confirm(ctx, f, head, false)
}

// Confirmed reports whether Confirm would change nothing.
func (r *Root) Confirmed(ctx context.Context, f Stored, head int) (bool, error) {
	wrong, err := r.confirm(ctx, f, head, true)
	return !wrong, err
}

func (r *Root) confirm(ctx context.Context, f Stored, head int, look bool) (changed bool, err error) {
	base, err := r.ObjectKey(f.ID)
	if err != nil {
		return false, fmt.Errorf("confirm %q of %q: %w", f.Path, f.ID, err)
	}
	folder := path.Dir(f.Path)
	n, padding, ok := parseVersionName(folder)
	if !ok || path.Base(f.Path) != inventoryName {
		return false, fmt.Errorf("confirm %q of %q: it is not the inventory of a version", f.Path, f.ID)
	}
	p := published{
		root: r, base: base, version: folder, next: versionName(n+1, padding), algorithm: f.Algorithm, digest: strings.ToLower(f.Digest),
		look: look, older: n < head,
	}
	if changed, err = p.finish(ctx); err != nil {
		return changed, fmt.Errorf("confirm %q of %q: %w", f.Path, f.ID, err)
	}
	declared, err := p.declare(ctx)
	if err != nil {
		return changed, fmt.Errorf("confirm %q of %q: %w", f.Path, f.ID, err)
	}
	return changed || declared, nil
}

// declare writes the declaration of the object for the specification version of its newest
// inventory. It reports whether the declaration was missing or wrong. It does nothing if a later
// version is committed.
func (p published) declare(ctx context.Context) (bool, error) {
	if last, err := p.last(ctx); !last {
		return false, err
	}
	object, err := p.root.readHeader(ctx, p.base, p.inventoryKey())
	if err != nil {
		return false, err
	}
	name, content := declaration(object.Spec)
	b := storage.NewBatch(p.root.store)
	defer b.Close() //nolint:errcheck // it drops what was not published
	changed, err := p.ensure(ctx, b, p.base+"/"+name, content)
	if err == nil {
		_, err = b.Publish(ctx)
	}
	return changed, err
}

// Foreign lists files in the object's folder that belong to no version: at most a hundred, by their
// paths in the folder. known says which files beside the content are not foreign. f is the inventory
// of the newest committed version, which Examine has found right; for an older version Foreign lists
// nothing. head is as for Confirm. It skips the folder of a later version. It includes files below logs
// and extensions that are not known; [Beside] recognizes them. The caller holds the object's lock.
func (r *Root) Foreign(ctx context.Context, f Stored, head int, known func(path string) bool) (files []string, err error) {
	base, err := r.ObjectKey(f.ID)
	if err != nil {
		return nil, fmt.Errorf("look for foreign files of %q: %w", f.ID, err)
	}
	n, padding, ok := parseVersionName(path.Dir(f.Path))
	if !ok {
		return nil, fmt.Errorf("look for foreign files of %q: %q is not the inventory of a version", f.ID, f.Path)
	}
	p := published{root: r, base: base, next: versionName(n+1, padding), older: n < head}
	if last, err := p.last(ctx); !last || err != nil {
		return nil, err
	}
	inv, err := r.loadInventory(ctx, base+"/"+path.Dir(f.Path))
	if err != nil {
		return nil, fmt.Errorf("look for foreign files of %q: %w", f.ID, err)
	}
	name, _ := declaration(inv.Spec)
	ours := map[string]bool{name: true}
	for i := range n + 1 {
		folder := ""
		if i > 0 {
			folder = inv.VersionName(i) + "/"
		}
		ours[folder+inventoryName], ours[folder+inventoryName+"."+inv.Algorithm] = true, true
	}
	for _, e := range inv.Manifest {
		for _, content := range e.Paths {
			ours[content] = true
		}
	}
	const most = 100
	for info, err := range r.store.List(ctx, base+"/") {
		if err != nil {
			return nil, fmt.Errorf("look for foreign files of %q: %w", f.ID, err)
		}
		file := strings.TrimPrefix(info.Key, base+"/")
		if ours[file] || known(file) || strings.HasPrefix(file, p.next+"/") {
			continue
		}
		if older, err := r.sealsOlder(ctx, base, file, n); err != nil {
			return nil, fmt.Errorf("look for foreign files of %q: %w", f.ID, err)
		} else if older {
			continue
		}
		if files = append(files, file); len(files) == most {
			break
		}
	}
	return files, nil
}

// sealsOlder reports whether a file of the object in base is the sidecar of an inventory before version n
// by another algorithm than later ones have, as objects of others may have it.
func (r *Root) sealsOlder(ctx context.Context, base, file string, n int) (bool, error) {
	folder, name := path.Split(file)
	suffix, is := strings.CutPrefix(name, inventoryName+".")
	version, _, ok := parseVersionName(strings.TrimSuffix(folder, "/"))
	if !is || !ok || version >= n || !addresses(suffix) {
		return false, nil
	}
	_, algorithm, err := r.sealOf(ctx, base+"/"+path.Dir(file))
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return algorithm == suffix, err
}

// Beside reports whether a path in an object's folder lies below logs or extensions, whose files
// are not part of the object's content (OCFL 1.1, 3.6 and 3.9).
func Beside(file string) bool {
	top, _, below := strings.Cut(file, "/")
	return below && (top == logsFolder || top == extensionsFolder)
}

// IsInventory reports whether a path in an object's folder is the inventory of a version.
func IsInventory(file string) bool {
	_, _, ok := parseVersionName(path.Dir(file))
	return ok && path.Base(file) == inventoryName
}

// Sidecar returns the digest in the sidecar of a version's inventory, and its algorithm.
func (r *Root) Sidecar(ctx context.Context, id, file string) (algorithm, digest string, err error) {
	key, err := r.storedKey(Stored{ID: id, Path: file})
	if err != nil {
		return "", "", err
	}
	for _, algorithm := range []string{SHA512, SHA256} {
		text, err := storage.ReadAll(ctx, r.store, key+"."+algorithm, maxSmall)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		} else if err != nil {
			return "", "", fmt.Errorf("read sidecar of %q: %w", key, err)
		}
		if digest, ok := parseSidecar(string(text)); ok {
			return algorithm, digest, nil
		}
	}
	return "", "", fmt.Errorf("sidecar of %q: %w", key, ErrNotFound)
}
