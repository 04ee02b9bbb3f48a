package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
)

// On PostgreSQL the planner knows how often a word occurs and whether to begin with the index of trigrams or with another.
// SQLite has no statistics: here it is counted, up to what it costs to look at.
const (
	fewMatches = 2000  // are all read and sorted
	someRows   = 20000 // are read one by one, rather than more of them by way of the text
)

// search is how a query's text is looked for.
type search struct {
	clause string   // for the text index; "" when that cannot help
	ids    []string // by which an item may match although its text does not: the index does not have them
	few    bool     // so few rows have the text that all of them can be read
}

// searchFor asks how often a query's text occurs. Where ids are named that is not of interest.
func (s *Store) searchFor(ctx context.Context, q registry.ItemQuery, r reach) (words search, err error) {
	if s.dialect.name() != "sqlite" || r.ids != nil {
		return search{}, nil
	}
	if words.clause, words.ids = searchClause(q); words.clause == "" {
		return search{}, nil
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
// answers to it, but for those that match by their ids, and a few others may. A trigram needs three letters.
func searchClause(q registry.ItemQuery) (clause string, ids []string) {
	const least = 3
	var parts []string
	find := func(column, text string) {
		if utf8.RuneCountInString(text) >= least {
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

// moreThan says whether there are more items at some places, everywhere when there are none, than a bound for each.
func (s *Store) moreThan(ctx context.Context, w *where, conds []string, bound int) (bool, error) {
	if len(conds) == 0 {
		return true, nil
	}
	counts := make([]string, len(conds))
	for i, c := range conds {
		counts[i] = fmt.Sprintf(`SELECT COUNT(*) AS n FROM (SELECT 1 FROM work_item i WHERE i.tenant = '%s' AND %s LIMIT %d)`, Tenant, c, bound)
	}
	var n int
	err := s.read.QueryRowContext(ctx, `SELECT SUM(n) FROM (`+strings.Join(counts, ` UNION ALL `)+`)`, w.args...).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("count rows of places: %w", err)
	}
	return n >= bound, nil
}
