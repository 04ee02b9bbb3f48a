package sqlstore_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/registry/registrybench"
	"github.com/holdfast/holdfast/registry/search"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// seeded fills a database with some items.
func seeded(t *testing.T, url string, items int) *sqlstore.Store {
	t.Helper()
	if _, _, err := sqldb.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if err := registrybench.Seed(t.Context(), url, registrybench.Seeding{Items: items, Collections: 5, Jobs: 20, History: true, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	return openURL(t, url, nil)
}

// databases are empty ones of each kind.
var databases = map[string]func(*testing.T) string{
	"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "registry.db") },
	"postgres": migrated,
}

// TestSeed: derived data of seeded items is correct, and the items can be found, changed and worked
// on.
func TestSeed(t *testing.T) {
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
			checkCounts(t, s)
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
			for _, change := range []string{
				`UPDATE work_item SET name = 'unheard of', note = 'sighted' WHERE seq = 7`,
				`UPDATE work_item SET status = 'failed' WHERE seq = 7`,
				`UPDATE work_item SET status = 'pending' WHERE seq = 7`,
				`DELETE FROM work_item WHERE seq = 8`,
			} {
				if err := s.Exec(t.Context(), change); err != nil {
					t.Fatalf("%s: %v", change, err)
				}
				if err := s.CheckText(t.Context()); err != nil {
					t.Errorf("after %s: %v", change, err)
				}
			}
			page, err = s.Items(t.Context(), registry.ItemQuery{Text: "Heard Of"})
			if err != nil || len(page.Rows) != 1 || page.Rows[0].Note != "sighted" {
				t.Errorf("found %d items, %v", len(page.Rows), err)
			}
		})
	}
}

// checkCounts checks that counts, previews and failures by a text are the same by the text index and
// by reading all rows.
func checkCounts(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	for _, text := range []string{"pdf", "tar state:failed", "pdf -state:completed", "error:timeout", "zip collection:collection_01"} {
		match, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var all [2]string
		for i, share := range []int64{1, 1000} { // no text is common, and nearly all are
			undo := search.SetCommonShare(share)
			counts, err := s.CountItems(t.Context(), registry.ItemQuery{Match: match})
			if err != nil {
				t.Fatal(err)
			}
			preview, err := s.PreviewBulk(t.Context(), registry.BulkRequest{Match: match, Act: registry.ActRequeue})
			if err != nil {
				t.Fatal(err)
			}
			failures, err := s.Failures(t.Context(), registry.ItemQuery{Match: match})
			if err != nil {
				t.Fatal(err)
			}
			undo()
			var n int64
			for _, c := range counts {
				n += c
			}
			if n == 0 || preview.Matched != n {
				t.Errorf("%s: counted %d, and %d for an act", text, n, preview.Matched)
			}
			all[i] = fmt.Sprintf("%v\n%+v\n%+v", counts, preview, failures)
		}
		if all[0] != all[1] {
			t.Errorf("%s: by the index\n%s\nwithout\n%s", text, all[0], all[1])
		}
	}
}
