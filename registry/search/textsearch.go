package search

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// How text is searched. Both databases have a trigram index of names, titles and notes. It also knows
// an item's collection and, for settled items with a note, the status: a word may be common in the
// Registry and absent in one collection. A list can start at the text index and read all rows with
// the text. Or it can read rows at places of other indexes until its page is full. SQLite counts
// which is cheaper, up to a bound (textSearch). PostgreSQL, whose index cannot stop early, tries
// the newest rows first (sample).

const fewMatches = 500 // so few matches are all read and sorted

// someRows is how many rows are read one by one rather than through the text index. Tests with
// small databases lower it.
var someRows = 5000

// textSearch is the question that a query puts to the text index. The answer contains every row
// that the query selects, except those that match by their ids, and maybe a few others.
type textSearch struct {
	dialect     string
	terms       []textTerm // none: the index cannot help
	collections []string   // as the index stores them; nil: all
	statuses    []registry.Status
	ids         []string // ids by which an item may match; the index does not contain them
	few         bool     // so few rows have the text that all can be read
	none        bool     // no row has the text
}

// textTerm is text in a column; without a column, in one of the textColumns.
type textTerm struct{ column, text string }

// searchFor returns what the text index can find of a query. It is empty if the query names ids.
func (s *Search) searchFor(ctx context.Context, q registry.ItemQuery, r reach) (textSearch, error) {
	words := textSearch{dialect: s.db.Dialect.Name()}
	if r.ids != nil {
		return words, nil
	}
	words.collect(q)
	if len(words.terms) == 0 {
		return textSearch{dialect: words.dialect}, nil
	}
	if len(r.collections) <= mostPlaces {
		words.collections = r.collections
	}
	if r.noted && r.settled() {
		words.statuses = r.statuses()
	}
	if words.dialect != sqldb.SQLite {
		return words, nil
	}
	if err := s.nameCollections(ctx, &words); err != nil {
		return words, fmt.Errorf("ask the text index: %w", err)
	}
	var w sqldb.Where
	var n int
	err := s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM item_text x WHERE `+words.cond(&w)+fmt.Sprintf(` LIMIT %d)`, fewMatches+1),
		w.Args...).Scan(&n)
	if err != nil {
		return words, fmt.Errorf("ask the text index: %w", err)
	}
	words.few, words.none = n <= fewMatches, n == 0 && len(words.ids) == 0
	return words, nil
}

// collect finds the text terms and ids of a query.
func (s *textSearch) collect(q registry.ItemQuery) {
	find := func(column, text string) {
		if indexed(text) {
			s.terms = append(s.terms, textTerm{column, text})
		}
		if column == "" && registry.IDStart(text) {
			s.ids = append(s.ids, text)
		}
	}
	if q.Text != "" {
		find("", q.Text)
	}
	for _, t := range q.Match.Terms {
		switch {
		case t.Not:
		case t.Field == "":
			find("", t.Value)
		case t.Field == "name", t.Field == "title":
			find(t.Field, t.Value)
		case t.Field == "error":
			find("note", t.Value)
		}
	}
}

// nameCollections replaces collections by their tokens in SQLite's index. A collection without
// items has none.
func (s *Search) nameCollections(ctx context.Context, words *textSearch) error {
	if words.collections == nil {
		return nil
	}
	var w sqldb.Where
	query := `SELECT token FROM item_text_collection WHERE ` + w.In("name", words.collections)
	tokens, err := s.db.Column(ctx, query, w.Args...)
	words.collections = append([]string{}, tokens...)
	return err
}

// from returns a FROM clause that begins with the text index.
func (s textSearch) from() string {
	if s.dialect == sqldb.SQLite {
		// Each row is looked up by its number, in this order, although other indexes have more columns of
		// the query.
		return "item_text x CROSS JOIN work_item i INDEXED BY work_item_seq ON i.seq = x.rowid"
	}
	return "item_text x JOIN work_item i ON i.seq = x.seq"
}

// found returns a FROM clause for PostgreSQL: the rows i with the text, each looked up by its number
// in the order in which the text index is read. within restricts and orders what is found in it.
func (s textSearch) found(w *sqldb.Where, within string) string {
	return "(SELECT x.seq FROM item_text x WHERE " + s.cond(w) + within + " OFFSET 0) found, LATERAL (SELECT i.* FROM work_item i WHERE i.seq = found.seq OFFSET 0) i"
}

// key returns the column of item_text with an item's seq.
func (s textSearch) key() string {
	if s.dialect == sqldb.SQLite {
		return "rowid"
	}
	return "seq"
}

// cond returns the condition on rows x of item_text.
func (s textSearch) cond(w *sqldb.Where) string {
	switch {
	case s.collections != nil && len(s.collections) == 0:
		return "1 = 0"
	case s.dialect == sqldb.SQLite:
		return w.Bind("x.item_text MATCH ?", s.match())
	}
	var conds []string
	for _, t := range s.terms {
		if t.column != "" {
			conds = append(conds, likeCond(w, s.dialect, "x."+t.column, t.text))
			continue
		}
		conds = append(conds, "("+anyText(w, s.dialect, "x.", t.text)+")")
	}
	places := func(kind string, names []string) {
		var any []string
		for _, n := range names {
			any = append(any, w.Bind("CAST(? AS TEXT)", kind+n))
		}
		if any != nil {
			conds = append(conds, "x.places && ARRAY["+strings.Join(any, ", ")+"]")
		}
	}
	places("c:", s.collections)
	places("s:", texts(s.statuses))
	return strings.Join(conds, " AND ")
}

// match returns the condition in the language of SQLite's index.
func (s textSearch) match() string {
	quoted := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
	var parts []string
	for _, t := range s.terms {
		column := t.column
		if column == "" {
			column = "{" + strings.Join(textColumns, " ") + "}"
		}
		parts = append(parts, column+" : "+quoted(t.text))
	}
	either := func(column string, names []string) {
		for i, n := range names {
			names[i] = quoted(n)
		}
		if len(names) > 0 {
			parts = append(parts, column+" : ("+strings.Join(names, " OR ")+")")
		}
	}
	either("collection", append([]string(nil), s.collections...))
	var statuses []string
	for _, status := range s.statuses {
		statuses = append(statuses, string(status)[:3])
	}
	either("status", statuses)
	return strings.Join(parts, " AND ")
}

// commonShare is the share of all rows from which on it is faster to read all of them, in the order in
// which they lie, than to look up those that the text index finds: a row that is looked up costs five
// times as much (SQLite). On PostgreSQL, which looks up few rows only and joins many, the share matters
// less. Tests change it.
var commonShare int64 = 5

// common reports whether so many rows have the text that the index is no help. On PostgreSQL, whose
// index finds all rows or none, it looks at a sample of them.
func (s *Search) common(ctx context.Context, words textSearch) (bool, error) {
	if len(words.terms) == 0 || words.few {
		return false, nil
	}
	var rows, found int64
	// Two subqueries, since SQLite reads the whole index for both in one.
	err := s.db.Read.QueryRowContext(ctx, `SELECT COALESCE((SELECT MAX(seq) FROM work_item) - (SELECT MIN(seq) FROM work_item), 0) + 1`).Scan(&rows)
	if err != nil {
		return false, fmt.Errorf("count all items: %w", err)
	}
	var w sqldb.Where
	cond := words.cond(&w)
	if words.dialect == sqldb.SQLite {
		err = s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM item_text x WHERE `+cond+w.Bind(` LIMIT ?) found`, rows/commonShare+1), w.Args...).Scan(&found)
	} else {
		percent := min(100, 100*float64(someRows)/float64(rows))
		err = s.db.Read.QueryRowContext(ctx, `SELECT COUNT(CASE WHEN `+cond+` THEN 1 END), COUNT(*) FROM item_text x `+w.Bind(`TABLESAMPLE SYSTEM (?)`, percent), w.Args...).Scan(&found, &rows)
	}
	if err != nil {
		return false, fmt.Errorf("ask the text index: %w", err)
	}
	return found*commonShare > rows, nil
}

