package search_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrybench"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// site is a server whose reader is an operator.
type site struct {
	*uitest.Server
}

func newSite(t *testing.T, role registry.Role) site {
	s := site{uitest.New(t, uitest.Options{})}
	s.Token = s.TokenOf(t, "ann", role)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// submit submits batches, the oldest first, and returns their ids.
func (s site) submit(t *testing.T, names ...string) (ids []string) {
	t.Helper()
	for _, name := range names {
		r, err := s.Store.Submit(t.Context(), registry.Submission{Collection: "default", Name: name, Actor: "ann", Spec: registry.Spec{URL: "http://h.test/"}})
		must(t, err)
		ids = append(ids, r.BatchID)
	}
	return ids
}

func (s site) item(t *testing.T, id string) registry.WorkItem {
	t.Helper()
	it, err := s.Store.Item(t.Context(), id)
	must(t, err)
	return it
}

// list loads the list and returns the part of the page below its head.
func (s site) list(t *testing.T, query string) string {
	t.Helper()
	_, text, _ := strings.Cut(s.Get(t, "/items?"+query, http.StatusOK), "<main")
	text, _, _ = strings.Cut(text, "</main>")
	return text
}

func q(text string) string { return url.Values{"q": {text}}.Encode() }

func wants(t *testing.T, what, text string, has []string, not ...string) {
	t.Helper()
	for _, want := range has {
		if !strings.Contains(text, want) {
			t.Errorf("%s: the page does not say %s:\n%s", what, want, text)
		}
	}
	for _, no := range not {
		if strings.Contains(text, no) {
			t.Errorf("%s: the page says %s:\n%s", what, no, text)
		}
	}
}

var links = regexp.MustCompile(`<a href="([^"]*)" rel="(next|prev)"`)

// link returns the address of the next or previous page; "" for none.
func link(text, rel string) string {
	for _, m := range links.FindAllStringSubmatch(text, -1) {
		if m[2] == rel {
			return html.UnescapeString(m[1])
		}
	}
	return ""
}

func TestItems_Query(t *testing.T) {
	s := newSite(t, registry.RoleOperator)
	ids := s.submit(t, "harbour", "psalter")
	must(t, s.Store.AddHold(t.Context(), registry.Hold{Scope: registry.HoldItem, Key: ids[1], Actor: "ann", Reason: "stock-taking"}))
	first, second := "/batches/"+ids[0], "/batches/"+ids[1]
	for _, tt := range []struct {
		query    string
		has, not []string
	}{
		{"id:" + ids[0], []string{first, "1 item matches"}, []string{second}},
		{"action:batch", []string{first, second, "2 items match", "all 2 that match"}, nil},
		{"state:held", []string{second, "(stock-taking)", `aria-current="true">Held`}, []string{first}},
		{"nowherenowhere state:failed", []string{"No batch or job matches.", `href="/objects?text=nowherenowhere"`}, []string{first, second}},
		{"state:faild", []string{"did you mean failed?", `value="state:faild"`, `aria-invalid="true"`}, []string{"No batch"}},
		{`"><script>`, []string{"quote is not closed", "&lt;script&gt;"}, []string{"<script>"}},
		{"collection:default -state:failed", []string{first, `href="/items?q=-state%3Afailed"`, `href="/items?q=collection%3Adefault"`}, nil}, // each chip removes its term
	} {
		wants(t, tt.query, s.list(t, q(tt.query)), tt.has, tt.not...)
	}
	wants(t, "text is not counted by state", s.list(t, q("psalter")), []string{second, "1 item matches", ">Failed</a>"}, ">Failed <span")
	wants(t, "columns", s.list(t, "col=size&col=by"), []string{"Submitted by", "unknown"}, `<th scope="col">Stage`)
	wants(t, "filters", s.list(t, ""), []string{`Held <span class="figures">1</span>`, `Failed <span class="figures">0</span>`, `Mine <span class="figures">2</span>`})
}

func TestItems_ReadsBothWays(t *testing.T) {
	s := newSite(t, registry.RoleViewer)
	var names []string
	for i := range 120 {
		names = append(names, fmt.Sprintf("b%03d", i))
	}
	s.submit(t, names...)
	found := func(text string) (all []string) {
		for _, m := range regexp.MustCompile(`>(b\d\d\d)</a>`).FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
		return all
	}
	first := s.list(t, "")
	if got := found(first); len(got) != 50 || got[0] != "b119" || link(first, "prev") != "" {
		t.Fatalf("first page %v, %q", got, link(first, "prev"))
	}
	second := s.list(t, strings.TrimPrefix(link(first, "next"), "/items?"))
	third := s.list(t, strings.TrimPrefix(link(second, "next"), "/items?"))
	if got := found(third); len(got) != 20 || got[19] != "b000" || link(third, "next") != "" {
		t.Fatalf("last page %v", got)
	}
	if back := s.list(t, strings.TrimPrefix(link(third, "prev"), "/items?")); fmt.Sprint(found(back)) != fmt.Sprint(found(second)) {
		t.Errorf("back from the last page: %v", found(back))
	}
	s.submit(t, "b120") // the page before the second one is the newest now, and full
	if back := found(s.list(t, strings.TrimPrefix(link(second, "prev"), "/items?"))); len(back) != 50 || back[49] != "b070" {
		t.Errorf("back to the first page: %v", back)
	}
	if got := found(s.list(t, "order=oldest")); got[0] != "b000" {
		t.Errorf("oldest first: %v", got)
	}
	wants(t, "a viewer", first, nil, "/items/act", `name="id"`)
	s.Get(t, "/items/act?act=cancel&all=yes&q=state:pending", http.StatusForbidden)
	if w := s.Post(t, "/items/act", url.Values{"act": {"cancel"}, "q": {"state:pending"}}); w.Code != http.StatusForbidden {
		t.Errorf("a viewer acts: %d", w.Code)
	}
	s.Get(t, "/items?after=zzz", http.StatusUnprocessableEntity)
	s.Get(t, "/items?before=zzz", http.StatusUnprocessableEntity)
}

func TestItems_Suggests(t *testing.T) {
	s := newSite(t, registry.RoleOperator)
	for text, want := range map[string]string{
		"st": `data-fill="state:"`, "-st": `data-fill="-state:"`, "state:fa": `data-fill="state:failed"`, "harbour state:held,fa": `data-fill="harbour state:held,failed"`,
		"collection:d": `data-fill="collection:default"`, "": `data-fill="state:"`, "held:": `data-fill="held:no"`,
	} {
		w := s.Send(t, http.MethodGet, "/items/suggest?"+q(text), nil)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q: %d %s, want %s", text, w.Code, w.Body, want)
		}
	}
	if w := s.Send(t, http.MethodGet, "/items/suggest?"+q("<b>:x"), nil); strings.TrimSpace(w.Body.String()) != "" {
		t.Errorf("for no field: %s", w.Body)
	}
}

