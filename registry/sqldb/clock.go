package sqldb

import (
	"sync/atomic"
	"time"
)

// clock is the source of times that are compared (R15). A write transaction uses its own time.
// Readers only show times to people; they use this process's clock, corrected by its difference to
// the database's.
type clock struct {
	fixed func() time.Time // if set, the only source
	ahead atomic.Int64     // microseconds by which the database's clock is ahead of this process's
}

func (c *clock) now() time.Time {
	if c.fixed != nil {
		return c.fixed()
	}
	return time.Now().Add(time.Duration(c.ahead.Load()) * time.Microsecond)
}

// begun returns the time of a transaction that began at the database's time now, in microseconds.
// now is 0 if the database has no clock of its own.
func (c *clock) begun(now int64) int64 {
	if c.fixed != nil || now == 0 {
		return c.now().UnixMicro()
	}
	c.ahead.Store(now - time.Now().UnixMicro())
	return now
}
