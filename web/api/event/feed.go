package event

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/redact"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) feedRoutes() {
	get := http.MethodGet
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-feed", Method: get, Path: "/feed", Summary: "List events of all items after a cursor, oldest first; can wait for the next event"}, s.feed)
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-audit", Method: get, Path: "/audit", Summary: "List what people did and were refused, and which backups were made, newest first"}, s.audit)
}

type feedInput struct {
	After       int64    `query:"after" minimum:"0" doc:"The cursor of the last event seen; when absent, starts at the first event"`
	Limit       int      `query:"limit" minimum:"1" maximum:"500" doc:"Rows per page; 50 when absent"`
	Types       []string `query:"types" maxItems:"50" doc:"Only events of these types"`
	Item        string   `query:"item" id:"items" maxLength:"200" doc:"Only events of this item"`
	Collections []string `query:"collections" maxItems:"500" doc:"Only events of items in these collections"`
	Wait        int      `query:"wait" minimum:"0" maximum:"20" doc:"Seconds to wait if there is no event yet"`
}

func (s *Service) feed(ctx context.Context, in *feedInput) (*endpoint.Output[wire.Feed], error) {
	q := registry.FeedQuery{After: in.After, ItemID: in.Item, Types: in.Types, Within: in.Collections, Limit: endpoint.Paging{Limit: in.Limit}.Size()}
	waiting, cancel := s.Until(ctx, time.Duration(in.Wait)*time.Second)
	defer cancel()
	for {
		f, err := s.feedPage(ctx, q)
		if err != nil || len(f.Rows) > 0 || waiting.Err() != nil {
			return &endpoint.Output[wire.Feed]{Body: f}, err
		}
		q.After = f.Next
		if err := s.Registry.AwaitFeed(waiting, q.After); err != nil && waiting.Err() == nil {
			return nil, err
		}
	}
}

// feedPage reads a page of the feed, without secrets.
func (s *Service) feedPage(ctx context.Context, q registry.FeedQuery) (wire.Feed, error) {
	p, err := registry.ReadFeed(ctx, s.Registry, q)
	if err != nil {
		return wire.Feed{}, err
	}
	redact.Events(p.Events)
	return wire.Feed{Rows: append([]registry.Event{}, p.Events...), End: p.End, Next: p.Next}, nil
}

type auditInput struct {
	endpoint.Paging
	Before string    `query:"before" maxLength:"200" doc:"prev of a page, for the page before it; not with after"`
	Actor  string    `query:"actor" maxLength:"200" doc:"Only entries of the token of this name"`
	Types  []string  `query:"types" maxItems:"50" doc:"Only entries of these types"`
	Since  time.Time `query:"since" doc:"Only entries from this time on (RFC 3339)"`
	Until  time.Time `query:"until" doc:"Only entries before this time (RFC 3339)"`
}

func (s *Service) audit(ctx context.Context, in *auditInput) (*endpoint.Output[registry.Page[registry.Event]], error) {
	if in.After != "" && in.Before != "" {
		return nil, endpoint.Invalid("the list was not read", wire.Fault{Location: "query.before", Message: "a page is after one entry or before one; give one of after and before"})
	}
	rows, err := s.Registry.Audit(ctx, registry.AuditQuery{
		Actor: in.Actor, Types: in.Types, Since: in.Since, Until: in.Until, After: in.After, Before: in.Before, Limit: in.Size(),
	})
	if in.Before != "" && errors.Is(err, registry.ErrNotFound) {
		err = endpoint.NoPage("before")
	}
	if err != nil {
		return nil, in.BadCursor(err)
	}
	redact.Events(rows.Rows)
	return endpoint.Page(rows), nil
}
