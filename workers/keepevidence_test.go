package workers_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/evidence/keep"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// keeper writes events into the storages.
func (p *pair) keeper(within time.Duration) *keep.Keeper {
	return &keep.Keeper{Registry: p.registry, Objects: p.deps.Objects, Within: within}
}

// evidenceIn reads the evidence of the object in a storage: its files and the number of its last event.
func (p *pair) evidenceIn(storage string) (names []string, last int64) {
	p.t.Helper()
	o, err := evidence.In(p.roots[storage], p.object.ID, registry.Place{})
	must(p.t, err)
	files, err := o.List(p.t.Context())
	must(p.t, err)
	report, err := o.Read(p.t.Context(), files, evidence.Reader{})
	must(p.t, err)
	if !report.Valid() || report.Unsigned > 0 {
		p.t.Errorf("evidence in %s: %+v", storage, report)
	}
	for _, v := range files.Receipts {
		names = append(names, evidence.File{Version: v}.String())
	}
	for _, f := range files.Segments {
		names = append(names, f.String())
	}
	return names, report.Last
}

// allIn checks that a storage has all events of the object.
func (p *pair) allIn(storage string) {
	p.t.Helper()
	want, err := p.registry.EvidencePlaces(p.t.Context(), p.object.ID)
	must(p.t, err)
	if names, last := p.evidenceIn(storage); last != want.Last {
		p.t.Errorf("in %s the evidence ends with event %d of %d: %q", storage, last, want.Last, names)
	}
}

// TestKeepEvidence: damage and its mend are written at once, what is routine waits, and a new version
// repeats nothing.
func TestKeepEvidence(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	const within = 30 * 24 * time.Hour
	keep := func() {
		t.Helper()
		must(t, p.keeper(within).Make(t.Context()))
	}
	see := func(want ...string) {
		t.Helper()
		keep()
		for name := range p.roots {
			names, _ := p.evidenceIn(name)
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("evidence in %s (-want +got):\n%s", name, diff)
			}
		}
	}
	_, last := p.evidenceIn(first)
	segment := func(from, to int64) string { return evidence.File{First: last + from, Last: last + to}.String() }
	see("v1.receipt.jsonl")
	p.check(aContent)
	see("v1.receipt.jsonl")
	must(t, damage["cut"](p.file(second, aContent)))
	p.check(aContent)
	see("v1.receipt.jsonl", segment(1, 3))
	p.check(aContent)
	see("v1.receipt.jsonl", segment(1, 3))
	p.wait(within)
	see("v1.receipt.jsonl", segment(1, 3), segment(4, 4))
	p.check(aContent)
	p.complete(p.jobTo("pair", registry.Spec{
		Type: registry.FileType, Mode: registry.Update, URL: p.site.put("b.txt", "more"), Filename: "b.txt", PrimaryID: p.object.ID,
	}))
	p.wait(within)
	see("v1.receipt.jsonl", "v2.receipt.jsonl", segment(1, 3), segment(4, 4))
	page, err := p.registry.WaitingEvidence(t.Context(), registry.WaitingQuery{})
	must(t, err)
	if len(page.Rows) > 0 {
		t.Errorf("still waiting: %+v", page.Rows)
	}
}

// TestKeepEvidence_DiesAnywhere: wherever writing and merging die, each storage has whole files of one
// chain, and the next round writes what is missing.
func TestKeepEvidence_DiesAnywhere(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	whole := p.deps.Objects
	var stores []*storagetest.Faulty
	var faulty ocfl.Roots
	for _, root := range whole {
		s := storagetest.NewFaulty(root.Store())
		stores = append(stores, s)
		faulty = append(faulty, ocfl.Named{Root: rootOf(t, s), Name: root.Name})
	}
	for range 10 { // so many that some of the rounds below merge
		p.check(aContent)
		must(t, p.keeper(0).Make(t.Context()))
	}
	for i, dieAt := range []func(*storagetest.Faulty, int){(*storagetest.Faulty).DieAt, (*storagetest.Faulty).DieAfter} {
		for n := 1; ; n++ {
			p.check(aContent)
			dieAt(stores[i], n)
			died := (&keep.Keeper{Registry: p.registry, Objects: faulty}).Make(t.Context())
			for j, root := range whole {
				stores[j] = storagetest.NewFaulty(root.Store())
				faulty[j].Root = rootOf(t, stores[j])
			}
			for name := range p.roots {
				p.evidenceIn(name)
			}
			must(t, p.keeper(0).Make(t.Context()))
			for name := range p.roots {
				p.allIn(name)
			}
			if died == nil {
				break
			}
			if !errors.Is(died, storagetest.ErrDead) {
				t.Fatalf("killed at call %d: %v", n, died)
			}
		}
	}
}

