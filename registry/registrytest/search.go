package registrytest

import (
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
)

// Failures returns the groups of failures that a query selects.
func (f *Fixture) Failures(text string) []registry.FailureGroup {
	f.Helper()
	page, err := f.Store.Failures(f.Context(), registry.ItemQuery{Match: f.Parsed(text)})
	f.Must(err)
	if page.Next != "" {
		f.Errorf("%s: there is another page", text)
	}
	return page.Rows
}

// Parsed parses a query, which must be valid.
func (f *Fixture) Parsed(text string) registry.Query {
	f.Helper()
	q, err := query.Parse(text)
	f.Must(err)
	return q
}
