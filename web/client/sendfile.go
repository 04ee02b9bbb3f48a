package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// File is a file to send in parts, so that an interruption costs little.
type File struct {
	Name   string
	Size   int64            // bytes
	Digest *registry.Digest // if known in advance; the server refuses other bytes
	// Collection is the file's collection, whose upload quota it uses. "" means the token's only
	// collection.
	Collection string
	// Fingerprint distinguishes this file from others of its name and size, as far as possible
	// without reading it. With it, an unfinished upload of the same file is resumed. "" always
	// starts a new upload.
	Fingerprint string
	// Open opens the file at an offset. It is called again after every interruption.
	Open func(ctx context.Context, offset int64) (io.ReadCloser, error)

	// Resumed, if not nil, is called with the offset when an earlier upload is resumed.
	Resumed func(offset int64)
	// Moved, if not nil, is called with the number of bytes sent so far.
	Moved func(position int64)
	// Waiting, if not nil, is called with the error before each retry and the wait until then.
	Waiting func(err error, after time.Duration)
	// Patience is how long to retry without progress; 0 means 2 minutes.
	Patience time.Duration
}

// fingerprintKey is the key of the fingerprint in the upload's metadata.
const fingerprintKey = "fingerprint"

const (
	// firstPart is the size of the first request. Each next request sends as many bytes as were
	// sent before it. So the bytes that Registry processes copy when one takes over from another
	// stay proportional.
	firstPart = 64 << 20

	sendRetry = 250 * time.Millisecond
	sendMost  = 10 * time.Second // largest wait between tries
)

// SendFile sends a file and returns when the server has stored, verified and recorded it. It
// survives broken connections and restarts of the server; these cost only unacknowledged bytes.
//
// It compares its own digest with the server's and returns a *DigestError if they differ. After
// that error, and after an error of reading the file, the upload is removed from the server. After
// any other error, and when ctx ends, the acknowledged bytes stay for the next SendFile of the same
// file.
func (c *Client) SendFile(ctx context.Context, f File) (registry.Upload, error) {
	s := &fileSender{client: c, file: f, sum: sha256.New()}
	if err := s.begin(ctx); err != nil {
		return registry.Upload{}, err
	}
	u, err := s.finish(ctx)
	var unreadable *unreadableError
	var changed *DigestError
	if errors.As(err, &unreadable) || errors.As(err, &changed) {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
		defer cancel()
		if gone := c.RemoveUpload(tidy, s.id); gone != nil && !errors.Is(gone, registry.ErrNotFound) {
			err = errors.Join(err, fmt.Errorf("remove upload %s: %w", s.id, gone))
		}
	}
	return u, err
}

// Uploads lists the token's incoming uploads; with an admin's token those of all users.
func (c *Client) Uploads(ctx context.Context) ([]wire.UploadStatus, error) {
	page, err := get[registry.Page[wire.UploadStatus]](ctx, c, "/uploads", nil)
	return page.Rows, err
}