// TestKeepEvidence_TwoAtOnce: several processes that write at once disturb each other in nothing.
func TestKeepEvidence_TwoAtOnce(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for range 20 {
		p.check(aContent)
		var writing sync.WaitGroup
		for range 3 {
			writing.Go(func() {
				if err := p.keeper(0).Make(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		writing.Wait()
	}
	for name := range p.roots {
		p.allIn(name)
		if names, _ := p.evidenceIn(name); len(names) > 18 {
			t.Errorf("%d files in %s", len(names), name)
		}
	}
}

// TestKeepEvidence_StorageAway: a storage that is not there gets its events later, and the other one
// does not wait for it.
func TestKeepEvidence_StorageAway(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.check(aContent)
	mark := strings.TrimSuffix(p.folders[second], strings.TrimPrefix(p.folders[first], p.folder+"/storage")) + "/0=ocfl_1.1"
	must(t, os.Rename(mark, mark+".away"))
	if err := p.keeper(0).Make(t.Context()); err == nil || !strings.Contains(err.Error(), "storage second") {
		t.Errorf("a storage is not there: %v", err)
	}
	p.allIn(first)
	if names, _ := p.evidenceIn(second); len(names) != 1 {
		t.Errorf("written into a storage that is not there: %q", names)
	}
	must(t, os.Rename(mark+".away", mark))
	must(t, p.keeper(0).Make(t.Context()))
	p.allIn(second)
}

// TestKeepEvidence_Deleted: what a writer that was slower than the deletion left is removed.
func TestKeepEvidence_Deleted(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.check(aContent)
	must(t, p.keeper(0).Make(t.Context()))
	o, err := evidence.In(p.roots[second], p.object.ID, registry.Place{})
	must(t, err)
	files, err := o.List(t.Context())
	must(t, err)
	text, err := storage.ReadAll(t.Context(), o.Store, o.Key(files.Segments[0]), 1<<20)
	must(t, err)
	if it := p.advance(p.deletion(p.object), ""); it.Status != registry.Completed {
		t.Fatalf("the deletion is %s: %s", it.Status, it.Note)
	}
	_, err = storage.Put(t.Context(), o.Store, o.Key(files.Segments[0]), text)
	must(t, err)
	must(t, p.keeper(0).Make(t.Context()))
	if files, err = o.List(t.Context()); err != nil || len(files.Segments) > 0 {
		t.Errorf("left of a deleted object: %v, %v", files, err)
	}
	page, err := p.registry.WaitingEvidence(t.Context(), registry.WaitingQuery{})
	must(t, err)
	if len(page.Rows) > 0 {
		t.Errorf("still waiting: %+v", page.Rows)
	}
}

// altered is a Registry whose list of files says something else than it said when the receipt was made.
type altered struct{ registry.ForWorkers }

func (a altered) Files(ctx context.Context, objectID string, version int, after string, limit int) ([]registry.File, error) {
	files, err := a.ForWorkers.Files(ctx, objectID, version, after, limit)
	for i := range files {
		files[i].SizeBytes++
	}
	return files, err
}

// TestRecord_ChangedRecord: a record that is not that of its receipt is nothing that another try mends.
func TestRecord_ChangedRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.fileTo(collection, "text", "local")
	r.advance(job, registry.Record)
	r.deps.Registry = altered{r.registry}
	defer func() { r.deps.Registry = r.registry }()
	if _, err := r.run(job); !errors.Is(err, evidence.ErrChanged) {
		t.Errorf("it ended with %v, want %v", err, evidence.ErrChanged)
	}
	if it := r.item(job); it.Status != registry.Failed || it.ErrorClass != registry.SystemFault {
		t.Errorf("the job is %s, %s: %s", it.Status, it.ErrorClass, it.Note)
	}
}
