package sqlstore_test

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// everywhere is a store with items in every position that registry.StateOf tells apart, and enough
// more for each way in which a list can be read.
type everywhere struct {
	s      *sqlstore.Store
	clock  *clock
	items  []registry.WorkItem // newest first
	graphs map[string]string
	titles map[string]string
}

func newEverywhere(t *testing.T) *everywhere {
	t.Helper()
	e := &everywhere{clock: newClock(), graphs: map[string]string{}, titles: map[string]string{}}
	e.s = open(t, filepath.Join(t.TempDir(), "registry.db"), e.clock.now)
	for _, c := range []string{"a", "b"} {
		if err := e.s.PutCollection(t.Context(), registry.Collection{Mnemonic: c}, "admin"); err != nil {
			t.Fatal(err)
		}
	}
	ids := e.fill(t)
	for _, h := range []registry.Hold{
		{Scope: registry.HoldItem, Key: ids[5], Reason: "r"},
		{Scope: registry.HoldCollection, Key: "b", Reason: "r"},
		{Scope: registry.HoldBatch, Key: ids[0], Reason: "r"},
	} {
		if err := e.s.AddHold(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	e.clock.pass(time.Hour)
	q := registry.ItemQuery{Limit: 500}
	for {
		page, err := e.s.Items(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		e.items = append(e.items, page.Rows...)
		if q.After = page.Next; q.After == "" {
			return e
		}
	}
}

// fill makes an item for each position, the first one a batch that is the parent of the others.
func (e *everywhere) fill(t *testing.T) (ids []string) {
	t.Helper()
	n := 0
	for _, route := range registry.Routes() {
		for _, step := range route.Steps {
			for _, status := range registry.Statuses() {
				if _, more := route.Next(step.Stage); more && status == registry.Completed {
					continue // items complete at the end of their route only
				}
				for bits := range 24 {
					n++
					title := []string{"", "Old Thesis", "y%_1 of 1150"}[n/5%3]
					r, err := e.s.Submit(t.Context(), registry.Submission{
						Collection: []string{"a", "b"}[n/3%2], Name: []string{"Thesis", "letters", "x%_y"}[n%3] + strconv.Itoa(n),
						Actor: "actor " + strconv.Itoa(n%3), Spec: registry.Spec{Type: registry.FileType, URL: "https://h.test/", Title: title},
					})
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, r.BatchID)
					e.titles[r.BatchID] = title
					e.graphs[r.BatchID] = []string{"", "", "g1", "g2"}[n%13%4]
					parent := any(nil)
					if n%4 == 0 {
						parent = ids[0]
					}
					// The batch of the others is none of them.
					err = e.s.Exec(t.Context(), `UPDATE work_item SET action = $2, stage = $3, status = $4, attempt = $5, blocker_count = $6,
						closing = $7, note = $8, parent_id = $9, row_no = $10, priority = $11, retry_count = $12, error_class = $13, graph_id = $14
						WHERE id = $1`, r.BatchID, route.Action, step.Stage, status, bits%2, bits/2%2, bits/4%3,
						[]string{"", "time-out of \"h\"", "sha256 differs"}[n%5%3], parent, n, n%7, n%11/10, []string{"", "content", "system", "jobs"}[n%4], e.graphs[r.BatchID])
					if err != nil {
						t.Fatal(err)
					}
					if n%5 == 0 {
						e.clock.pass(time.Second)
					}
				}
			}
		}
	}
	return ids
}

// TestMatch asks one store in each of these ways, because filling it is slow.
func TestMatch(t *testing.T) {
	e := newEverywhere(t)
	t.Run("states", e.states)
	t.Run("queries", e.queries)
	t.Run("within", e.within)
}

// states asks for each state and compares with what items show.
func (e *everywhere) states(t *testing.T) {
	seen := map[registry.State]int{}
	for _, it := range e.items {
		seen[it.State]++
	}
	for _, state := range registry.States() {
		if seen[state] == 0 {
			t.Errorf("no item is %s", state)
		}
		e.check(t, "state:"+string(state))
		e.check(t, "-state:"+string(state))
	}
}

// queries asks whatever can be asked and compares with a reading of the query in Go, page by page,
// in order, and with the counts.
func (e *everywhere) queries(t *testing.T) {
	e.check(t, `status:pending,running error:"\"h\"" status:completed`) // words that contradict each other
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOfN(rapid.Custom(e.word), 0, 4).Draw(rt, "words")
		e.check(rt, strings.Join(words, " "))
	})
}