// fields returns the values of a form's fields.
func fields(text string) url.Values {
	v := url.Values{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if m[1] != "next" {
			v.Set(m[1], html.UnescapeString(m[2]))
		}
	}
	return v
}

// started posts the form of an act and returns its item.
func (s site) started(t *testing.T, form url.Values) registry.WorkItem {
	t.Helper()
	w := s.Post(t, "/items/act", form)
	id, ok := strings.CutPrefix(w.Header().Get("Location"), "/bulk/")
	if w.Code != http.StatusSeeOther || !ok {
		t.Fatalf("%d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
	}
	return s.item(t, id)
}

// TestBulk_ChosenRows checks the form for chosen rows: what it shows, and that it acts on them alone, once.
func TestBulk_ChosenRows(t *testing.T) {
	s := newSite(t, registry.RoleOperator)
	ids := s.submit(t, "a", "b", "c")
	_, err := s.Store.Command(t.Context(), registry.Command{ItemID: ids[1], Act: registry.ActCancel, Actor: "ann", Confirmed: true})
	must(t, err)
	address := "/items/act?" + url.Values{"act": {"cancel"}, "id": ids[:2], "q": {"action:batch"}}.Encode()
	text := s.Get(t, address, http.StatusOK)
	wants(t, "preview", text, []string{"Cancel: 1 item", "2 items match now", "1 is skipped", "it is not running; delete it instead", ">a</a>", ">b</a>"}, "Query:", "<code>id:", "asked for the same")
	form := fields(text)
	if w := s.Post(t, "/items/act", form); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("without a confirmation: %d", w.Code)
	}
	form.Set("confirm", "yes")
	it := s.started(t, form)
	if again := s.started(t, form); again.ID != it.ID {
		t.Errorf("sent twice: %s and %s", it.ID, again.ID)
	}
	var spec registry.BulkSpec
	must(t, json.Unmarshal(it.Spec, &spec))
	if spec.Match.String() != "id:"+ids[0]+","+ids[1] || spec.GraceSeconds != 30 || it.CreatedBy != "ann" || it.RunAt.Sub(it.CreatedAt) != 30*time.Second {
		t.Errorf("asked %+v, to start at %s", spec, it.RunAt)
	}
	if it.Name != "cancel 2 chosen items" {
		t.Errorf("it is called %q", it.Name)
	}
	wants(t, "progress", s.Get(t, "/bulk/"+it.ID, http.StatusOK), []string{"Nothing has changed yet", ">Undo<", "Cancel: 2 chosen items", ">a</a>", ">b</a>"}, "<code>id:")
	mine, ann := "/bulk/"+it.ID, s.Token
	bob := s.TokenOf(t, "bob", registry.RoleOperator)
	wants(t, "the form again", s.Get(t, address, http.StatusOK), []string{"You have already asked for the same", mine})
	s.Token = bob
	wants(t, "a colleague's form", s.Get(t, address, http.StatusOK), []string{"ann has already asked for the same", mine})
	wants(t, "another act", s.Get(t, strings.Replace(address, "act=cancel", "act=priority", 1), http.StatusOK), nil, "asked for the same")
	s.Token = ann
	if w := s.Post(t, "/bulk/"+it.ID+"/stop", nil); w.Code != http.StatusSeeOther {
		t.Errorf("undo: %d %s", w.Code, w.Body)
	}
	wants(t, "undone", s.Get(t, "/bulk/"+it.ID, http.StatusOK), []string{"Nothing was changed."}, ">Undo<", ">Stop<")
	wants(t, "the form after the end", s.Get(t, address, http.StatusOK), []string{"You asked for the same just now", mine})
	s.Token = bob
	wants(t, "a colleague's form after the end", s.Get(t, address, http.StatusOK), nil, "asked for the same")
	s.Token = ann
	if got := s.item(t, ids[0]); got.Status != registry.Pending {
		t.Errorf("undone, and yet %s", got.State)
	}
	for name, query := range map[string]string{
		"no rows": "act=cancel&q=action:batch", "no act": "all=yes&q=action:batch", "an unknown act": "act=claim&all=yes&q=action:batch",
		"everything": "act=cancel&all=yes&q=", "a wrong query": "act=cancel&all=yes&q=weather:fine",
	} {
		s.Get(t, "/items/act?"+query, http.StatusBadRequest)
		_ = name
	}
	s.Get(t, "/bulk/"+ids[0], http.StatusNotFound)
	if w := s.Post(t, "/bulk/"+ids[0]+"/stop", nil); w.Code != http.StatusNotFound {
		t.Errorf("stop of a batch: %d", w.Code)
	}
}

