package item

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
	"github.com/holdfast/holdfast/web/ui/page"
)

// drawnNodes is the largest number of nodes that a page draws and lists. It sums larger graphs up by
// level, and lists their failed and running nodes only.
const drawnNodes = 200

// failedActs are the acts that the page of a graph offers for all its failed items.
var failedActs = []registry.Act{registry.ActRequeue, registry.ActAbort, registry.ActHold, registry.ActPriority}

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

	Called   string
	Title    string
	Standing graphview.Standing
	Buttons  page.Buttons
}

func (p pages) graph(r *http.Request) (page.Page, error) {
	id := r.PathValue("id")
	v, err := graphview.OfGraph(r.Context(), p.API, id)
	if err != nil {
		return page.Page{}, err
	}
	g := p.graphOf(r.Context(), v)
	g.ID = id
	if g.Failed > 0 && p.May(r.Context(), "bulk") {
		g.Requeue = registry.Query{Terms: []registry.Term{{Field: "graph", Value: id}, {Field: "status", Value: string(registry.Failed)}}}.String()
	}
	return page.Page{Name: "graph", Title: p.Texts(r).T("Graph"), Section: "items", Live: isLive(v), Alike: true, Content: g}, nil
}

// around is the page of what an item waits for and what waits for it.
func (p pages) around(r *http.Request) (page.Page, error) {
	it, err := p.API.Item(r.Context(), r.PathValue("id"))
	if err != nil {
		return page.Page{}, err
	}
	v, err := graphview.OfItem(r.Context(), p.API, it.ID)
	if err != nil {
		return page.Page{}, err
	}
	g := p.graphOf(r.Context(), v)
	g.ID, g.Item = v.GraphID, &it
	return page.Page{Name: "graph", Title: p.Texts(r).T("Around %s", p.Heading(r, it)), Section: "items", Live: isLive(v), Alike: true, Content: g}, nil
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

func (p pages) graphOf(ctx context.Context, v *graphview.View) graphPage {
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
		g.Rows = append(g.Rows, graphRow{GraphNode: n, Called: graphview.Name(n), Title: graphview.Title(n), Standing: v.Standing(n), Buttons: p.ButtonsOf(ctx, n.WorkItem)})
	}
	return g
}
