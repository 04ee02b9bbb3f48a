package sqlstore_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// TestFeed_FarApart: a reader who selects few of very many events finds them, however far apart
// they are.
func TestFeed_FarApart(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "registry.db"), nil)
	ctx := t.Context()
	note := func(code string) {
		if err := s.Refused(ctx, registry.Refusal{Code: code}); err != nil {
			t.Error(err)
		}
	}
	put := func(name string) {
		t.Helper()
		if err := s.PutCollection(ctx, registry.Collection{Mnemonic: "a", Profile: registry.Profile{Name: name}}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	put("first")
	const between, writers = 10_500, 300 // more than one statement looks through
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range between / writers {
				note("x")
			}
		})
	}
	wg.Wait()
	put("last")
	for name, q := range map[string]registry.FeedQuery{
		"by collection": {Within: []string{"a"}}, "by type": {Types: []string{"collection"}},
	} {
		events, err := s.Feed(ctx, q)
		if err != nil || len(events) != 2 || events[1].Seq != between+2 {
			t.Errorf("%s: %+v %v, want the first and the last", name, events, err)
		}
		q.After, q.Limit = 1, 1
		if events, err = s.Feed(ctx, q); err != nil || len(events) != 1 || events[0].Seq != between+2 {
			t.Errorf("%s, after the first: %+v %v", name, events, err)
		}
	}
	events, err := s.Feed(ctx, registry.FeedQuery{After: 9_990, Limit: 500})
	if err != nil || len(events) != 500 || events[0].Seq != 9_991 || events[499].Seq != 10_490 {
		t.Errorf("a page across the bound: %d events, %v", len(events), err)
	}
}