// within bounds queries of every kind to collections.
func (e *everywhere) within(t *testing.T) {
	for _, within := range [][]string{{}, {"b"}, {"nowhere"}, {"a", "b"}, {"nowhere", "a"}} {
		for _, text := range []string{"", "state:failed", "thesis", "batch:" + e.items[len(e.items)-1].ID, "class:content", "collection:b", "id:" + e.items[3].ID} {
			q, err := query.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			for _, it := range e.items {
				if slices.Contains(within, it.Collection) && !slices.ContainsFunc(q.Terms, func(term registry.Term) bool { return !e.matches(it, term) }) {
					want++
				}
			}
			page, err := e.s.Items(t.Context(), registry.ItemQuery{Match: q, Within: within, Limit: 500})
			if err != nil || len(page.Rows) != min(want, 500) {
				t.Errorf("%q within %q: %d items (%v), want %d", text, within, len(page.Rows), err, want)
			}
			counts, err := e.s.CountItems(t.Context(), registry.ItemQuery{Match: q, Within: within})
			n := 0
			for _, c := range counts {
				n += int(c)
			}
			if err != nil || n != want {
				t.Errorf("%q within %q: counted %d (%v), want %d", text, within, n, err, want)
			}
		}
	}
}

// word draws a term.
func (e *everywhere) word(t *rapid.T) string {
	one := func(values ...string) string { return rapid.SampledFrom(values).Draw(t, "value") }
	some := func(values ...string) string {
		return strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, min(3, len(values)), rapid.ID).Draw(t, "values"), ",")
	}
	it := rapid.SampledFrom(e.items).Draw(t, "item")
	var states, statuses, stages []string
	for _, s := range registry.States() {
		states = append(states, string(s))
	}
	for _, s := range registry.Statuses() {
		statuses = append(statuses, string(s))
	}
	for _, s := range registry.Stages() {
		stages = append(stages, string(s))
	}
	term := one(
		"state:"+some(states...), "status:"+some(statuses...), "stage:"+some(stages...), "action:"+some("ingest", "batch", "bulk", "tidy"),
		"collection:"+some("a", "b", "none"), "batch:"+it.ID, "batch:"+e.items[len(e.items)-1].ID, "graph:"+some("g1", "g2"), "id:"+it.ID[:rapid.SampledFrom([]int{8, 13, 14, 36}).Draw(t, "length")],
		`name:`+one("thesis", "ETT", "%_", "1", "11"), "title:"+one("thesis", `"OF 1"`, "%_"), "error:"+one("sha256", `"time-out of"`, "\"\\\"h\\\"\"", "of"), "class:"+some("content", "system", "jobs"), `by:"actor 1"`,
		"held:"+one("yes", "no"), "delayed:"+one("yes", "no"), "unresolved:"+one("yes", "no"), "priority:"+one("<3", ">=5", "2"), "retries:"+one(">0", "0", ">=1"), "older:"+one("60m", "62m", "70m"), "newer:"+one("61m", "1h", "2h"),
		one("thesis", "LETTERS", "sha256 differs", "x%", "9", `"x%_y1"`, "nowhere"), it.ID, it.ID[:9],
	)
	if rapid.IntRange(0, 4).Draw(t, "not") == 0 {
		term = "-" + term
	}
	return term
}

