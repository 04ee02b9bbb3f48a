package evidence_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// TestCost computes what docs/evidence.md says: the requests and bytes that a year of fixity checks
// costs in one storage, by writing five years of them. Every file is checked each 90 days, and the files
// of an object within a month.
func TestCost(t *testing.T) {
	t.Parallel()
	const rounds, full, most = 20, 100, 16
	for _, tt := range []struct {
		files           int     // stored files of an object: content, system files and inventory
		puts, all       float64 // the most requests that create a file, and of any kind, for each check
		written, stored float64 // the most bytes for each check: written, and there at the end
	}{
		{files: 9, puts: 0.12, all: 0.5, written: 1000, stored: 480},
		{files: 108, puts: 0.02, all: 0.1, written: 1500, stored: 420},
		{files: 400, puts: 0.02, all: 0.05, written: 3000, stored: 420},
	} {
		r, o := newRecord(t), object()
		memory := o.Store
		counting := storagetest.NewFaulty(memory)
		o.Store = counting
		written, segments := int64(0), 0
		write := func(n int) {
			first := r.last() + 1
			for range n {
				r.checked(tt.files)
			}
			r.keep(t, o, first, r.last())
			info, err := memory.Stat(t.Context(), o.Key(evidence.File{First: first, Last: r.last()}))
			must(t, err)
			written += info.Size
			if segments++; segments <= most {
				return
			}
			segments, err = evidence.Merge(t.Context(), r, registry.EvidencePlaces{}, r.sign, most, o)
			must(t, err)
			files, err := o.List(t.Context())
			must(t, err)
			info, err = memory.Stat(t.Context(), o.Key(files.Segments[len(files.Segments)-1]))
			must(t, err)
			written += info.Size
		}
		for range rounds {
			for left := tt.files; left > 0; left -= full {
				write(min(left, full))
			}
		}
		stored := int64(0)
		for info, err := range memory.List(t.Context(), "") {
			must(t, err)
			stored += info.Size
		}
		checks := float64(rounds * tt.files)
		puts := float64(counting.Count(storagetest.Create)) / checks
		all := puts + float64(counting.Count(storagetest.Open)+counting.Count(storagetest.List)+counting.Count(storagetest.Delete))/checks
		perWritten, perStored := float64(written)/checks, float64(stored)/checks
		t.Logf("%d files: %.4f PUT and %.4f requests a check; %.0f bytes written and %.0f kept a check; a million files, a year: %.0f PUT, %.0f requests, %.1f GB written, %.1f GB more",
			tt.files, puts, all, perWritten, perStored, puts*4e6, all*4e6, perWritten*4e6/1e9, perStored*4e6/1e9)
		if puts > tt.puts || all > tt.all || perWritten > tt.written || perStored > tt.stored {
			t.Errorf("%d files: a check costs more than docs/evidence.md says", tt.files)
		}
	}
}

// checked adds the event of a check that found everything right in two storages.
func (r *record) checked(files int) {
	seq := r.last() + 1
	e := registry.Premis{
		ID: fmt.Sprintf("01a21f02-0000-5000-8000-%012d", seq), ObjectID: ark, Version: 1, Type: "fixity check", At: time.Unix(seq, 0), Agent: "Holdfast v1.2.3",
		Outcome: "success", Detail: fmt.Sprintf("v1/content/producer/plates/%08d.tif by sha512: second good, storage good", int(seq)%files), Seq: seq,
	}
	e.Hash = receipt.EventOf(e).Hash(r.hash(seq - 1))
	r.events = append(r.events, e)
}
