package sqldb

import (
	"sync/atomic"
	"time"
)

// clock is where compared times come from (R15). Writers have their transaction's; readers, who
// only tell times to people, use this process's clock as far as it differs from the database's.
type clock struct {
	fixed func() time.Time // when set, the only source
	ahead atomic.Int64     // microseconds by which the database's clock is ahead of this process's
}

func (c *clock) now() time.Time {
	if c.fixed != nil {
		return c.fixed()
	}
	return time.Now().Add(time.Duration(c.ahead.Load()) * time.Microsecond)
}

// begun returns the moment of a transaction that began at the database's time now, 0 when the
// database has no clock of its own.
func (c *clock) begun(now int64) int64 {
	if c.fixed != nil || now == 0 {
		return c.now().UnixMicro()
	}
	c.ahead.Store(now - time.Now().UnixMicro())
	return now
}