// texts converts constants to strings.
func texts[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// manyRows reports whether there are many rows at the places to read, and whether nothing can
// match.
func (s *Search) manyRows(ctx context.Context, r *reach) (many, empty bool, err error) {
	var w sqldb.Where // a statement must use all its arguments
	conds, empty, err := s.narrow(ctx, r, &w)
	if err != nil || empty {
		return false, empty, err
	}
	many, err = s.hasAtLeast(ctx, r, w.Args, conds, someRows)
	return many, false, err
}

// hasAtLeast reports whether there are at least bound items at some places; without places there
// are. On PostgreSQL it counts in the order of an index. Otherwise the server may read the table
// from its start, and find the items only at its end.
func (s *Search) hasAtLeast(ctx context.Context, r *reach, args []any, conds []string, bound int) (bool, error) {
	if len(conds) == 0 {
		return true, nil
	}
	at := make([]string, len(conds))
	order := ""
	if s.db.Dialect.Name() == sqldb.PostgreSQL {
		order = r.sorted()
	}
	for i, c := range conds {
		at[i] = fmt.Sprintf(`SELECT n FROM (SELECT 1 AS n FROM %s WHERE i.tenant = '%s' AND %s%s LIMIT %d) p%d`, s.rowsAt(*r, c), sqldb.Tenant, c, order, bound, i)
	}
	var n int
	err := s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM (`+strings.Join(at, ` UNION ALL `)+fmt.Sprintf(` LIMIT %d) found`, bound), args...).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("count rows of places: %w", err)
	}
	return n >= bound, nil
}

// AddText adds the condition that the text index finds an item, if the index can help.
func (s *Search) AddText(ctx context.Context, w *sqldb.Where, q registry.ItemQuery) error {
	words, err := s.searchFor(ctx, q, reachOf(q))
	if err != nil || len(words.terms) == 0 || len(words.ids) > 0 {
		return err
	}
	if common, err := s.common(ctx, words); err != nil || common {
		return err
	}
	w.Conds = append(w.Conds, "i.seq IN (SELECT x."+words.key()+" FROM item_text x WHERE "+words.cond(w)+")")
	return nil
}
