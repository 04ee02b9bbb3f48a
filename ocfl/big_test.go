package ocfl_test

import (
	"fmt"
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
		inv, err := ocfl.New("ark:/99999/large", ocfl.SHA512)
		if err != nil {
			b.Fatal(err)
		}
		inv, _, err = ocfl.NewVersion(inv, ocfl.Change{Message: "m", User: &user, Created: created(1), Files: func(yield func(ocfl.File, error) bool) {
			for i := range files {
				content := strconv.Itoa(i)
				f := stage.file(b, fmt.Sprintf("producer/a folder with a name/%03d/some file name of usual length %06d.tif", i/1000, i), content)
				f.Fixity = []ocfl.Digest{{Algorithm: "sha256", Value: digestOf("sha256", content)}}
				if !yield(f, nil) {
					return
				}
			}
		}})
		if err != nil {
			b.Fatal(err)
		}
		report := func(what string) { b.ReportMetric(float64(stop())/(1<<20), what+"-peak-MiB"); stop = peak() }
		report("plan")
		if err := root.Commit(b.Context(), inv, stage.source, ocfl.CommitOptions{}); err != nil {
			b.Fatal(err)
		}
		report("commit")
		if inv, err = root.Inventory(b.Context(), inv.ID, 0); err != nil {
			b.Fatal(err)
		}
		inv, _, err = ocfl.NewVersion(inv, ocfl.Change{Message: "m", User: &user, Created: created(2), Files: ocfl.Files([]ocfl.File{stage.file(b, "added", "x")})})
		if err != nil {
			b.Fatal(err)
		}
		if err := root.Commit(b.Context(), inv, stage.source, ocfl.CommitOptions{}); err != nil {
			b.Fatal(err)
		}
		report("update")
		id := inv.ID
		inv = nil
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
