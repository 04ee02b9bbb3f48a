package sqlstore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// seeded fills a database with some items.
func seeded(t *testing.T, url string, items int) *sqlstore.Store {
	t.Helper()
	s := openURL(t, url, nil)
	if err := s.Seed(t.Context(), sqlstore.Seeding{Items: items, Collections: 5, Jobs: 20, History: true, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSeed: what is kept beside the facts is true of seeded items, they are found, and they can be worked on.
func TestSeed(t *testing.T) {
	databases := map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "registry.db") },
		"postgres": migrated,
	}
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			const items = 6000
			s := seeded(t, database(t), items)
			checkReady(t.Context(), t, s)
			counts, err := s.CountItems(t.Context(), registry.ItemQuery{})
			if err != nil {
				t.Fatal(err)
			}
			var n int64
			for _, c := range counts {
				n += c
			}
			if n != items {
				t.Errorf("%d items, want %d", n, items)
			}
			page, err := s.Items(t.Context(), registry.ItemQuery{Text: "Thesis glaciers"})
			if err != nil || len(page.Rows) == 0 {
				t.Errorf("the text index finds nothing: %v", err)
			}
			claim, err := s.Claim(t.Context(), registry.ClaimRequest{RequestID: "r", Stage: registry.Estimate, Worker: "w", Lease: time.Hour, MaxAttempts: 5})
			if err != nil {
				t.Fatal(err)
			}
			v, err := s.Settle(t.Context(), registry.Settlement{Lease: claim.Lease, Outcome: registry.OutcomeDone, MaxAttempts: 5})
			if err != nil || v.Stage == registry.Estimate {
				t.Errorf("settled as %+v: %v", v, err)
			}
			checkReady(t.Context(), t, s)
		})
	}
}