// TestBulk_AllThatMatch holds all items that match, in portions, and stops between two of them.
func TestBulk_AllThatMatch(t *testing.T) {
	s := newSite(t, registry.RoleOperator)
	var names []string
	for i := range 150 {
		names = append(names, fmt.Sprint("b", i))
	}
	ids := s.submit(t, names...)
	text := s.Get(t, "/items/act?act=hold&all=yes&"+q("state:pending name:b"), http.StatusOK)
	wants(t, "preview", text, []string{"Hold: 150 items"}, "skipped")
	form := fields(text)
	form.Set("now", "yes")
	w := s.Post(t, "/items/act", form)
	wants(t, "without a reason", w.Body.String(), []string{"Hold: 150 items", `aria-invalid="true"`, "Give a reason; others are shown it."})
	for act, want := range map[string]string{"priority": "is not a whole number.", "abort": "Tick this to confirm."} {
		w := s.Post(t, "/items/act", url.Values{"act": {act}, "q": {"state:pending name:b"}, "priority": {"soon"}, "key": {act}})
		wants(t, act, w.Body.String(), []string{`aria-invalid="true"`, want})
	}
	form.Set("reason", "stock-taking")
	it := s.started(t, form)
	claim, err := s.Store.Claim(t.Context(), registry.ClaimRequest{RequestID: "r", Stage: registry.Apply, Hint: it.ID, Worker: "w", Lease: time.Minute, StuckAfter: time.Hour})
	must(t, err)
	_, err = s.Store.ApplyNext(t.Context(), claim.Lease)
	must(t, err)
	wants(t, "progress", s.Get(t, "/bulk/"+it.ID, http.StatusOK), []string{`value="100"`, "100 of 150", ">Stop<"}, ">Undo<")
	if w := s.Post(t, "/bulk/"+it.ID+"/stop", nil); w.Code != http.StatusSeeOther {
		t.Errorf("stop: %d %s", w.Code, w.Body)
	}
	held := 0
	for _, id := range ids {
		if s.item(t, id).State == registry.StateHeld {
			held++
		}
	}
	if held != 100 {
		t.Errorf("%d are held after the stop", held)
	}
	wants(t, "stopped", s.Get(t, "/bulk/"+it.ID, http.StatusOK), []string{"Cancelled", "100 of 150"}, ">Stop<", "Nothing was changed")
}

