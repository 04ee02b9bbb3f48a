// Package search finds items: lists by page, counts, groups of failures, the state of the queue. It
// reads what all subjects write and writes nothing.
package search

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/outbound"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Search is lists and counts of items.
type Search struct {
	db   *sqldb.DB
	work *work.Engine
	out  *outbound.Outbound
}

// New returns lists and counts of what a database holds.
func New(db *sqldb.DB, engine *work.Engine, out *outbound.Outbound) *Search {
	return &Search{db: db, work: engine, out: out}
}

// How a query's text is looked for. Both databases have an index of trigrams, which also knows of
// what collection an item is and, of settled items with a note, their status: a word may be common
// in the Registry and absent where it is looked for. Begun with the text index, a list reads all
// that has the text; otherwise it reads rows at places until its page is full. Which of the two is
// better is counted, up to what it costs to look at (search, on SQLite), or tried (sample, on
// PostgreSQL, whose index cannot stop early).

const fewMatches = 500 // are all read and sorted

// someRows are read one by one, rather than more of them by way of the text. Tests, whose databases
// are small, make it less.
var someRows = 5000

// search is what the text index is asked for a query: every row that the query selects answers to
// it, but for those that match by their ids, and a few others may.
type search struct {
	dialect     string
	terms       []textTerm // none: the index cannot help
	collections []string   // as the index knows them; nil: whichever
	statuses    []registry.Status
	ids         []string // by which an item may match although its text does not: the index does not have them
	few         bool     // so few rows have the text that all of them can be read
	none        bool     // no row has it
}

// textTerm is text in a column, in the name or the note when there is none.
type textTerm struct{ column, text string }

// searchFor reads what the text index can find of a query. Where ids are named it is of no use.
func (s *Search) searchFor(ctx context.Context, q registry.ItemQuery, r reach) (search, error) {
	words := search{dialect: s.db.Dialect.Name()}
	if r.ids != nil {
		return words, nil
	}
	words.read(q)
	if len(words.terms) == 0 {
		return search{dialect: words.dialect}, nil
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

// read finds the text that a query wants.
func (s *search) read(q registry.ItemQuery) {
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
		case t.Field == "name":
			find("name", t.Value)
		case t.Field == "error":
			find("note", t.Value)
		}
	}
}

// nameCollections puts SQLite's names for collections in their place. One without an item has none.
func (s *Search) nameCollections(ctx context.Context, words *search) error {
	if words.collections == nil {
		return nil
	}
	var w sqldb.Where
	query := `SELECT token FROM item_text_collection WHERE ` + w.In("name", words.collections)
	tokens, err := s.db.Column(ctx, query, w.Args...)
	words.collections = append([]string{}, tokens...)
	return err
}

// from makes a statement begin with the text index.
func (s search) from() string {
	join := "JOIN"
	if s.dialect == sqldb.SQLite {
		join = "CROSS JOIN" // in this order
	}
	return "item_text x " + join + " work_item i ON i.seq = x." + s.key()
}

// key is the column of item_text that has an item's seq.
func (s search) key() string {
	if s.dialect == sqldb.SQLite {
		return "rowid"
	}
	return "seq"
}

// cond is what the rows x of item_text fulfil.
func (s search) cond(w *sqldb.Where) string {
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
		conds = append(conds, "("+likeCond(w, s.dialect, "x.name", t.text)+" OR "+likeCond(w, s.dialect, "x.note", t.text)+")")
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

// addTerms is cond in the language of SQLite's index.
func (s search) match() string {
	quoted := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
	var parts []string
	for _, t := range s.terms {
		column := t.column
		if column == "" {
			column = "{name note}"
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

// texts are the values of names of ours.
func texts[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// crowded says whether there are many rows at the places to look at, and whether nothing can match.
func (s *Search) crowded(ctx context.Context, r *reach) (many, empty bool, err error) {
	var w sqldb.Where // a statement must use all its arguments
	conds, empty, err := s.narrow(ctx, r, &w)
	if err != nil || empty {
		return false, empty, err
	}
	many, err = s.asMany(ctx, r, w.Args, conds, someRows)
	return many, false, err
}

// asMany says whether there are as many items as a bound at some places; where there are none,
// everywhere, there are. On PostgreSQL the first of them in the order of their index are counted:
// in no order, it would begin at the table's start and read until it has found enough, which may be
// at its end.
func (s *Search) asMany(ctx context.Context, r *reach, args []any, conds []string, bound int) (bool, error) {
	if len(conds) == 0 {
		return true, nil
	}
	at := make([]string, len(conds))
	order := ""
	if s.db.Dialect.Name() == sqldb.PostgreSQL {
		order = r.sorted()
	}
	for i, c := range conds {
		at[i] = fmt.Sprintf(`SELECT n FROM (SELECT 1 AS n FROM work_item i WHERE i.tenant = '%s' AND %s%s LIMIT %d) p%d`, sqldb.Tenant, c, order, bound, i)
	}
	var n int
	err := s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM (`+strings.Join(at, ` UNION ALL `)+fmt.Sprintf(` LIMIT %d) found`, bound), args...).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("count rows of places: %w", err)
	}
	return n >= bound, nil
}

// AddText lets the text index find what a query selects, as far as it can.
func (s *Search) AddText(ctx context.Context, w *sqldb.Where, q registry.ItemQuery) error {
	words, err := s.searchFor(ctx, q, reachOf(q))
	if err != nil || len(words.terms) == 0 || len(words.ids) > 0 {
		return err
	}
	w.Conds = append(w.Conds, "i.seq IN (SELECT x."+words.key()+" FROM item_text x WHERE "+words.cond(w)+")")
	return nil
}
