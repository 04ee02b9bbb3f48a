package forward_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/periodic/forward"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// careful is a receiver that drops repeats, of requests and of events, as the documentation says
// that it may.
type careful struct {
	*receiver

	mu       sync.Mutex
	requests map[string]bool
	known    map[string]bool
	subjects []string // of the events that it took
	repeats  int
}

func receiveCarefully(t testing.TB) *careful {
	c := &careful{requests: map[string]bool{}, known: map[string]bool{}}
	c.receiver = receive(t, func(q *http.Request, got request) int {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.requests[q.Header.Get("Webhook-Id")] {
			c.repeats++
			return http.StatusOK
		}
		c.requests[q.Header.Get("Webhook-Id")] = true
		for _, e := range got.events {
			if name := e.Source + " " + e.ID; c.known[name] {
				c.repeats++
			} else {
				c.known[name] = true
				c.subjects = append(c.subjects, e.Subject)
			}
		}
		return http.StatusOK
	})
	return c
}

// TestRestored checks a Registry that was restored from a backup, and so reuses numbers of lost
// events. A receiver that deduplicates gets the new events, each once.
func TestRestored(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "registry.db")
	url := sqlstoretest.SQLiteAt(t, file)
	open := func() *sqlstore.Store {
		s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url})
		must(t, err)
		return s
	}
	r := receiveCarefully(t)
	tellAll := func(s *sqlstore.Store) {
		stop := run(t, quick(forward.New(options(t, s, "one"))))
		end, err := s.FeedEnd(t.Context())
		must(t, err)
		noted(t, s, end)
		stop()
	}
	subjects := func(s *sqlstore.Store, after int64) (out []string) {
		events, err := s.Feed(t.Context(), registry.FeedQuery{After: after, Limit: 500})
		must(t, err)
		for _, e := range events {
			out = append(out, e.ItemID)
		}
		return out
	}
	s := open()
	must(t, s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"))
	subscribe(t, s, "s", r.url)
	tellAll(s)
	submit(t, s, 2) // which the backup has, and not that they are told
	end, err := s.FeedEnd(t.Context())
	must(t, err)
	must(t, s.Close())
	backup, err := os.ReadFile(file)
	must(t, err)

	s = open()
	submit(t, s, 3)
	tellAll(s)
	want := subjects(s, 0)
	must(t, s.Close())
	if left, err := filepath.Glob(file + "-*"); err != nil || len(left) > 0 {
		t.Fatalf("the backup would be mixed with %v, %v", left, err)
	}
	must(t, os.WriteFile(file, backup, 0o600))

	s = open()
	defer s.Close()
	submit(t, s, 3)
	want = append(want, subjects(s, end)...)
	tellAll(s)
	if diff := cmp.Diff(want, r.subjects); diff != "" {
		t.Errorf("it knows of (-want +got):\n%s", diff)
	}
	if r.repeats != 2 {
		t.Errorf("it was told %d events again, want the two that the backup has", r.repeats)
	}
	told := r.acknowledged()
	if lost := told[len(told)-8 : len(told)-5]; !slices.Equal(lost, told[len(told)-3:]) {
		t.Errorf("told %v: the new events do not have the numbers of the lost ones, and nothing is seen", told)
	}
}
