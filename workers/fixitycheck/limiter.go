package fixitycheck

import (
	"context"
	"io"

	"golang.org/x/time/rate"
)

// NewLimiter returns a limiter of so many bytes a second; 0: no limit.
func NewLimiter(bytes int64) *rate.Limiter {
	if bytes <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(bytes), int(min(bytes, 1<<20)))
}

// limitedReader limits the rate of reading, and reports how many bytes each read brought.
type limitedReader struct {
	ctx     context.Context //nolint:containedctx // a reader is for one call of Examine
	from    io.Reader
	limiter *rate.Limiter
	onRead  func(n int64)
}

// Read implements io.Reader.
func (p *limitedReader) Read(b []byte) (int, error) {
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
