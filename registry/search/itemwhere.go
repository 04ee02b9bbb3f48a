package search

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/deposit"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// ItemWhere returns the complete condition for the rows i of work_item that a query selects, at the
// time now in microseconds. Lists, counts and bulk acts all use it; what only makes them fast is
// elsewhere. It returns a *registry.QueryError for a query that query.Parse did not make.
func ItemWhere(q registry.ItemQuery, dialect string, now int64) (*sqldb.Where, error) {
	w := &sqldb.Where{}
	if dialect == sqldb.SQLite {
		// Without statistics, it would take an index that begins with the tenant for as good as any other,
		// and read all items. The plus keeps it from that; places that want such an index name the tenant.
		w.Add("+i.tenant = ?", sqldb.Tenant)
	} else {
		w.Add("i.tenant = ?", sqldb.Tenant)
	}
	if q.ParentID != "" {
		w.Add("i.parent_id = ?", q.ParentID)
	}
	if q.Action != "" {
		w.Conds = append(w.Conds, actionCond(q.Action))
	}
	if q.Collection != "" {
		w.Add("i.collection = ?", q.Collection)
	}
	if q.Status != "" {
		w.Add("i.status = ?", string(q.Status))
	}
	if q.Stage != "" {
		w.Conds = append(w.Conds, stageCond(w, []string{string(q.Stage)}))
	}
	if q.Text != "" {
		w.Conds = append(w.Conds, textCond(w, dialect, q.Text))
	}
	if q.Within != nil {
		w.AddIn("i.collection", q.Within)
	}
	return w, addTerms(w, q.Match, dialect, now)
}

// addTerms adds the conditions of a query's terms.
func addTerms(w *sqldb.Where, q registry.Query, dialect string, now int64) error {
	for _, t := range q.Terms {
		cond, err := termCond(w, t, dialect, now)
		if err != nil {
			return &registry.QueryError{Position: 1, Word: t.String(), Problem: err.Error()}
		}
		if t.Not {
			cond = "NOT " + cond
		}
		w.Conds = append(w.Conds, cond)
	}
	return nil
}

// termCond returns the condition of a term, in parentheses and never NULL, so that it can be
// negated.
func termCond(w *sqldb.Where, t registry.Term, dialect string, now int64) (string, error) {
	values := query.Values(t)
	switch t.Field {
	case "":
		return textCond(w, dialect, t.Value), nil
	case "name":
		return "(" + likeCond(w, dialect, "i.name", t.Value) + ")", nil
	case "title":
		return "(" + likeCond(w, dialect, "i.title", t.Value) + ")", nil
	case "error":
		return "(" + likeCond(w, dialect, "i.note", t.Value) + ")", nil
	case "state":
		return work.StateCond(values), nil
	case "status":
		return w.In("i.status", values), nil
	case "stage":
		return stageCond(w, values), nil
	case "action":
		conds := make([]string, len(values))
		for i, v := range values {
			conds[i] = actionCond(registry.Action(v))
		}
		return "(" + strings.Join(conds, " OR ") + ")", nil
	case "collection":
		return w.In("i.collection", values), nil
	case "batch":
		return "(i.parent_id IS NOT NULL AND " + w.In("i.parent_id", values) + ")", nil
	case "graph":
		return startsCond(w, "i.graph_id", values), nil
	case "class":
		return w.In("i.error_class", values), nil
	case "cause":
		return "(i.status = 'failed' AND " + w.In("i.cause", values) + ")", nil
	case "by":
		return w.In("i.created_by", values), nil
	case "storage":
		conds := make([]string, len(values))
		for i, v := range values {
			conds[i] = w.Bind(`i.volume = ? OR i.other_storages LIKE ? ESCAPE '\'`, v, sqldb.Contains(","+v+","))
		}
		return "(" + strings.Join(conds, " OR ") + ")", nil
	case "id":
		return startsCond(w, "i.id", values), nil
	case "held":
		if t.Value == "yes" {
			return "(i.status = 'pending' AND " + work.HeldBy + ")", nil
		}
		return "(NOT (i.status = 'pending' AND " + work.HeldBy + "))", nil
	case "delayed":
		if t.Value == "yes" {
			return work.Delayed, nil
		}
		return "(NOT " + work.Delayed + ")", nil
	case "unresolved":
		if t.Value == "yes" {
			return deposit.Unresolved, nil
		}
		return "(NOT " + deposit.Unresolved + ")", nil
	case "priority", "retries":
		column := map[string]string{"priority": "i.priority", "retries": "i.retry_count"}[t.Field]
		op, n, err := query.CompareNumber(t.Value)
		if err != nil {
			return "", err
		}
		return w.Bind("("+column+" "+op+" ?)", n), nil
	case "older", "newer":
		d, err := query.Age(t.Value)
		if err != nil {
			return "", err
		}
		op := map[string]string{"older": "<", "newer": ">="}[t.Field]
		return w.Bind("(i.created_at "+op+" ?)", now-int64(d/time.Microsecond)), nil
	}
	return "", fmt.Errorf("unknown field %q", t.Field)
}

