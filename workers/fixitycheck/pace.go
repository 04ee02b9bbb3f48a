package fixitycheck

import (
	"context"
	"io"

	"golang.org/x/time/rate"
)

// NewPace returns a pace of so many bytes a second; 0: as many as can be read.
func NewPace(bytes int64) *rate.Limiter {
	if bytes <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(bytes), int(min(bytes, 1<<20)))
}

// paced is a reader that keeps to a pace and tells how many bytes each call brought.
type paced struct {
	ctx  context.Context //nolint:containedctx // a reader is one call of Examine
	from io.Reader
	pace *rate.Limiter
	tell func(n int64)
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	if most := p.pace.Burst(); most > 0 && len(b) > most {
		b = b[:most]
	}
	n, err := p.from.Read(b)
	p.tell(int64(n))
	if wait := p.pace.WaitN(p.ctx, n); wait != nil && err == nil {
		err = wait
	}
	return n, err
}
