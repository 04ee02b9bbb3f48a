package queue

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/web/ui/page"
)

// itemsPage is the content of the search of batches and jobs.
type itemsPage struct {
	Query   string
	Wrong   string // the error of the query
	Fields  []query.Field
	Batches []batchRow
	Found   []registry.WorkItem
	Next    string
}

// batchRow is a batch with the progress of its jobs.
type batchRow struct {
	registry.WorkItem
	Progress registry.BatchProgress
}

func (p pages) items(r *http.Request) (page.Page, error) {
	s := itemsPage{Query: r.URL.Query().Get("q"), Fields: query.Fields()}
	match, err := query.Parse(s.Query)
	if err != nil {
		// The page shows the query again, with its error.
		s.Wrong = page.Sentence(err.Error())
	} else if err := p.search(r, match, &s); err != nil {
		return page.Page{}, err
	}
	return page.Page{Name: "items", Title: p.Texts(r).T("Items"), Section: "items", Live: s.Query == "", Content: s}, nil
}

// search lists the items that match the query or, without a query, the batches.
func (p pages) search(r *http.Request, match registry.Query, s *itemsPage) error {
	q := registry.ItemQuery{Match: match, After: r.URL.Query().Get("after"), Limit: 20}
	if s.Query == "" {
		q.Action = registry.Batch
	}
	list, err := p.API.Items(r.Context(), q)
	var tooMuch *registry.QueryError
	if errors.As(err, &tooMuch) {
		s.Wrong = tooMuch.Error()
		return nil
	}
	if err != nil {
		return err
	}
	s.Next = page.Next(r, list.Next)
	if s.Query != "" {
		s.Found = list.Rows
		return nil
	}
	for _, it := range list.Rows {
		progress, err := p.API.BatchProgress(r.Context(), it.ID)
		if err != nil {
			return fmt.Errorf("add up batch %s: %w", it.ID, err)
		}
		s.Batches = append(s.Batches, batchRow{WorkItem: it, Progress: progress})
	}
	return nil
}
