package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Upload describes a file to send.
type Upload struct {
	Filename string
	Body     io.Reader
	Size     int64            // of Body in bytes; -1 when it is not known
	Digest   *registry.Digest // of Body, when it is known before; nil: it is taken while sending
}

// DigestError says that bytes changed on their way. Nothing of them may be used.
type DigestError struct {
	What      string
	Algorithm string
	Want, Got string // hex
}

// Error implements error.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s changed on the way: its %s is %s and should be %s; try again", e.What, e.Algorithm, e.Got, e.Want)
}

// SendUpload sends what can be read only once, and returns when the server has it durably. The
// digest that the server took of what it stored is compared with the one taken here: *DigestError
// when they differ. An error of reading Body is returned as it is, and a Body that ends before Size
// is io.ErrUnexpectedEOF; the server keeps nothing of a file that breaks off. There is no deadline
// but ctx's.
func (c *Client) SendUpload(ctx context.Context, u Upload) (registry.Upload, error) {
	if u.Size == 0 {
		// Of unknown length, so that net/http does not ask the body whether it is really empty.
		u.Size = -1
	}
	body := &sentBody{r: u.Body, sum: sha256.New(), left: u.Size}
	header := http.Header{"Content-Type": {"application/octet-stream"}, "Expect": {"100-continue"}}
	if u.Digest != nil {
		header.Set(wire.DigestHeader, u.Digest.Algorithm+":"+u.Digest.Value)
	}
	answer, err := c.do(ctx, request{
		method: http.MethodPost, path: "/uploads", query: values("filename", u.Filename), header: header,
		body: io.NopCloser(body), length: u.Size,
	})
	if failed := body.fault(); failed != nil {
		err = fmt.Errorf("read %s: %w", u.Filename, failed)
	}
	if answer != nil {
		defer answer.Body.Close()
	}
	if err != nil {
		return registry.Upload{}, err
	}
	var stored registry.Upload
	if err := json.NewDecoder(answer.Body).Decode(&stored); err != nil {
		return registry.Upload{}, fmt.Errorf("decode answer to upload of %s: %w", u.Filename, err)
	}
	if want := body.digest(); stored.Digest.Algorithm == "sha256" && stored.Digest.Value != want {
		return stored, &DigestError{What: u.Filename, Algorithm: "sha256", Want: want, Got: stored.Digest.Value}
	}
	return stored, nil
}

// RemoveUpload removes an upload that was never submitted. registry.ErrNotFound when there is none,
// a *Problem of status 409 when it is a batch's. A repeat changes nothing.
func (c *Client) RemoveUpload(ctx context.Context, id string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: in("uploads", id)}, nil, nil)
}

// sentBody takes the digest of what is sent, and remembers why it could not be read. net/http may
// go on reading for a moment after it has returned an answer.
type sentBody struct {
	mu     sync.Mutex
	r      io.Reader
	sum    hash.Hash
	left   int64 // below 0: not known
	failed error
}

// Read implements io.Reader.
func (b *sentBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.r.Read(p)
	b.sum.Write(p[:n])
	known := b.left >= 0
	if known {
		b.left = max(0, b.left-int64(n))
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		b.failed = err
	case known && err != nil && b.left > 0:
		b.failed = io.ErrUnexpectedEOF
		return n, b.failed
	}
	return n, err
}

// fault is why the body could not be read, or nil.
func (b *sentBody) fault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// digest is that of what was read.
func (b *sentBody) digest() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return hex.EncodeToString(b.sum.Sum(nil))
}
