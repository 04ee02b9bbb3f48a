package workers_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/remedy"
	"github.com/holdfast/holdfast/storage"
)

// tapped is a store that counts what is created and read under keys with a word in them, and
// interrupts once.
type tapped struct {
	storage.Store
	word string

	mu             sync.Mutex
	created, read  int
	interruptAfter int                             // that many were created; 0: never
	interrupt      func(ctx context.Context) error // called once
}

func (s *tapped) Create(ctx context.Context, key string) (storage.Writer, error) {
	if strings.Contains(key, s.word) && !strings.HasSuffix(key, ".jsonl") {
		s.mu.Lock()
		s.created++
		now := s.created-1 == s.interruptAfter && s.interruptAfter > 0
		s.mu.Unlock()
		if now {
			if err := s.interrupt(ctx); err != nil {
				return nil, err
			}
		}
	}
	return s.Store.Create(ctx, key)
}

func (s *tapped) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if strings.Contains(key, s.word) {
		s.mu.Lock()
		s.read++
		s.mu.Unlock()
	}
	return s.Store.Open(ctx, key, offset, length)
}

// again forgets the counts, and lets everything pass. It returns how many were to be created so
// far.
func (s *tapped) again() (created int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	created = s.created
	s.created, s.read, s.interruptAfter = 0, 0, 0
	return created
}

// manyFiles is more than a few notes' worth.
const manyFiles = 250

func manyFilesZip(t *testing.T) (string, map[string]string) {
	files := map[string]string{}
	for i := range manyFiles {
		files[fmt.Sprintf("f/%03d.txt", i)] = fmt.Sprint("file ", i)
	}
	return zipOf(t, files), files
}

// A step of many files continues after its finished files: from the last record after a fault,
// exactly where it stopped after a shutdown. The result is the same.
func TestR04_ProcessGoesOnFileByFile(t *testing.T) {
	const at = 230
	for name, c := range map[string]struct {
		staging   bool // interrupted while it unpacks, otherwise while it stores
		stop      bool // told to stop, otherwise a fault
		atMost    int  // files done a second time
		countsTry int
		told      string
	}{
		"unpacking, fault": {staging: true, atMost: at - 200, countsTry: 1, told: "230 files unpacked, "},
		"unpacking, stop":  {staging: true, stop: true, told: "230 files unpacked, "},
		"storing, fault":   {atMost: at - 200 + 4, countsTry: 1, told: "250 files unpacked, "},
		"storing, stop":    {stop: true, atMost: 4, told: "250 files unpacked, "}, // which were in hand
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tap := &tapped{word: "/content/producer/f/", interruptAfter: at}
			if c.staging {
				tap.word = ".unpacked/"
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			tap.interrupt = func(ctx context.Context) error {
				if !c.stop {
					return errTest
				}
				stop()
				<-ctx.Done()
				return ctx.Err()
			}
			r, _, _ := newFaultyRig(t)
			if c.staging {
				tap.Store = r.staging
				r.deps.Staging = tap
			} else {
				tap.Store = r.storage
				r.deps.Objects = roots(rootOf(t, tap))
			}
			zip, files := manyFilesZip(t)
			id := r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c.zip", zip), Filename: "c.zip"})
			r.advance(id, registry.Process)

			if _, err := r.runAs(ctx, id); err == nil {
				t.Fatal("it was not interrupted")
			}
			if it := r.item(id); it.Tries != c.countsTry || it.Status != registry.Pending {
				t.Fatalf("tries=%d status=%s, want %d and pending", it.Tries, it.Status, c.countsTry)
			}
			attempts, err := r.registry.Attempts(t.Context(), id)
			must(t, err)
			if got := remedy.ResumePoint(r.item(id), attempts); !strings.HasPrefix(got, c.told) {
				t.Errorf("people are told %q, want %q...", got, c.told)
			}
			// Those beside the one that was interrupted may have gone on a little.
			least, most := manyFiles-(tap.again()-1), manyFiles-at+c.atMost
			r.wait(1 << 50)
			r.advance(id, registry.Record)
			if !c.staging && (tap.read < least || tap.read > most) {
				t.Errorf("%d stored files were read back by the second attempt, want %d to %d", tap.read, least, most)
			}
			if tap.created < least || tap.created > most {
				t.Errorf("%d files were written by the second attempt, want %d to %d", tap.created, least, most)
			}
			o := r.complete(id)
			r.valid(o, 1)
			if diff := cmp.Diff(files, r.producer(o, 1)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			r.nothingStaged(id)
		})
	}
}

// Unpacked files are kept only if the order is the same; otherwise everything is unpacked again,
// uncounted.
func TestR27_UnpackingInAnotherOrder(t *testing.T) {
	r, _, _ := newFaultyRig(t)
	zip, files := manyFilesZip(t)
	id := r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c.zip", zip), Filename: "c.zip"})
	r.advance(id, registry.Process)
	tap := &tapped{Store: r.staging, word: ".unpacked/", interruptAfter: 120, interrupt: func(context.Context) error { return errTest }}
	claims := &keyed{ForWorkers: r.registry}
	r.deps.Staging, r.deps.Registry = tap, claims
	if _, err := r.run(id); err == nil {
		t.Fatal("it was not interrupted")
	}
	r.deps.Staging, r.deps.Registry = r.staging, r.registry
	r.deps.Interim = &otherOrder{Store: r.interim, key: claims.key}
	r.wait(1 << 50)
	if _, err := r.run(id); err != nil {
		t.Fatal(err)
	}
	o := r.complete(id)
	r.valid(o, 1)
	if diff := cmp.Diff(files, r.producer(o, 1)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.nothingStaged(id)
}

// Recorded files are not recorded again, and the inventory is complete in the end.
func TestRecord_GoesOnFileByFile(t *testing.T) {
	r, _, _ := newFaultyRig(t)
	files := map[string]string{}
	for i := range 1200 {
		files[fmt.Sprintf("%04d", i)] = ""
	}
	id := r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c.zip", zipOf(t, files)), Filename: "c.zip"})
	r.advance(id, registry.Record)
	counted := &countedRecords{ForWorkers: r.registry, failAt: 3}
	r.deps.Registry = counted
	if _, err := r.run(id); err == nil {
		t.Fatal("it was not interrupted")
	}
	counted.rows, counted.failAt = 0, 0
	r.wait(1 << 50)
	if _, err := r.run(id); err != nil {
		t.Fatal(err)
	}
	if counted.rows < 200 || counted.rows > 300 { // with ours
		t.Errorf("%d rows were recorded by the second attempt, want those after the first 1000", counted.rows)
	}
	o := r.complete(id)
	if diff := cmp.Diff(files, r.producer(o, 1)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
