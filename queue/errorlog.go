package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nsqio/go-nsq"
)

// errorLog limits the log lines of repeated errors: the first at once, then one line per interval
// with a count, and one line when the connection is back.
type errorLog struct {
	log   *slog.Logger
	every time.Duration

	mu       sync.Mutex
	reported time.Time // when the last line was written
	count    int       // errors since then
	down     time.Time // start of the outage; zero while connected
	total    int       // errors since then
}

func newErrorLog(log *slog.Logger, every time.Duration) *errorLog {
	return &errorLog{log: log, every: every}
}

// lost records that there is no connection.
func (l *errorLog) lost(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down.IsZero() {
		l.down, l.total = time.Now(), 0
	}
	if l.due() {
		l.log.LogAttrs(ctx, slog.LevelWarn, "nsqd connection lost", slog.Any("err", err), slog.Int("count", l.takeCount()))
	}
}

// warn records an error that does not mean that the connection is lost.
func (l *errorLog) warn(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.due() {
		l.log.LogAttrs(ctx, slog.LevelWarn, "nsqd client error", slog.Any("err", err), slog.Int("count", l.takeCount()))
	}
}

// due counts an error and reports whether it is time for a line.
func (l *errorLog) due() bool {
	l.count++
	l.total++
	return l.reported.IsZero() || time.Since(l.reported) >= l.every
}

// takeCount returns how many errors the present line stands for, and resets the count.
func (l *errorLog) takeCount() int {
	n := l.count
	l.reported, l.count = time.Now(), 0
	return n
}

// recovered records that the connection is back. Only the first call after lost writes a line.
func (l *errorLog) recovered(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down.IsZero() {
		return
	}
	l.log.LogAttrs(ctx, slog.LevelInfo, "nsqd connection recovered",
		slog.Duration("after", time.Since(l.down)), slog.Int("errors", l.total))
	l.down, l.reported, l.count = time.Time{}, time.Time{}, 0
}

// clientLog receives one level of go-nsq's log.
type clientLog func(line string)

// Output implements go-nsq's logger interface.
func (l clientLog) Output(_ int, line string) error {
	l(line)
	return nil
}

// clientLogs returns the loggers for go-nsq's levels. They all log at debug level: go-nsq reports
// its errors also by callbacks, and an errorLog records those.
func clientLogs(ctx context.Context, log *slog.Logger) (lowest nsq.LogLevel, byLevel map[nsq.LogLevel]clientLog) {
	lowest = nsq.LogLevelMax + 1
	if log.Enabled(ctx, slog.LevelDebug) {
		lowest = nsq.LogLevelInfo
	}
	byLevel = make(map[nsq.LogLevel]clientLog)
	for level := nsq.LogLevelDebug; level <= nsq.LogLevelMax; level++ {
		byLevel[level] = func(line string) {
			log.DebugContext(ctx, "nsqd client", "nsq_level", level.String(), "line", line)
		}
	}
	return lowest, byLevel
}
