package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strconv"

	"go.opentelemetry.io/otel/trace"
)

// chosenKey is the context's key of the ids of the next span.
type chosenKey struct{}

type chosen struct {
	trace trace.TraceID // zero: any
	span  trace.SpanID
}

// ids makes random ids, or those that the context chooses.
type ids struct{}

// NewIDs implements sdk.IDGenerator.
func (ids) NewIDs(ctx context.Context) (t trace.TraceID, s trace.SpanID) {
	c, _ := ctx.Value(chosenKey{}).(chosen)
	if t, s = c.trace, c.span; !t.IsValid() {
		_, _ = rand.Read(t[:]) // it never fails
	}
	if !s.IsValid() {
		_, _ = rand.Read(s[:])
	}
	return t, s
}

// NewSpanID implements sdk.IDGenerator.
func (g ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, s := g.NewIDs(ctx)
	return s
}

// traceID returns the id of the trace of an item that belongs to no other.
func traceID(item string) (id trace.TraceID) {
	sum := sha256.Sum256([]byte("trace of " + item))
	copy(id[:], sum[:])
	return id
}

// attemptID returns the id of the span of an attempt.
func attemptID(item string, n int64) (id trace.SpanID) {
	sum := sha256.Sum256([]byte("attempt " + strconv.FormatInt(n, 10) + " of " + item))
	copy(id[:], sum[:])
	return id
}
