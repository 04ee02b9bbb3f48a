package workers_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/remedy"
)

// watchedInterim tells when an attempt has noted something under a key.
type watchedInterim struct {
	interim.Store
	part string
	once sync.Once
	seen chan struct{}
}

func (w *watchedInterim) Put(ctx context.Context, a interim.Attempt, entries map[string][]byte) error {
	err := w.Store.Put(ctx, a, entries)
	for key := range entries {
		if err == nil && strings.Contains(key, w.part) {
			w.once.Do(func() { close(w.seen) })
		}
	}
	return err
}

// A worker that stops in the middle of a file hands it over at its last checkpoint: no attempt is
// counted, and at most a part is fetched again (I5).
func TestR03_HandOverInsideAFile(t *testing.T) {
	const part = 16 << 20
	raw := make([]byte, 2*part+4321)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(raw)
	data := string(raw)
	r := newRig(t, nil)
	var ranges []string
	r.site.break_(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodHead {
			return false
		}
		ranges = append(ranges, req.Header.Get("Range")+" "+req.Header.Get("If-Range"))
		if len(ranges) > 1 {
			return false
		}
		w.Header().Set("ETag", `"`+sha256Of(data)[:16]+`"`)
		w.Header().Set("Content-Length", "33558753")
		_, _ = w.Write(raw[:part+9999])
		w.(http.Flusher).Flush()
		<-req.Context().Done()
		return true
	})
	job := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("big", data), Filename: "big", Digest: digestOf(data)})
	r.advance(job, registry.Download)
	watched := &watchedInterim{Store: r.interim, part: "/part/", seen: make(chan struct{})}
	r.deps.Interim = watched
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		<-watched.seen
		stop()
	}()
	_, err := r.runAs(ctx, job)
	if it := r.item(job); !errors.Is(err, base.ErrStopping) || it.Tries != 0 || it.Status != registry.Pending {
		t.Fatalf("stopped with %v, tries=%d status=%s", err, it.Tries, it.Status)
	}
	attempts, err := r.registry.Attempts(t.Context(), job)
	must(t, err)
	if got, want := remedy.ResumePoint(r.item(job), attempts), "16 of 32 MiB transferred; a restart continues here"; got != want {
		t.Errorf("people are told %q, want %q", got, want)
	}
	o := r.complete(job)
	r.valid(o, 1)
	if r.producer(o, 1)["big"] != data {
		t.Error("the file is not what it was")
	}
	if want := `bytes=16777216- "` + sha256Of(data)[:16] + `"`; len(ranges) != 2 || ranges[1] != want {
		t.Errorf("asked for %q, want %q at last", ranges, want)
	}
	r.nothingStaged(job)
}
