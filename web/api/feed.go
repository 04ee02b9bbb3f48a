package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *server) feedRoutes(api huma.API) {
	get := http.MethodGet
	register(s, api, operation{id: "list-feed", method: get, path: "/feed", summary: "Events of all items after a cursor, oldest first; waits for one if asked to"}, s.feed)
	register(s, api, operation{id: "list-audit", method: get, path: "/audit", summary: "What people did and were refused, newest first"}, s.audit)
}

type feedInput struct {
	After       int64    `query:"after" minimum:"0" doc:"The cursor of the last event that was seen; all events when not given"`
	Limit       int      `query:"limit" minimum:"1" maximum:"500" doc:"Rows of a page; 50 when not given"`
	Types       []string `query:"types" maxItems:"50" doc:"Only events of these types"`
	Item        string   `query:"item" id:"items" maxLength:"200" doc:"Only events of this item"`
	Collections []string `query:"collections" maxItems:"500" doc:"Only events of items in these collections"`
	Wait        int      `query:"wait" minimum:"0" maximum:"20" doc:"Seconds to wait for an event when there is none yet"`
}

func (s *server) feed(ctx context.Context, in *feedInput) (*output[wire.Feed], error) {
	q := registry.FeedQuery{After: in.After, ItemID: in.Item, Types: in.Types, Within: in.Collections, Limit: Paging{Limit: in.Limit}.size()}
	waiting, cancel := s.until(ctx, time.Duration(in.Wait)*time.Second)
	defer cancel()
	for {
		f, err := s.feedPage(ctx, q)
		if err != nil || len(f.Rows) > 0 || waiting.Err() != nil {
			return &output[wire.Feed]{Body: f}, err
		}
		q.After = f.Next
		if err := s.registry.AwaitFeed(waiting, q.After); err != nil && waiting.Err() == nil {
			return nil, err
		}
	}
}

// feedPage reads a page as it is shown.
func (s *server) feedPage(ctx context.Context, q registry.FeedQuery) (wire.Feed, error) {
	p, err := registry.ReadFeed(ctx, s.registry, q)
	if err != nil {
		return wire.Feed{}, err
	}
	RedactEvents(p.Events)
	return wire.Feed{Rows: append([]registry.Event{}, p.Events...), End: p.End, Next: p.Next}, nil
}

// until returns a context that ends after d, with ctx, or when the server is about to stop.
func (s *server) until(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	if s.done != nil {
		go func() {
			select {
			case <-s.done:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

type auditInput struct {
	Paging
	Actor string   `query:"actor" maxLength:"200" doc:"Only what this token did or was refused, by its name"`
	Types []string `query:"types" maxItems:"50" doc:"Only entries of these types"`
}

func (s *server) audit(ctx context.Context, in *auditInput) (*output[registry.Page[registry.Event]], error) {
	rows, err := s.registry.Audit(ctx, registry.AuditQuery{Actor: in.Actor, Types: in.Types, After: in.After, Limit: in.size()})
	if err != nil {
		return nil, in.badCursor(err)
	}
	RedactEvents(rows.Rows)
	return page(rows), nil
}
