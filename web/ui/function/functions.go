package function

import (
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// functionRow is a function with what serves and limits it.
type functionRow struct {
	registry.Function

	Workers int
	Limit   *registry.Limit
}

// functions lists the functions that tasks can call, with the workers that serve them now.
func (p pages) functions(r *http.Request) (page.Page, error) {
	ctx := r.Context()
	all, err := p.API.Functions(ctx)
	if err != nil {
		return page.Page{}, err
	}
	var workers []registry.WorkerInfo
	if p.May(ctx, "list-workers") {
		if workers, err = p.API.Workers(ctx); err != nil {
			return page.Page{}, err
		}
	}
	var limits []registry.Limit
	if p.May(ctx, "list-limits") {
		if limits, err = p.API.Limits(ctx); err != nil {
			return page.Page{}, err
		}
	}
	var rows []functionRow
	for _, f := range all {
		row, stage := functionRow{Function: f}, registry.Run.Of(f.Name)
		for _, w := range workers {
			if w.Capacity[stage] > 0 {
				row.Workers++
			}
		}
		for _, l := range limits {
			if l.Scope == registry.HoldStage && l.Key == string(stage) {
				row.Limit = &l
			}
		}
		rows = append(rows, row)
	}
	return page.Page{Name: "functions", Title: p.Texts(r).T("Functions"), Section: "processes", Content: rows}, nil
}
