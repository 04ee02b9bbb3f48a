package evidence_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

const ark = "ark:/99999/fk4x"

// record is what a Registry knows of an object: versions of a file more each, with chained events.
type record struct {
	key      *receipt.Key
	receipts map[int]registry.DepositReceipt
	events   []registry.Premis
	files    int // of a version, besides its number
}

func newRecord(t testing.TB) *record {
	t.Helper()
	key, err := receipt.ParseKey("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	if err != nil {
		t.Fatal(err)
	}
	return &record{key: key, receipts: map[int]registry.DepositReceipt{}, files: 1200}
}

func (r *record) trusted() []receipt.PublicKey { return []receipt.PublicKey{r.key.Public()} }

// hash is the hash of an event.
func (r *record) hash(seq int64) string {
	if seq == 0 {
		return receipt.Zero
	}
	return r.events[seq-1].Hash
}

func (r *record) last() int64 { return int64(len(r.events)) }

// happen adds events to the chain.
func (r *record) happen(n int) {
	for range n {
		seq := r.last() + 1
		e := registry.Premis{ID: fmt.Sprint("id", seq), ObjectID: ark, Type: "fixity check", At: time.Unix(seq, 0), Outcome: "success", Seq: seq}
		e.Hash = receipt.EventOf(e).Hash(r.hash(seq - 1))
		r.events = append(r.events, e)
	}
}

// rehash makes the chain right again after an event was changed.
func (r *record) rehash(from int) {
	for i := from; i < len(r.events); i++ {
		r.events[i].Hash = receipt.EventOf(r.events[i]).Hash(r.hash(int64(i)))
	}
}

// version records a version whose receipt has all events since the one before.
func (r *record) version(t testing.TB) int {
	t.Helper()
	v := len(r.receipts) + 1
	r.happen(2)
	var m receipt.Manifest
	files, _ := r.Files(t.Context(), ark, v, "", 1<<20)
	for _, f := range files {
		m.Add(receipt.FileOf(f, receipt.Format))
	}
	first := r.receipts[v-1].LastEvent + 1
	h := receipt.Header{
		Object: ark, Version: v, Files: m.Files, Bytes: m.Bytes, Manifest: m.Digest(),
		Events: receipt.Span{First: first, Count: r.last() - first + 1, Before: r.hash(first - 1), After: r.hash(r.last())},
	}
	kept := registry.DepositReceipt{ObjectID: ark, Version: v, FirstEvent: first, LastEvent: r.last()}
	if kept.Head, kept.Signature = r.key.Sign(h); r.key == nil {
		kept.Head, kept.Signature = receipt.Unsigned(h), nil
	}
	r.receipts[v] = kept
	return v
}

func (r *record) DepositReceipt(_ context.Context, _ string, version int) (registry.DepositReceipt, error) {
	kept, ok := r.receipts[version]
	if !ok {
		return kept, registry.ErrNotFound
	}
	return kept, nil
}

func (r *record) Files(_ context.Context, _ string, version int, after string, limit int) (out []registry.File, err error) {
	for i := range r.files + version {
		path := fmt.Sprintf("producer/%05d", i)
		if path > after && len(out) < limit {
			out = append(out, registry.File{Path: path, ContentPath: "v1/content/" + path, SizeBytes: 1, Digests: map[string]string{"sha512": "aa"}, Version: 1})
		}
	}
	return out, nil
}

