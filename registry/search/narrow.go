package search

import (
	"context"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// What a list costs is how many rows are looked at before its page is full. narrow finds places in
// the indexes that together have every row that a query selects, and as few others as can be; each
// is read newest first up to a page, and the pages are merged. It decides how fast an answer comes
// and never what it is: the whole condition is applied in each place.

// mostPlaces bounds how many places one statement looks at.
const mostPlaces = 120

// reach is what a query allows of the columns that indexes begin with; nil is everything.
type reach struct {
	places      []work.Place
	narrowed    bool // places are fewer than there are for a reason other than the action
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

// reachOf reads what a query allows. A term that it does not understand allows everything.
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
		r.keep(func(p work.Place) bool { return p.Stage == q.Stage })
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
	return r
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
		r.keep(func(p work.Place) bool { return slices.Contains(values, string(p.Stage)) })
	case "held":
		if t.Value == "yes" {
			r.keep(func(p work.Place) bool { return p.Status == registry.Pending })
			r.held = true
		}
	case "delayed":
		if t.Value == "yes" {
			r.keep(func(p work.Place) bool { return p.Status == registry.Pending })
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
		r.noted = true // an empty text is not asked for
	case "retries":
		op, n, err := query.CompareNumber(t.Value)
		r.requeued = r.requeued || err == nil && (op == ">" && n >= 0 || (op == ">=" || op == "=") && n > 0)
	}
}

func (r *reach) keep(is func(work.Place) bool) {
	r.narrowed = true
	r.places = slices.DeleteFunc(r.places, func(p work.Place) bool { return !is(p) })
}

// only keeps those of what is allowed that are among values.
func (r *reach) only(allowed *[]string, values []string) {
	if *allowed == nil {
		*allowed = slices.Compact(slices.Sorted(slices.Values(values)))
		return
	}
	*allowed = slices.DeleteFunc(*allowed, func(v string) bool { return !slices.Contains(values, v) })
}

// statuses are those of the places.
func (r *reach) statuses() []registry.Status {
	var out []registry.Status
	for _, p := range r.places {
		if !slices.Contains(out, p.Status) {
			out = append(out, p.Status)
		}
	}
	return out
}

// settled says that only settled items are asked for.
func (r *reach) settled() bool {
	return r.narrowed && !slices.ContainsFunc(r.places, func(p work.Place) bool { return !p.Status.Settled() })
}

// apart says that no jobs are asked for: the few other items have an index of their own.
func (r *reach) apart() bool {
	return r.actions != nil && !slices.Contains(r.actions, string(registry.Ingest))
}

// narrow returns the conditions of the places to look at, none for everything in order. empty says
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

// conds returns the conditions of the places to look at; known is false when nothing narrows them.
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
	case r.batches != nil && r.narrowed && len(r.batches)*len(r.statuses()) <= mostPlaces:
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
		conds = []string{"i.retry_count > 0"}
	case r.apart():
		for _, s := range r.statuses() {
			each("i.action", r.actions, " AND i.action <> 'ingest' AND i.status = '"+string(s)+"'")
		}
	case r.classes != nil:
		each("i.error_class", r.classes, " AND i.error_class <> ''")
	case r.collections != nil && r.narrowed && len(r.collections)*len(r.places) <= mostPlaces:
		for _, p := range r.places {
			each("i.collection", r.collections, " AND "+atPlace(p))
		}
	case r.noted && r.narrowed:
		for _, p := range r.places {
			// The action follows from the stage; SQLite counts the columns by which it may choose
			// an index.
			a, _ := registry.ActionOf(p.Stage)
			conds = append(conds, "i.tenant = '"+sqldb.Tenant+"' AND i.action = '"+string(a)+"' AND "+atPlace(p)+" AND i.note <> ''")
		}
	case r.by != nil:
		each("i.created_by", r.by, "")
	case r.narrowed:
		for _, p := range r.places {
			conds = append(conds, "i.tenant = '"+sqldb.Tenant+"' AND "+atPlace(p))
		}
	case r.collections != nil && len(r.collections) <= mostPlaces:
		each("i.collection", r.collections, "")
	default:
		return nil, false
	}
	return conds, true
}

// sorted is the order in which the indexes have the places of conds; "" where they have none that
// all places share.
func (r *reach) sorted() string {
	if r.ids != nil || r.batches != nil || r.graphs != nil {
		return ""
	}
	return " ORDER BY i.created_at DESC"
}

func atPlace(p work.Place) string {
	return "i.stage = '" + string(p.Stage) + "' AND i.status = '" + string(p.Status) + "'"
}

// heldAt returns where held items are, by the holds that there are; known is false when that does
// not narrow it.
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
				conds = append(conds, w.Bind("i.collection = ? AND "+atPlace(work.Place{Stage: stage, Status: registry.Pending}), h.Key))
			}
		case registry.HoldBatch:
			conds = append(conds, w.Bind("i.id = ?", h.Key), w.Bind("i.parent_id = ? AND i.status = 'pending'", h.Key))
		case registry.HoldItem:
			conds = append(conds, w.Bind("i.id = ?", h.Key))
		case registry.HoldWorker: // keeps no item back, only one worker
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
