package item

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/remedy"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/redact"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) itemRoutes() {
	get := http.MethodGet
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-items", Method: get, Path: "/items", Summary: "List items, newest first; a batch's jobs in row order"}, s.items)
	endpoint.Register(s.Server, endpoint.Operation{ID: "count-items", Method: get, Path: "/items/count", Summary: "Count items by state"}, s.countItems)
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-failures", Method: get, Path: "/failures", Summary: "Group failed items by their cause, the largest group first"}, s.failures)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-item", Method: get, Path: "/items/{id}", Summary: "Show an item"}, s.item)
	endpoint.Register(s.Server, endpoint.Operation{ID: "item-history", Method: get, Path: "/items/{id}/history", Summary: "List what happened to an item"}, s.history)
	endpoint.Register(s.Server, endpoint.Operation{ID: "item-attempts", Method: get, Path: "/items/{id}/attempts", Summary: "List the attempts at an item"}, s.attempts)
	endpoint.Register(s.Server, endpoint.Operation{ID: "item-log", Method: get, Path: "/items/{id}/log", Summary: "List what the attempts at an item logged"}, s.log)
	endpoint.Register(s.Server, endpoint.Operation{ID: "item-why", Method: get, Path: "/items/{id}/why", Summary: "Explain what an item waits for"}, s.why)
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-reasons", Method: get, Path: "/items/reasons", Summary: "Say in a phrase what each of many items waits for"}, s.reasons)
	endpoint.Register(s.Server, endpoint.Operation{ID: "command-item", Method: http.MethodPost, Path: "/items/{id}/commands", Summary: "Act on an item"}, s.command)
	endpoint.Register(s.Server, endpoint.Operation{ID: "redeliver-item", Method: http.MethodPost, Path: "/items/{id}/redeliveries", Summary: "Deliver a job's outcome to its collection's callback again", Status: http.StatusAccepted}, s.redeliver)
	endpoint.Register(s.Server, endpoint.Operation{ID: "bulk", Method: http.MethodPost, Path: "/bulk", Summary: "Act on every item that matches a query, in the background", Status: http.StatusAccepted}, s.bulk)
	endpoint.Register(s.Server, endpoint.Operation{ID: "preview-bulk", Method: http.MethodPost, Path: "/bulk/preview", Summary: "Count the items that an act on every item of a query would change, and those that it would skip, with the reason"}, s.previewBulk)
}

type itemsInput struct {
	endpoint.Paging
	endpoint.Matching
	Action     registry.Action `query:"action"`
	Parent     string          `query:"parent" id:"batches" maxLength:"200" doc:"Id of a batch: its jobs"`
	Collection string          `query:"collection" maxLength:"200"`
	Status     registry.Status `query:"status"`
	Stage      registry.Stage  `query:"stage"`
	Text       string          `query:"text" maxLength:"500" doc:"Part of the name, the title or the note"`
	Before     string          `query:"before" maxLength:"4096" doc:"prev of the page after it; not together with after"`
	Order      string          `query:"order" enum:"newest,oldest" doc:"oldest turns the list around"`
}

// actions returns the actions that have a route.
func actions() (all []registry.Action) {
	for _, r := range registry.Routes() {
		all = append(all, r.Action)
	}
	return all
}

func (s *Service) items(ctx context.Context, in *itemsInput) (*endpoint.Output[registry.Page[registry.WorkItem]], error) {
	match, wrong := in.Query()
	if in.After != "" && in.Before != "" {
		wrong = append(wrong, wire.Fault{Location: "query.before", Message: "a page is after one row or before one; give one of after and before"})
	}
	faults := slices.Concat(
		wrong,
		valid.OneOf("query.action", in.Action, actions()),
		valid.OneOf("query.status", in.Status, registry.Statuses()),
		valid.Stage("query.stage", in.Stage))
	if err := endpoint.Invalid("the list could not be read", faults...); err != nil {
		return nil, err
	}
	return s.listItems(ctx, in.Paging, registry.ItemQuery{
		Action: in.Action, ParentID: in.Parent, Collection: in.Collection, Status: in.Status, Stage: in.Stage, Text: in.Text, Match: match,
		Before: in.Before, Oldest: in.Order == "oldest",
	})
}

func (s *Service) listItems(ctx context.Context, p endpoint.Paging, q registry.ItemQuery) (*endpoint.Output[registry.Page[registry.WorkItem]], error) {
	q.After, q.Limit = p.After, p.Size()
	rows, err := s.Registry.Items(ctx, q)
	switch {
	case q.Before != "" && errors.Is(err, registry.ErrNotFound):
		return nil, endpoint.NoPage("before")
	case err != nil:
		return nil, p.BadCursor(err)
	}
	for i := range rows.Rows {
		if err := redact.Item(&rows.Rows[i]); err != nil {
			return nil, err
		}
	}
	if err := s.addCorrections(ctx, q.ParentID, rows.Rows); err != nil {
		return nil, err
	}
	return endpoint.Page(rows), nil
}

