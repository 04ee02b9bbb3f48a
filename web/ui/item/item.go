// Package item serves the pages of batches, items and graphs, and the forms that act on them.
package item

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/web/ui/page"
)

//go:embed page/*.html
var files embed.FS

// pages are the pages of this package.
type pages struct{ *page.Site }

// Add adds the pages to a site.
func Add(s *page.Site) {
	p := pages{s}
	s.Add(files, template.FuncMap{
		"failedActs": func() []registry.Act { return failedActs },
		"whyOf":      func(why registry.Why, class registry.ErrorClass, way *wayOn) whyPart { return whyPart{why, class, way} },
	}, "batch", "item", "graph", "act", "redeliver", "redeliverjobs")
	s.Get("/batches/{id}", p.batch)
	s.Get("/batches/{id}/redeliver", p.askRedeliverJobs)
	s.Home("/batches", "/deposits")
	s.Post("/batches/{id}/redeliver", p.redeliverJobs)
	s.Get("/items/{id}", p.item)
	s.Get("/graphs/{id}", p.graph)
	s.Get("/items/{id}/graph", p.around)
	s.Get("/items/{id}/acts", p.askAct)
	s.Post("/items/{id}/acts", p.act)
	s.Get("/items/{id}/redeliver", p.askRedeliver)
	s.Post("/items/{id}/redeliver", p.redeliver)
}

// Bounds of an item's page.
const (
	nearShown     = 16  // items around it in the drawing, in each direction
	attemptsShown = 100 // the newest
	filesShown    = 20
	linesShown    = 100
	eventsAtOnce  = 200
)

// itemPage is the content of an item's page.
type itemPage struct {
	Buttons  page.Buttons
	Did      *registry.Event
	Item     registry.WorkItem
	Spec     registry.Spec
	ARK      string
	Version  int
	Why      registry.Why
	Class    registry.ErrorClass // of the failure that Why explains
	WayOn    *wayOn
	Holds    []registry.Hold // all that keep it
	Live     bool
	Measures []measure // of the running attempt
	Timeline *timeline
	Attempts []registry.Attempt // the newest
	Older    int                // attempts that are not listed
	Log      []registry.LogLine // the newest, oldest first
	LogMore  bool               // there are older lines
	Resume   string             // where a retry resumes
	Near     *graphview.Drawing // of what it waits for, and what waits for it; nil: nothing does
	NearMore bool

	Deliveries []registry.Delivery
	Redeliver  bool                   // the viewer may deliver the outcome again
	Message    *registry.DeliverySpec // of a delivery
	Files      []registry.File        // of the version that it made
	MoreFiles  bool
	Events     []eventRow
	Next       string
	NoteShown  bool // Why already shows the item's note
	Bulk       *registry.BulkProgress
	Asked      string // the request of an item about an object
	GivenUp    string // which delivery was given up
	Task       *taskPart
	Steps      []registry.StepRun
}

func (p pages) item(r *http.Request) (page.Page, error) {
	ctx := r.Context()
	whole, err := p.API.WholeItem(ctx, r.PathValue("id"))
	if err != nil {
		return page.Page{}, err
	}
	it := whole.WorkItem
	i := itemPage{
		Item: it, Deliveries: whole.Deliveries, Steps: whole.Steps, Resume: whole.ResumePoint, Spec: specOf(it), Class: it.ErrorClass,
		Live: !it.Status.Settled(),
	}
	receiver, _ := it.Receiver() // the page of an unreadable item must not fail
	i.Redeliver = p.May(ctx, "redeliver-item") && it.Action == registry.Ingest && it.Status.Settled() && (receiver != nil || len(i.Deliveries) > 0)
	if i.Did, err = p.did(r, it.ID); err != nil {
		return page.Page{}, err
	}
	if untold, ok := it.Untold(); ok {
		i.GivenUp = untold.Text()
	}
	i.ARK, i.Version = objectOf(it)
	if object, ok := registry.ObjectSpecIn(it.Spec); ok {
		i.ARK, i.Version, i.Asked = object.ObjectID, object.Version, object.Text()
	}
	if it.Action == registry.Bulk {
		i.Bulk = &registry.BulkProgress{}
		_ = json.Unmarshal(it.Results[registry.ResultBulk], i.Bulk) // no progress yet
	}
	if message, ok := registry.DeliverySpecIn(it.Spec); ok && it.Action == registry.DeliverMessage {
		i.Message = &message
	}
	for _, read := range []func(*http.Request, *itemPage) error{p.waitOf, p.attemptsOf, p.logOf, p.nearOf, p.filesOf, p.eventsOf} {
		if err := read(r, &i); err != nil {
			return page.Page{}, err
		}
	}
	if i.Task, err = p.taskOf(ctx, it); err != nil {
		return page.Page{}, err
	}
	return page.Page{Name: "item", Title: p.Texts(r).T("Item") + " " + p.Heading(r, it), Section: "items", Live: i.Live, Alike: true, Content: i}, nil
}

// waitOf explains why the item waits, and what it allows.
func (p pages) waitOf(r *http.Request, i *itemPage) (err error) {
	ctx := r.Context()
	if i.Why, err = p.API.Why(ctx, i.Item.ID); err != nil {
		return err
	}
	if i.Item.HeldBy != nil {
		holds, err := p.API.Holds(ctx)
		if err != nil {
			return err
		}
		i.Holds = slices.DeleteFunc(holds, func(h registry.Hold) bool { return !h.Covers(i.Item) })
		if len(i.Holds) == 0 { // released meanwhile, or one that depositors do not list
			i.Holds = []registry.Hold{*i.Item.HeldBy}
		}
	}
	i.NoteShown = strings.Contains(i.Why.Sentence, i.Item.Note)
	if i.WayOn, err = p.wayOn(ctx, i.Item, i.Why); err != nil {
		return err
	}
	i.Buttons = i.WayOn.others(p.ButtonsOf(ctx, i.Item))
	return nil
}

