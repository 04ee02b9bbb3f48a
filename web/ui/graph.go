package ui

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
)

// drawnNodes is the largest number of nodes that a page draws and lists. It sums larger graphs up by
// level, and lists their failed and running nodes only.
const drawnNodes = 200

// graphPage is the content of the page of a graph, or of what is around an item.
type graphPage struct {
	ID      string
	Item    *registry.WorkItem // nil: the page shows a whole graph
	Sealed  bool
	More    bool
	Nodes   int64
	Counts  []graphview.StateCount
	Drawing *graphview.Drawing // nil: the graph is too large
	Levels  []graphview.Level
	Rows    []graphRow
	Left    int64  // nodes without a row
	Requeue string // the query of the failed nodes; "": there are none, or the caller may not act
	Failed  int64
}

// graphRow is a node in the table.
type graphRow struct {
	registry.GraphNode

	Called  string
	Title   string
	Detail  string
	Buttons buttons
}

func (p *pages) graph(r *http.Request) (page, error) {
	id := r.PathValue("id")
	v, err := graphview.OfGraph(r.Context(), p.registry, id)
	if err != nil {
		return page{}, err
	}
	g := p.graphOf(r.Context(), v)
	g.ID = id
	if g.Failed > 0 && p.forms != nil && p.forms.MayAct(r.Context()) {
		g.Requeue = registry.Query{Terms: []registry.Term{{Field: "graph", Value: id}, {Field: "status", Value: string(registry.Failed)}}}.String()
	}
	return page{Name: "graph", Title: "Graph", Section: "status", Live: isLive(v), Content: g}, nil
}

// around is the page of what an item waits for and what waits for it.
func (p *pages) around(r *http.Request) (page, error) {
	it, err := p.registry.Item(r.Context(), r.PathValue("id"))
	if err != nil {
		return page{}, err
	}
	v, err := graphview.OfItem(r.Context(), p.registry, it.ID)
	if err != nil {
		return page{}, err
	}
	g := p.graphOf(r.Context(), v)
	g.ID, g.Item = v.GraphID, &it
	return page{Name: "graph", Title: "What waits around " + nameOf(it), Section: "status", Live: isLive(v), Content: g}, nil
}

// isLive reports whether a node can still change by itself.
func isLive(v *graphview.View) bool {
	for _, n := range v.Nodes {
		if n.Status == registry.Pending || n.Status == registry.Running {
			return true
		}
	}
	return false
}

func (p *pages) graphOf(ctx context.Context, v *graphview.View) graphPage {
	g := graphPage{Sealed: v.Sealed, More: v.More, Counts: v.Counts()}
	for _, c := range g.Counts {
		g.Nodes += c.Count
	}
	shown := v.Nodes
	g.Failed = int64(len(v.Failed()))
	if len(v.Nodes) > drawnNodes {
		g.Levels = v.Levels()
		failed, running := v.Failed(), v.Running()
		shown = append(failed[:min(len(failed), drawnNodes/2)], running[:min(len(running), drawnNodes/2)]...)
	} else {
		d := v.Draw()
		g.Drawing = &d
	}
	g.Left = int64(len(v.Nodes) - len(shown))
	for _, n := range shown {
		g.Rows = append(g.Rows, graphRow{GraphNode: n, Called: graphview.Name(n), Title: graphview.Title(n), Detail: v.Detail(n), Buttons: p.buttons(ctx, n.WorkItem)})
	}
	return g
}

// graphURL is the address of a graph's page.
func graphURL(id string) string { return (&url.URL{Path: "/graphs/" + id}).String() }

// aroundURL is the address of the page of what is around an item.
func aroundURL(id string) string { return "/items/" + url.PathEscape(id) + "/graph" }

// itemURL is the address of an item's page.
func itemURL(it registry.WorkItem) string {
	if it.Action == registry.Batch {
		return "/batches/" + url.PathEscape(it.ID)
	}
	return "/items/" + url.PathEscape(it.ID)
}