func (r *record) PremisEvents(_ context.Context, _, after string, limit int) (page registry.Page[registry.Premis], err error) {
	var seq int64
	_, _ = fmt.Sscanf(after, "%d.", &seq)
	rest := sort.Search(len(r.events), func(i int) bool { return r.events[i].Seq > seq })
	page.Rows = r.events[rest:min(len(r.events), rest+min(limit, 3))] // a server may give fewer
	return page, nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// keep keeps events in a segment.
func (r *record) keep(t testing.TB, o evidence.Object, first, last int64) {
	t.Helper()
	must(t, evidence.KeepEvents(t.Context(), r, r.sign, first, last, o))
}

// sign is an evidence.Signer.
func (r *record) sign(_ context.Context, id string, first, last int64) ([]byte, error) {
	if last > r.last() {
		return nil, registry.ErrNotFound
	}
	return r.key.SignEvents(receipt.EventsHeader{Object: id, Events: receipt.Span{First: first, Count: last - first + 1, Before: r.hash(first - 1), After: r.hash(last)}}), nil
}

func object() evidence.Object {
	return evidence.Object{Store: storagetest.NewMemory(), Folder: "ab/object", ID: ark}
}

// read reads all evidence. It returns what a rebuild would know.
func read(t testing.TB, o evidence.Object, keys []receipt.PublicKey) (*evidence.Report, string) {
	t.Helper()
	files, err := o.List(t.Context())
	must(t, err)
	var events []int64
	versions := map[int]int{}
	report, err := o.Read(t.Context(), files, evidence.Reader{
		Keys:    keys,
		Receipt: func(h receipt.Header) error { versions[h.Version] = 0; return nil },
		File:    func(version int, _ receipt.File) error { versions[version]++; return nil },
		Event:   func(e receipt.Event, _ string) error { events = append(events, e.Seq); return nil },
	})
	must(t, err)
	return report, fmt.Sprint(versions, " ", events)
}

func names(t testing.TB, o evidence.Object) (out []string) {
	t.Helper()
	for info, err := range o.Store.List(t.Context(), o.Folder+"/") {
		must(t, err)
		out = append(out, strings.TrimPrefix(info.Key, o.Folder+"/extensions/holdfast-evidence/"))
	}
	return out
}

// TestKept: what is kept beside the bytes says all that the record says, in whichever files it is.
func TestKept(t *testing.T) {
	t.Parallel()
	r, o, second := newRecord(t), object(), object()
	must(t, evidence.KeepReceipts(t.Context(), r, r.version(t), o, second))
	r.happen(5)
	r.keep(t, o, 3, 4)
	r.keep(t, o, 5, 7)
	const before = "map[1:1201] [1 2 3 4 5 6 7]"
	if report, got := read(t, o, r.trusted()); !report.Valid() || got != before || report.Last != 7 || report.Hash != r.hash(7) || report.Unsigned+report.Untrusted > 0 {
		t.Errorf("%+v\n%s", report, got)
	}
	r.keep(t, o, 3, 7) // merged, and the parts are there still
	if report, got := read(t, o, nil); !report.Valid() || got != before || report.Untrusted != 2 {
		t.Errorf("merged: %+v\n%s", report, got)
	}
	must(t, o.Store.Delete(t.Context(), o.Key(evidence.File{First: 3, Last: 4})))
	if report, got := read(t, o, r.trusted()); !report.Valid() || got != before {
		t.Errorf("a part removed: %+v\n%s", report, got)
	}
	must(t, evidence.KeepReceipts(t.Context(), r, r.version(t), o))
	r.happen(1)
	r.keep(t, o, 10, 10)
	if report, got := read(t, o, r.trusted()); !report.Valid() || got != "map[1:1201 2:1202] [1 2 3 4 5 6 7 8 9 10]" {
		t.Errorf("a second version: %+v\n%s", report, got)
	}
	want := []string{"events-0000000003-0000000007.jsonl", "events-0000000005-0000000007.jsonl", "events-0000000010-0000000010.jsonl", "v1.receipt.jsonl", "v2.receipt.jsonl"}
	if diff := cmp.Diff(want, names(t, o)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"v1.receipt.jsonl"}, names(t, second)); diff != "" {
		t.Errorf("files of the other storage (-want +got):\n%s", diff)
	}
	must(t, evidence.KeepReceipts(t.Context(), r, 3, o, second)) // the third version has none
	if report, got := read(t, second, r.trusted()); !report.Valid() || got != "map[1:1201 2:1202] [1 2 3 4 5 6 7 8 9]" {
		t.Errorf("the other storage, which has no segments: %+v\n%s", report, got)
	}
}

// TestKept_Unsigned: without a key there is the same evidence, which says that nobody signed it.
func TestKept_Unsigned(t *testing.T) {
	t.Parallel()
	r, o := newRecord(t), object()
	trusted := r.trusted()
	v := r.version(t)
	kept := r.receipts[v]
	h, err := receipt.ParseHeader(kept.Head)
	must(t, err)
	kept.Head, kept.Signature, r.key = receipt.Unsigned(h), nil, nil
	r.receipts[v] = kept
	must(t, evidence.KeepReceipts(t.Context(), r, v, o))
	r.happen(1)
	r.keep(t, o, 3, 3)
	if report, got := read(t, o, nil); !report.Valid() || report.Unsigned != 2 || got != "map[1:1201] [1 2 3]" {
		t.Errorf("%+v\n%s", report, got)
	}
	if report, _ := read(t, o, trusted); report.Valid() || report.Total != 2 {
		t.Errorf("with a key: %+v", report)
	}
}

