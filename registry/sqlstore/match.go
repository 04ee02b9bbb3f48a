package sqlstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// itemWhere is the whole condition that the rows i of work_item which a query selects fulfil, at the moment now. What
// makes it fast is no part of it, so that lists, counts and bulk acts all mean the same. The error is a
// *registry.QueryError, for a query that ParseQuery did not make.
func itemWhere(q registry.ItemQuery, dialect string, now int64) (*where, error) {
	w := &where{}
	w.add("i.tenant = ?", Tenant)
	if q.ParentID != "" {
		w.add("i.parent_id = ?", q.ParentID)
	}
	if q.Action != "" {
		w.conds = append(w.conds, actionCond(q.Action))
	}
	if q.Collection != "" {
		w.add("i.collection = ?", q.Collection)
	}
	if q.Status != "" {
		w.add("i.status = ?", string(q.Status))
	}
	if q.Stage != "" {
		w.add("i.stage = ?", string(q.Stage))
	}
	if q.Text != "" {
		w.conds = append(w.conds, w.textCond(dialect, q.Text))
	}
	if q.Within != nil {
		w.addIn("i.collection", q.Within)
	}
	return w, w.match(q.Match, dialect, now)
}

// match adds the terms of a query.
func (w *where) match(q registry.Query, dialect string, now int64) error {
	for _, t := range q.Terms {
		cond, err := w.term(t, dialect, now)
		if err != nil {
			return &registry.QueryError{Position: 1, Word: t.String(), Problem: err.Error()}
		}
		if t.Not {
			cond = "NOT " + cond
		}
		w.conds = append(w.conds, cond)
	}
	return nil
}

// term is the condition of a term, in brackets and never NULL, so that it can be turned round.
func (w *where) term(t registry.Term, dialect string, now int64) (string, error) {
	values := t.Values()
	switch t.Field {
	case "":
		return w.textCond(dialect, t.Value), nil
	case "name":
		return "(" + w.like(dialect, "i.name", t.Value) + ")", nil
	case "error":
		return "(" + w.like(dialect, "i.note", t.Value) + ")", nil
	case "state":
		return stateCond(values), nil
	case "status":
		return w.in("i.status", values), nil
	case "stage":
		return w.in("i.stage", values), nil
	case "action":
		conds := make([]string, len(values))
		for i, v := range values {
			conds[i] = actionCond(registry.Action(v))
		}
		return "(" + strings.Join(conds, " OR ") + ")", nil
	case "collection":
		return w.in("i.collection", values), nil
	case "batch":
		return "(i.parent_id IS NOT NULL AND " + w.in("i.parent_id", values) + ")", nil
	case "graph":
		return w.starts("i.graph_id", values), nil
	case "class":
		return w.in("i.error_class", values), nil
	case "cause":
		return "(i.status = 'failed' AND " + w.in("i.cause", values) + ")", nil
	case "by":
		return w.in("i.created_by", values), nil
	case "id":
		return w.starts("i.id", values), nil
	case "held":
		if t.Value == "yes" {
			return "(i.status = 'pending' AND " + heldBy + ")", nil
		}
		return "(NOT (i.status = 'pending' AND " + heldBy + "))", nil
	case "delayed":
		if t.Value == "yes" {
			return delayed, nil
		}
		return "(NOT " + delayed + ")", nil
	case "priority", "retries":
		column := map[string]string{"priority": "i.priority", "retries": "i.retry_count"}[t.Field]
		op, n, err := registry.CompareNumber(t.Value)
		if err != nil {
			return "", err
		}
		return w.bind("("+column+" "+op+" ?)", n), nil
	case "older", "newer":
		d, err := registry.Age(t.Value)
		if err != nil {
			return "", err
		}
		op := map[string]string{"older": "<", "newer": ">="}[t.Field]
		return w.bind("(i.created_at "+op+" ?)", now-int64(d/time.Microsecond)), nil
	}
	return "", fmt.Errorf("%q is no field", t.Field)
}

// actionCond tells an action by its stages, which are on no other route: the indexes have the stage.
func actionCond(a registry.Action) string {
	route, ok := registry.RouteOf(a)
	if !ok {
		return "(1 = 0)"
	}
	var stages []registry.Stage
	for _, s := range route.Steps {
		stages = append(stages, s.Stage)
	}
	return "(i.stage IN " + names(stages) + ")"
}

// idCond finds an id, or those that begin with a part of one. The range is for the index; where the database's order of
// text is another than that of bytes, LIKE has the last word.
func (w *where) idCond(id string) string { return w.start("i.id", id) }

// start is idCond for the ids in a column.
func (w *where) start(column, id string) string {
	const whole = 36
	if !registry.IDStart(id) {
		return w.bind("("+column+" = ?)", id)
	}
	id = strings.ToLower(id)
	if len(id) == whole {
		return w.bind("("+column+" = ?)", id)
	}
	return w.bind("("+column+" >= ? AND "+column+" < ? AND "+column+` LIKE ? ESCAPE '\')`, id, id+"g", literal(id)+"%")
}

// starts finds any of several.
func (w *where) starts(column string, ids []string) string {
	conds := make([]string, len(ids))
	for i, id := range ids {
		conds[i] = w.start(column, id)
	}
	return "(" + strings.Join(conds, " OR ") + ")"
}

// textCond finds text in the name or the note, or as the beginning of the id.
func (w *where) textCond(dialect, text string) string {
	cond := "(" + w.like(dialect, "i.name", text) + " OR " + w.like(dialect, "i.note", text)
	if registry.IDStart(text) {
		cond += " OR " + w.idCond(text)
	}
	return cond + ")"
}

// like finds text as it is in a column, without regard to the case of letters (SQLite: of ASCII's).
func (w *where) like(dialect, column, text string) string {
	op := "LIKE"
	if dialect == "postgres" {
		op = "ILIKE"
	}
	return w.bind(column+" "+op+` ? ESCAPE '\'`, contains(text))
}
