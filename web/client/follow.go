package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Time limits of following the feed.
const (
	followSilence = 45 * time.Second // the server sends something every 15 s: the connection is dead
	followRetry   = time.Second      // until the server sets it
	followMost    = 30 * time.Second // largest wait between tries
)

// FromNow as FeedQuery.After follows only events that are still to come.
const FromNow int64 = -1

// FollowEvents calls fn with each event after q.After that q selects, once and in order. It ends
// when ctx ends, when fn returns an error, which it returns, or when the server refuses. If the
// connection or the server fails, it reconnects and continues, however long that takes. q.Within
// and q.Limit are ignored: the token decides which events are visible.
func (c *Client) FollowEvents(ctx context.Context, q registry.FeedQuery, fn func(registry.Event) error) error {
	f := &follower{client: c, query: q, fn: fn, retry: followRetry}
	wait := time.Duration(0)
	for {
		before := f.query.After
		err := f.once(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var stop *stopError
		if errors.As(err, &stop) {
			return stop.err
		}
		if wait = min(max(2*wait, f.retry), followMost); f.query.After != before {
			wait = f.retry // it got on
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// follower is the position of a reader in the feed.
type follower struct {
	client *Client
	query  registry.FeedQuery
	fn     func(registry.Event) error
	retry  time.Duration
}

// stopError is an error after which reconnecting is useless.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }

// once reads one connection until it ends.
func (f *follower) once(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(followSilence, func() { cancel(errSilent) })
	defer silent.Stop()
	q := request{method: http.MethodGet, path: "/events", query: values("item", f.query.ItemID, "types", join(f.query.Types)), unbounded: true}
	if f.query.After >= 0 {
		q.query.Set("after", strconv.FormatInt(f.query.After, 10))
	}
	answer, err := f.client.do(ctx, q)
	if p := new(Problem); errors.As(err, &p) && p.Status/100 == 4 && p.Status != http.StatusTooManyRequests && p.Status != http.StatusRequestTimeout {
		return &stopError{err}
	} else if err != nil {
		return err
	}
	defer answer.Body.Close()
	return f.read(answer.Body, func() { silent.Reset(followSilence) })
}

// errSilent ends a connection on which the server sends nothing.
var errSilent = errors.New("the server is silent")

// read parses a stream of messages, each ended by an empty line.
func (f *follower) read(body io.Reader, alive func()) error {
	const most = 16 << 20
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, most)
	var id, data string
	for lines.Scan() {
		alive()
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			if err := f.message(id, data); err != nil {
				return err
			}
			id, data = "", ""
		case name == "id":
			id = value
		case name == "data":
			data = value // the server's data have one line
		case name == "retry":
			if ms, err := strconv.Atoi(value); err == nil && ms > 0 {
				f.retry = min(time.Duration(ms)*time.Millisecond, followMost)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF // an incomplete message is sent again
}

// message handles one message: an event, or a cursor without one.
func (f *follower) message(id, data string) error {
	if id == "" {
		return nil // a comment, or a retry interval
	}
	cursor, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return &stopError{fmt.Errorf("the server sent an event without a number: %w", err)}
	}
	if cursor <= f.query.After {
		return nil // already seen
	}
	if data != "" {
		var e registry.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return &stopError{fmt.Errorf("decode event %s: %w", id, err)}
		}
		if err := f.fn(e); err != nil {
			return &stopError{err}
		}
	}
	f.query.After = cursor
	return nil
}