// TestKept_DiesAnywhere: a receipt and a segment are there whole or not at all, wherever a call dies,
// and a repeat writes the same bytes.
func TestKept_DiesAnywhere(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	v := r.version(t)
	r.happen(3)
	whole := object()
	do := func(o evidence.Object) error {
		return errors.Join(evidence.KeepReceipts(t.Context(), r, v, o), evidence.KeepEvents(t.Context(), r, r.sign, 3, 5, o))
	}
	must(t, do(whole))
	want := contents(t, whole)
	for _, dieAt := range []func(*storagetest.Faulty, int){(*storagetest.Faulty).DieAt, (*storagetest.Faulty).DieAfter} {
		for n := 1; ; n++ {
			o := object()
			memory := o.Store
			faulty := storagetest.NewFaulty(memory)
			dieAt(faulty, n)
			o.Store = faulty
			died := do(o)
			o.Store = memory
			for name, text := range contents(t, o) {
				if text != want[name] {
					t.Fatalf("killed at call %d: %s has %d bytes, want %d", n, name, len(text), len(want[name]))
				}
			}
			must(t, do(o))
			if diff := cmp.Diff(want, contents(t, o)); diff != "" {
				t.Fatalf("repeated after a kill at call %d (-want +got):\n%s", n, diff)
			}
			if died == nil {
				break
			}
		}
	}
}

func contents(t testing.TB, o evidence.Object) map[string]string {
	t.Helper()
	out := map[string]string{}
	for info, err := range o.Store.List(t.Context(), "") {
		must(t, err)
		text, err := storage.ReadAll(t.Context(), o.Store, info.Key, 1<<20)
		must(t, err)
		out[info.Key] = string(text)
	}
	return out
}

// TestKept_ChangedRecord: a record that is not what was signed is not written beside the bytes.
func TestKept_ChangedRecord(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*record){
		"a file more":   func(r *record) { r.files++ },
		"another event": func(r *record) { r.events[0].Detail = "forged" },
		"an event less": func(r *record) { r.events = r.events[:1] },
	} {
		r, o := newRecord(t), object()
		v := r.version(t)
		change(r)
		err := evidence.KeepReceipts(t.Context(), r, v, o)
		if !errors.Is(err, evidence.ErrChanged) || len(names(t, o)) > 0 {
			t.Errorf("%s: %v, and there are %q", name, err, names(t, o))
		}
	}
	for name, change := range map[string]func(*record){
		"a changed event":     func(r *record) { r.events[1].Detail = "forged" },
		"a changed hash":      func(r *record) { r.events[1].Hash = receipt.Zero },
		"an event in between": func(r *record) { r.events = append(r.events[:1], r.events[2:]...) },
		"a changed chain": func(r *record) {
			r.events[2].Detail = "forged"
			r.events[2].Hash = receipt.EventOf(r.events[2]).Hash(r.hash(2))
		},
	} {
		r, o := newRecord(t), object()
		r.happen(4)
		head, err := r.sign(t.Context(), ark, 1, 3)
		must(t, err)
		change(r)
		sign := func(context.Context, string, int64, int64) ([]byte, error) { return head, nil }
		if err := evidence.KeepEvents(t.Context(), r, sign, 1, 3, o); !errors.Is(err, evidence.ErrChanged) || len(names(t, o)) > 0 {
			t.Errorf("%s: %v, and there are %q", name, err, names(t, o))
		}
	}
}

// put writes a file of evidence anew.
func put(t testing.TB, o evidence.Object, f evidence.File, text string) {
	t.Helper()
	must(t, o.Store.Delete(t.Context(), o.Key(f)))
	putAt(t, o, o.Key(f), text)
}

func putAt(t testing.TB, o evidence.Object, key, text string) {
	t.Helper()
	_, err := storage.Put(t.Context(), o.Store, key, []byte(text))
	must(t, err)
}