// attemptsOf reads the attempts, and draws them.
func (p pages) attemptsOf(r *http.Request, i *itemPage) error {
	all, err := p.API.Attempts(r.Context(), i.Item.ID)
	if err != nil {
		return err
	}
	now := time.Now()
	if p.Now != nil {
		now = p.Now()
	}
	i.Timeline = timelineOf(i.Item, all, now)
	if n := len(all); n > 0 && all[n-1].FinishedAt == nil {
		i.Measures = measuresOf(i.Item, all[n-1], now)
	}
	i.Older = max(0, len(all)-attemptsShown)
	i.Attempts = all[i.Older:]
	return nil
}

// logOf reads the newest lines that the attempts logged.
func (p pages) logOf(r *http.Request, i *itemPage) error {
	lines, err := p.API.Log(r.Context(), registry.LogQuery{ItemID: i.Item.ID, Newest: true, Limit: linesShown})
	if err != nil {
		return err
	}
	slices.Reverse(lines.Rows)
	i.Log, i.LogMore = lines.Rows, lines.Next != ""
	return nil
}

// nearest is the API, asked for few items around another one.
type nearest struct{ graphview.Source }

// Around implements graphview.Source.
func (n nearest) Around(ctx context.Context, itemID string, _ int) (registry.GraphPart, error) {
	return n.Source.Around(ctx, itemID, nearShown)
}

// nearOf draws what is around the item. Jobs wait for nothing but outside steps, and their batch waits
// for them, which its page shows.
func (p pages) nearOf(r *http.Request, i *itemPage) error {
	if i.Item.Action == registry.Batch {
		return nil
	}
	v, err := graphview.OfItem(r.Context(), nearest{p.API}, i.Item.ID)
	if err != nil {
		return err
	}
	onlyBatch := len(v.Nodes) == 2 && slices.ContainsFunc(v.Nodes, func(n registry.GraphNode) bool { return n.ID == i.Item.ParentID })
	if len(v.Nodes) > 1 && !onlyBatch {
		d := v.Draw()
		i.Near, i.NearMore = &d, v.More
	}
	return nil
}

// filesOf reads the first files of the version that a job made.
func (p pages) filesOf(r *http.Request, i *itemPage) error {
	if i.Item.Action != registry.Ingest || i.ARK == "" || i.Version == 0 || i.Item.Commitment != registry.Preserved {
		return nil
	}
	files, err := p.API.Files(r.Context(), i.ARK, i.Version, "", filesShown+1)
	if err != nil {
		if errors.Is(err, registry.ErrNotFound) { // it was deleted since
			return nil
		}
		return err
	}
	i.MoreFiles = len(files) > filesShown
	i.Files = files[:min(len(files), filesShown)]
	return nil
}

// eventsOf reads a page of the item's history.
func (p pages) eventsOf(r *http.Request, i *itemPage) error {
	after, err := page.Number(r, "after")
	if err != nil {
		return err
	}
	events, err := p.API.Events(r.Context(), i.Item.ID, after, eventsAtOnce)
	if err != nil {
		return err
	}
	texts := p.Texts(r)
	for _, e := range events {
		i.Events = append(i.Events, rowOf(texts, e))
	}
	if n := len(events); n == eventsAtOnce {
		i.Next = (&url.URL{Path: r.URL.Path, RawQuery: fmt.Sprintf("after=%d", events[n-1].Seq), Fragment: "history"}).String()
	}
	return nil
}

// taskPart is what a task has beside other items.
type taskPart struct {
	registry.TaskSpec

	Arguments string
	Returned  string // "" before it has completed
	Parents   []registry.GraphNode
	More      bool // it has more parents
}

// taskOf returns what a task has beside other items; nil for other items.
func (p pages) taskOf(ctx context.Context, it registry.WorkItem) (*taskPart, error) {
	if it.Action != registry.Task {
		return nil, nil //nolint:nilnil // as it says
	}
	t := &taskPart{Returned: indented(it.Results[registry.ResultReturned])}
	if json.Unmarshal(it.Spec, &t.TaskSpec) == nil {
		t.Arguments = indented(t.Args)
	}
	near, err := p.API.Around(ctx, it.ID, drawnNodes)
	if err != nil {
		return nil, err
	}
	t.More = near.More
	parents := map[string]bool{}
	for _, e := range near.Edges {
		if e.ItemID == it.ID {
			parents[e.RequiresID] = true
		}
	}
	for _, n := range near.Nodes {
		if parents[n.ID] {
			t.Parents = append(t.Parents, n)
		}
	}
	return t, nil
}

// indented formats a JSON value for people. A long one is cut.
func indented(raw json.RawMessage) string {
	const most = 10_000
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	if b.Len() > most {
		b.Truncate(most)
		return strings.ToValidUTF8(b.String(), "") + "\n… cut here; `holdfast task show` has all"
	}
	return b.String()
}

// objectOf returns the ARK and version that an item made, "" before it has one. It ignores
// unreadable results: the page of a broken item must not fail.
func objectOf(it registry.WorkItem) (ark string, version int) {
	var named registry.Identity
	if json.Unmarshal(it.Results["ark"], &named) != nil || json.Unmarshal(it.Results["version"], &version) != nil {
		return "", 0
	}
	return named.ARK, version
}

// specOf reads an item's spec for display, with secrets removed from its address.
func specOf(it registry.WorkItem) registry.Spec {
	var spec registry.Spec
	if json.Unmarshal(it.Spec, &spec) == nil {
		spec.URL = source.Redact(spec.URL)
	}
	return spec
}
