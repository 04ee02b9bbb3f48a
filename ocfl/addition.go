package ocfl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/spill"
	"github.com/holdfast/holdfast/storage"
)

// Addition is what a version adds to an object: an inventory, and the content files in it that no
// earlier version has. It may be written to several storages. Its methods may be called
// concurrently.
type Addition struct {
	object  Object // its head is the version
	digest  string // of the inventory, lower-case hex
	files   int
	content iter.Seq2[ContentFile, error]                // by path; may be read repeatedly
	encode  func(ctx context.Context, w io.Writer) error // writes exactly the bytes of the inventory
}

// Addition returns what the newest version adds.
func (inv *Inventory) Addition() *Addition {
	var text bytes.Buffer
	h := newHash(inv.Algorithm)
	_ = inv.Encode(io.MultiWriter(&text, h)) // both take everything
	return additionOf(inv.object(), hexSum(h), inv.ContentFiles(), text.Bytes())
}

// additionOf returns an Addition in memory. It sorts the files.
func additionOf(object Object, digest string, files []ContentFile, inventory []byte) *Addition {
	slices.SortFunc(files, func(a, b ContentFile) int { return cmp.Compare(a.Path, b.Path) })
	return &Addition{
		object: object, digest: digest, files: len(files),
		content: func(yield func(ContentFile, error) bool) {
			for _, f := range files {
				if !yield(f, nil) {
					return
				}
			}
		},
		encode: func(_ context.Context, w io.Writer) error {
			_, err := w.Write(inventory)
			return err
		},
	}
}

// ReadAddition returns what version n adds according to the inventory at key in from, which must
// have this digest. It keeps no more of the inventory in memory than space does, so it may be used
// until that is closed.
//
// It returns an *InventoryError if the text is not the inventory of version n, and a *DigestError if
// it has another digest.
func ReadAddition(ctx context.Context, from storage.Store, key string, n int, algorithm, digest string, space *spill.Space) (*Addition, error) {
	a := &Addition{digest: strings.ToLower(digest)}
	content := space.NewSorter(nil)
	s := scan{version: n, key: key, manifest: func(digest, path string) error {
		folder, _, _ := strings.Cut(path, "/")
		if v, _, ok := parseVersionName(folder); !ok || v != n {
			return nil
		}
		if !isDigest(algorithm, digest) {
			return fmt.Errorf("read %q: %q is not a %s digest", key, digest, algorithm)
		}
		a.files++
		if !content.Add([]byte(path), []byte(digest)) {
			return space.Err()
		}
		return nil
	}}
	open := func(ctx context.Context) (io.ReadCloser, error) { return from.Open(ctx, key, 0, -1) }
	out, err := scanProven(ctx, open, s, algorithm, a.digest)
	if err == nil && out.Algorithm != algorithm {
		err = &InventoryError{Key: key}
	}
	if err != nil {
		return nil, err
	}
	a.object = out.Object
	a.encode = func(ctx context.Context, w io.Writer) error {
		return copyProven(ctx, from, key, algorithm, a.digest, w)
	}
	a.content = func(yield func(ContentFile, error) bool) {
		last := ""
		for path, digest := range content.Sorted() {
			f := ContentFile{Path: string(path), Digest: string(digest)}
			if f.Path == last {
				yield(f, &InventoryError{Key: key})
				return
			}
			if last = f.Path; !yield(f, nil) {
				return
			}
		}
		if err := space.Err(); err != nil {
			yield(ContentFile{}, err)
		}
	}
	return a, nil
}

// scanProven scans the inventory at the scan's key. It returns a *DigestError, whatever the scan
// met, if its digest is another one.
func scanProven(ctx context.Context, open func(context.Context) (io.ReadCloser, error), s scan, algorithm, digest string) (scanned, error) {
	h := newHash(algorithm)
	if h == nil {
		return scanned{}, &InventoryError{Key: s.key}
	}
	in, err := open(ctx)
	if err != nil {
		return scanned{}, wrapNotFound(err)
	}
	defer in.Close()
	text := io.TeeReader(storage.Interruptible(ctx, in), h)
	out, err := s.read(text)
	if _, rest := io.Copy(io.Discard, text); rest != nil {
		return out, errors.Join(err, fmt.Errorf("read %q: %w", s.key, rest))
	}
	if got := hexSum(h); got != digest {
		return out, &DigestError{Key: s.key, Algorithm: algorithm, Want: digest, Got: got}
	}
	return out, err
}

// copyProven writes the file at key to w. It returns a *DigestError if its bytes are wrong.
func copyProven(ctx context.Context, from storage.Store, key, algorithm, digest string, w io.Writer) error {
	h := newHash(algorithm)
	if _, err := hashObject(ctx, from, key, io.MultiWriter(w, h)); err != nil {
		return err
	}
	if got := hexSum(h); got != digest {
		return &DigestError{Key: key, Algorithm: algorithm, Want: digest, Got: got}
	}
	return nil
}

// Digest returns the digest of the inventory in lower-case hex, by the object's algorithm.
func (a *Addition) Digest() string { return a.digest }

// folder returns the folder of the version below the object's.
func (a *Addition) folder() string { return versionName(a.object.Head, a.object.padding) }

// matching yields the listed files below a prefix, each with the content file of the same path
// below base, or nil if there is none.
func (a *Addition) matching(ctx context.Context, store storage.Store, base, prefix string) iter.Seq2[inFolder, error] {
	return func(yield func(inFolder, error) bool) {
		next, stop := iter.Pull2(a.content)
		defer stop()
		f, err, more := next()
		for info, errList := range store.List(ctx, prefix) {
			if errList != nil {
				yield(inFolder{}, errList)
				return
			}
			for more && err == nil && base+"/"+f.Path < info.Key {
				f, err, more = next()
			}
			if more && err != nil {
				yield(inFolder{}, err)
				return
			}
			at := inFolder{Info: info}
			if more && base+"/"+f.Path == info.Key {
				at.planned, at.digest = true, f.Digest
			}
			if !yield(at, nil) {
				return
			}
		}
	}
}

// inFolder is a file in a version's folder.
type inFolder struct {
	storage.Info
	planned bool   // it is a content file
	digest  string // that it then must have
}