// TestRead_Damaged: each damage is told, with the file that has it, and the rest is read.
func TestRead_Damaged(t *testing.T) {
	t.Parallel()
	first, long := evidence.File{Version: 1}, evidence.File{First: 3, Last: 7}
	tests := map[string]struct {
		damage    func(t *testing.T, r *record, o evidence.Object)
		file      string
		says, got string
	}{
		"a changed file in a receipt": {func(t *testing.T, _ *record, o evidence.Object) {
			put(t, o, first, strings.Replace(contents(t, o)[o.Key(first)], `"sha512":"aa"`, `"sha512":"ab"`, 1))
		}, first.String(), "list of files was changed", "[1 2 3 4 5 6 7 8 9]"},
		"a changed event in a segment, whose others are taken": {func(t *testing.T, _ *record, o evidence.Object) {
			put(t, o, long, strings.Replace(contents(t, o)[o.Key(long)], `"id":"id5"`, `"id":"id6"`, 1))
		}, long.String(), "it was changed", "[1 2 3 4 6 7 8 9]"},
		"no receipt": {func(t *testing.T, _ *record, o evidence.Object) {
			must(t, o.Store.Delete(t.Context(), o.Key(first)))
		}, "", "events 1 to 2 are missing", "[3 4 5 6 7 8 9]"},
		"a segment cut off, and another that has its end": {func(t *testing.T, r *record, o evidence.Object) {
			text := contents(t, o)[o.Key(long)]
			put(t, o, long, text[:strings.Index(text, `"id":"id6"`)])
			r.keep(t, o, 6, 7)
		}, long.String(), "cut off", "[1 2 3 4 5 6 7 8 9]"},
		"a segment under another name": {func(t *testing.T, _ *record, o evidence.Object) {
			put(t, o, evidence.File{First: 3, Last: 8}, contents(t, o)[o.Key(long)])
		}, "events-0000000003-0000000008.jsonl", "it is of events 3 to 7", "[1 2 3 4 5 6 7 8 9]"},
		"another object's": {func(t *testing.T, r *record, o evidence.Object) {
			other := o
			other.ID = "ark:/99999/fk4y"
			must(t, o.Store.Delete(t.Context(), o.Key(long)))
			r.keep(t, other, 3, 7)
		}, long.String(), "another object", "[1 2 8 9]"},
		"another chain": {func(t *testing.T, _ *record, o evidence.Object) {
			other := newRecord(t)
			other.happen(2)
			other.events[1].Detail = "forged"
			other.events[1].Hash = receipt.EventOf(other.events[1]).Hash(other.hash(1))
			other.happen(5)
			put(t, o, long, "")
			must(t, o.Store.Delete(t.Context(), o.Key(long)))
			other.keep(t, o, 3, 7)
		}, long.String(), "another hash", "[1 2 3 4 5 6 7 8 9]"},
		"an endless line": {func(t *testing.T, _ *record, o evidence.Object) {
			put(t, o, long, strings.Repeat("x", 2<<20))
		}, long.String(), "longer than", "[1 2 8 9]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, o := newRecord(t), object()
			must(t, evidence.KeepReceipts(t.Context(), r, r.version(t), o))
			r.happen(5)
			r.keep(t, o, 3, 7)
			r.happen(2)
			r.keep(t, o, 8, 9)
			tt.damage(t, r, o)
			report, got := read(t, o, r.trusted())
			found := slices.ContainsFunc(report.Faults, func(f evidence.Fault) bool { return f.File == tt.file && strings.Contains(f.Error(), tt.says) })
			if report.Valid() || !found || !strings.HasSuffix(got, tt.got) {
				t.Errorf("%v, want one of %q that says %q\n%s, want %s", report.Faults, tt.file, tt.says, got, tt.got)
			}
		})
	}
}

