package client

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast/holdfast/registry"
)

// DigestError says that bytes changed in transit. They must not be used.
type DigestError struct {
	What      string
	Algorithm string
	Want, Got string // hex
}

// Error implements error.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s changed in transit: its %s is %s, not %s; try again", e.What, e.Algorithm, e.Got, e.Want)
}

// SendStream sends a body of unknown size as an upload, in one request. An interruption costs all of
// it; SendFile resumes. "" for the collection means the token's only collection.
func (c *Client) SendStream(ctx context.Context, name, collection string, body io.Reader) (registry.Upload, error) {
	var out registry.Upload
	err := c.ask(ctx, request{
		method: http.MethodPost, path: "/uploads", query: values("filename", name, "collection", collection), body: body, length: -1, unbounded: true,
	}, nil, &out)
	return out, err
}

// RemoveUpload removes an upload that was never submitted. It returns registry.ErrNotFound if there
// is none, and a *Problem of status 409 if a batch uses it. A repeat changes nothing.
func (c *Client) RemoveUpload(ctx context.Context, id string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: in("uploads", id)}, nil, nil)
}
