package workers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/clamd/clamdtest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers"
)

// fickle is a staging area that gives some of its readers other bytes than were staged.
type fickle struct {
	storage.Store
	word     string // in the keys of the files in question
	from, to int    // the openings that get them, counted from 1; to is the first that does not
	forge    func(was []byte) []byte

	mu    sync.Mutex
	opens int
}

func (s *fickle) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	s.mu.Lock()
	forged := false
	if strings.Contains(key, s.word) {
		s.opens++
		forged = s.opens >= s.from && s.opens < s.to
	}
	s.mu.Unlock()
	if !forged {
		return s.Store.Open(ctx, key, offset, length)
	}
	in, err := s.Store.Open(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	was, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	now := s.forge(was)
	if offset > int64(len(now)) {
		return nil, storage.ErrRange
	}
	now = now[offset:]
	if length >= 0 {
		now = now[:min(length, int64(len(now)))]
	}
	return io.NopCloser(bytes.NewReader(now)), nil
}

func replaced(old, by string) func([]byte) []byte {
	return func(was []byte) []byte { return bytes.ReplaceAll(was, []byte(old), []byte(by)) }
}

// Rows become jobs for good, so no row may differ from the judged manifest, whichever reading of it
// returns other bytes.
func TestR06_NoForgedRowBecomesAJob(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 4; at++ {
		r := newRig(t, nil)
		var rows []checkm.Row
		for i := range 450 {
			rows = append(rows, checkm.Row{URL: r.site.put("a", "alpha"), Name: fmt.Sprintf("true-%03d", i)})
		}
		batch := r.submit(registry.Spec{Type: registry.SingleFileBatch, Filename: "m", URL: r.site.manifest("m", checkm.FileBatch, rows...)})
		staged := r.deps.Staging
		r.deps.Staging = &fickle{Store: staged, word: ".manifest", from: at, to: at + 1, forge: replaced("true-", "evil-")}
		for range 3 {
			if _, err := r.run(batch); err == nil {
				break
			}
			r.wait(2 * time.Hour)
		}
		jobs := r.jobs(batch)
		if len(jobs) != len(rows) {
			t.Errorf("reading %d: %d jobs, want %d", at, len(jobs), len(rows))
		}
		if i := slices.IndexFunc(jobs, func(j registry.WorkItem) bool { return strings.HasPrefix(j.Name, "evil-") }); i >= 0 {
			t.Errorf("reading %d: %s became a job", at, jobs[i].Name)
		}
	}
}

// The unpacked files are those of the submitted container, whichever readings return other bytes.
func TestR06_ContainerIsTheSameInEachReading(t *testing.T) {
	t.Parallel()
	for kind, pack := range map[string]func(testing.TB, map[string]string) string{"zip": zipOf, "tar": tarOf} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			staged := r.deps.Staging
			want := map[string]string{"a.txt": "alpha 1", "b.txt": "beta 1"}
			forged := pack(t, map[string]string{"a.txt": "alpha 2", "b.txt": "beta 2"})
			if len(forged) != len(pack(t, want)) {
				t.Fatal("the forged one has another size")
			}
			for from := 1; from <= 4; from++ {
				for to := from + 1; to <= 6; to++ {
					r.deps.Staging = staged
					id := r.job(registry.Spec{
						Type: registry.ContainerType, URL: r.site.put(fmt.Sprint(from, "-", to), pack(t, want)), Filename: "c",
					})
					r.advance(id, registry.Process)
					r.deps.Staging = &fickle{Store: staged, word: ".files", from: from, to: to, forge: func([]byte) []byte { return []byte(forged) }}
					if it := r.ends(id); it.Status != registry.Completed {
						t.Errorf("readings %d to %d: %s: %s", from, to-1, it.Status, it.Note)
					} else if diff := cmp.Diff(want, r.producer(r.object(id), 1)); diff != "" {
						t.Errorf("readings %d to %d: other bytes are preserved:\n%s", from, to-1, diff)
					}
				}
			}
		})
	}
}

// Files that an attempt unpacked from other bytes are dropped although the next one reads the right
// bytes.
func TestR06_UnpackingGoesOnWithTheSameBytes(t *testing.T) {
	t.Parallel()
	files := func(salt string) map[string]string {
		all := map[string]string{}
		for i := range manyFiles {
			all[fmt.Sprintf("f/%03d.txt", i)] = strings.Repeat(salt, 8<<10)
		}
		return all
	}
	r := newRig(t, nil)
	want, forged := files("a"), tarOf(t, files("b"))
	id := r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c.tar", tarOf(t, want)), Filename: "c.tar"})
	r.advance(id, registry.Process)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	staged := r.deps.Staging
	r.deps.Staging = &tapped{
		Store: &fickle{Store: staged, word: ".files", from: 1, to: 1 << 30, forge: func([]byte) []byte { return []byte(forged) }},
		word:  ".unpacked/", interruptAfter: 150, interrupt: func(ctx context.Context) error {
			stop()
			<-ctx.Done()
			return ctx.Err()
		},
	}
	if _, err := r.runAs(ctx, id); err == nil {
		t.Fatal("it was not interrupted")
	}
	r.deps.Staging = staged
	if it := r.ends(id); it.Status != registry.Completed {
		t.Fatalf("%s: %s", it.Status, it.Note)
	}
	if got := r.producer(r.object(id), 1); got["f/000.txt"] != want["f/000.txt"] || !cmp.Equal(want, got) {
		t.Error("other bytes are preserved")
	}
}