// check compares a query's pages and counts with what they should be.
func (e *everywhere) check(t rapid.TB, text string) {
	t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	counts := map[registry.State]int64{}
	byRow := false
	var found []registry.WorkItem
	for _, it := range e.items {
		if !slices.ContainsFunc(q.Terms, func(term registry.Term) bool { return e.matches(it, term) == term.Not }) {
			found = append(found, it)
			counts[it.State]++
		}
	}
	for _, term := range q.Terms {
		byRow = byRow || term.Field == "batch" && !term.Not
	}
	if byRow {
		slices.SortStableFunc(found, func(a, b registry.WorkItem) int { return cmp.Compare(a.Row, b.Row) })
	}
	for _, it := range found {
		want = append(want, it.ID)
	}
	for _, limit := range []int{7, 500} {
		var got []string
		ask := registry.ItemQuery{Match: q, Limit: limit}
		for len(got) <= min(len(want), 60*limit) {
			page, err := e.s.Items(context.Background(), ask)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			got = append(got, ids(page.Rows)...)
			if ask.After = page.Next; ask.After == "" {
				break
			}
		}
		if wanted := want[:min(len(want), len(got))]; !slices.Equal(got, wanted) || ask.After == "" && len(got) != len(want) {
			t.Fatalf("%s, limit %d: %d items, want %d: %s", text, limit, len(got), len(want), difference(got, want))
		}
	}
	got, err := e.s.CountItems(context.Background(), registry.ItemQuery{Match: q})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(counts) {
		t.Fatalf("%s: counts %v (%v), want %v", text, got, err, counts)
	}
}

func ids(items []registry.WorkItem) []string {
	var out []string
	for _, it := range items {
		out = append(out, it.ID)
	}
	return out
}

// difference tells the first place where two lists differ.
func difference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			return fmt.Sprintf("at %d %q, want %q", i, g, w)
		}
	}
	return "none"
}

// matches reads a term, but for its minus sign.
func (e *everywhere) matches(it registry.WorkItem, t registry.Term) bool {
	has := func(value string) bool { return slices.Contains(query.Values(t), value) }
	contains := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(t.Value)) }
	switch t.Field {
	case "":
		return contains(it.Name) || contains(e.titles[it.ID]) || contains(it.Note) || registry.IDStart(t.Value) && strings.HasPrefix(it.ID, t.Value)
	case "name":
		return contains(it.Name)
	case "title":
		return contains(e.titles[it.ID])
	case "error":
		return contains(it.Note)
	case "state":
		return slices.ContainsFunc(query.Values(t), it.State.Equal)
	case "status":
		return has(string(it.Status))
	case "stage":
		return has(string(it.Stage))
	case "action":
		return has(string(it.Action))
	case "collection":
		return has(it.Collection)
	case "batch":
		return has(it.ParentID)
	case "graph":
		return has(e.graphs[it.ID])
	case "class":
		return has(string(it.ErrorClass))
	case "by":
		return has(it.CreatedBy)
	case "id":
		return strings.HasPrefix(it.ID, t.Value)
	case "held":
		held := it.Status == registry.Pending && it.State == registry.StateHeld
		return held == (t.Value == "yes")
	case "delayed":
		return it.Delayed == (t.Value == "yes")
	case "unresolved":
		return (it.Action == registry.Batch && it.Status == registry.Failed) == (t.Value == "yes") // no row of the only batch with jobs is faulty
	case "priority":
		return compared(int64(it.Priority), t.Value)
	case "retries":
		return compared(int64(it.RetryCount), t.Value)
	case "older", "newer":
		d, _ := query.Age(t.Value)
		return it.CreatedAt.Before(e.clock.now().Add(-d)) == (t.Field == "older")
	}
	return false
}

func compared(n int64, value string) bool {
	op, m, _ := query.CompareNumber(value)
	return map[string]bool{"=": n == m, "<": n < m, "<=": n <= m, ">": n > m, ">=": n >= m}[op]
}