// addCorrections adds to jobs of a batch which batches correct them.
func (s *Service) addCorrections(ctx context.Context, batchID string, jobs []registry.WorkItem) error {
	var ids []string
	for _, job := range jobs {
		if batchID != "" && job.Status == registry.Failed && job.ErrorClass == registry.ContentFault {
			ids = append(ids, job.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	by, err := s.Registry.CorrectedJobs(ctx, batchID, ids)
	for i := range jobs {
		jobs[i].CorrectedBy = by[jobs[i].ID]
	}
	return err
}

func (s *Service) item(ctx context.Context, in *lookup.ItemID) (*endpoint.Output[wire.Item], error) {
	it, err := s.Registry.Item(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	attempts, err := s.Registry.Attempts(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	deliveries, err := s.Registry.Deliveries(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	steps, err := s.Registry.Steps(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if err := redact.Item(&it); err != nil {
		return nil, err
	}
	return &endpoint.Output[wire.Item]{Body: wire.Item{WorkItem: it, ResumePoint: remedy.ResumePoint(it, attempts), Deliveries: deliveries, Steps: steps}}, nil
}

type historyInput struct {
	lookup.ItemID
	After int64 `query:"after" minimum:"0" doc:"next of the previous page"`
	Limit int   `query:"limit" minimum:"1" maximum:"500" doc:"Rows per page; 50 when absent"`
}

// history also shows the history of a purged item.
func (s *Service) history(ctx context.Context, in *historyInput) (*endpoint.Output[registry.Page[registry.Event]], error) {
	if err := scope.Past(ctx, s.Registry, in.ID); err != nil {
		return nil, err
	}
	limit := endpoint.Paging{Limit: in.Limit}.Size()
	events, err := s.Registry.Events(ctx, in.ID, in.After, limit)
	if err != nil {
		return nil, err
	}
	p := registry.Page[registry.Event]{Rows: events}
	redact.Events(events)
	if len(events) == limit {
		p.Next = strconv.FormatInt(events[limit-1].Seq, 10)
	}
	return endpoint.Page(p), nil
}

func (s *Service) attempts(ctx context.Context, in *lookup.ItemID) (*endpoint.Output[registry.Page[registry.Attempt]], error) {
	if err := scope.Past(ctx, s.Registry, in.ID); err != nil {
		return nil, err
	}
	attempts, err := s.Registry.Attempts(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(attempts), nil
}

type logInput struct {
	lookup.ItemID
	endpoint.Paging
	Newest bool `query:"newest" doc:"List the newest lines first"`
}

func (s *Service) log(ctx context.Context, in *logInput) (*endpoint.Output[registry.Page[registry.LogLine]], error) {
	if err := scope.Past(ctx, s.Registry, in.ID); err != nil {
		return nil, err
	}
	lines, err := s.Registry.Log(ctx, registry.LogQuery{ItemID: in.ID, Newest: in.Newest, After: in.After, Limit: in.Size()})
	if err != nil {
		return nil, in.BadCursor(err)
	}
	return endpoint.Page(lines), nil
}

func (s *Service) why(ctx context.Context, in *lookup.ItemID) (*endpoint.Output[registry.Why], error) {
	return endpoint.Answered(s.Registry.Why(ctx, in.ID))
}

type reasonsInput struct {
	IDs string `query:"ids" maxLength:"4000" required:"true" doc:"Ids of items, with commas between; at most 100" example:"0199f3c2-0000-7000-8000-000000000000"`
}

func (s *Service) reasons(ctx context.Context, in *reasonsInput) (*endpoint.Output[registry.Page[registry.Why]], error) {
	q := registry.ReasonQuery{IDs: strings.Split(in.IDs, ",")}
	if len(q.IDs) > registry.MostReasons {
		return nil, endpoint.Invalid("the reasons were not read", wire.Fault{
			Location: "query.ids", Message: fmt.Sprintf("at most %d items at once", registry.MostReasons), Found: strconv.Itoa(len(q.IDs)),
		})
	}
	reasons, err := s.Registry.WhyEach(ctx, q)
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(reasons), nil
}

type redeliverInput struct {
	lookup.ItemID
	Key  string `header:"Idempotency-Key" maxLength:"200"`
	Body wire.RedeliverRequest
}

func (s *Service) redeliver(ctx context.Context, in *redeliverInput) (*endpoint.Output[registry.WorkItem], error) {
	if err := endpoint.Invalid("nothing was delivered", valid.Text("body.reason", in.Body.Reason, valid.MaxText)...); err != nil {
		return nil, err
	}
	if _, err := s.Registry.Item(ctx, in.ID); err != nil {
		return nil, err
	}
	it, err := s.Registry.Redeliver(ctx, registry.RedeliverRequest{
		ItemID: in.ID, Reason: in.Body.Reason, Actor: access.Actor(ctx), IdempotencyKey: in.Key,
	})
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "redelivery enqueued", "item", in.ID, "by", it.ID, "actor", access.Actor(ctx))
	return endpoint.Item(it)
}