// Rows of the inventory are permanent, so none may differ from the planned list.
func TestR06_NoForgedRowIsRecorded(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 600 {
		files[fmt.Sprintf("true/%03d", i)] = fmt.Sprint(i)
	}
	for at := 1; at <= 3; at++ {
		r := newRig(t, nil)
		id := r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c.zip", zipOf(t, files)), Filename: "c.zip"})
		r.advance(id, registry.Record)
		r.deps.Staging = &fickle{Store: r.deps.Staging, word: "version.jsonl", from: at, to: at + 1, forge: replaced("producer/true/", "producer/evil/")}
		if it := r.ends(id); it.Status != registry.Completed {
			t.Errorf("reading %d: %s: %s", at, it.Status, it.Note)
			continue
		}
		page, err := r.registry.Files(t.Context(), r.ark(id), 1, "producer/evil/", 1)
		must(t, err)
		if len(page) > 0 && strings.HasPrefix(page[0].Path, "producer/evil/") {
			t.Errorf("reading %d: %s is in the inventory", at, page[0].Path)
		}
	}
}

// A format is that of the preserved bytes, whichever readings of the files return others.
func TestR06_FormatIsOfTheStagedBytes(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 4; at++ {
		k := &knowing{asked: map[string]int{}}
		r := newRig(t, func(d *workers.Deps) { d.Identifier = k })
		id := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("a", "alpha"), Filename: "a"})
		r.advance(id, registry.Process)
		r.deps.Staging = &fickle{Store: r.deps.Staging, word: ".files", from: at, to: at + 1, forge: replaced("alpha", "forge")}
		it := r.ends(id)
		if it.Status != registry.Completed {
			t.Errorf("reading %d: %s: %s", at, it.Status, it.Note)
		} else if got := r.puids(r.object(id), 1)["a"]; got != "x-fmt/a" {
			t.Errorf("reading %d: format %s, want that of what is preserved", at, got)
		}
	}
}

// A list that names a clean file at every place does not make a later attempt skip an infected one.
func TestR06_NoFileIsTakenForScanned(t *testing.T) {
	t.Parallel()
	r := newScanRig(t, clamdtest.Start(t).Socket, nil, registry.Profile{})
	id := r.scannedJob(r.longList(checkm.Row{URL: r.site.put("b", "a "+clamdtest.Virus), Name: "infected"}))
	r.advance(id, registry.Scan)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	staged := r.deps.Staging
	swapped := &fickle{Store: staged, word: "files.jsonl", from: 1, to: 1 << 30, forge: func(was []byte) []byte {
		lines := bytes.SplitAfter(was, []byte("\n"))
		lines[0] = lines[1]
		return bytes.Join(lines, nil)
	}}
	r.deps.Staging = &stopAfter{Store: swapped, reads: 150, stop: stop}
	if _, err := r.runAs(ctx, id); err == nil {
		t.Fatal("it took the list")
	}
	r.deps.Staging = staged
	it := r.ends(id)
	isContent(t, it, "infected contains "+clamdtest.Signature)
	r.nothingStored()
}

// longList is a job of so many files that their list is stored. The rows given come first.
func (r *rig) longList(rows ...checkm.Row) registry.Spec {
	for i := range manyFiles {
		rows = append(rows, checkm.Row{URL: r.site.put("a", "alpha"), Name: fmt.Sprintf("clean-%03d", i)})
	}
	return registry.Spec{Type: registry.ObjectManifest, Filename: "m", URL: r.site.manifest("m", checkm.Object, rows...)}
}

// undigested is a Registry in which an earlier program has noted what was downloaded, once.
type undigested struct {
	registry.ForWorkers
	done bool
}

func (s *undigested) Settle(ctx context.Context, v registry.Settlement) (registry.Verdict, error) {
	var got map[string]any
	if raw := v.Results["download"]; !s.done && raw != nil && json.Unmarshal(raw, &got) == nil {
		s.done = true
		delete(got, "digest")
		v.Results["download"], _ = json.Marshal(got)
	}
	return s.ForWorkers.Settle(ctx, v)
}

// A list without a recorded digest, from an earlier program, is not trusted: Download writes it
// again.
func TestR06_ListWithoutADigestIsNotTrusted(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	id := r.job(r.longList())
	earlier := &undigested{ForWorkers: r.registry}
	r.deps.Registry = earlier
	it := r.advance(id, registry.Process)
	r.deps.Registry = r.registry
	key := keys(t, r.staging, "items/"+it.ID)
	at := slices.IndexFunc(key, func(k string) bool { return strings.HasSuffix(k, "files.jsonl") })
	must(t, r.staging.Replace(t.Context(), key[at], replaced(`"name":"clean-000"`, `"name":"other-000"`)(r.stagedBytes(key[at]))))
	if it := r.ends(id); it.Status != registry.Completed || !earlier.done {
		t.Fatalf("%s: %s", it.Status, it.Note)
	}
	got := r.producer(r.object(id), 1)
	if len(got) != manyFiles || got["clean-000"] != "alpha" {
		t.Errorf("%d files: %v", len(got), got)
	}
}
