package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// caller is a client with the operations that no command of ours calls, but that the API promises.
type caller struct {
	*client.Client
	base, token string
}

// as returns a caller with a role's token.
func (b *bench) as(t testing.TB, role registry.Role) *caller {
	t.Helper()
	c := &caller{client.New(b.server.URL, tokenText(role), client.Options{}), b.server.URL, tokenText(role)}
	t.Cleanup(c.Close)
	return c
}

// ask sends a request and decodes its answer; a refusal is a *wire.Problem.
func ask[T any](ctx context.Context, c *caller, method, path string, body io.Reader) (out T, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+wire.Base+path, body)
	if err != nil {
		return out, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return out, err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		p := &wire.Problem{}
		if err := json.NewDecoder(answer.Body).Decode(p); err != nil {
			return out, err
		}
		return out, p
	}
	return out, json.NewDecoder(answer.Body).Decode(&out)
}

// oneRequest is a file to send by one request.
type oneRequest struct {
	Filename string
	Body     io.Reader
	Size     int64 // -1: unknown
	Digest   *registry.Digest
}

// SendUpload sends a file by one request.
func (c *caller) SendUpload(ctx context.Context, u oneRequest) (stored registry.Upload, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+wire.Base+"/uploads?"+url.Values{"filename": {u.Filename}}.Encode(), io.NopCloser(u.Body))
	if err != nil {
		return stored, err
	}
	if r.ContentLength = u.Size; u.Size == 0 {
		r.ContentLength = -1
	}
	r.Header = http.Header{"Authorization": {"Bearer " + c.token}, "Content-Type": {"application/octet-stream"}, "Expect": {"100-continue"}}
	if u.Digest != nil {
		r.Header.Set(wire.DigestHeader, u.Digest.Algorithm+":"+u.Digest.Value)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ExpectContinueTimeout = 5 * time.Second
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return stored, err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		p := &wire.Problem{}
		if err := json.NewDecoder(answer.Body).Decode(p); err != nil {
			return stored, err
		}
		return stored, p
	}
	return stored, json.NewDecoder(answer.Body).Decode(&stored)
}

func (c *caller) Batches(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.WorkItem], error) {
	v := url.Values{}
	for name, value := range map[string]string{"collection": q.Collection, "status": string(q.Status), "text": q.Text, "q": q.Match.String(), "after": q.After} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return ask[registry.Page[registry.WorkItem]](ctx, c, http.MethodGet, "/batches?"+v.Encode(), nil)
}

func (c *caller) Accepting(ctx context.Context) (registry.Accepting, error) {
	return ask[registry.Accepting](ctx, c, http.MethodGet, "/queue/accepting", nil)
}

func (c *caller) Workers(ctx context.Context) ([]registry.WorkerInfo, error) {
	p, err := ask[registry.Page[registry.WorkerInfo]](ctx, c, http.MethodGet, "/workers", nil)
	return p.Rows, err
}

// FeedPage is a page of the feed; with wait it waits so many seconds for an event.
func (c *caller) FeedPage(ctx context.Context, after int64, wait int) (wire.Feed, error) {
	return ask[wire.Feed](ctx, c, http.MethodGet, "/feed?limit=1&after="+strconv.FormatInt(after, 10)+"&wait="+strconv.Itoa(wait), nil)
}

// Prepare prepares a graph as a store in this process does.
func (c *caller) Prepare(ctx context.Context, g registry.Graph) (registry.PreparedGraph, error) {
	r := wire.GraphRequest{GraphID: g.ID, Nodes: make([]wire.NodeRequest, len(g.Nodes))}
	for i, n := range g.Nodes {
		s := n.Submission
		r.Nodes[i] = wire.NodeRequest{Key: n.Key, SubmitRequest: wire.SubmitRequest{
			URL: s.Spec.URL, Type: string(s.Spec.Type), Collection: s.Collection, Filename: s.Spec.Filename, Title: s.Spec.Title, Force: s.Force, Priority: s.Priority, Requires: s.Requires,
		}}
	}
	return c.PrepareGraph(ctx, r, g.IdempotencyKey)
}
