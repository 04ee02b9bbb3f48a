package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
)

func (s *server) batchRoutes(api huma.API) {
	get := http.MethodGet
	register(s, api, operation{id: "list-batches", method: get, path: "/batches", summary: "List batches, newest first"}, s.batches)
	register(s, api, operation{id: "read-batch", method: get, path: "/batches/{id}", summary: "Show a batch"}, s.batch)
	register(s, api, operation{id: "batch-progress", method: get, path: "/batches/{id}/progress", summary: "How far a batch is"}, s.progress)
	register(s, api, operation{id: "list-batch-jobs", method: get, path: "/batches/{id}/jobs", summary: "The jobs of a batch as they are now, in row order"}, s.jobs)
}

type batchesInput struct {
	Paging
	Matching
	Collection string          `query:"collection" maxLength:"200"`
	Status     registry.Status `query:"status"`
	Text       string          `query:"text" maxLength:"500" doc:"Part of the name or the note"`
}

func (s *server) batches(ctx context.Context, in *batchesInput) (*output[registry.Page[registry.WorkItem]], error) {
	match, faults := in.query()
	faults = append(faults, oneOf("query.status", in.Status, registry.Statuses())...)
	if err := invalid("the list cannot be made", faults...); err != nil {
		return nil, err
	}
	return s.listItems(ctx, in.Paging, registry.ItemQuery{
		Action: registry.Batch, Collection: in.Collection, Status: in.Status, Text: in.Text, Match: match,
	})
}

// batchOf returns a batch, or a problem that says that there is none.
func (s *server) batchOf(ctx context.Context, id string) (registry.WorkItem, error) {
	it, err := s.registry.Item(ctx, id)
	if err != nil {
		return it, err
	}
	if it.Action != registry.Batch {
		return it, notFound("item %s is no batch but of action %s; see /items/%s", id, it.Action, id)
	}
	return it, nil
}

func (s *server) batch(ctx context.Context, in *ItemID) (*output[registry.WorkItem], error) {
	it, err := s.batchOf(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return shown(it)
}

func (s *server) progress(ctx context.Context, in *ItemID) (*output[registry.BatchProgress], error) {
	if _, err := s.batchOf(ctx, in.ID); err != nil {
		return nil, err
	}
	p, err := s.registry.BatchProgress(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &output[registry.BatchProgress]{Body: p}, nil
}

type jobsInput struct {
	ItemID
	Paging
	Status registry.Status `query:"status"`
}

func (s *server) jobs(ctx context.Context, in *jobsInput) (*output[registry.Page[registry.JobResult]], error) {
	if err := invalid("the list cannot be made", oneOf("query.status", in.Status, registry.Statuses())...); err != nil {
		return nil, err
	}
	if _, err := s.batchOf(ctx, in.ID); err != nil {
		return nil, err
	}
	items, err := s.registry.Items(ctx, registry.ItemQuery{
		ParentID: in.ID, Status: in.Status, After: in.After, Limit: in.size(),
	})
	if err != nil {
		return nil, in.badCursor(err)
	}
	p := registry.Page[registry.JobResult]{Next: items.Next}
	for _, it := range items.Rows {
		j, err := registry.JobResultOf(it)
		if err != nil {
			return nil, err
		}
		p.Rows = append(p.Rows, j)
	}
	return page(p), nil
}
