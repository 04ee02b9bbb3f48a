package item

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
)

func (s *Service) batchRoutes() {
	get := http.MethodGet
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-batches", Method: get, Path: "/batches", Summary: "List batches, newest first"}, s.batches)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-batch", Method: get, Path: "/batches/{id}", Summary: "Show a batch"}, s.batch)
	endpoint.Register(s.Server, endpoint.Operation{ID: "batch-progress", Method: get, Path: "/batches/{id}/progress", Summary: "Show the progress of a batch"}, s.progress)
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-batch-jobs", Method: get, Path: "/batches/{id}/jobs", Summary: "List the jobs of a batch in their present state, in row order"}, s.jobs)
}

type batchesInput struct {
	endpoint.Paging
	endpoint.Matching
	Collection string          `query:"collection" maxLength:"200"`
	Status     registry.Status `query:"status"`
	Text       string          `query:"text" maxLength:"500" doc:"Part of the name or the note"`
}

func (s *Service) batches(ctx context.Context, in *batchesInput) (*endpoint.Output[registry.Page[registry.WorkItem]], error) {
	match, faults := in.Query()
	faults = append(faults, valid.OneOf("query.status", in.Status, registry.Statuses())...)
	if err := endpoint.Invalid("the list could not be read", faults...); err != nil {
		return nil, err
	}
	return s.listItems(ctx, in.Paging, registry.ItemQuery{
		Action: registry.Batch, Collection: in.Collection, Status: in.Status, Text: in.Text, Match: match,
	})
}

func (s *Service) batch(ctx context.Context, in *lookup.ItemID) (*endpoint.Output[registry.WorkItem], error) {
	it, err := lookup.Batch(ctx, s.Registry, in.ID)
	if err != nil {
		return nil, err
	}
	return endpoint.Item(it)
}

func (s *Service) progress(ctx context.Context, in *lookup.ItemID) (*endpoint.Output[registry.BatchProgress], error) {
	if _, err := lookup.Batch(ctx, s.Registry, in.ID); err != nil {
		return nil, err
	}
	return endpoint.Answered(s.Registry.BatchProgress(ctx, in.ID))
}

type jobsInput struct {
	lookup.ItemID
	endpoint.Paging
	Status registry.Status `query:"status"`
}

func (s *Service) jobs(ctx context.Context, in *jobsInput) (*endpoint.Output[registry.Page[registry.JobResult]], error) {
	if err := endpoint.Invalid("the list could not be read", valid.OneOf("query.status", in.Status, registry.Statuses())...); err != nil {
		return nil, err
	}
	if _, err := lookup.Batch(ctx, s.Registry, in.ID); err != nil {
		return nil, err
	}
	items, err := s.Registry.Items(ctx, registry.ItemQuery{
		ParentID: in.ID, Status: in.Status, After: in.After, Limit: in.Size(),
	})
	if err != nil {
		return nil, in.BadCursor(err)
	}
	p := registry.Page[registry.JobResult]{Next: items.Next}
	for _, it := range items.Rows {
		j, err := registry.JobResultOf(it)
		if err != nil {
			return nil, err
		}
		p.Rows = append(p.Rows, j)
	}
	return endpoint.Page(p), nil
}
