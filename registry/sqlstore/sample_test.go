package sqlstore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/registry/search"
)

// TestSample_SamePages: however small the samples are, PostgreSQL's pages of a search contain the
// same items in the same order as a scan of all items.
func TestSample_SamePages(t *testing.T) {
	s := seeded(t, migrated(t), 3000)
	var all []registry.WorkItem
	for after := ""; ; {
		page, err := s.Items(t.Context(), registry.ItemQuery{Limit: 500, After: after})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Rows...)
		if after = page.Next; after == "" {
			break
		}
	}
	for _, tt := range []struct {
		text string
		is   func(registry.WorkItem) bool
	}{
		{"thesis state:completed", func(it registry.WorkItem) bool {
			return strings.Contains(it.Name, "Thesis") && it.State.Equal("completed")
		}},
		{"manuscript collection:collection_00", func(it registry.WorkItem) bool { return false }},
		{"letters collection:collection_00", func(it registry.WorkItem) bool {
			return strings.Contains(it.Name, "Letters") && it.Collection == "collection_00"
		}},
		{"error:timeout status:failed,cancelled", func(it registry.WorkItem) bool {
			return strings.Contains(it.Note, "timeout") && it.Status == registry.Failed
		}},
		{"glaciers -status:failed status:failed,completed,pending", func(it registry.WorkItem) bool {
			return strings.Contains(it.Name, "glaciers") && (it.Status == registry.Completed || it.Status == registry.Pending)
		}},
	} {
		var want []string
		for _, it := range all {
			if tt.is(it) {
				want = append(want, it.ID)
			}
		}
		match, err := query.Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		for _, sizes := range [][2]int{{5000, 3000}, {20, 500}, {20, 60}, {1, 12}} {
			undo := search.SetSampleSizes(sizes[0], sizes[1])
			var got []string
			for after := ""; ; {
				page, err := s.Items(t.Context(), registry.ItemQuery{Match: match, Limit: 7, After: after})
				if err != nil {
					t.Fatalf("%s, looking at %v: %v", tt.text, sizes, err)
				}
				for _, it := range page.Rows {
					got = append(got, it.ID)
				}
				if after = page.Next; after == "" {
					break
				}
			}
			undo()
			if !slices.Equal(got, want) {
				t.Errorf("%s, looking at %v: %d items, want %d", tt.text, sizes, len(got), len(want))
			}
		}
	}
}
