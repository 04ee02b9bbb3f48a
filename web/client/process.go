package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// The methods of this file make a Client a registry.Processing. The actor is the token. Refusals are
// the errors that registry.Processing names.

// Namespaces lists the namespaces of processes, by name.
func (c *Client) Namespaces(ctx context.Context) ([]registry.Namespace, error) {
	p, err := get[registry.Page[wire.Namespace]](ctx, c, "/namespaces", nil)
	return wire.Each(p.Rows, wire.Namespace.Registry), err
}

// InitProcess implements registry.Processing.
func (c *Client) InitProcess(ctx context.Context, n registry.NewProcess) (out registry.Answer, err error) {
	r := wire.ProcessRequest{Namespace: n.Namespace, ProcessID: n.ProcessID, Collection: n.Collection, Args: n.Args, Context: n.Context}
	err = c.ask(ctx, request{method: http.MethodPost, path: "/processes", header: keyed(n.IdempotencyKey)}, r, &out)
	return out, err
}

// CallProcess implements registry.Processing.
func (c *Client) CallProcess(ctx context.Context, n registry.NewCall) (registry.Answer, error) {
	return c.callProcess(ctx, n, "calls")
}

// RepairProcess implements registry.Processing.
func (c *Client) RepairProcess(ctx context.Context, n registry.NewCall) (registry.Answer, error) {
	return c.callProcess(ctx, n, "repairs")
}

func (c *Client) callProcess(ctx context.Context, n registry.NewCall, what string) (out registry.Answer, err error) {
	r := wire.CallRequest{Args: n.Args, Context: n.Context}
	if n.Range != (registry.HistoryRange{}) {
		r.Range = &n.Range
	}
	err = c.ask(ctx, request{method: http.MethodPost, path: processPath(n.ProcessKey, what), header: keyed(n.IdempotencyKey)}, r, &out)
	return out, err
}

// RetryProcess implements registry.Processing.
func (c *Client) RetryProcess(ctx context.Context, a registry.ProcessAct) (out registry.ProcessInfo, err error) {
	err = c.ask(ctx, request{method: http.MethodPost, path: processPath(a.ProcessKey, "retry"), header: keyed(a.IdempotencyKey)},
		wire.RetryRequest{Context: a.Context, Reason: a.Reason}, &out)
	return out, err
}

// PutProcess implements registry.Processing.
func (c *Client) PutProcess(ctx context.Context, p registry.PutProcess) (out registry.ProcessInfo, err error) {
	r := wire.PutProcessRequest{Collection: p.Collection, State: p.State, Metadata: p.Metadata, Timer: p.Timer}
	for _, e := range p.History {
		r.History = append(r.History, wire.ImportedEvent{ID: e.ID, At: e.At, Payload: e.Payload, Metadata: e.Metadata})
	}
	err = c.ask(ctx, request{method: http.MethodPut, path: processPath(p.ProcessKey), header: keyed(p.IdempotencyKey)}, r, &out)
	return out, err
}

// RemoveProcess implements registry.Processing.
func (c *Client) RemoveProcess(ctx context.Context, a registry.ProcessAct) error {
	return c.ask(ctx, request{
		method: http.MethodDelete, path: processPath(a.ProcessKey), query: values("reason", a.Reason), header: keyed(a.IdempotencyKey),
	}, nil, nil)
}

// AwaitAnswer implements registry.Processing by long polls.
func (c *Client) AwaitAnswer(ctx context.Context, itemID string) (registry.Answer, error) {
	return longPoll(ctx, c, "/answers/"+url.PathEscape(itemID), nil, func(a registry.Answer) bool { return a.Status.Settled() })
}

// Process implements registry.Processing by long polls.
func (c *Client) Process(ctx context.Context, key registry.ProcessKey, r registry.HistoryRange) (registry.ProcessInfo, error) {
	query := values("offset", number(r.Offset), "limit", number(r.Limit))
	for name, set := range map[string]bool{"backward": r.Backward, "none": r.None} {
		if set {
			query.Set(name, "true")
		}
	}
	return longPoll(ctx, c, processPath(key), query, func(p registry.ProcessInfo) bool { return p.Status != registry.ProcessInit })
}

// TraceProcess implements registry.Processing.
func (c *Client) TraceProcess(ctx context.Context, q registry.TraceQuery) (registry.Page[registry.TracedStep], error) {
	return get[registry.Page[registry.TracedStep]](ctx, c, processPath(q.ProcessKey, "steps"), values("after", q.After, "limit", number(q.Limit)))
}

// Processes implements registry.Processing. The server limits the list to what the token may see.
func (c *Client) Processes(ctx context.Context, q registry.ProcessQuery) (registry.Page[registry.ProcessInfo], error) {
	return get[registry.Page[registry.ProcessInfo]](ctx, c, "/processes", values(
		"namespace", q.Namespace, "status", string(q.Status), "text", q.Text, "after", q.After, "limit", number(q.Limit)))
}

// processPath returns a path below a process, whose id may contain slashes.
func processPath(key registry.ProcessKey, rest ...string) string {
	return in("processes", key.Namespace, append([]string{url.PathEscape(key.ProcessID)}, rest...)...)
}

// lastLook limits the request that a long poll makes when its context has ended.
const lastLook = 5 * time.Second

// longPoll asks until an answer is done or ctx ends; then it looks once more, without waiting, and
// returns what it finds.
func longPoll[T any](ctx context.Context, c *Client, path string, query url.Values, done func(T) bool) (T, error) {
	if query == nil {
		query = url.Values{}
	}
	most := min(20*time.Second, c.Timeout()/2) // shorter than the time limit of a request
	for {
		wait := most
		if end, bounded := ctx.Deadline(); bounded {
			wait = max(0, min(wait, time.Until(end)-time.Second)) // leaves time for the answer
		}
		query.Set("wait", strconv.FormatFloat(wait.Seconds(), 'f', 3, 64))
		out, err := get[T](ctx, c, path, query)
		if err != nil && ctx.Err() != nil {
			look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
			defer cancel()
			query.Set("wait", "0")
			return get[T](look, c, path, query)
		}
		if err != nil || done(out) {
			return out, err
		}
		if wait < most { // ctx is about to end
			<-ctx.Done()
			return out, nil
		}
	}
}