// actionCond recognises an action by its stages, because the indexes contain the stage. No stage is
// on two routes.
func actionCond(a registry.Action) string {
	route, ok := registry.RouteOf(a)
	if !ok {
		return "(1 = 0)"
	}
	var stages []registry.Stage
	for _, s := range route.Steps {
		stages = append(stages, s.Stage)
	}
	return "(" + work.InStages(stages) + ")"
}

// stageCond returns the condition for any of several stages, as given. A family stands for all its
// functions.
func stageCond(w *sqldb.Where, stages []string) string {
	var families []registry.Stage
	own := slices.DeleteFunc(slices.Clone(stages), func(s string) bool {
		is := slices.Contains(registry.Families(), registry.Stage(s))
		if is {
			families = append(families, registry.Stage(s))
		}
		return is
	})
	switch {
	case len(families) == 0:
		return w.In("i.stage", own)
	case len(own) == 0:
		return "(" + work.InStages(families) + ")"
	}
	return "(" + work.InStages(families) + " OR " + w.In("i.stage", own) + ")"
}

// idCond returns the condition for an id or the beginning of one. The range is for the index. LIKE
// decides where the database does not order text by bytes.
func idCond(w *sqldb.Where, id string) string { return startCond(w, "i.id", id) }

// startCond is idCond for any column of ids.
func startCond(w *sqldb.Where, column, id string) string {
	const whole = 36
	if !registry.IDStart(id) {
		return w.Bind("("+column+" = ?)", id)
	}
	id = strings.ToLower(id)
	if len(id) == whole {
		return w.Bind("("+column+" = ?)", id)
	}
	return w.Bind("("+column+" >= ? AND "+column+" < ? AND "+column+` LIKE ? ESCAPE '\')`, id, id+"g", sqldb.Literal(id)+"%")
}

// startsCond returns the condition for any of several ids.
func startsCond(w *sqldb.Where, column string, ids []string) string {
	conds := make([]string, len(ids))
	for i, id := range ids {
		conds[i] = startCond(w, column, id)
	}
	return "(" + strings.Join(conds, " OR ") + ")"
}

// textCond returns the condition for text in the name, title or note, or at the beginning of the id.
func textCond(w *sqldb.Where, dialect, text string) string {
	cond := "(" + anyText(w, dialect, "i.", text)
	if registry.IDStart(text) {
		cond += " OR " + idCond(w, text)
	}
	return cond + ")"
}

// textColumns are the columns that text without a field is looked for in: of work_item and of
// item_text.
var textColumns = []string{"name", "title", "note"}

// anyText returns the condition for literal text in one of the textColumns of a table.
func anyText(w *sqldb.Where, dialect, table, text string) string {
	conds := make([]string, len(textColumns))
	for i, column := range textColumns {
		conds[i] = likeCond(w, dialect, table+column, text)
	}
	return strings.Join(conds, " OR ")
}

// likeCond returns the condition for literal text in a column, in upper or lower case (SQLite: for
// ASCII letters).
func likeCond(w *sqldb.Where, dialect, column, text string) string {
	op := "LIKE"
	if dialect == sqldb.PostgreSQL {
		op = "ILIKE"
	}
	return w.Bind(column+" "+op+` ? ESCAPE '\'`, sqldb.Contains(text))
}
