// Package siegfried identifies formats by a siegfried server, `sf -serve`, which knows PRONOM.
//
// It sends each file whole, as a stream, because PRONOM's signatures examine beginnings, ends, and
// the insides of containers. The operator configures the server; depositors cannot name it. The
// guard on depositors' addresses therefore does not apply. Redirects are not followed.
//
// Source: the server's own usage page (GET /), and its JSON answers, as of siegfried 1.11.
package siegfried

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/netfault"
)

// Options configure a Client. URL is required.
type Options struct {
	URL string
	// Largest is the size in bytes of the largest file to send: the server stores a file on its own
	// disk while it examines it. 0: DefaultLargest.
	Largest int64
	// Slots is how many files are sent concurrently; 0: DefaultSlots.
	Slots int
}

// Defaults of Options.
const (
	DefaultLargest = 4 << 30
	DefaultSlots   = 4
)

const (
	// baseTimeout is the time for any file. A file may take longer by its size at minRate bytes a
	// second.
	baseTimeout = time.Minute
	minRate     = 4 << 20
	// maxAnswer is how many bytes of an answer are read.
	maxAnswer = 1 << 20
)

// Client sends files to a server. It may be used concurrently.
type Client struct {
	address string
	largest int64
	slots   chan struct{}
	http    *http.Client
}

// New returns a Client, which must be closed. It does not connect. It returns an error if the
// address is invalid.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("siegfried address %q is invalid: want http://HOST:PORT", o.URL)
	}
	u = u.JoinPath("identify")
	u.RawQuery = "format=json"
	c := &Client{address: u.String(), largest: o.Largest, http: &http.Client{
		Transport:     &http.Transport{Proxy: nil, MaxIdleConnsPerHost: DefaultSlots, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if c.largest == 0 {
		c.largest = DefaultLargest
	}
	if o.Slots == 0 {
		o.Slots = DefaultSlots
	}
	c.slots = make(chan struct{}, o.Slots)
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Error says that the server could not be reached, or gave an unexpected answer. It is a system
// fault.
type Error struct {
	URL string
	Err error
}

// Error says what happened and what to do.
func (e *Error) Error() string {
	return fmt.Sprintf("siegfried at %s: %v; start it (sf -serve) or correct HOLDFAST_SIEGFRIED_URL", e.URL, netfault.Word(e.Err))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Identify implements format.Identifier. An error of the server is an *Error; an error of reading
// the file is returned unchanged.
func (c *Client) Identify(ctx context.Context, f format.File) (format.Answer, error) {
	if f.Size > c.largest {
		return format.Answer{}, fmt.Errorf("%s has %d bytes, the limit for siegfried is %d: %w", f.Name, f.Size, c.largest, format.ErrTooLarge)
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return format.Answer{}, context.Cause(ctx)
	}
	var answer format.Answer
	err := f.Read(ctx, func(content io.Reader) (err error) {
		answer, err = c.ask(ctx, f, content)
		return err
	})
	if own := new(Error); err != nil && !errors.As(err, &own) && ctx.Err() == nil {
		err = fmt.Errorf("identify %s: %w", f.Name, err)
	}
	return answer, err
}

// ask sends content and returns the answer. It returns the content's own error, the cause of ctx,
// or an *Error.
func (c *Client) ask(ctx context.Context, f format.File, content io.Reader) (format.Answer, error) {
	body := &trackedReader{r: content}
	raw, err := c.post(ctx, f, body)
	switch unreadable := body.end(); {
	case unreadable != nil:
		return format.Answer{}, unreadable
	case ctx.Err() != nil:
		return format.Answer{}, context.Cause(ctx)
	case err != nil:
		return format.Answer{}, &Error{URL: c.address, Err: err}
	}
	a, err := parse(raw)
	if err != nil {
		return format.Answer{}, &Error{URL: c.address, Err: err}
	}
	return a, nil
}

// post sends a file as a form and returns the answer.
func (c *Client) post(ctx context.Context, f format.File, content io.Reader) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, baseTimeout+time.Duration(f.Size/minRate)*time.Second)
	defer cancel()
	var frame bytes.Buffer
	form := multipart.NewWriter(&frame)
	if _, err := form.CreateFormFile("file", path.Base(f.Name)); err != nil {
		return nil, err
	}
	begin := frame.Len()
	if err := form.Close(); err != nil {
		return nil, err
	}
	whole := io.MultiReader(bytes.NewReader(frame.Bytes()[:begin]), content, bytes.NewReader(frame.Bytes()[begin:]))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, whole)
	if err != nil {
		return nil, err
	}
	req.ContentLength = int64(frame.Len()) + f.Size
	req.Header.Set("Content-Type", form.FormDataContentType())
	answer, err := c.http.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) { // its text repeats the address
			err = failed.Err
		}
		return nil, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d: %.200q", answer.StatusCode, raw)
	}
	return raw, nil
}

// report is siegfried's answer.
type report struct {
	Version     string `json:"siegfried"`
	Identifiers []struct {
		Name    string `json:"name"`
		Details string `json:"details"`
	} `json:"identifiers"`
	Files []struct {
		Errors  string  `json:"errors"`
		Matches []match `json:"matches"`
	} `json:"files"`
}

type match struct {
	Namespace string `json:"ns"`
	ID        string `json:"id"`
	Format    string `json:"format"`
	Version   string `json:"version"`
	Warning   string `json:"warning"`
}

// unknown is the id of a match with nothing.
const unknown = "UNKNOWN"

// parse returns the answer of a report about one file. If several formats match, the first one
// counts, and a warning names the others.
func parse(raw []byte) (format.Answer, error) {
	var r report
	if err := json.Unmarshal(raw, &r); err != nil || r.Version == "" || len(r.Files) != 1 {
		return format.Answer{}, fmt.Errorf("unexpected answer %.200q (%w)", raw, err)
	}
	a := format.Answer{Agent: "siegfried " + r.Version}
	pronom, registry := "", ""
	for _, i := range r.Identifiers {
		if strings.Contains(i.Details, "DROID_SignatureFile") {
			pronom, registry = i.Name, i.Details
		}
	}
	if pronom == "" {
		return a, errors.New("its signature file is not PRONOM's; make one by roy build")
	}
	f := r.Files[0]
	var others []string
	for _, m := range f.Matches {
		switch {
		case m.Namespace != pronom || m.ID == unknown:
		case a.Format == nil:
			a.Format = &format.Format{PUID: m.ID, Name: m.Format, Version: m.Version, Registry: registry, Warning: m.Warning}
		default:
			others = append(others, m.ID)
		}
	}
	if a.Format == nil {
		return a, nil
	}
	var warnings []string
	for _, w := range []string{a.Format.Warning, f.Errors} {
		if w != "" {
			warnings = append(warnings, w)
		}
	}
	if len(others) > 0 {
		warnings = append(warnings, "it may also be "+strings.Join(others, ", "))
	}
	a.Format.Warning = strings.Join(warnings, "; ")
	return a, nil
}

// trackedReader keeps the error of a reader, to distinguish it from that of the connection. After
// an early answer the request may continue to read for a moment.
type trackedReader struct {
	mu    sync.Mutex
	r     io.Reader
	err   error
	ended bool
}

// Read implements io.Reader.
func (r *trackedReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return 0, io.ErrClosedPipe
	}
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// end stops the reading and returns the reader's error.
func (r *trackedReader) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	return r.err
}

var _ format.Identifier = (*Client)(nil)
