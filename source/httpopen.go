package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Open implements Fetcher.
func (h *HTTP) Open(ctx context.Context, rawURL string, from Point) (*Body, error) {
	if from.resumable() {
		body, err := h.resume(ctx, rawURL, from)
		if body != nil || err != nil {
			return body, err
		}
	}
	x, err := h.exchange(ctx, "open", http.MethodGet, rawURL, nil)
	if err != nil {
		return nil, err
	}
	return x.whole()
}

// resumable checks safety rule R5 as far as possible before asking.
func (p Point) resumable() bool {
	return p.Offset > 0 && (isStrong(p.Validator) || p.Validator == "" && p.Digest)
}

// resume requests the rest of a file. It returns nil and nil if the whole file must be requested.
func (h *HTTP) resume(ctx context.Context, rawURL string, from Point) (*Body, error) {
	header := http.Header{"Range": {"bytes=" + strconv.FormatInt(from.Offset, 10) + "-"}}
	if from.Validator != "" {
		header.Set(h.condition, from.Validator)
	}
	x, err := h.exchange(ctx, "open", http.MethodGet, rawURL, header)
	if err != nil {
		return nil, err
	}
	switch x.resp.StatusCode {
	case http.StatusPartialContent:
		body, err := x.rest(from)
		if body == nil {
			x.close()
		}
		return body, err
	case http.StatusRequestedRangeNotSatisfiable, http.StatusPreconditionFailed: // the file became shorter, or was replaced
		x.close()
		return nil, nil
	default:
		return x.whole()
	}
}

// whole returns the answer as the whole file.
func (x *exchange) whole() (*Body, error) {
	if x.resp.StatusCode != http.StatusOK {
		defer x.close()
		return nil, x.statusFault()
	}
	info, err := x.describe()
	if err != nil {
		x.close()
		return nil, err
	}
	return &Body{ReadCloser: x.body(0, info.Size), Info: info}, nil
}

// rest returns a 206 as the rest of the file that from belongs to. It returns nil and nil if the
// answer does not prove that (safety rule R5): some servers ignore If-Range and send the range of
// any file.
func (x *exchange) rest(from Point) (*Body, error) {
	r, ok := x.contentRange()
	if !ok || r.start != from.Offset || r.total < 0 {
		return nil, nil
	}
	info, err := x.describe()
	if err != nil {
		return nil, err
	}
	sizes := from.Size == r.total
	same := info.Validator == from.Validator
	if from.Validator == "" {
		same = same && sizes && info.Modified.Equal(from.Modified)
	} else if info.Validator == "" { // the server should have repeated it
		same = from.Digest && sizes
		info.Validator = from.Validator
	}
	if !same {
		return nil, nil
	}
	info.Size, info.Ranges = r.total, true
	return &Body{ReadCloser: x.body(from.Offset, r.total-r.start), Info: info, Offset: from.Offset}, nil
}

// byteRange is a parsed Content-Range header. total is -1 if unknown; start and end are -1 if
// absent.
type byteRange struct {
	start, end, total int64
}

// contentRange reads the header (RFC 9110, 14.4).
func (x *exchange) contentRange() (byteRange, bool) {
	unit, rest, _ := strings.Cut(strings.TrimSpace(x.resp.Header.Get("Content-Range")), " ")
	span, size, found := strings.Cut(strings.TrimSpace(rest), "/")
	if !found || !strings.EqualFold(unit, "bytes") {
		return byteRange{}, false
	}
	r := byteRange{start: -1, end: -1, total: -1}
	var errs [3]error
	if size != "*" {
		r.total, errs[0] = parseSize(size)
	}
	if span != "*" {
		first, last, _ := strings.Cut(span, "-")
		r.start, errs[1] = parseSize(first)
		r.end, errs[2] = parseSize(last)
	}
	if errors.Join(errs[:]...) != nil || r.end < r.start || r.total >= 0 && r.end >= r.total {
		return byteRange{}, false
	}
	return r, true
}

func parseSize(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("parse size: %w", err)
	}
	return int64(n), nil
}

// isStrong reports whether an ETag is strong, so that equal ETags mean equal bytes (RFC 9110,
// 8.8.3).
func isStrong(etag string) bool {
	return len(etag) >= 2 && etag[0] == '"' && etag[len(etag)-1] == '"'
}

// drain reads the short rest of a body, so that its connection can be reused.
func (x *exchange) drain() {
	const little = 4 << 10
	_, _ = io.CopyN(io.Discard, x.body(0, -1), little) // the answer is already known
}
