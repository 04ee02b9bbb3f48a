package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *server) itemRoutes(api huma.API) {
	get := http.MethodGet
	register(s, api, operation{id: "list-items", method: get, path: "/items", summary: "List items, newest first; a batch's jobs in row order"}, s.items)
	register(s, api, operation{id: "count-items", method: get, path: "/items/count", summary: "Count items by state"}, s.countItems)
	register(s, api, operation{id: "list-failures", method: get, path: "/failures", summary: "Group failed items by their cause, the largest group first"}, s.failures)
	register(s, api, operation{id: "read-item", method: get, path: "/items/{id}", summary: "Show an item"}, s.item)
	register(s, api, operation{id: "item-history", method: get, path: "/items/{id}/history", summary: "What happened to an item"}, s.history)
	register(s, api, operation{id: "item-attempts", method: get, path: "/items/{id}/attempts", summary: "The attempts of workers at an item"}, s.attempts)
	register(s, api, operation{id: "item-why", method: get, path: "/items/{id}/why", summary: "What an item waits for"}, s.why)
	register(s, api, operation{id: "command-item", method: http.MethodPost, path: "/items/{id}/commands", summary: "Ask an act of an item"}, s.command)
	register(s, api, operation{id: "redeliver-item", method: http.MethodPost, path: "/items/{id}/redeliveries", summary: "Have it told again, to its collection's callback, how a job ended", status: http.StatusAccepted}, s.redeliver)
	register(s, api, operation{id: "bulk", method: http.MethodPost, path: "/bulk", summary: "Ask an act of every item that matches a query; an item of its own carries it out", status: http.StatusAccepted}, s.bulk)
}

// ItemID names an item in a path.
type ItemID struct {
	ID string `path:"id" maxLength:"200"`
}

type itemsInput struct {
	Paging
	Matching
	Action     registry.Action `query:"action"`
	Parent     string          `query:"parent" id:"batches" maxLength:"200" doc:"Id of a batch: its jobs"`
	Collection string          `query:"collection" maxLength:"200"`
	Status     registry.Status `query:"status"`
	Stage      registry.Stage  `query:"stage"`
	Text       string          `query:"text" maxLength:"500" doc:"Part of the name or the note"`
}

// actions are those that there is a route for.
func actions() (all []registry.Action) {
	for _, r := range registry.Routes() {
		all = append(all, r.Action)
	}
	return all
}

func (s *server) items(ctx context.Context, in *itemsInput) (*output[registry.Page[registry.WorkItem]], error) {
	match, wrong := in.query()
	faults := slices.Concat(
		wrong,
		oneOf("query.action", in.Action, actions()),
		oneOf("query.status", in.Status, registry.Statuses()),
		oneOf("query.stage", in.Stage, registry.Stages()))
	if err := invalid("the list cannot be made", faults...); err != nil {
		return nil, err
	}
	return s.listItems(ctx, in.Paging, registry.ItemQuery{
		Action: in.Action, ParentID: in.Parent, Collection: in.Collection, Status: in.Status, Stage: in.Stage, Text: in.Text, Match: match,
	})
}

func (s *server) listItems(ctx context.Context, p Paging, q registry.ItemQuery) (*output[registry.Page[registry.WorkItem]], error) {
	q.After, q.Limit = p.After, p.size()
	rows, err := s.registry.Items(ctx, q)
	if err != nil {
		return nil, p.badCursor(err)
	}
	for i := range rows.Rows {
		if err := redact(&rows.Rows[i]); err != nil {
			return nil, err
		}
	}
	return page(rows), nil
}

func (s *server) item(ctx context.Context, in *ItemID) (*output[wire.Item], error) {
	it, err := s.registry.Item(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	attempts, err := s.registry.Attempts(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	deliveries, err := s.registry.Deliveries(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if err := redact(&it); err != nil {
		return nil, err
	}
	return &output[wire.Item]{Body: wire.Item{WorkItem: it, ResumePoint: registry.ResumePoint(it, attempts), Deliveries: deliveries}}, nil
}

// shown is an item as it may be seen.
func shown(it registry.WorkItem) (*output[registry.WorkItem], error) {
	if err := redact(&it); err != nil {
		return nil, err
	}
	return &output[registry.WorkItem]{Body: it}, nil
}

type historyInput struct {
	ItemID
	After int64 `query:"after" minimum:"0" doc:"next of the page before"`
	Limit int   `query:"limit" minimum:"1" maximum:"500" doc:"Rows of a page; 50 when not given"`
}

// history outlives the item: that of one that was purged is there, too.
func (s *server) history(ctx context.Context, in *historyInput) (*output[registry.Page[registry.Event]], error) {
	if err := s.past(ctx, in.ID); err != nil {
		return nil, err
	}
	limit := Paging{Limit: in.Limit}.size()
	events, err := s.registry.Events(ctx, in.ID, in.After, limit)
	if err != nil {
		return nil, err
	}
	p := registry.Page[registry.Event]{Rows: events}
	RedactEvents(events)
	if len(events) == limit {
		p.Next = strconv.FormatInt(events[limit-1].Seq, 10)
	}
	return page(p), nil
}

// past returns an error unless there is, or was before it was purged, such an item that the request may see.
func (s *server) past(ctx context.Context, id string) error {
	return sight{s.all, callOf(ctx).token}.past(ctx, id)
}

func (s *server) attempts(ctx context.Context, in *ItemID) (*output[registry.Page[registry.Attempt]], error) {
	if err := s.past(ctx, in.ID); err != nil {
		return nil, err
	}
	attempts, err := s.registry.Attempts(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return listed(attempts), nil
}

func (s *server) why(ctx context.Context, in *ItemID) (*output[registry.Why], error) {
	w, err := s.registry.Why(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &output[registry.Why]{Body: w}, nil
}

type redeliverInput struct {
	ItemID
	Key  string `header:"Idempotency-Key" maxLength:"200"`
	Body wire.RedeliverRequest
}

func (s *server) redeliver(ctx context.Context, in *redeliverInput) (*output[registry.WorkItem], error) {
	if err := invalid("nothing is told", textFault("body.reason", in.Body.Reason, maxText)...); err != nil {
		return nil, err
	}
	if _, err := s.registry.Item(ctx, in.ID); err != nil {
		return nil, err
	}
	it, err := s.registry.Redeliver(ctx, registry.RedeliverRequest{
		ItemID: in.ID, Reason: in.Body.Reason, Actor: actor(ctx), IdempotencyKey: in.Key,
	})
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "told again", "item", in.ID, "by", it.ID, "actor", actor(ctx))
	return shown(it)
}
