// Package siegfried identifies files by a siegfried server, `sf -serve`, which knows PRONOM.
//
// It sends each file whole, as a stream, because PRONOM's signatures look at beginnings, ends, and
// into containers. The operator configures the server; no depositor can name it. So the guard on
// depositors' addresses does not apply, and redirects are not followed.
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
)

// Options says where the server is, and how much is asked of it. URL must be set.
type Options struct {
	URL string
	// Largest is the size in bytes of the largest file that is sent: the server keeps what comes in
	// on its own disk until it has looked at it. 0: DefaultLargest.
	Largest int64
	// Slots is how many files are sent at a time; 0: DefaultSlots.
	Slots int
}

// The defaults of Options.
const (
	DefaultLargest = 4 << 30
	DefaultSlots   = 4
)

const (
	// patience is the time for one file, and slowest how many bytes a second are expected of the
	// way there.
	patience = time.Minute
	slowest  = 4 << 20
	// most is how much of an answer is read.
	most = 1 << 20
)

// Client asks a server. It may be used concurrently.
type Client struct {
	address string
	largest int64
	slots   chan struct{}
	http    *http.Client
}

// New returns a Client, to be closed. It asks the server nothing. The error says what is wrong with
// the address.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("siegfried address %q is none of a server", o.URL)
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

// Close lets go of idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Error says that the server could not be asked, or did not answer as siegfried does. It is the
// system's fault.
type Error struct {
	URL string
	Err error
}

// Error says what to do.
func (e *Error) Error() string {
	return fmt.Sprintf("siegfried at %s: %v; start it (sf -serve) or correct HOLDFAST_SIEGFRIED_URL", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Identify implements format.Identifier. An error of the server is an *Error, one of reading the
// file is as it came.
func (c *Client) Identify(ctx context.Context, f format.File) (format.Answer, error) {
	if f.Size > c.largest {
		return format.Answer{}, fmt.Errorf("%s has %d bytes, at most %d are sent to siegfried: %w", f.Name, f.Size, c.largest, format.ErrTooLarge)
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
	body := &reading{r: content}
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
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(f.Size/slowest)*time.Second)
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
		if errors.As(err, &failed) { // whose text has the address once more
			err = failed.Err
		}
		return nil, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, most))
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

// parse makes a report about one file an answer. Of several formats that fit the first holds, and a
// warning names the others.
func parse(raw []byte) (format.Answer, error) {
	var r report
	if err := json.Unmarshal(raw, &r); err != nil || r.Version == "" || len(r.Files) != 1 {
		return format.Answer{}, fmt.Errorf("it answers what siegfried does not: %.200q (%w)", raw, err)
	}
	a := format.Answer{Agent: "siegfried " + r.Version}
	pronom, registry := "", ""
	for _, i := range r.Identifiers {
		if strings.Contains(i.Details, "DROID_SignatureFile") {
			pronom, registry = i.Name, i.Details
		}
	}
	if pronom == "" {
		return a, errors.New("its signature file is not PRONOM's; make it by roy build")
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

// reading keeps the error of a reader, to tell it from that of where the bytes go. A request that
// was answered early may go on reading for a moment.
type reading struct {
	mu    sync.Mutex
	r     io.Reader
	err   error
	ended bool
}

// Read implements io.Reader.
func (r *reading) Read(p []byte) (int, error) {
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

// end returns when nothing is read any more, with the reader's error.
func (r *reading) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	return r.err
}

var _ format.Identifier = (*Client)(nil)
