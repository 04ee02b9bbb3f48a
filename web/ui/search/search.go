// Package search serves the list of items with its query, acts on many items, and their progress.
package search

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/ui/page"
)

//go:embed page/*.html
var files embed.FS

// pages are the pages of this package.
type pages struct{ *page.Site }

// Add adds the pages to a site.
func Add(s *page.Site) {
	p := pages{s}
	s.Add(files, nil, "items", "bulk", "progress", "view")
	s.Get("/items", p.items)
	s.Serve("GET /items/suggest", p.suggest)
	s.Home("/views", "/items")
	s.Home("/bulk", "/items")
	s.Post("/views", p.addView)
	s.Post("/views/{id}", p.editView)
	s.Post("/views/{id}/remove", p.removeView)
	s.Get("/items/act", p.askBulk)
	s.Post("/items/act", p.startBulk)
	s.Get("/bulk/{id}", p.progress)
	s.Post("/bulk/{id}/stop", p.stop)
}

// rowsShown is the number of rows on a page.
const rowsShown = page.IDsAsked

// column is what a list can show beside the name and the state.
type column struct {
	Name, Title string
	usual       bool
	Shown       bool
}

// columns are all columns, in their order.
func columns(t lang.Texts) []column {
	return []column{
		{Name: "kind", Title: t.T("Kind")},
		{Name: "stage", Title: t.T("Stage"), usual: true},
		{Name: "collection", Title: t.T("Collection"), usual: true},
		{Name: "batch", Title: t.T("Batch")},
		{Name: "by", Title: t.T("Submitted by")},
		{Name: "size", Title: t.T("Size")},
		{Name: "tries", Title: t.T("Tries")},
		{Name: "priority", Title: t.T("Priority")},
		{Name: "changed", Title: t.T("Changed"), usual: true},
		{Name: "submitted", Title: t.T("Submitted")},
	}
}

// itemsPage is the content of the list.
type itemsPage struct {
	Query   string
	Words   string // the texts of the query, which may be titles of objects
	Wrong   string // the error of the query
	Fields  []query.Field
	Chips   []chip
	Filters []filter
	Views   savedViews
	Columns []column
	Chosen  bool // the columns are not the usual ones
	Oldest  bool
	Turn    string // address of the list in the opposite order
	Rows    []row
	Count   int64 // of all that match; -1: unknown
	More    bool  // more may match
	Next    string
	Prev    string
	Here    string // address of the newest rows
	Acts    []registry.Act
	First   bool // there are no newer rows than these

	MayDeposit bool

	streamed bool // only the rows are needed
}

// chip is a term of the query, with the address of the list without it.
type chip struct{ Text, Without string }

// filter is a query that people often ask, in place of the states that the present one names.
type filter struct {
	Title string
	URL   string
	On    bool
	Count int64 // up to mostCounted; -1: unknown
}

// More reports whether there may be more than were counted.
func (f filter) More() bool { return f.Count >= mostCounted }

// row is an item with what it waits for.
type row struct {
	registry.WorkItem
	Why   registry.Why
	Batch registry.WorkItem // of a job, if its column is shown; without ID: unknown
	Shows map[string]bool
	Left  bool // it was on the page when that was loaded, and no longer matches
}

func (p pages) items(r *http.Request) (page.Page, error) {
	ctx, form := r.Context(), r.URL.Query()
	opened, err := p.open(ctx, form)
	if err != nil {
		return page.Page{}, err
	}
	s := itemsPage{Query: form.Get("q"), Fields: query.Fields(), Oldest: form.Get("order") == "oldest", Count: -1, Here: address(form, "after", "", "before", "")}
	s.Turn = address(form, "order", turned(s.Oldest), "after", "", "before", "")
	s.streamed = page.Streaming(r)
	s.First = form.Get("after") == "" && form.Get("before") == "" && !s.Oldest
	t := p.Texts(r)
	shown := s.chooseColumns(columns(t), form["col"])
	match, err := query.Parse(s.Query)
	if err != nil {
		s.Wrong = lang.Sentence(err.Error()) // the page shows the query again, with its error
	} else {
		s.Words = match.Words()
		if !s.streamed {
			s.Chips = chips(form, match)
			s.Filters = p.filters(ctx, t, form, match)
			s.Views = p.views(ctx, opened, present(form, match))
		}
		if err := p.list(ctx, form, match, &s, shown); err != nil {
			return page.Page{}, err
		}
	}
	follow := ""
	if loaded := form.Get("rows"); loaded != "" { // for the stream of a page that shows these rows
		left, err := p.left(ctx, match, s.Rows, strings.Split(loaded, ","), shown)
		if err != nil {
			return page.Page{}, err
		}
		s.Rows = append(s.Rows, left...)
	} else if len(s.Rows) > 0 {
		follow = page.With(r, "rows", strings.Join(idsOf(s.Rows), ","))
	}
	s.MayDeposit = p.May(ctx, "submit-payload")
	if p.May(ctx, "bulk") {
		s.Acts = bulkActs
	}
	return page.Page{
		Name: "items", Title: t.T("Items"), Section: "items", Live: s.Wrong == "", Alike: true, Follow: follow, Scripts: []string{"search.js"}, Content: s,
	}, nil
}