// TestRead_Stopped: the error of a function ends the reading.
func TestRead_Stopped(t *testing.T) {
	t.Parallel()
	r, o := newRecord(t), object()
	must(t, evidence.KeepReceipts(t.Context(), r, r.version(t), o))
	files, err := o.List(t.Context())
	must(t, err)
	stop := errors.New("stop")
	for name, reader := range map[string]evidence.Reader{
		"receipt": {Receipt: func(receipt.Header) error { return stop }},
		"file":    {File: func(int, receipt.File) error { return stop }},
		"event":   {Event: func(receipt.Event, string) error { return stop }},
	} {
		if _, err := o.Read(t.Context(), files, reader); !errors.Is(err, stop) {
			t.Errorf("%s: %v", name, err)
		}
	}
	faulty := storagetest.NewFaulty(o.Store)
	faulty.DieAt(1)
	o.Store = faulty
	if _, err := o.Read(t.Context(), files, evidence.Reader{}); !errors.Is(err, storagetest.ErrDead) {
		t.Errorf("a store that fails: %v", err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]evidence.File{
		"v1.receipt.jsonl": {Version: 1}, "v120.receipt.jsonl": {Version: 120},
		"events-0000000041-0000000060.jsonl": {First: 41, Last: 60}, "events-0000000001-12345678901.jsonl": {First: 1, Last: 12345678901},
	} {
		if got, ok := evidence.Parse(name); !ok || got != want || !evidence.Known("extensions/holdfast-evidence/"+name) {
			t.Errorf("%s: %+v %v", name, got, ok)
		}
	}
	for _, bad := range []string{
		"", "v0.receipt.jsonl", "v01.receipt.jsonl", "v1.receipt", "v1.receipt.jsonl.tmp", "events-1-2.jsonl", "events-0000000002-0000000001.jsonl",
		"events-0000000000-0000000001.jsonl", "v99999999999999999999.receipt.jsonl", "sub/v1.receipt.jsonl", "events-00000000001-0000000002.jsonl",
	} {
		if got, ok := evidence.Parse(bad); ok || evidence.Known("extensions/holdfast-evidence/"+bad) {
			t.Errorf("%q was taken for %+v", bad, got)
		}
	}
	o := object()
	for _, key := range []string{"v1.receipt.jsonl", "note.txt"} {
		_, err := storage.Put(t.Context(), o.Store, o.Folder+"/extensions/holdfast-evidence/"+key, nil)
		must(t, err)
	}
	files, err := o.List(t.Context())
	must(t, err)
	if diff := cmp.Diff(evidence.Files{Receipts: []int{1}, Foreign: []string{"note.txt"}}, files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzParse: a name that is taken for a file of evidence is that file's name.
func FuzzParse(f *testing.F) {
	f.Add("v1.receipt.jsonl")
	f.Add("events-0000000041-0000000060.jsonl")
	f.Fuzz(func(t *testing.T, name string) {
		if got, ok := evidence.Parse(name); ok && got.String() != name {
			t.Errorf("%q was taken for %q", name, got)
		}
	})
}

// FuzzRead: whatever lies in the folder, Read ends, gives each event once, in order, and calls
// nothing valid but one unbroken chain.
func FuzzRead(f *testing.F) {
	r, o := newRecord(f), object()
	r.files = 1
	must(f, evidence.KeepReceipts(f.Context(), r, r.version(f), o))
	r.happen(2)
	r.keep(f, o, 3, 4)
	texts := contents(f, o)
	one, two := texts[o.Key(evidence.File{Version: 1})], texts[o.Key(evidence.File{First: 3, Last: 4})]
	f.Add([]byte(one), []byte(two), []byte(two))
	f.Add([]byte(two), []byte(one), []byte{})
	f.Fuzz(func(t *testing.T, one, two, three []byte) {
		o := object()
		for file, text := range map[evidence.File][]byte{{Version: 1}: one, {First: 3, Last: 4}: two, {First: 2, Last: 9}: three} {
			put(t, o, file, string(text))
		}
		files, err := o.List(t.Context())
		must(t, err)
		last, count := int64(0), int64(0)
		report, err := o.Read(t.Context(), files, evidence.Reader{Event: func(e receipt.Event, hash string) error {
			if e.Seq <= last || len(hash) != len(receipt.Zero) {
				t.Fatalf("event %d after %d, with hash %q", e.Seq, last, hash)
			}
			last = e.Seq
			count++
			return nil
		}})
		must(t, err)
		if report.Valid() && count != report.Last {
			t.Fatalf("%d events, and the last is %d: %+v", count, report.Last, report)
		}
	})
}

// TestWriteReceipt: it gives the bytes that Verify takes.
func TestWriteReceipt(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	var out bytes.Buffer
	must(t, evidence.WriteReceipt(t.Context(), &out, r, r.receipts[r.version(t)]))
	got, err := receipt.Verify(&out, receipt.Options{Keys: r.trusted()})
	must(t, err)
	if !got.Valid() || got.Files != 1201 || got.Events != 2 {
		t.Errorf("%+v", got)
	}
}
