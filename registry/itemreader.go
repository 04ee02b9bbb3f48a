package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// ItemReader looks up items. Lists use keyset pagination: pass the previous page's Next.
type ItemReader interface {
	// Item returns one item, or ErrNotFound.
	Item(ctx context.Context, id string) (WorkItem, error)
	// Items lists items, newest first. Items of one batch, given by ParentID or by a term, come in
	// row order. *QueryError: query.Parse did not make Match.
	Items(ctx context.Context, q ItemQuery) (Page[WorkItem], error)
	// CountItems counts the items of a query by state, at most q.Most of them. It ignores paging.
	CountItems(ctx context.Context, q ItemQuery) (map[State]int64, error)
	// Failures groups the failed items of a query by cause, largest group first. Limit and After
	// page it as in Items. A status other than failed selects nothing. *QueryError as for Items.
	Failures(ctx context.Context, q ItemQuery) (Page[FailureGroup], error)
	// Events lists an item's events after a feed cursor, oldest first; all items' events if itemID
	// is "".
	Events(ctx context.Context, itemID string, after int64, limit int) ([]Event, error)
	// Why explains what an unsettled item waits for.
	Why(ctx context.Context, id string) (Why, error)
}

// Page is a page of a list.
type Page[T any] struct {
	Rows []T    `json:"rows" nullable:"false"`
	Next string `json:"next,omitempty"` // "" on the last page
	// Prev is the Before of the page before this one; "" on the first page, and in lists that cannot
	// be read backwards.
	Prev string `json:"prev,omitempty"`
}

// ItemQuery selects items; empty fields do not restrict.
type ItemQuery struct {
	Action     Action   `json:"action"`
	ParentID   string   `json:"parent_id"`
	Collection string   `json:"collection"`
	Status     Status   `json:"status"`
	Stage      Stage    `json:"stage"`
	Text       string   `json:"text"`   // text in the name, title or note
	Match      Query    `json:"match"`  // all terms must match
	Within     []string `json:"within"` // only items of these collections; nil: all, empty: none
	After      string   `json:"after"`
	Before     string   `json:"before"` // Prev of a page: the page that ends before it; not with After
	Oldest     bool     `json:"oldest"` // the list in the opposite order: oldest first
	Limit      int      `json:"limit"`  // 0: 50; at most 500
	// Most bounds how many items CountItems counts; 0: all. If the counts add up to it, there may be
	// more in each state.
	Most int `json:"most,omitempty"`
}

// Explaining explains many items at once.
type Explaining interface {
	// WhyEach says in a phrase what each unsettled item of a list waits for, in the order of the ids.
	// It omits items that are settled or unknown, or of other collections. Why says more of one.
	WhyEach(ctx context.Context, q ReasonQuery) ([]Why, error)
}

// ReasonQuery selects the items that WhyEach explains.
type ReasonQuery struct {
	IDs    []string `json:"ids"`    // at most [MostReasons]
	Within []string `json:"within"` // only items of these collections; nil: all, empty: none
}

// MostReasons is the largest number of items that WhyEach explains at once.
const MostReasons = 100

// Bounds of a query.
const (
	MaxQueryBytes = 2000
	MaxQueryTerms = 50
)

// Query is a parsed query (docs/query.md): terms that must all match. The zero value matches
// everything. Package registry/query parses it; String is the inverse.
type Query struct {
	Terms []Term `json:"terms"`
}

// Term is one condition.
type Term struct {
	Field string `json:"field"` // "" is free text
	Value string `json:"value"` // in normal form; commas separate several values
	Not   bool   `json:"not"`
}

// InText reports whether the term looks for text, not for one of some values.
func (t Term) InText() bool { return slices.Contains([]string{"", "name", "title", "error"}, t.Field) }

// String returns the term in the query language.
func (t Term) String() string {
	var b strings.Builder
	if t.Not {
		b.WriteByte('-')
	}
	if t.Field != "" {
		b.WriteString(t.Field + ":")
	}
	bare := t.Value != "" && t.Value[0] != '"' && !strings.ContainsFunc(t.Value, unicode.IsSpace)
	if t.Field == "" && (strings.HasPrefix(t.Value, "-") || strings.Contains(t.Value, ":")) {
		bare = false
	}
	if bare {
		b.WriteString(t.Value)
	} else {
		b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(t.Value) + `"`)
	}
	return b.String()
}

// String returns the query in the query language. Parsing it returns the same query.
func (q Query) String() string {
	words := make([]string, len(q.Terms))
	for i, t := range q.Terms {
		words[i] = t.String()
	}
	return strings.Join(words, " ")
}

// Words returns the texts that a query looks for, as one.
func (q Query) Words() string {
	var words []string
	for _, t := range q.Terms {
		if t.Field == "" && !t.Not {
			words = append(words, t.Value)
		}
	}
	return strings.Join(words, " ")
}

// Chosen returns the ids of a query that names items and asks nothing else of them, else nil.
func (q Query) Chosen() []string {
	if len(q.Terms) != 1 || q.Terms[0].Field != "id" || q.Terms[0].Not {
		return nil
	}
	return strings.Split(q.Terms[0].Value, ",")
}

// QueryError says what is wrong in a query, and where.
type QueryError struct {
	Position int      `json:"position"` // of Word's first character, from 1
	Word     string   `json:"word"`     // the word in question
	Problem  string   `json:"problem"`  // a sentence without a full stop
	Known    []string `json:"known"`
}

// Error gives the place, the problem and the known values.
func (e *QueryError) Error() string {
	text := fmt.Sprintf("query, character %d: %s", e.Position, e.Problem)
	if len(e.Known) > 0 {
		text += "; known are " + strings.Join(e.Known, ", ")
	}
	return text
}