// chooseColumns notes which columns are shown.
func (s *itemsPage) chooseColumns(all []column, names []string) map[string]bool {
	shown := map[string]bool{}
	for _, c := range all {
		c.Shown = c.usual
		if len(names) > 0 {
			c.Shown = slices.Contains(names, c.Name)
		}
		shown[c.Name], s.Chosen = c.Shown, s.Chosen || c.Shown != c.usual
		s.Columns = append(s.Columns, c)
	}
	return shown
}

// list reads a page of the items that match.
func (p pages) list(ctx context.Context, form url.Values, match registry.Query, s *itemsPage, shown map[string]bool) error {
	q := registry.ItemQuery{Match: match, After: form.Get("after"), Before: form.Get("before"), Oldest: s.Oldest, Limit: rowsShown}
	list, err := p.API.Items(ctx, q)
	if err == nil && q.Before != "" && len(list.Rows) < rowsShown {
		// Newer rows have come since: the first page is the one before.
		q.Before, s.First = "", !s.Oldest
		list, err = p.API.Items(ctx, q)
	}
	var tooMuch *registry.QueryError
	if errors.As(err, &tooMuch) {
		s.Wrong = lang.Sentence(tooMuch.Error())
		return nil
	}
	if err != nil {
		return err
	}
	if list.Next != "" {
		s.Next = address(form, "after", list.Next, "before", "")
	}
	if list.Prev != "" {
		s.Prev = address(form, "before", list.Prev, "after", "")
	}
	if s.Rows, err = p.explained(ctx, list.Rows, shown); err != nil {
		return err
	}
	switch {
	case list.Next == "" && list.Prev == "":
		s.Count = int64(len(list.Rows))
	case !hasText(match) && !s.streamed:
		most := mostFound
		if quick(match) {
			most = mostCounted
		}
		s.Count = p.count(ctx, match, most)
		s.More = s.Count >= int64(most)
	}
	return nil
}

// hasText reports whether a query looks for text. The items that match are then not counted: that
// reads each of them.
func hasText(q registry.Query) bool {
	return slices.ContainsFunc(q.Terms, registry.Term.InText)
}

