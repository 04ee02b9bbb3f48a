package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast/holdfast/storage"
)

// Stat implements storage.Store.
func (s *Store) Stat(ctx context.Context, key string) (storage.Info, error) {
	if err := s.check(key); err != nil {
		return storage.Info{}, fmt.Errorf("stat: %w", err)
	}
	have, err := s.head(ctx, s.name(key))
	if err != nil {
		return storage.Info{}, wrap("stat", key, err)
	}
	return storage.Info{
		Key: key, Size: aws.ToInt64(have.ContentLength), Modified: aws.ToTime(have.LastModified), ETag: aws.ToString(have.ETag),
	}, nil
}

// Open implements storage.Store. ctx also bounds the reading. If the connection breaks, the reader
// reconnects at that offset, and only to the same object.
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := s.check(key); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if offset < 0 {
		return nil, fmt.Errorf("open %q at %d: %w", key, offset, storage.ErrRange)
	}
	if length == 0 {
		return s.openEmpty(ctx, key, offset)
	}
	r := &reader{key: key, at: offset, end: -1}
	if length > 0 {
		r.end = offset + length
	}
	name := s.name(key)
	r.open = func(etag *string) (*s3.GetObjectOutput, error) {
		in := &s3.GetObjectInput{Bucket: &s.at.bucket, Key: &name, IfMatch: etag}
		if r.at > 0 || r.end >= 0 {
			in.Range = byteRange(r.at, r.end)
		}
		return s.client.GetObject(ctx, in)
	}
	out, err := r.open(nil)
	if status(err) == http.StatusRequestedRangeNotSatisfiable {
		return s.openEmpty(ctx, key, offset) // at the end, or past it
	}
	if err != nil {
		return nil, wrap("open", key, err)
	}
	if out.ContentLength == nil {
		_ = out.Body.Close()
		return nil, fmt.Errorf("open %q: the service does not state the length", key)
	}
	r.body, r.etag, r.end = out.Body, out.ETag, offset+aws.ToInt64(out.ContentLength)
	return r, nil
}

// byteRange returns the header for the bytes from at up to but not including end, or to the last
// one if end is negative.
func byteRange(at, end int64) *string {
	if end < 0 {
		return aws.String(fmt.Sprintf("bytes=%d-", at))
	}
	return aws.String(fmt.Sprintf("bytes=%d-%d", at, end-1))
}

// openEmpty returns a reader of no bytes at offset, for which S3 has no range.
func (s *Store) openEmpty(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	info, err := s.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	if offset > info.Size {
		return nil, fmt.Errorf("open %q at %d of %d: %w", key, offset, info.Size, storage.ErrRange)
	}
	return io.NopCloser(strings.NewReader("")), nil
}

// reopenings is how often in a row a connection may break without delivering a byte.
const reopenings = 3

// reader reads an object and reconnects as necessary.
type reader struct {
	key     string
	open    func(etag *string) (*s3.GetObjectOutput, error)
	body    io.ReadCloser
	etag    *string
	at, end int64
	broken  int
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for {
		n, err := r.body.Read(p)
		r.at += int64(n)
		if n > 0 {
			r.broken = 0
		}
		switch {
		case n > 0:
			return n, nil // the end or the error comes again at the next read
		case r.at >= r.end && errors.Is(err, io.EOF):
			return 0, io.EOF
		case err == nil:
			return 0, nil
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if r.broken++; r.broken > reopenings {
			return 0, fmt.Errorf("read %q at %d of %d: %w", r.key, r.at, r.end, err)
		}
		out, again := r.open(r.etag)
		if again != nil {
			return 0, fmt.Errorf("read %q at %d of %d: %w; then %w", r.key, r.at, r.end, err, again)
		}
		_ = r.body.Close()
		r.body = out.Body
	}
}

// Close implements io.Closer.
func (r *reader) Close() error { return r.body.Close() }
