// Package pace limits how many bytes a second steps read that are in no hurry, such as fixity checks.
package pace

import (
	"context"
	"io"

	"golang.org/x/time/rate"

	"github.com/holdfast/holdfast/storage"
)

// NewLimiter returns a limiter of so many bytes a second; 0: no limit.
func NewLimiter(bytes int64) *rate.Limiter {
	if bytes <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(bytes), int(min(bytes, 1<<20)))
}

// Reader returns a reader that limits the rate of reading from another, and reports how many bytes each
// read brought.
func Reader(ctx context.Context, from io.Reader, limiter *rate.Limiter, onRead func(n int64)) io.Reader {
	return &reader{ctx, from, limiter, onRead}
}

type reader struct {
	ctx     context.Context //nolint:containedctx // a reader is for one call of Examine
	from    io.Reader
	limiter *rate.Limiter
	onRead  func(n int64)
}

// Read implements io.Reader.
func (p *reader) Read(b []byte) (int, error) {
	if most := p.limiter.Burst(); most > 0 && len(b) > most {
		b = b[:most]
	}
	n, err := p.from.Read(b)
	p.onRead(int64(n))
	if wait := p.limiter.WaitN(p.ctx, n); wait != nil && err == nil {
		err = wait
	}
	return n, err
}

// Store returns a store that is read at the limiter's rate: byte by byte through this process, also where
// the service could copy by itself. Without a limit it is the same store.
func Store(s storage.Store, limiter *rate.Limiter) storage.Store {
	if limiter.Limit() == rate.Inf {
		return s
	}
	return store{s, limiter}
}

type store struct {
	storage.Store
	limiter *rate.Limiter
}

// Open implements storage.Store.
func (s store) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	in, err := s.Store.Open(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{Reader(ctx, in, s.limiter, func(int64) {}), in}, nil
}