// AllUploads also lists complete uploads whose bytes are in staging.
func (c *Client) AllUploads(ctx context.Context) (all []wire.UploadStatus, err error) {
	for after := ""; ; {
		page, err := c.UploadPage(ctx, after)
		if err != nil {
			return all, err
		}
		all = append(all, page.Rows...)
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// UploadPage is a page of AllUploads: the first one, or the one behind a page's Next.
func (c *Client) UploadPage(ctx context.Context, after string) (registry.Page[wire.UploadStatus], error) {
	return get[registry.Page[wire.UploadStatus]](ctx, c, "/uploads", values("all", "true", "after", after))
}

// Upload returns an upload; registry.ErrNotFound if there is none.
func (c *Client) Upload(ctx context.Context, id string) (wire.UploadStatus, error) {
	return get[wire.UploadStatus](ctx, c, in("uploads", id), nil)
}

// unreadableError says that the file to send could not be read.
type unreadableError struct{ err error }

// Error returns the text of the read error.
func (e *unreadableError) Error() string { return e.err.Error() }

// Unwrap returns the read error.
func (e *unreadableError) Unwrap() error { return e.err }

// fileSender is a file being sent.
type fileSender struct {
	client *Client
	file   File
	id     string
	offset int64 // acknowledged bytes
	ended  bool  // the server has answered a request that ended the file

	sum    hash.Hash // of the first summed bytes
	summed int64
}

// begin finds an upload to resume, or creates one.
func (s *fileSender) begin(ctx context.Context) error {
	metadata := map[string]string{wire.MetadataFilename: s.file.Name}
	if s.file.Fingerprint != "" {
		metadata[fingerprintKey] = s.file.Fingerprint
	}
	if s.file.Collection != "" {
		metadata[wire.MetadataCollection] = s.file.Collection
	}
	if d := s.file.Digest; d != nil {
		metadata[wire.MetadataDigest] = d.Algorithm + ":" + d.Value
	}
	if s.file.Fingerprint != "" {
		left, err := s.client.Uploads(ctx)
		if err != nil {
			return err
		}
		for _, u := range left {
			if u.SizeBytes == s.file.Size && wire.EncodeMetadata(u.Metadata) == wire.EncodeMetadata(metadata) {
				s.id, s.offset = u.ID, u.Offset
				if s.file.Resumed != nil && u.Offset > 0 {
					s.file.Resumed(u.Offset)
				}
				return nil
			}
		}
	}
	header := tusHeader()
	header.Set(wire.UploadLengthHeader, strconv.FormatInt(s.file.Size, 10))
	header.Set(wire.UploadMetadataHeader, wire.EncodeMetadata(metadata))
	asking, cancel := context.WithTimeout(ctx, s.client.timeout)
	defer cancel()
	answer, err := s.client.do(asking, request{method: http.MethodPost, path: "/uploads", header: header})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	at, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || at.Path == "" {
		return fmt.Errorf("start the upload of %s: the answer of the server has no Location", s.file.Name)
	}
	s.id = at.Path[strings.LastIndex(at.Path, "/")+1:]
	return nil
}

func tusHeader() http.Header {
	return http.Header{wire.TusResumableHeader: {wire.TusVersion}}
}

// finish sends the rest of the file and compares digests.
func (s *fileSender) finish(ctx context.Context) (registry.Upload, error) {
	if err := s.sendAll(ctx); err != nil {
		return registry.Upload{}, err
	}
	if err := s.readTo(ctx, s.file.Size); err != nil { // an upload that was already complete
		return registry.Upload{}, err
	}
	u, err := get[wire.UploadStatus](ctx, s.client, in("uploads", s.id), nil)
	if err != nil {
		return registry.Upload{}, err
	}
	if !u.Complete || u.Digest == nil {
		return registry.Upload{}, fmt.Errorf("upload %s of %s is incomplete although all bytes were sent", s.id, s.file.Name)
	}
	stored := registry.Upload{ID: u.ID, Filename: u.Filename, SizeBytes: u.SizeBytes, Digest: *u.Digest, CreatedBy: u.CreatedBy, CreatedAt: u.CreatedAt}
	if want := hex.EncodeToString(s.sum.Sum(nil)); u.Digest.Algorithm == "sha256" && u.Digest.Value != want {
		return stored, &DigestError{What: s.file.Name, Algorithm: "sha256", Want: want, Got: u.Digest.Value}
	}
	return stored, nil
}

// sendAll sends the file part by part, and retries after temporary errors. If all bytes were
// acknowledged by a server that died before it had stored the file, an empty part has its successor
// store it.
func (s *fileSender) sendAll(ctx context.Context) error {
	patience := cmp.Or(s.file.Patience, 2*time.Minute)
	wait, got := sendRetry, time.Now()
	for !s.ended {
		before := s.offset
		err := s.sendPart(ctx)
		if err != nil {
			err = s.resync(ctx, err)
		}
		if s.offset > before {
			wait, got = sendRetry, time.Now()
		}
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !temporary(err) || time.Since(got) > patience:
			return err
		}
		if s.file.Waiting != nil {
			s.file.Waiting(err, wait)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		wait = min(2*wait, sendMost)
	}
	return nil
}

// resync asks the server for the upload's offset after a failed request. It returns the error to
// act on: nil if the offset has changed.
func (s *fileSender) resync(ctx context.Context, failed error) error {
	if ctx.Err() != nil || !temporary(failed) {
		return failed
	}
	answer, err := s.client.do(ctx, request{method: http.MethodHead, path: in("uploads", s.id), header: tusHeader()})
	if err != nil {
		if !temporary(err) {
			return err
		}
		return failed
	}
	defer answer.Body.Close()
	before := s.offset
	if err := s.readOffset(answer); err != nil {
		return err
	}
	if s.offset != before {
		return nil
	}
	return failed
}

// readOffset reads the upload's offset from an answer.
func (s *fileSender) readOffset(answer *http.Response) error {
	at, err := strconv.ParseInt(answer.Header.Get(wire.UploadOffsetHeader), 10, 64)
	if err != nil || at < 0 || at > s.file.Size {
		return fmt.Errorf("upload %s of %s: the server sent an invalid offset %q", s.id, s.file.Name, answer.Header.Get(wire.UploadOffsetHeader))
	}
	s.offset = at
	return nil
}

// temporary reports whether a retry may succeed after an error.
func temporary(err error) bool {
	var unreadable *unreadableError
	if errors.As(err, &unreadable) {
		return false
	}
	var p *Problem
	if !errors.As(err, &p) {
		var network net.Error
		var connect *ConnectError
		return errors.As(err, &network) || errors.As(err, &connect) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
	}
	switch p.Status {
	case http.StatusConflict:
		return p.Code == wire.CodeOffset
	case http.StatusBadRequest:
		return p.Code == wire.CodeBrokenOff
	case http.StatusLocked, http.StatusTooManyRequests, http.StatusRequestTimeout,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// sendPart sends the next bytes with one request.
func (s *fileSender) sendPart(ctx context.Context) error {
	n := min(s.file.Size-s.offset, max(firstPart, s.offset))
	body, err := s.open(ctx)
	if err != nil {
		return err
	}
	part := &partBody{sender: s, body: body, at: s.offset, left: n}
	header := tusHeader()
	header.Set(wire.UploadOffsetHeader, strconv.FormatInt(s.offset, 10))
	header.Set("Content-Type", wire.TusMediaType)
	ask := request{method: http.MethodPatch, path: in("uploads", s.id), header: header}
	if n > 0 {
		header.Set("Expect", "100-continue")
		ask.body, ask.length = io.NopCloser(part), n
	}
	answer, err := s.client.do(ctx, ask)
	closed := part.end() // net/http may still be reading for a moment
	if closed != nil {
		closed = &unreadableError{fmt.Errorf("read %s: %w", s.file.Name, closed)}
	}
	if answer != nil {
		defer answer.Body.Close()
	}
	if err != nil || closed != nil {
		return cmp.Or(closed, err)
	}
	err = s.readOffset(answer)
	s.ended = err == nil && s.offset == s.file.Size
	return err
}

// open opens the file at the upload's offset. It first adds the bytes before the offset to the
// digest, if they are missing.
func (s *fileSender) open(ctx context.Context) (io.ReadCloser, error) {
	if err := s.readTo(ctx, s.offset); err != nil {
		return nil, err
	}
	return s.openAt(ctx, s.offset)
}

func (s *fileSender) openAt(ctx context.Context, offset int64) (io.ReadCloser, error) {
	body, err := s.file.Open(ctx, offset)
	if err != nil && ctx.Err() == nil {
		err = &unreadableError{err}
	}
	return body, err
}

// readTo adds the file's bytes up to an offset to the digest.
func (s *fileSender) readTo(ctx context.Context, offset int64) error {
	if s.summed >= offset {
		return nil
	}
	body, err := s.openAt(ctx, s.summed)
	if err != nil {
		return err
	}
	n, err := io.CopyN(struct{ io.Writer }{s.sum}, body, offset-s.summed)
	s.summed += n
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err = errors.Join(err, body.Close()); err != nil && ctx.Err() == nil {
		return &unreadableError{fmt.Errorf("read %s: %w", s.file.Name, err)}
	}
	return err
}

// partBody is the body of one request. It adds bytes that are sent for the first time to the
// digest.
type partBody struct {
	mu     sync.Mutex
	sender *fileSender
	body   io.ReadCloser
	at     int64
	left   int64
	failed error
	over   bool
}

// Read implements io.Reader.
func (p *partBody) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
		return 0, net.ErrClosed
	case p.failed != nil:
		return 0, p.failed
	case p.left == 0:
		return 0, io.EOF
	}
	n, err := p.body.Read(b[:min(int64(len(b)), p.left)])
	s := p.sender
	if fresh := p.at + int64(n) - s.summed; fresh > 0 {
		s.sum.Write(b[int64(n)-fresh : n])
		s.summed += fresh
	}
	p.at, p.left = p.at+int64(n), p.left-int64(n)
	if s.file.Moved != nil {
		s.file.Moved(p.at)
	}
	if errors.Is(err, io.EOF) {
		if err = nil; p.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	p.failed = err
	return n, err
}

// end closes the file and returns the first error of reading it.
func (p *partBody) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	err := p.body.Close()
	return cmp.Or(p.failed, err)
}
