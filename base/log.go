package base

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/holdfast/holdfast/registry"
)

// How much of a log a renewal carries: the other attempts of the process share the request. The
// settlement carries the rest.
const (
	linesAtOnce    = 100
	logBytesAtOnce = 64 << 10
)

// Log returns a logger whose lines are kept with the attempt, where people see them while the step
// runs and after it. Level debug is left out. The next renewal or the settlement sends the lines; a
// worker that is killed loses those since its last renewal. Of a step that logs faster than renewals
// carry, and of an attempt with many lines, the newest [registry.MostLogLines] are kept. Logging is
// no progress: see [Progress]. What is logged after the step is over is dropped.
func (it *Item) Log() *slog.Logger { return slog.New(logHandler{item: it}) }

// logLines are the lines of an attempt that the Registry may not have. The zero value has none.
type logLines struct {
	mu    sync.Mutex
	seq   int64 // of the last line
	lines []registry.LogLine
}

// add adds one line for each line of a text. If too many are waiting, the oldest are dropped.
func (l *logLines) add(at time.Time, level slog.Level, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(text) {
		l.seq++
		l.lines = append(l.lines, registry.LogLine{Seq: l.seq, At: at, Level: levelText(level), Text: clean(strings.TrimRight(line, "\r\n"))})
	}
	if more := len(l.lines) - registry.MostLogLines; more > 0 {
		l.lines = append(l.lines[:0:0], l.lines[more:]...)
	}
}

// levelText returns the next lower of the usual levels.
func levelText(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "ERROR"
	case level >= slog.LevelWarn:
		return "WARN"
	}
	return "INFO"
}

// waiting reports whether there are lines to send.
func (l *logLines) waiting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines) > 0
}

// some returns the oldest lines that wait, as many as a renewal carries; nil if there are none.
func (l *logLines) some() []registry.LogLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, size := 0, 0
	for n < len(l.lines) && n < linesAtOnce && size < logBytesAtOnce {
		size += len(l.lines[n].Text)
		n++
	}
	return append([]registry.LogLine(nil), l.lines[:n]...)
}

// all returns all lines that wait; nil if there are none.
func (l *logLines) all() []registry.LogLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]registry.LogLine(nil), l.lines...)
}

// sent forgets lines that the Registry has: those up to a number.
func (l *logLines) sent(upTo int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.lines) && l.lines[n].Seq <= upTo {
		n++
	}
	if l.lines = l.lines[n:]; len(l.lines) == 0 {
		l.lines = nil
	}
}

// logHandler writes records to the log of an item: the message, then key=value for each attribute.
type logHandler struct {
	item          *Item
	attrs, prefix string // of With and WithGroup
}

// Enabled implements slog.Handler.
func (h logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	if h.item.over.Load() {
		return nil
	}
	text := r.Message + h.attrs
	r.Attrs(func(a slog.Attr) bool {
		text = appendAttr(text, h.prefix, a)
		return true
	})
	h.item.log.add(h.item.Now(), r.Level, text)
	return nil
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.attrs = appendAttr(h.attrs, h.prefix, a)
	}
	return h
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler {
	if name != "" {
		h.prefix += name + "."
	}
	return h
}

// appendAttr appends an attribute, or those of a group, to a line.
func appendAttr(text, prefix string, a slog.Attr) string {
	value := a.Value.Resolve()
	switch {
	case value.Kind() == slog.KindGroup:
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, each := range value.Group() {
			text = appendAttr(text, prefix, each)
		}
		return text
	case a.Equal(slog.Attr{}):
		return text
	}
	words := value.String()
	if words == "" || strings.ContainsFunc(words, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '"' || r == '=' }) {
		words = strconv.Quote(words)
	}
	return text + " " + prefix + a.Key + "=" + words
}
