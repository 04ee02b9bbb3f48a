package ocfl_test

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
)

// peak watches the heap until stop is called and returns its largest size in bytes.
func peak() (stop func() uint64) {
	var largest atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			largest.Store(max(largest.Load(), m.HeapInuse+m.StackInuse))
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 {
		close(done)
		<-ended
		return largest.Load()
	}
}

// BenchmarkLargeObject plans, commits, updates, reads and verifies an object of
// HOLDFAST_BENCH_FILES files (20,000 by default; the target of 512 MiB is for 360,000) under a
// memory limit such as a worker sets. It reports the peaks of the heap.
func BenchmarkLargeObject(b *testing.B) {
	files := 20_000
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_BENCH_FILES")); err == nil {
		files = n
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(440 << 20))
	for b.Loop() {
		store := newDirStore(b)
		root, err := ocfl.OpenRoot(b.Context(), store, "", nil)
		if err != nil {
			b.Fatal(err)
		}
		stage := staging{newDirStore(b)}
		stop := peak()
		const id = "ark:/99999/large"
		// write plans a version as workers do, and commits it.
		write := func(prior ocfl.Prior, n int, list iter.Seq2[ocfl.File, error]) {
			space := root.Spill()
			defer space.Close()
			p, err := ocfl.NewPlan(b.Context(), prior, ocfl.Change{Message: "m", User: &user, Created: created(n), Files: list}, space)
			if err != nil {
				b.Fatal(err)
			}
			key := fmt.Sprint("inventory ", n)
			w, err := stage.store.Create(b.Context(), key)
			if err != nil {
				b.Fatal(err)
			}
			h := sha512.New()
			if err := p.Encode(b.Context(), io.MultiWriter(w, h)); err != nil {
				b.Fatal(err)
			}
			if _, err := w.Commit(b.Context()); err != nil {
				b.Fatal(err)
			}
			added, err := ocfl.ReadAddition(b.Context(), stage.store, key, n, ocfl.SHA512, hex.EncodeToString(h.Sum(nil)), space)
			if err != nil {
				b.Fatal(err)
			}
			if err := root.CommitAddition(b.Context(), added, stage.source, ocfl.CommitOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		report := func(what string) { b.ReportMetric(float64(stop())/(1<<20), what+"-peak-MiB"); stop = peak() }
		prior, err := ocfl.NoPrior(id, ocfl.SHA512, ocfl.Spec11)
		if err != nil {
			b.Fatal(err)
		}
		write(prior, 1, func(yield func(ocfl.File, error) bool) {
			for i := range files {
				f := stage.file(b, fmt.Sprintf("producer/a folder with a name/%03d/some file name of usual length %06d.tif", i/1000, i), strconv.Itoa(i))
				if !yield(f, nil) {
					return
				}
			}
		})
		report("commit")
		if prior, err = root.Prior(b.Context(), id, 1); err != nil {
			b.Fatal(err)
		}
		write(prior, 2, ocfl.Files([]ocfl.File{stage.file(b, "added", "x")}))
		report("update")
		verdict, err := root.Verify(b.Context(), id, ocfl.ValidateOptions{})
		if err != nil || len(verdict.Faults) > 0 {
			b.Fatalf("verify: %v, %v", verdict, err)
		}
		b.ReportMetric(float64(stop())/(1<<20), "verify-peak-MiB")
	}
}

// newDirStore is newStore for a benchmark, on a file system in memory where there is one: it is not
// the disk that is measured.
func newDirStore(b *testing.B) storage.Store {
	b.Helper()
	s, err := dir.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}
