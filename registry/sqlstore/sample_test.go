package sqlstore_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/registry/search"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// TestSample_SamePages: however small the samples are, PostgreSQL's pages of a search contain the
// same items in the same order as a scan of all items, newest or oldest first, forwards and back.
func TestSample_SamePages(t *testing.T) {
	s := seeded(t, migrated(t), 1500)
	all, _ := turnPages(t, s, registry.ItemQuery{Limit: 500})
	byText := map[bool]int{}
	for _, tt := range sampled {
		match, err := query.Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, it := range all {
			if tt.is(it) {
				want = append(want, it.ID)
			}
		}
		for _, oldest := range []bool{false, true} {
			for _, sizes := range [][2]int{{5000, 3000}, {20, 250}, {1, 12}} {
				undo := search.SetSampleSizes(sizes[0], sizes[1])
				got, pages := turnPages(t, s, registry.ItemQuery{Match: match, Limit: 7, Oldest: oldest})
				undo()
				byText[oldest] += pages
				if !slices.Equal(ids(got), want) {
					t.Errorf("%s, oldest first %v, looking at %v: %d items, want %d", tt.text, oldest, sizes, len(got), len(want))
				}
			}
			slices.Reverse(want)
		}
	}
	if byText[false] < 20 || byText[true] < 20 {
		t.Errorf("pages in the order of the text index, by oldest first: %v", byText)
	}
}

// sampled are searches of seeded items.
var sampled = []struct {
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
}

// turnPages reads a list to its end and back to its beginning, which must be the same. It also
// returns how many pages ended with a cursor in the order of the text index.
func turnPages(t *testing.T, s *sqlstore.Store, q registry.ItemQuery) (rows []registry.WorkItem, byText int) {
	t.Helper()
	read := func() registry.Page[registry.WorkItem] {
		page, err := s.Items(t.Context(), q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		return page
	}
	page := read()
	for rows = page.Rows; page.Next != ""; rows = append(rows, page.Rows...) {
		cursor, err := base64.RawURLEncoding.DecodeString(page.Next)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(cursor), "seq ") {
			byText++
		}
		q.After = page.Next
		page = read()
	}
	back := page.Rows
	for q.After = ""; page.Prev != ""; back = slices.Concat(page.Rows, back) {
		q.Before = page.Prev
		page = read()
	}
	if !slices.Equal(ids(back), ids(rows)) {
		t.Errorf("%+v: %d items back, %d forwards", q, len(back), len(rows))
	}
	return rows, byText
}
