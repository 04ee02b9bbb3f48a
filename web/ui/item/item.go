// Package item serves the pages of batches, items and graphs, and the forms that act on them.
package item

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
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
	s.Add(files, template.FuncMap{"failedActs": func() []registry.Act { return failedActs }}, "batch", "item", "graph", "act", "requeue")
	s.Get("/batches/{id}", p.batch)
	s.Get("/items/{id}", p.item)
	s.Get("/graphs/{id}", p.graph)
	s.Get("/items/{id}/graph", p.around)
	s.Get("/items/{id}/acts", p.askAct)
	s.Post("/items/{id}/acts", p.act)
	s.Get("/failures/requeue", p.askRequeue)
	s.Post("/failures/requeue", p.requeue)
}

// batchPage is the content of a batch's page.
type batchPage struct {
	Buttons  page.Buttons
	Did      *registry.Event
	Batch    registry.WorkItem
	Spec     registry.Spec
	Progress registry.BatchProgress
	Why      registry.Why
	Report   *registry.BatchReport
	NoReport string // why there is no report and none will come
	Failures page.Failures
	Jobs     []jobRow
	Next     string
}

// jobRow is a job with the ARK of its object, "" before it has one.
type jobRow struct {
	registry.WorkItem
	ARK     string
	Repeats *registry.RowPlace // the earlier row that this one repeats
}

// LineText is as in package registry.
func (j jobRow) LineText() string { return registry.LineText(j.Row, j.Line) }

func (p pages) batch(r *http.Request) (page.Page, error) {
	ctx := r.Context()
	id := r.PathValue("id")
	it, err := p.API.Item(ctx, id)
	if err != nil {
		return page.Page{}, err
	}
	if it.Action != registry.Batch {
		return page.Page{}, page.NotFound("batch " + id)
	}
	b := batchPage{Batch: it, Spec: specOf(it), Buttons: p.ButtonsOf(ctx, it)}
	if b.Did, err = p.did(r, id); err != nil {
		return page.Page{}, err
	}
	if b.Progress, err = p.API.BatchProgress(ctx, id); err != nil {
		return page.Page{}, err
	}
	if it.FailedItself() {
		if b.Failures, err = p.FailuresOf(ctx, registry.Query{Terms: []registry.Term{{Field: "id", Value: id}}}); err != nil {
			return page.Page{}, err
		}
	} else if b.Progress.Failed+b.Progress.Preserved > 0 {
		if b.Failures, err = p.FailuresOf(ctx, registry.Query{Terms: []registry.Term{{Field: "batch", Value: id}}}); err != nil {
			return page.Page{}, err
		}
	}
	if b.Why, err = p.API.Why(ctx, id); err != nil {
		return page.Page{}, err
	}
	if it.Closing > 0 {
		// There is no report while it is being written.
		if report, err := p.API.ReportOf(ctx, id, 0); err == nil {
			b.Report = &report
		}
	}
	if why, coming := registry.NoReport(it); b.Report == nil && !coming {
		b.NoReport = why
	}
	jobs, err := p.API.Items(ctx, registry.ItemQuery{ParentID: id, After: r.URL.Query().Get("after"), Limit: 100})
	if err != nil {
		return page.Page{}, err
	}
	b.Next = page.Next(r, jobs.Next)
	for _, job := range jobs.Rows {
		ark, _ := objectOf(job)
		b.Jobs = append(b.Jobs, jobRow{WorkItem: job, ARK: ark, Repeats: specOf(job).Repeats})
	}
	return page.Page{Name: "batch", Title: "Batch " + page.NameOf(it), Section: "items", Live: !it.Status.Settled(), Content: b}, nil
}

// itemPage is the content of an item's page.
type itemPage struct {
	Buttons  page.Buttons
	Did      *registry.Event
	Item     registry.WorkItem
	Spec     registry.Spec
	ARK      string
	Version  int
	Why      registry.Why
	Attempts []registry.Attempt
	Log      []registry.LogLine // the newest, oldest first
	LogMore  bool               // there are older lines
	Resume   string             // where a retry resumes

	Deliveries []registry.Delivery
	Message    *registry.DeliverySpec // of a delivery
	Events     []registry.Event
	Next       string
	NoteShown  bool // Why already shows the item's note
	Bulk       *registry.BulkProgress
	Asked      string // the request of an item about an object
	GivenUp    string // which delivery was given up
	Task       *taskPart
	Steps      []registry.StepRun
}

func (p pages) item(r *http.Request) (page.Page, error) {
	const eventsAtOnce = 200
	ctx := r.Context()
	whole, err := p.API.WholeItem(ctx, r.PathValue("id"))
	if err != nil {
		return page.Page{}, err
	}
	it := whole.WorkItem
	after, err := page.Number(r, "after")
	if err != nil {
		return page.Page{}, err
	}
	i := itemPage{Item: it, Deliveries: whole.Deliveries, Steps: whole.Steps, Resume: whole.ResumePoint, Spec: specOf(it), Buttons: p.ButtonsOf(ctx, it)}
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
	if i.Task, err = p.taskOf(ctx, it); err != nil {
		return page.Page{}, err
	}
	if i.Why, err = p.API.Why(ctx, it.ID); err != nil {
		return page.Page{}, err
	}
	i.NoteShown = strings.Contains(i.Why.Sentence, it.Note)
	if i.Attempts, err = p.API.Attempts(ctx, it.ID); err != nil {
		return page.Page{}, err
	}
	const linesShown = 100
	lines, err := p.API.Log(ctx, registry.LogQuery{ItemID: it.ID, Newest: true, Limit: linesShown})
	if err != nil {
		return page.Page{}, err
	}
	slices.Reverse(lines.Rows)
	i.Log, i.LogMore = lines.Rows, lines.Next != ""
	if message, ok := registry.DeliverySpecIn(it.Spec); ok && it.Action == registry.DeliverMessage {
		i.Message = &message
	}
	if i.Events, err = p.API.Events(ctx, it.ID, after, eventsAtOnce); err != nil {
		return page.Page{}, err
	}
	if n := len(i.Events); n == eventsAtOnce {
		i.Next = (&url.URL{Path: r.URL.Path, RawQuery: fmt.Sprintf("after=%d", i.Events[n-1].Seq)}).String()
	}
	return page.Page{Name: "item", Title: "Item " + page.NameOf(it), Section: "items", Live: !it.Status.Settled(), Content: i}, nil
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
