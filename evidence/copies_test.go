package evidence_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
)

// TestCompare: a file that is damaged or missing in one storage is read from another.
func TestCompare(t *testing.T) {
	t.Parallel()
	r, first, second := newRecord(t), object(), object()
	must(t, evidence.KeepReceipts(t.Context(), r, r.version(t), first, second))
	r.happen(2)
	r.keep(t, first, 3, 4)
	must(t, evidence.KeepReceipts(t.Context(), r, r.version(t), first, second))
	r.happen(1)
	r.keep(t, second, 7, 7)
	key := first.Key(evidence.File{Version: 1})
	text, err := storage.ReadAll(t.Context(), first.Store, key, 1<<20)
	must(t, err)
	must(t, first.Store.Replace(t.Context(), key, bytes.Replace(text, []byte("producer/00000"), []byte("producer/0000x"), 1)))
	copies, err := evidence.Compare(t.Context(), ark, r.trusted(), evidence.Fork{}, first, second)
	must(t, err)
	got := ""
	for _, c := range copies.Copies {
		got += fmt.Sprint(len(c.Faults) > 0, c.Missing, " ")
	}
	if want := "true [events-0000000007-0000000007.jsonl] false [] "; got != want || !copies.Right(1) || !copies.Right(2) || copies.Right(3) {
		t.Errorf("verdicts %s, want %s; %v", got, want, copies)
	}
	var seen []int64
	files := map[int]int{}
	report, err := copies.Read(t.Context(), evidence.Reader{
		Keys: r.trusted(),
		Head: func(version int, head string, signature []byte) error {
			if kept := r.receipts[version]; kept.Head != head || !bytes.Equal(kept.Signature, signature) {
				t.Errorf("version %d has the head %s", version, head)
			}
			return nil
		},
		File:  func(version int, _ receipt.File) error { files[version]++; return nil },
		Event: func(e receipt.Event, _ string) error { seen = append(seen, e.Seq); return nil },
	})
	must(t, err)
	if diff := cmp.Diff([]int64{1, 2, 3, 4, 5, 6, 7}, seen); diff != "" || !report.Valid() || files[1] != 1201 || files[2] != 1202 {
		t.Errorf("events (-want +got):\n%s\n%v %+v", diff, files, report)
	}
	r.keep(t, second, 3, 7) // other segments of the same events
	copies, err = evidence.Compare(t.Context(), ark, r.trusted(), evidence.Fork{}, first, second)
	must(t, err)
	if got := fmt.Sprint(copies.Copies[0].Missing, copies.Copies[1].Missing); got != "[events-0000000003-0000000007.jsonl events-0000000007-0000000007.jsonl] []" {
		t.Errorf("missing %s", got)
	}
	r.keep(t, first, 5, 7)
	copies, err = evidence.Compare(t.Context(), ark, r.trusted(), evidence.Fork{}, first, second)
	must(t, err)
	if got := fmt.Sprint(copies.Copies[0].Missing, copies.Copies[1].Missing); got != "[] []" {
		t.Errorf("missing %s, though both have all events", got)
	}
	lone, err := evidence.Compare(t.Context(), ark, r.trusted(), evidence.Fork{}, first)
	must(t, err)
	if lone.Right(1) || !lone.Right(2) {
		t.Error("a damaged receipt counts as right")
	}
}

// TestCompare_Untrusted: with trusted keys no event counts for which no file vouches that one of them signed. One that
// such a file follows does, because the chain of hashes covers it.
func TestCompare_Untrusted(t *testing.T) {
	t.Parallel()
	other, err := receipt.ParseKey(receipt.NewKey())
	must(t, err)
	for name, key := range map[string]*receipt.Key{"another key": other, "nobody": nil} {
		r, o := newRecord(t), object()
		r.happen(3)
		must(t, evidence.KeepReceipts(t.Context(), r, r.version(t), o))
		signed, own := r.last(), r.key
		keep := func(by *receipt.Key, n int64) {
			r.happen(int(n))
			r.key = by
			r.keep(t, o, r.last()-n+1, r.last())
			r.key = own
		}
		counts := func(keys []receipt.PublicKey, want int64) {
			t.Helper()
			c, err := evidence.Compare(t.Context(), ark, keys, evidence.Fork{}, o)
			must(t, err)
			var last int64
			report, err := c.Read(t.Context(), evidence.Reader{Event: func(e receipt.Event, _ string) error { last = e.Seq; return nil }})
			must(t, err)
			if last != want || report.Last != want || c.Ends() > want {
				t.Errorf("%s, %d keys: event %d of %d counts, want %d; the report ends with %d, the segments with %d", name, len(keys), last, r.last(), want, report.Last, c.Ends())
			}
		}
		keep(key, 2)
		counts(r.trusted(), signed)
		counts(nil, r.last())
		keep(own, 1)
		counts(r.trusted(), r.last())
	}
}