// explained adds to rows what they wait for and their batches, with one request each for all.
func (p pages) explained(ctx context.Context, items []registry.WorkItem, shown map[string]bool) ([]row, error) {
	var ids []string
	for _, it := range items {
		if !it.Status.Settled() {
			ids = append(ids, it.ID)
		}
	}
	said := map[string]registry.Why{}
	if len(ids) > 0 {
		reasons, err := p.API.WhyEach(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, w := range reasons {
			said[w.ItemID] = w
		}
	}
	batches := map[string]registry.WorkItem{}
	if shown["batch"] {
		var err error
		if batches, err = p.ItemsOf(ctx, parentsOf(items)); err != nil {
			return nil, err
		}
	}
	rows := make([]row, len(items))
	for i, it := range items {
		rows[i] = row{WorkItem: it, Why: said[it.ID], Batch: batches[it.ParentID], Shows: shown}
	}
	return rows, nil
}

func parentsOf(items []registry.WorkItem) (ids []string) {
	for _, it := range items {
		if it.ParentID != "" {
			ids = append(ids, it.ParentID)
		}
	}
	return ids
}

// mostCounted bounds what a page counts where indexes find the items, mostFound where each item has
// to be looked at.
const (
	mostCounted = 2000
	mostFound   = 1000
)

func idsOf(rows []row) (ids []string) {
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// left returns the rows of an open page that its list does not have any more: newer rows took their
// place, or they no longer match.
func (p pages) left(ctx context.Context, match registry.Query, now []row, loaded []string, shown map[string]bool) ([]row, error) {
	listed := idsOf(now)
	missing := slices.DeleteFunc(loaded[:min(len(loaded), rowsShown)], func(id string) bool { return slices.Contains(listed, id) || !registry.IDStart(id) })
	if len(missing) == 0 {
		return nil, nil
	}
	byID := registry.Query{Terms: []registry.Term{{Field: "id", Value: strings.Join(missing, ",")}}}
	list, err := p.API.Items(ctx, registry.ItemQuery{Match: byID, Limit: rowsShown})
	if err != nil {
		return nil, err
	}
	rows, err := p.explained(ctx, list.Rows, shown)
	both := registry.Query{Terms: slices.Concat(byID.Terms, match.Terms)}
	if err != nil || len(both.Terms) > registry.MaxQueryTerms || len(both.String()) > registry.MaxQueryBytes {
		return rows, err // whether they match cannot be asked
	}
	still, err := p.API.Items(ctx, registry.ItemQuery{Match: both, Limit: rowsShown})
	if err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].Left = !slices.ContainsFunc(still.Rows, func(it registry.WorkItem) bool { return it.ID == rows[i].ID })
	}
	return rows, nil
}

// count is the number of items that match, no more than most, or -1 if the Registry cannot count
// them.
func (p pages) count(ctx context.Context, match registry.Query, most int) (all int64) {
	counts, err := p.API.CountItems(ctx, registry.ItemQuery{Match: match, Most: most})
	if err != nil {
		return -1 // the list is right without it
	}
	for _, n := range counts {
		all += n
	}
	return all
}

// chips are the terms of a query.
func chips(form url.Values, match registry.Query) (all []chip) {
	for i, t := range match.Terms {
		rest := registry.Query{Terms: slices.Delete(slices.Clone(match.Terms), i, i+1)}
		all = append(all, chip{Text: t.String(), Without: withQuery(form, rest)})
	}
	return all
}

// stateFields are the fields that filters stand in for.
var stateFields = []string{"state", "status", "held", "delayed", "by"}

// filters are the queries that people often ask, with their counts.
func (p pages) filters(ctx context.Context, t lang.Texts, form url.Values, match registry.Query) (all []filter) {
	others := registry.Query{Terms: slices.DeleteFunc(slices.Clone(match.Terms), func(t registry.Term) bool { return slices.Contains(stateFields, t.Field) })}
	with := func(terms ...registry.Term) registry.Query {
		return registry.Query{Terms: slices.Concat(terms, others.Terms)}
	}
	counted := quick(others)
	add := func(title string, terms ...registry.Term) {
		q := with(terms...)
		f := filter{Title: title, URL: withQuery(form, q), On: sameTerms(q, match), Count: -1}
		if counted {
			f.Count = p.count(ctx, q, mostCounted)
		}
		if f.On {
			f.URL = withQuery(form, others)
		}
		all = append(all, f)
	}
	add(t.T("Failed"), registry.Term{Field: "state", Value: "failed"})
	add(t.T("Held"), registry.Term{Field: "state", Value: "held"})
	add(t.T("Waiting for a retry"), registry.Term{Field: "delayed", Value: "yes"})
	add(t.T("Waiting"), registry.Term{Field: "status", Value: "pending"}, registry.Term{Field: "held", Value: "no"})
	add(t.T("Running"), registry.Term{Field: "status", Value: "running"})
	add(t.T("Completed"), registry.Term{Field: "state", Value: "completed"})
	if name := p.Caller(ctx).Name; name != "" {
		add(t.T("Mine"), registry.Term{Field: "by", Value: name})
	}
	return all
}

// quick reports whether indexes find the items that match a query.
func quick(q registry.Query) bool {
	return !slices.ContainsFunc(q.Terms, func(t registry.Term) bool {
		return t.Not || !slices.Contains([]string{"action", "batch", "collection", "state", "status"}, t.Field)
	})
}

