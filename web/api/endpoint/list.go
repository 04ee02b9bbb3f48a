package endpoint

import (
	"errors"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/redact"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

// Page makes a page that is never null in JSON.
func Page[T any](p registry.Page[T]) *Output[registry.Page[T]] {
	if p.Rows == nil {
		p.Rows = []T{}
	}
	return &Output[registry.Page[T]]{Body: p}
}

// Listed is a page of a list that has no end but its own.
func Listed[T any](rows []T) *Output[registry.Page[T]] { return Page(registry.Page[T]{Rows: rows}) }

// Paging is where a page begins and how long it is.
type Paging struct {
	After string `query:"after" maxLength:"4096" doc:"next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" doc:"Rows of a page; 50 when not given"`
}

// Size is the limit that the Registry will use.
func (p Paging) Size() int {
	const normal = 50
	if p.Limit <= 0 {
		return normal
	}
	return p.Limit
}

// Before is the number that a list of numbered things, the newest first, goes on below; 0: it
// begins.
func (p Paging) Before() (int, error) {
	if p.After == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(p.After)
	if err != nil || n < 1 {
		return 0, Invalid("the list cannot be made", wire.Fault{Location: "query.after", Message: "it is no cursor of this list", Found: p.After})
	}
	return n, nil
}

// Numbered is a page of such a list.
func Numbered[T any](rows []T, limit int, number func(T) int) registry.Page[T] {
	p := registry.Page[T]{Rows: rows}
	if len(rows) == limit {
		p.Next = strconv.Itoa(number(rows[limit-1]))
	}
	return p
}

// BadCursor turns the Registry's answer to a cursor that it never gave into one about the input.
func (p Paging) BadCursor(err error) error {
	if p.After != "" && errors.Is(err, registry.ErrNotFound) {
		return Invalid("the page cannot be found", wire.Fault{
			Location: "query.after", Message: "it is no cursor that was given out; begin without it",
		})
	}
	return err
}

// Matching is the query of a list (docs/query.md).
type Matching struct {
	Q string `query:"q" id:"query" maxLength:"2000" doc:"Words and field:value terms, all of which must match, such as state:failed collection:demo error:timeout older:2h; see docs/query.md"`
}

// Query reads what is asked for.
func (m Matching) Query() (registry.Query, []wire.Fault) { return valid.Query("query.q", m.Q) }

// Item is an item as it may be seen.
func Item(it registry.WorkItem) (*Output[registry.WorkItem], error) {
	if err := redact.Item(&it); err != nil {
		return nil, err
	}
	return &Output[registry.WorkItem]{Body: it}, nil
}

// Answered is a result as [Register] takes it.
func Answered[T any](out T, err error) (*Output[T], error) {
	if err != nil {
		return nil, err
	}
	return &Output[T]{Body: out}, nil
}
