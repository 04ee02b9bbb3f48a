package search

import (
	"context"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// A list costs as many rows as it reads before its page is full. narrow finds places in the indexes
// that together contain every row of the query, and few others. Each place is read newest first, up
// to a page, and the pages are merged. This decides only the speed of an answer: the complete
// condition applies at each place.

// mostPlaces bounds how many places one statement reads.
const mostPlaces = 120

// reach is what a query allows in the columns with which indexes begin; nil allows everything.
type reach struct {
	places      []work.Place
	narrowed    bool // places are restricted by more than the action
	collections []string
	actions     []string
	classes     []string
	causes      []string
	by          []string
	batches     []string
	graphs      []string
	ids         []string
	requeued    bool
	noted       bool
	held        bool
}

// reachOf returns the reach of a query. A term that it does not know restricts nothing.
func reachOf(q registry.ItemQuery) reach {
	r := reach{places: work.Places()}
	if q.Action != "" {
		r.only(&r.actions, []string{string(q.Action)})
	}
	if q.Collection != "" {
		r.only(&r.collections, []string{q.Collection})
	}
	if q.Within != nil {
		r.only(&r.collections, q.Within)
	}
	if q.ParentID != "" {
		r.only(&r.batches, []string{q.ParentID})
	}
	if q.Status != "" {
		r.keep(func(p work.Place) bool { return p.Status == q.Status })
	}
	if q.Stage != "" {
		r.keep(func(p work.Place) bool { return p.Stage == q.Stage.Family() })
	}
	for _, t := range q.Match.Terms {
		if !t.Not {
			r.term(t)
		}
	}
	if r.actions != nil {
		r.places = slices.DeleteFunc(r.places, func(p work.Place) bool {
			a, _ := registry.ActionOf(p.Stage)
			return !slices.Contains(r.actions, string(a))
		})
	}
	r.places = slices.DeleteFunc(r.places, neverReached)
	return r
}

// neverReached reports that no item is at a place: items complete at the end of their route only. Most
// items are completed, so to look for them in other stages would read nearly all.
func neverReached(p work.Place) bool {
	a, _ := registry.ActionOf(p.Stage)
	route, _ := registry.RouteOf(a)
	_, more := route.Next(p.Stage)
	return more && p.Status == registry.Completed
}

func (r *reach) term(t registry.Term) {
	values := query.Values(t)
	switch t.Field {
	case "state":
		r.keep(func(p work.Place) bool { return len(work.BitsOf(p, values)) > 0 })
		r.held = r.held || len(values) == 1 && registry.StateHeld.Equal(values[0])
	case "status":
		r.keep(func(p work.Place) bool { return slices.Contains(values, string(p.Status)) })
	case "stage":
		r.keep(func(p work.Place) bool {
			return slices.ContainsFunc(values, func(v string) bool { return registry.Stage(v).Family() == p.Stage })
		})
	case "held":
		if t.Value == "yes" {
			r.keep(func(p work.Place) bool { return p.Status == registry.Pending })
			r.held = true
		}
	case "delayed":
		if t.Value == "yes" {
			r.keep(func(p work.Place) bool { return p.Status == registry.Pending })
		}
	case "unresolved":
		if t.Value == "yes" {
			r.only(&r.actions, []string{string(registry.Batch)})
			r.keep(func(p work.Place) bool { return p.Status == registry.Failed || !p.Status.Settled() })
		}
	case "action":
		r.only(&r.actions, values)
	case "collection":
		r.only(&r.collections, values)
	case "class":
		r.only(&r.classes, values)
	case "cause":
		r.only(&r.causes, values)
		r.keep(func(p work.Place) bool { return p.Status == registry.Failed })
	case "by":
		r.only(&r.by, values)
	case "batch":
		r.only(&r.batches, values)
	case "graph":
		r.only(&r.graphs, values)
	case "id":
		r.only(&r.ids, values)
	case "error":
		r.noted = true // the text is never empty
	case "retries":
		op, n, err := query.CompareNumber(t.Value)
		r.requeued = r.requeued || err == nil && (op == ">" && n >= 0 || (op == ">=" || op == "=") && n > 0)
	}
}

func (r *reach) keep(is func(work.Place) bool) {
	r.narrowed = true
	r.places = slices.DeleteFunc(r.places, func(p work.Place) bool { return !is(p) })
}

// only restricts allowed to values.
func (r *reach) only(allowed *[]string, values []string) {
	if *allowed == nil {
		*allowed = slices.Compact(slices.Sorted(slices.Values(values)))
		return
	}
	*allowed = slices.DeleteFunc(*allowed, func(v string) bool { return !slices.Contains(values, v) })
}

// statuses returns the statuses of the places.
func (r *reach) statuses() []registry.Status {
	var out []registry.Status
	for _, p := range r.places {
		if !slices.Contains(out, p.Status) {
			out = append(out, p.Status)
		}
	}
	return out
}

// settled reports whether the query asks only for settled items.
func (r *reach) settled() bool {
	return r.narrowed && !slices.ContainsFunc(r.places, func(p work.Place) bool { return !p.Status.Settled() })
}

// noJobs reports whether the query asks for no jobs. The other items are few and have their own
// index.
func (r *reach) noJobs() bool {
	return r.actions != nil && !slices.Contains(r.actions, string(registry.Ingest))
}

// narrow returns the conditions of the places to read; none means all rows in order. empty reports
// that nothing can match.
func (s *Search) narrow(ctx context.Context, r *reach, w *sqldb.Where) (conds []string, empty bool, err error) {
	if len(r.places) == 0 {
		return nil, true, nil
	}
	if r.held && r.ids == nil && r.batches == nil && r.graphs == nil {
		conds, known, err := s.heldAt(ctx, w)
		if err != nil || known {
			return conds, known && len(conds) == 0, err
		}
	}
	conds, known := r.conds(w)
	return conds, known && len(conds) == 0, nil
}

// conds returns the conditions of the places to read. known is false if nothing restricts them.
func (r *reach) conds(w *sqldb.Where) (conds []string, known bool) {
	each := func(column string, values []string, more string) {
		for _, v := range values {
			conds = append(conds, w.Bind(column+" = ?"+more, v))
		}
	}
	switch {
	case r.ids != nil:
		for _, id := range r.ids {
			conds = append(conds, idCond(w, id))
		}
	case r.causes != nil && len(r.batches)*len(r.causes) <= mostPlaces && r.graphs == nil:
		if len(r.batches) == 0 {
			each("i.cause", r.causes, " AND i.status = 'failed'")
		}
		for _, b := range r.batches {
			each("i.cause", r.causes, w.Bind(" AND i.parent_id = ? AND i.status = 'failed'", b))
		}
	case r.byStatus():
		for _, s := range r.statuses() {
			each("i.parent_id", r.batches, " AND i.status = '"+string(s)+"'")
		}
	case r.batches != nil:
		each("i.parent_id", r.batches, "")
	case r.graphs != nil:
		for _, g := range r.graphs {
			conds = append(conds, startCond(w, "i.graph_id", g)+" AND i.graph_id <> ''")
		}
	case r.requeued:
		conds = []string{ofTenant + "i.retry_count > 0"}
	case r.noJobs():
		for _, s := range r.statuses() {
			each("i.action", r.actions, " AND "+noIngest+" AND i.status = '"+string(s)+"'")
		}
	case r.classes != nil:
		each("i.error_class", r.classes, " AND i.error_class <> ''")
	case r.collections != nil && r.narrowed && len(r.collections)*len(r.places) <= mostPlaces:
		for _, p := range r.places {
			each(ofTenant+"i.collection", r.collections, " AND "+p.Cond())
		}
	case r.noted && r.narrowed:
		for _, p := range r.places {
			// The action follows from the stage. It is here because SQLite chooses an index by how
			// many of its columns occur.
			a, _ := registry.ActionOf(p.Stage)
			conds = append(conds, ofTenant+"i.action = '"+string(a)+"' AND "+p.Cond()+" AND i.note <> ''")
		}
	case r.by != nil:
		each("i.created_by", r.by, "")
	case r.narrowed:
		for _, p := range r.places {
			conds = append(conds, ofTenant+p.Cond())
		}
	case r.collections != nil && len(r.collections) <= mostPlaces:
		each("i.collection", r.collections, "")
	default:
		return nil, false
	}
	return conds, true
}

// byStatus reports whether the places are those of the batches' jobs by status.
func (r *reach) byStatus() bool {
	return r.ids == nil && r.causes == nil && r.batches != nil && r.narrowed && len(r.batches)*len(r.statuses()) <= mostPlaces
}

// rowsAt returns a FROM clause for the rows at a place. It names the index for SQLite, which has no
// statistics here, where another has as many columns of the query: that one may lead to all rows of
// a stage, or of the Registry.
func (s *Search) rowsAt(r reach, cond string) string {
	switch {
	case r.byStatus():
		return "work_item i" + s.indexedBy("work_item_children")
	case strings.Contains(cond, noIngest):
		return "work_item i" + s.indexedBy("work_item_list")
	}
	return "work_item i"
}

// ofTenant begins the conditions of places whose index has the tenant.
const ofTenant = "i.tenant = '" + sqldb.Tenant + "' AND "

// noIngest is a part of the conditions whose rows are in the index of items that are no jobs.
const noIngest = "i.action <> 'ingest'"

// few reports whether there are few rows at the places, compared with all.
func (r *reach) few() bool {
	return r.ids != nil || r.batches != nil || r.graphs != nil || r.causes != nil || r.noJobs()
}

// sorted returns the order that the indexes of the places share, or "".
func (r *reach) sorted() string {
	if r.ids != nil || r.batches != nil || r.graphs != nil {
		return ""
	}
	return " ORDER BY i.created_at DESC"
}

// heldAt returns the places of held items, by the present holds. known is false if the holds
// restrict nothing.
func (s *Search) heldAt(ctx context.Context, w *sqldb.Where) (conds []string, known bool, err error) {
	holds, err := s.work.Holds(ctx)
	if err != nil {
		return nil, false, err
	}
	before := len(w.Args)
	for _, h := range holds {
		switch h.Scope {
		case registry.HoldStage:
			conds = append(conds, w.Bind("i.stage = ? AND i.status = 'pending'", h.Key))
		case registry.HoldCollection:
			for _, stage := range registry.DepositStages() {
				conds = append(conds, w.Bind("i.collection = ? AND "+work.Place{Stage: stage, Status: registry.Pending}.Cond(), h.Key))
			}
		case registry.HoldBatch:
			conds = append(conds, w.Bind("i.id = ?", h.Key), w.Bind("i.parent_id = ? AND i.status = 'pending'", h.Key))
		case registry.HoldItem:
			conds = append(conds, w.Bind("i.id = ?", h.Key))
		case registry.HoldWorker: // keeps back a worker, not an item
		case registry.HoldAll, registry.HoldIngest, registry.HoldVolume:
			w.Args = w.Args[:before]
			return nil, false, nil
		}
		if len(conds) > mostPlaces {
			w.Args = w.Args[:before]
			return nil, false, nil
		}
	}
	return conds, true, nil
}
