package evidence_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// segments makes a receipt and segments of so many events each.
func (r *record) segments(t testing.TB, o evidence.Object, sizes ...int) {
	t.Helper()
	must(t, evidence.KeepReceipts(t.Context(), r, r.version(t), o))
	for _, n := range sizes {
		first := r.last() + 1
		r.happen(n)
		r.keep(t, o, first, r.last())
	}
}

// TestMerge_DiesAnywhere: wherever a merging dies, the evidence is the same, and a repeat ends it.
func TestMerge_DiesAnywhere(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.files = 1
	whole := object()
	r.segments(t, whole, 1, 2, 3)
	_, want := read(t, whole, r.trusted())
	before := contents(t, whole)
	for _, dieAt := range []func(*storagetest.Faulty, int){(*storagetest.Faulty).DieAt, (*storagetest.Faulty).DieAfter} {
		for n := 1; ; n++ {
			o := object()
			for key, text := range before {
				putAt(t, o, key, text)
			}
			memory := o.Store
			faulty := storagetest.NewFaulty(memory)
			dieAt(faulty, n)
			o.Store = faulty
			_, died := evidence.Merge(t.Context(), r, registry.EvidencePlaces{}, r.sign, 2, o)
			o.Store = memory
			if report, got := read(t, o, r.trusted()); !report.Valid() || got != want {
				t.Fatalf("killed at call %d: %+v\n%s, want %s", n, report, got, want)
			}
			left, err := evidence.Merge(t.Context(), r, registry.EvidencePlaces{}, r.sign, 2, o)
			must(t, err)
			if report, got := read(t, o, r.trusted()); !report.Valid() || got != want || left > 2 {
				t.Fatalf("repeated after a kill at call %d: %d left, %+v\n%s, want %s", n, left, report, got, want)
			}
			if died == nil {
				if diff := cmp.Diff([]string{"events-0000000003-0000000008.jsonl", "v1.receipt.jsonl"}, names(t, o)); diff != "" {
					t.Errorf("files (-want +got):\n%s", diff)
				}
				break
			}
		}
	}
}

// TestMerge_Wrong: what is damaged or says something else is not removed, and is named if nobody accepted it.
func TestMerge_Wrong(t *testing.T) {
	t.Parallel()
	second := evidence.File{First: 4, Last: 5}
	other := func(from int) (*record, string) {
		o, other := object(), newRecord(t)
		other.happen(8)
		other.events[from-1].Detail = "another one"
		other.rehash(from - 1)
		other.keep(t, o, 4, 5)
		return other, contents(t, o)[o.Key(second)]
	}
	lost, lostText := other(4)
	known := registry.EvidencePlaces{
		Lost: []registry.LostEvents{{ObjectID: ark, After: 3, To: 5, Hash: lost.hash(5)}},
		Keys: []registry.ReceiptKey{{ID: lost.trusted()[0].ID(), PublicKey: lost.trusted()[0].String()}},
	}
	for name, text := range map[string]func(string) string{
		"damaged": func(text string) string { return strings.Replace(text, `"id":"id5"`, `"id":"id6"`, 1) },
		"other": func(string) string {
			_, text := other(3)
			return text
		},
		"accepted": func(string) string { return lostText },
	} {
		r, o := newRecord(t), object()
		r.files = 1
		r.segments(t, o, 1, 2, 3)
		put(t, o, second, text(contents(t, o)[o.Key(second)]))
		left, err := evidence.Merge(t.Context(), r, known, r.sign, 2, o)
		want := []string{"events-0000000003-0000000008.jsonl", second.String(), "v1.receipt.jsonl"}
		if diff := cmp.Diff(want, names(t, o)); diff != "" || (err == nil) != (name == "accepted") || left != 2 {
			t.Errorf("%s: %d left, %v (-want +got):\n%s", name, left, err, diff)
		}
	}
	r, o := newRecord(t), object()
	r.files = 1
	r.segments(t, o, 1, 1, 1)
	r.events[3].Detail = "forged"
	before := names(t, o)
	if _, err := evidence.Merge(t.Context(), r, registry.EvidencePlaces{}, r.sign, 2, o); !errors.Is(err, evidence.ErrChanged) || !cmp.Equal(before, names(t, o)) {
		t.Errorf("a changed record: %v, %q", err, names(t, o))
	}
}

// TestMerge_Many: however many segments come, few are left, and each event is written a few times.
func TestMerge_Many(t *testing.T) {
	t.Parallel()
	r, o := newRecord(t), object()
	r.files = 1
	r.segments(t, o)
	var written, count int64
	for i := range 600 {
		first := r.last() + 1
		r.happen(1)
		r.keep(t, o, first, r.last())
		written, count = written+1, count+1
		files, err := o.List(t.Context())
		must(t, err)
		before := fmt.Sprint(files.Segments)
		left, err := evidence.Merge(t.Context(), r, registry.EvidencePlaces{}, r.sign, 16, o)
		must(t, err)
		if files, err = o.List(t.Context()); err != nil || left != len(files.Segments) || left > 16 {
			t.Fatalf("%d segments after %d, told %d: %v", len(files.Segments), i+1, left, err)
		}
		if fmt.Sprint(files.Segments) != before {
			newest := files.Segments[len(files.Segments)-1]
			written += newest.Last - newest.First + 1
		}
	}
	if written > 8*count {
		t.Errorf("%d events were written for %d", written, count)
	}
	t.Logf("%d events were written for %d", written, count)
}
