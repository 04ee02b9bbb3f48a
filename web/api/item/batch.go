package item

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) batchRoutes() {
	get := http.MethodGet
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-batches", Method: get, Path: "/batches", Summary: "List batches, newest first"}, s.batches)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-batch", Method: get, Path: "/batches/{id}", Summary: "Show a batch"}, s.batch)
	endpoint.Register(s.Server, endpoint.Operation{ID: "batch-progress", Method: get, Path: "/batches/{id}/progress", Summary: "Show the progress of a batch"}, s.progress)
	endpoint.Register(s.Server, endpoint.Operation{ID: "cancel-batch", Method: http.MethodPost, Path: "/batches/{id}/cancel", Summary: "Cancel a batch: what has begun to be preserved goes on. A depositor may cancel batches that it submitted itself"}, s.cancelBatch)
	endpoint.Register(s.Server, endpoint.Operation{ID: "redeliver-jobs", Method: http.MethodPost, Path: "/batches/{id}/redeliveries", Summary: "Deliver the outcomes of a batch's jobs to its collection's callback again, those of 250 jobs at once", Status: http.StatusAccepted}, s.redeliverJobs)
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-batch-jobs", Method: get, Path: "/batches/{id}/jobs", Summary: "List the jobs of a batch in their present state, in row order"}, s.jobs)
}

type batchesInput struct {
	endpoint.Paging
	endpoint.Matching
	Collection string          `query:"collection" maxLength:"200"`
	Status     registry.Status `query:"status"`
	Text       string          `query:"text" maxLength:"500" doc:"Part of the name, the title or the note"`
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

type cancelInput struct {
	lookup.ItemID
	Key  string `header:"Idempotency-Key" maxLength:"200"`
	Body wire.CancelRequest
}

// cancelBatch cancels a batch. Other acts on items are those of operators.
func (s *Service) cancelBatch(ctx context.Context, in *cancelInput) (*endpoint.Output[registry.WorkItem], error) {
	if err := endpoint.Invalid("nothing was cancelled", valid.Text("body.reason", in.Body.Reason, valid.MaxText)...); err != nil {
		return nil, err
	}
	it, err := lookup.Batch(ctx, s.Registry, in.ID)
	if err != nil {
		return nil, err
	}
	if !access.Owns(ctx, it) {
		return nil, wire.NewProblem(http.StatusForbidden, wire.CodeForbidden,
			fmt.Sprintf("batch %s was submitted by another depositor; ask that one, or an operator, to cancel it", it.ID))
	}
	it, err = s.Registry.Command(ctx, registry.Command{
		ItemID: it.ID, Act: registry.ActCancel, Reason: in.Body.Reason, Actor: access.Actor(ctx), IdempotencyKey: in.Key,
	})
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "batch cancelled", "batch", it.ID, "state", string(it.State), "actor", access.Actor(ctx))
	return endpoint.Item(it)
}

type redeliverJobsInput struct {
	lookup.ItemID
	Key  string `header:"Idempotency-Key" maxLength:"200"`
	Body wire.RedeliverJobsRequest
}

func (s *Service) redeliverJobs(ctx context.Context, in *redeliverJobsInput) (*endpoint.Output[registry.Redelivered], error) {
	if err := endpoint.Invalid("nothing was delivered", valid.Text("body.reason", in.Body.Reason, valid.MaxText)...); err != nil {
		return nil, err
	}
	if _, err := lookup.Batch(ctx, s.Registry, in.ID); err != nil {
		return nil, err
	}
	done, err := s.Registry.RedeliverJobs(ctx, registry.RedeliverJobsRequest{
		BatchID: in.ID, After: in.Body.After, Reason: in.Body.Reason, Actor: access.Actor(ctx), IdempotencyKey: in.Key,
	})
	if in.Body.After != "" && errors.Is(err, registry.ErrNotFound) {
		return nil, endpoint.Invalid("nothing was delivered", wire.Fault{Location: "body.after", Message: "not where a call ended; start without it"})
	}
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "redeliveries enqueued", "batch", in.ID, "count", done.Queued, "actor", access.Actor(ctx))
	return &endpoint.Output[registry.Redelivered]{Body: done}, nil
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
	if err := s.addCorrections(ctx, in.ID, items.Rows); err != nil {
		return nil, err
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
