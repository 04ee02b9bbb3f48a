package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// On PostgreSQL the planner knows how often a word occurs and whether to begin with the index of trigrams or with another.
// SQLite has no statistics: here it is counted, up to what it costs to look at.
const fewMatches = 500 // are all read and sorted

// someRows are read one by one, rather than more of them by way of the text. Tests, whose databases are small, make it less.
var someRows = 5000

// fromText makes SQLite begin with the text index.
const fromText = "item_text x CROSS JOIN work_item i ON i.seq = x.rowid"

// search is how a query's text is looked for.
type search struct {
	clause string   // for the text index; "" when that cannot help
	ids    []string // by which an item may match although its text does not: the index does not have them
	few    bool     // so few rows have the text that all of them can be read
	// planned: the database knows by itself how often text occurs, and begins with it where that is best.
	planned bool
}

// searchFor asks how often a query's text occurs. Where ids are named that is not of interest.
func (s *Store) searchFor(ctx context.Context, q registry.ItemQuery, r reach) (words search, err error) {
	words.clause, words.ids = searchClause(q)
	switch {
	case words.clause == "" || r.ids != nil:
		return search{}, nil
	case s.dialect.name() != "sqlite":
		return search{planned: true}, nil
	}
	var n int
	err = s.read.QueryRowContext(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM item_text WHERE item_text MATCH $1 LIMIT $2)`,
		words.clause, fewMatches+1).Scan(&n)
	if err != nil {
		return search{}, fmt.Errorf("ask the text index: %w", err)
	}
	words.few = n <= fewMatches
	return words, nil
}

// searchClause is what SQLite's text index is asked for all the text that a query wants: every row that the query selects
// answers to it, but for those that match by their ids, and a few others may.
func searchClause(q registry.ItemQuery) (clause string, ids []string) {
	var parts []string
	find := func(column, text string) {
		if indexed(text) {
			parts = append(parts, column+`"`+strings.ReplaceAll(text, `"`, `""`)+`"`)
		}
	}
	free := func(text string) {
		find("", text)
		if registry.IDStart(text) {
			ids = append(ids, text)
		}
	}
	if q.Text != "" {
		free(q.Text)
	}
	for _, t := range q.Match.Terms {
		switch {
		case t.Not:
		case t.Field == "":
			free(t.Value)
		case t.Field == "name":
			find("name : ", t.Value)
		case t.Field == "error":
			find("note : ", t.Value)
		}
	}
	return strings.Join(parts, " AND "), ids
}

// crowded says whether there are many rows at the places to look at, and whether nothing can match.
func (s *Store) crowded(ctx context.Context, r *reach) (many, empty bool, err error) {
	var w where // a statement must use all its arguments
	conds, empty, err := s.narrow(ctx, r, &w)
	if err != nil || empty {
		return false, empty, err
	}
	many, err = s.asMany(ctx, r, w.args, conds, someRows)
	return many, false, err
}

// asMany says whether there are as many items as a bound at some places; where there are none, everywhere, there are. The
// first of them in the order of their index are counted: in no order, PostgreSQL would begin at the table's start and read
// until it has found enough, which may be at its end.
func (s *Store) asMany(ctx context.Context, r *reach, args []any, conds []string, bound int) (bool, error) {
	if len(conds) == 0 {
		return true, nil
	}
	at := make([]string, len(conds))
	for i, c := range conds {
		at[i] = fmt.Sprintf(`SELECT n FROM (SELECT 1 AS n FROM work_item i WHERE i.tenant = '%s' AND %s%s LIMIT %d) p%d`, Tenant, c, r.sorted(), bound, i)
	}
	var n int
	err := s.read.QueryRowContext(ctx, `SELECT COUNT(*) FROM (`+strings.Join(at, ` UNION ALL `)+fmt.Sprintf(` LIMIT %d) found`, bound), args...).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("count rows of places: %w", err)
	}
	return n >= bound, nil
}
