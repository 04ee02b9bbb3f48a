package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// Time limits of a stream.
const (
	signOfLife  = 15 * time.Second // between keep-alive messages, and between checks of the token
	streamWrite = 30 * time.Second // for a reader to receive what was sent; it can then reconnect
	streamRetry = time.Second      // after which a reader should reconnect
)

// eventsRoute adds GET /events, which streams the feed (server-sent events, HTML 9.2).
func (s *Service) eventsRoute() {
	op := s.Describe(endpoint.Operation{
		ID: "events", Method: http.MethodGet, Path: "/events", Refuses: []int{http.StatusNotFound}, Summary: "Stream the feed (server-sent events): every event once, in order, after a cursor",
	})
	text := &huma.Schema{Type: "string"}
	op.Parameters = []*huma.Param{
		{Name: "Last-Event-ID", In: "header", Description: "The id of the last event seen; takes precedence over `after`", Schema: text},
		{Name: "after", In: "query", Description: "The same, for the first request; 0 starts at the first event; when absent, the stream starts now", Schema: &huma.Schema{Type: "integer"}},
		{Name: "types", In: "query", Description: "Only events of these types, separated by commas", Schema: text},
		{Name: "item", In: "query", Description: "Only events of this item", Schema: text},
	}
	s.DocumentAs(&op, "text/event-stream", &huma.Schema{
		Type: "string", Description: "id is the feed's cursor, event the type, data the Event as JSON; a message without data only moves the cursor",
	})
	s.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		if err := s.stream(w, r); err != nil {
			s.Fail(w, r, err)
		}
	})
}

// stream sends the feed until the reader disconnects or stops reading, its token ends, or the
// server begins to stop. An error means that nothing was sent yet.
func (s *Service) stream(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if err := s.Permit(ctx, "events"); err != nil {
		return err
	}
	q, err := s.streamQuery(r)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for nginx as a proxy
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	// Send the cursor at once, so that a reader that is cut off before the first event misses none.
	err = out.send(fmt.Sprintf("retry: %d\nid: %d\n\n", streamRetry.Milliseconds(), q.After))
	defer out.control.SetWriteDeadline(time.Time{}) //nolint:errcheck // the connection is reused, or closed
	checked := time.Now()
	for err == nil {
		if time.Since(checked) >= s.keepAlive() {
			checked = time.Now()
			if err = s.stillGood(ctx); err != nil {
				break
			}
		}
		var f wire.Feed
		if f, err = s.feedPage(ctx, q); err != nil {
			break
		}
		if err = out.events(f.Rows); err != nil {
			break
		}
		q.After = f.Next
		if len(f.Rows) == q.Limit && !s.Stopping() {
			continue
		}
		err = s.await(ctx, out, q.After)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, errStreamOver) {
		s.Log.InfoContext(ctx, "event stream ended", "request", access.Of(ctx).RequestID, "actor", access.Actor(ctx), "err", err)
	}
	return nil
}

// errStreamOver ends a stream without a fault.
var errStreamOver = errors.New("the stream is over")

// await waits for an event beyond a cursor. If none comes in time, it sends a keep-alive message.
func (s *Service) await(ctx context.Context, out *eventWriter, after int64) error {
	if s.Stopping() {
		return errStreamOver
	}
	waiting, cancel := s.Until(ctx, s.keepAlive())
	defer cancel()
	err := s.Registry.AwaitFeed(waiting, after)
	switch {
	case ctx.Err() != nil:
		return errStreamOver
	case err == nil:
		return nil
	case waiting.Err() == nil:
		return err
	case !errors.Is(waiting.Err(), context.DeadlineExceeded):
		return errStreamOver // the server begins to stop
	}
	return out.send(fmt.Sprintf(": keep-alive\nid: %d\n\n", after))
}

// stillGood returns errStreamOver if the stream's token or session has ended.
func (s *Service) stillGood(ctx context.Context) error {
	c := access.Of(ctx)
	var err error
	if c.Session.ID != "" {
		err = s.SignIn.Good(ctx, c.Session)
	} else {
		_, err = s.Registry.TokenByHash(ctx, c.Token.Hash)
	}
	if errors.Is(err, registry.ErrNotFound) {
		return errStreamOver
	}
	return err
}

// streamQuery reads which events a request asks for.
func (s *Service) streamQuery(r *http.Request) (registry.FeedQuery, error) {
	const most = 500
	q := registry.FeedQuery{After: -1, Limit: most}
	query := r.URL.Query()
	var faults []wire.Fault
	for name := range query {
		if !slices.Contains([]string{"after", "types", "item"}, name) {
			faults = append(faults, wire.Fault{Location: "query." + name, Message: "unknown query parameter"})
		}
	}
	for _, t := range query["types"] {
		q.Types = append(q.Types, strings.FieldsFunc(t, func(c rune) bool { return c == ',' || c == ' ' })...)
	}
	if len(q.Types) > 50 {
		faults = append(faults, wire.Fault{Location: "query.types", Message: fmt.Sprintf("%d types; at most 50 are allowed", len(q.Types))})
	}
	location, text := "query.after", query.Get("after")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		location, text = "header.Last-Event-ID", last
	}
	if text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			faults = append(faults, wire.Fault{Location: location, Message: "not the id of an event; start without it"})
		}
		q.After = n
	}
	end, err := s.Registry.FeedEnd(r.Context())
	if err != nil {
		return q, err
	}
	switch {
	case q.After > end:
		// This happens after the database was restored from a backup. Waiting for the numbers to be
		// reused would lose events.
		faults = append(faults, wire.Fault{Location: location, Message: fmt.Sprintf("the newest event is %d; start there, or without a cursor", end)})
	case text == "":
		q.After = end
	}
	if err := endpoint.Invalid("the feed was not streamed", faults...); err != nil {
		return q, err
	}
	if q.ItemID, err = s.Whole(r.Context(), "items", "query.item", query.Get("item")); err == nil && q.ItemID != "" {
		_, err = s.Registry.Item(r.Context(), q.ItemID)
	}
	return q, err
}

// eventWriter writes a stream. It gives up a reader that receives nothing for too long.
type eventWriter struct {
	w       io.Writer
	control *http.ResponseController
}

// events sends a page of events.
func (e *eventWriter) events(page []registry.Event) error {
	if len(page) == 0 {
		return nil
	}
	var b strings.Builder
	for _, ev := range page {
		data, err := json.Marshal(ev)
		if err != nil {
			return fmt.Errorf("encode event %d: %w", ev.Seq, err)
		}
		kind := strings.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return ' '
			}
			return r
		}, ev.Type)
		fmt.Fprintf(&b, "id: %d\nevent: %s\ndata: %s\n\n", ev.Seq, kind, data)
	}
	return e.send(b.String())
}

func (e *eventWriter) send(text string) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(streamWrite)) // if this fails, the server's own deadline holds
	if _, err := io.WriteString(e.w, text); err != nil {
		return fmt.Errorf("send events: %w", err)
	}
	if err := e.control.Flush(); err != nil {
		return fmt.Errorf("send events: %w", err)
	}
	return nil
}

// keepAlive returns the interval of keep-alive messages.
func (s *Service) keepAlive() time.Duration {
	if s.KeepAlive <= 0 {
		return signOfLife
	}
	return s.KeepAlive
}