// TestItems_MarksWhatLeaves checks that the stream of a page tells of rows that no longer match, but not of
// those whose place newer rows took.
func TestItems_MarksWhatLeaves(t *testing.T) {
	s := newSite(t, registry.RoleOperator)
	names := make([]string, 50)
	for i := range names {
		names[i] = fmt.Sprint("b", i)
	}
	ids := s.submit(t, names...)
	text := s.Get(t, "/items?q=state%3Apending+action%3Abatch", http.StatusOK)
	m := regexp.MustCompile(`sse-connect="([^"]*)"`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("the page has no stream")
	}
	stream, err := url.Parse(html.UnescapeString(m[1]))
	must(t, err)
	follow := stream.Query().Get("page")
	wants(t, "nothing has changed", s.Get(t, follow, http.StatusOK), []string{"item-" + ids[0]}, "no longer matches")
	_, err = s.Store.Command(t.Context(), registry.Command{ItemID: ids[7], Act: registry.ActCancel, Actor: "ann", Confirmed: true})
	must(t, err)
	s.submit(t, "newer", "newest") // the oldest row is on the second page now
	cells := map[string]string{}
	for _, m := range regexp.MustCompile(`(?s)<td[^>]* id="item-([^"]*)" data-live.*?</td>`).FindAllStringSubmatch(s.Get(t, follow, http.StatusOK), -1) {
		cells[m[1]] = m[0]
	}
	if len(cells) != 52 || !strings.Contains(cells[ids[7]], "no longer matches") || !strings.Contains(cells[ids[7]], "Cancelled") {
		t.Errorf("%d cells; that of the cancelled one: %s", len(cells), cells[ids[7]])
	}
	if cell := cells[ids[0]]; cell == "" || strings.Contains(cell, "no longer matches") {
		t.Errorf("the cell of the row on the next page: %q", cell)
	}
}

// TestBulk_Many: where many items match, the form is shown at once and asks for its counts, and
// cannot be sent before it has them.
func TestBulk_Many(t *testing.T) {
	address := sqlstoretest.SQLite(t)
	const jobs = 5100
	must(t, registrybench.Seed(t.Context(), address, registrybench.Seeding{Items: jobs + 1, Jobs: jobs, Seed: 1, Title: "Harbour"}))
	s := site{uitest.New(t, uitest.Options{Database: address})}
	s.Token = s.TokenOf(t, "ann", registry.RoleOperator)
	for _, query := range []string{"harbour", "action:ingest"} {
		text := s.Get(t, "/items/act?act=cancel&all=yes&"+q(query), http.StatusOK)
		wants(t, query, text, []string{"At least 5,000 items match"}, "<form action=\"/items/act\"")
		counts := regexp.MustCompile(`hx-get="([^"]*)"[^>]*hx-select="#bulk"`).FindStringSubmatch(text)
		if counts == nil || !strings.Contains(text, `href="`+counts[1]+`">Count all`) {
			t.Fatalf("%s: nothing leads to the counts: %s", query, text)
		}
		counted := s.Get(t, html.UnescapeString(counts[1]), http.StatusOK)
		wants(t, query+", counted", counted, []string{`<div id="bulk">`, "5,100 items match now", `name="key"`}, "Count all")
		again := s.Post(t, "/items/act", fields(counted)).Body.String()
		wants(t, query+", not confirmed", again, []string{"5,100 items match now", "Tick this to confirm."}, "Count all")
	}
	wants(t, "few", s.Get(t, "/items/act?act=cancel&all=yes&"+q("action:batch"), http.StatusOK), []string{"1 item matches now"}, "Count all")
}