// sameTerms reports whether two queries have the same terms, in any order.
func sameTerms(a, b registry.Query) bool {
	texts := func(q registry.Query) []string {
		out := make([]string, len(q.Terms))
		for i, t := range q.Terms {
			out[i] = t.String()
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(texts(a), texts(b))
}

// withQuery is the address of the first page of a list with another query.
func withQuery(form url.Values, q registry.Query) string {
	return address(form, "q", q.String(), "after", "", "before", "")
}

// address is the address of the list with other values; "" removes one. A saved view remains one while
// only its pages are turned.
func address(form url.Values, pairs ...string) string {
	v, names := url.Values{}, []string{"q", "col", "order", "after", "before"}
	if form.Has("view") && !slices.ContainsFunc([]string{"q", "col", "order"}, func(name string) bool { return slices.Contains(pairs, name) }) {
		names = []string{"view", "after", "before"}
	}
	for _, name := range names {
		v[name] = form[name]
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		v[pairs[i]] = []string{pairs[i+1]}
	}
	for name, values := range v {
		if strings.Join(values, "") == "" {
			delete(v, name)
		}
	}
	if len(v) == 0 {
		return "/items"
	}
	return "/items?" + v.Encode()
}

// turned is the value of the order that a list does not have now.
func turned(oldest bool) string {
	if oldest {
		return ""
	}
	return "oldest"
}

// mostSuggested is how many suggestions are shown.
const mostSuggested = 12

// suggestion completes the last word of a query.
type suggestion struct {
	Text, Means string
	Fill        string // the whole query with it
	URL         string // the list of that query; "": the word needs a value
}

// suggestions is the part of the page with the suggestions. The layout is not around it.
var suggestions = template.Must(template.New("suggestions").Parse(
	`{{range .}}<li><a href="{{or .URL "#q"}}" data-fill="{{.Fill}}"><code>{{.Text}}</code>{{with .Means}} <span class="hint">{{.}}</span>{{end}}</a></li>
{{end}}`))

// suggest answers with the fields or values with which the last word of a query can go on.
func (p pages) suggest(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("q")
	head, word := "", text
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		head, word = text[:i+1], text[i+1:]
	}
	not := ""
	if rest, ok := strings.CutPrefix(word, "-"); ok {
		not, word = "-", rest
	}
	var all []suggestion
	if name, value, ok := strings.Cut(word, ":"); ok {
		before, last := "", value
		if i := strings.LastIndexByte(value, ','); i >= 0 {
			before, last = value[:i+1], value[i+1:]
		}
		for _, v := range p.valuesOf(r.Context(), strings.ToLower(name), last) {
			v.Fill = head + not + name + ":" + before + v.Text
			v.URL = "/items?" + url.Values{"q": {v.Fill}}.Encode()
			all = append(all, v)
		}
	} else {
		for _, f := range query.Fields() {
			if strings.HasPrefix(f.Name, strings.ToLower(word)) {
				means, _ := p.Texts(r).Said(f.Means)
				all = append(all, suggestion{Text: f.Name + ":", Means: means, Fill: head + not + f.Name + ":"})
			}
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := suggestions.Execute(w, all[:min(len(all), mostSuggested)]); err != nil {
		p.Log.WarnContext(r.Context(), "suggestions not sent", "err", err)
	}
}

// valuesOf are the values of a field that begin with a text.
func (p pages) valuesOf(ctx context.Context, field, begin string) (all []suggestion) {
	add := func(value, means string) {
		if strings.HasPrefix(strings.ToLower(value), strings.ToLower(begin)) {
			all = append(all, suggestion{Text: value, Means: means})
		}
	}
	switch field {
	case "collection":
		collections, err := p.API.Collections(ctx)
		if err != nil {
			return nil // only a comfort
		}
		for _, c := range collections {
			add(c.Mnemonic, c.Profile.Name)
		}
	case "cause":
		failures, err := p.FailuresOf(ctx, registry.Query{})
		if err != nil {
			return nil
		}
		for _, g := range failures.Groups {
			add(g.Fingerprint, g.Title())
		}
	default:
		for _, v := range query.Known(field) {
			add(v, "")
		}
	}
	return all
}
