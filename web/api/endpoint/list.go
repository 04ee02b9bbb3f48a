package endpoint

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/redact"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

// Page returns a page whose rows are never null in JSON.
func Page[T any](p registry.Page[T]) *Output[registry.Page[T]] {
	if p.Rows == nil {
		p.Rows = []T{}
	}
	return &Output[registry.Page[T]]{Body: p}
}

// Listed returns a complete list as one page.
func Listed[T any](rows []T) *Output[registry.Page[T]] { return Page(registry.Page[T]{Rows: rows}) }

// Paging is the start and length of a page.
type Paging struct {
	After string `query:"after" maxLength:"4096" doc:"next of the previous page"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" doc:"Rows per page; 50 when absent"`
}

// Size returns the limit to use.
func (p Paging) Size() int {
	const normal = 50
	if p.Limit <= 0 {
		return normal
	}
	return p.Limit
}

// Before parses the cursor of a list of numbered things, newest first: the page has numbers below
// it. It returns 0 for the first page.
func (p Paging) Before() (int, error) {
	if p.After == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(p.After)
	if err != nil || n < 1 {
		return 0, NoPage("after")
	}
	return n, nil
}

// Numbered returns a page of such a list.
func Numbered[T any](rows []T, limit int, number func(T) int) registry.Page[T] {
	p := registry.Page[T]{Rows: rows}
	if len(rows) == limit {
		p.Next = strconv.Itoa(number(rows[limit-1]))
	}
	return p
}

// BadCursor turns the Registry's refusal of a cursor into a problem of the input.
func (p Paging) BadCursor(err error) error {
	if p.After != "" && errors.Is(err, registry.ErrNotFound) {
		return NoPage("after")
	}
	return err
}

// NoPage returns the problem of a cursor, after or before, that does not belong to the list: most
// often it is of another list, or of another order.
func NoPage(cursor string) *wire.Problem {
	return wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, "this page of the list was not found; begin again with its first page, without "+cursor,
		wire.Fault{Location: "query." + cursor, Message: "not a cursor of this list"})
}

// Matching is the query of a list (docs/query.md).
type Matching struct {
	Q string `query:"q" id:"query" maxLength:"2000" doc:"Words and field:value terms; all must match, such as state:failed collection:demo error:timeout older:2h; see docs/query.md"`
}

// Query parses the query.
func (m Matching) Query() (registry.Query, []wire.Fault) { return valid.Query("query.q", m.Q) }

// Item returns an item without its secrets.
func Item(it registry.WorkItem) (*Output[registry.WorkItem], error) {
	if err := redact.Item(&it); err != nil {
		return nil, err
	}
	return &Output[registry.WorkItem]{Body: it}, nil
}

// Answered is a result in the form that [Register] needs.
func Answered[T any](out T, err error) (*Output[T], error) {
	if err != nil {
		return nil, err
	}
	return &Output[T]{Body: out}, nil
}
