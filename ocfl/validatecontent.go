package ocfl

import (
	"cmp"
	"context"
	"fmt"
	"hash"
	"io"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/storage"
)

// wants holds the digests that inventories promise for every content path. It is compact, because
// an object may have hundreds of thousands of files.
type wants struct {
	blocks []wantBlock
	list   []want
}

// wantBlock is what the wants of one block of an inventory have in common.
type wantBlock struct {
	algorithm string
	code      string // E092 for a manifest, E093 for fixity
	inventory string // its path
}

// want is one promised digest.
type want struct {
	path   string
	digest string // lower case
	block  uint32
}

// addInventory adds the digests of an inventory, without those that are already there.
func (w *wants) addInventory(inv *Inventory, path string) {
	if addresses(inv.Algorithm) {
		w.add(wantBlock{algorithm: inv.Algorithm, code: "E092", inventory: path}, inv.Manifest)
	}
	for _, algorithm := range slices.Sorted(maps.Keys(inv.Fixity)) {
		// Unknown algorithms must be ignored (E028).
		if newHash(algorithm) != nil {
			w.add(wantBlock{algorithm: algorithm, code: "E093", inventory: path}, inv.Fixity[algorithm])
		}
	}
	slices.SortStableFunc(w.list, func(a, b want) int {
		x, y := w.blocks[a.block], w.blocks[b.block]
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(x.algorithm, y.algorithm), cmp.Compare(x.code, y.code),
			cmp.Compare(a.digest, b.digest), cmp.Compare(a.block, b.block))
	})
	w.list = slices.CompactFunc(w.list, func(a, b want) bool {
		x, y := w.blocks[a.block], w.blocks[b.block]
		return a.path == b.path && a.digest == b.digest && x.algorithm == y.algorithm && x.code == y.code
	})
}

func (w *wants) add(block wantBlock, entries []Entry) {
	w.blocks = append(w.blocks, block)
	n := uint32(len(w.blocks) - 1)
	w.list = slices.Grow(w.list, len(entries))
	for _, e := range entries {
		digest := strings.ToLower(e.Digest)
		for _, path := range e.Paths {
			w.list = append(w.list, want{path: path, digest: digest, block: n})
		}
	}
}

// checkContent compares the files in content folders with the promised ones, and reads them all.
func (v *validator) checkContent(ctx context.Context) error {
	for _, version := range v.versions {
		for _, node := range v.below(version + "/" + v.contentDirectory()) {
			if node.kind == fileNode && !v.wants.has(node.path) {
				v.fault("E023", node.path, "no inventory names it")
			}
		}
	}
	for promises := range v.wants.byPath() {
		if !v.has(promises[0].path) {
			v.missing(promises)
		}
	}
	return v.digestAll(ctx)
}

// has reports whether a digest is promised for a file.
func (w *wants) has(path string) bool {
	_, ok := slices.BinarySearchFunc(w.list, path, func(one want, p string) int { return cmp.Compare(one.path, p) })
	return ok
}

// byPath yields the wants of each file.
func (w *wants) byPath() iter.Seq[[]want] {
	return func(yield func([]want) bool) {
		for list := w.list; len(list) > 0; {
			n := 1
			for n < len(list) && list[n].path == list[0].path {
				n++
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// missing reports a promised file that does not exist.
func (v *validator) missing(promises []want) {
	for _, w := range promises {
		b := v.wants.blocks[w.block]
		v.fault(b.code, b.inventory, "names %q, which is missing", w.path)
		v.fault("E023", b.inventory, "names %q, which is missing", w.path)
	}
}

// digestAll reads the existing files, several at the same time, and compares their digests.
func (v *validator) digestAll(ctx context.Context) error {
	var mu sync.Mutex // guards v.report
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan []want)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			buf := make([]byte, 256<<10)
			for promises := range next {
				sums, size, err := v.digest(ctx, promises, buf)
				if err != nil && !gone(err) {
					return err
				}
				mu.Lock()
				if err != nil {
					v.missing(promises)
				} else {
					v.compare(promises, sums)
				}
				v.report.Files++
				v.report.Bytes += size
				mu.Unlock()
			}
			return nil
		})
	}
	group.Go(func() error {
		defer close(next)
		for promises := range v.wants.byPath() {
			if !v.has(promises[0].path) {
				continue
			}
			select {
			case next <- promises:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return group.Wait()
}

// digest reads a file once for all promised algorithms.
func (v *validator) digest(ctx context.Context, promises []want, buf []byte) (map[string]string, int64, error) {
	path := promises[0].path
	in, err := v.tree.open(ctx, path)
	if err != nil {
		return nil, 0, fmt.Errorf("read %q: %w", path, err)
	}
	defer in.Close()
	var algorithms []string
	for _, w := range promises {
		algorithms = append(algorithms, v.wants.blocks[w.block].algorithm)
	}
	hashes := newHashes(algorithms...)
	size, err := io.CopyBuffer(hashes, storage.Interruptible(ctx, in), buf)
	if err != nil {
		return nil, size, fmt.Errorf("read %q: %w", path, err)
	}
	return hashes.sums(), size, nil
}

// compare reports the promised digests that a file does not have.
func (v *validator) compare(promises []want, sums map[string]string) {
	for _, w := range promises {
		b := v.wants.blocks[w.block]
		if got := sums[b.algorithm]; got != w.digest {
			v.fault(b.code, w.path, "%s is %s, and %s in %s", b.algorithm, got, w.digest, b.inventory)
		}
	}
}

// hashes computes several digests of the same bytes.
type hashes map[string]hash.Hash

func newHashes(algorithms ...string) hashes {
	h := make(hashes, len(algorithms))
	for _, algorithm := range algorithms {
		if h[algorithm] == nil {
			h[algorithm] = newHash(algorithm)
		}
	}
	return h
}

// Write implements io.Writer.
func (h hashes) Write(p []byte) (int, error) {
	for _, one := range h {
		one.Write(p)
	}
	return len(p), nil
}

// sums returns the digests by algorithm.
func (h hashes) sums() map[string]string {
	sums := make(map[string]string, len(h))
	for algorithm, one := range h {
		sums[algorithm] = hexSum(one)
	}
	return sums
}
