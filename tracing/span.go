package tracing

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// header is the name of the header of W3C Trace Context, and the key of the propagator.
const header = "traceparent"

// On reports whether spans are made.
func On() bool { return tracer.Load() != nil }

// Span is a running span. A nil Span records nothing.
type Span struct{ of trace.Span }

// Attempt describes an attempt at an item.
type Attempt struct {
	Item, Collection, Stage string
	N                       int64     // fencing token
	Tries                   int       // failures before it
	Created, Ready, Claimed time.Time // of the item: when it was made, when it could start, when it was claimed
	Parent                  string    // traceparent in the item; "": it has none
	Batch                   string    // traceparent of the batch, for a row that has a trace of its own
	Began                   time.Time // when the attempt began; zero: now
}

// StartAttempt starts the span of an attempt. If the item is in no trace, such as a fixity check, or if
// what is kept of it is malformed, its attempts have a trace of their own. The first attempt at a row that has a trace of its own also makes the root of that trace, which lasts from when
// the row was made until it was claimed, and links to the batch.
func StartAttempt(ctx context.Context, a Attempt) (context.Context, *Span) {
	t := tracer.Load()
	if t == nil {
		return ctx, nil
	}
	parent := remote(a.Parent)
	own := !parent.IsValid()
	if own {
		parent = trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID(a.Item), TraceFlags: trace.FlagsSampled, Remote: true})
	}
	if batch := remote(a.Batch); batch.IsValid() && a.N == 1 && parent.IsSampled() {
		as := context.WithValue(ctx, chosenKey{}, chosen{parent.TraceID(), parent.SpanID()})
		_, root := (*t).Start(as, "row", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(a.Created),
			trace.WithLinks(trace.Link{SpanContext: batch}), trace.WithAttributes(attribute.String("holdfast.item", a.Item)))
		root.End(trace.WithTimestamp(a.Claimed))
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("holdfast.item", a.Item), attribute.String("holdfast.collection", a.Collection), attribute.String("holdfast.stage", a.Stage),
		attribute.Int64("holdfast.attempt", a.N), attribute.Int("holdfast.failures_before", a.Tries),
		attribute.Float64("holdfast.wait_seconds", max(0, a.Claimed.Sub(a.Ready)).Seconds()),
	)}
	if a.N > 1 {
		before := trace.NewSpanContext(trace.SpanContextConfig{TraceID: parent.TraceID(), SpanID: attemptID(a.Item, a.N-1), TraceFlags: parent.TraceFlags(), Remote: true})
		options = append(options, trace.WithLinks(trace.Link{SpanContext: before, Attributes: []attribute.KeyValue{attribute.String("holdfast.link", "attempt before")}}))
	}
	if own {
		options = append(options, trace.WithNewRoot())
	}
	if !a.Began.IsZero() {
		options = append(options, trace.WithTimestamp(a.Began))
	}
	as := context.WithValue(trace.ContextWithRemoteSpanContext(ctx, parent), chosenKey{}, chosen{parent.TraceID(), attemptID(a.Item, a.N)})
	as, span := (*t).Start(as, a.Stage, options...)
	return context.WithValue(as, chosenKey{}, nil), &Span{span}
}

// Start starts a span below that of the context. Without one it makes none.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	return start(ctx, name, trace.SpanKindInternal)
}

// Call is Start for a request to another service.
func Call(ctx context.Context, name string) (context.Context, *Span) {
	return start(ctx, name, trace.SpanKindClient)
}

func start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, *Span) {
	t := tracer.Load()
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, nil
	}
	ctx, span := (*t).Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, &Span{span}
}

// Serve starts the span of a request that makes items. It continues the caller's trace, or begins one.
func Serve(ctx context.Context, name, traceparent string) (context.Context, *Span) {
	t := tracer.Load()
	if t == nil {
		return ctx, nil
	}
	ctx, span := (*t).Start(trace.ContextWithRemoteSpanContext(ctx, remote(traceparent)), name, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, &Span{span}
}

// Set sets an attribute. Values must be no secrets, no addresses and no texts of people.
func (s *Span) Set(key, value string) {
	if s != nil {
		s.of.SetAttributes(attribute.String(key, value))
	}
}

// Count sets an attribute that is a number.
func (s *Span) Count(key string, value int64) {
	if s != nil {
		s.of.SetAttributes(attribute.Int64(key, value))
	}
}

// Fail marks the span as failed. kind says what kind of failure it is; the error itself may quote
// addresses, so it is not in the span.
func (s *Span) Fail(kind string) {
	if s != nil {
		s.of.SetStatus(codes.Error, "")
		s.of.SetAttributes(attribute.String("error.type", kind))
	}
}

// End ends the span, as failed if there is an error.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.of.SetStatus(codes.Error, "")
	}
	s.of.End()
}

// Parent returns the context of the present span as a value of the header traceparent; "" if there is
// none.
func Parent(ctx context.Context) string {
	if tracer.Load() == nil {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[header]
}

// Valid reports whether a text is a value of the header traceparent.
func Valid(traceparent string) bool { return remote(traceparent).IsValid() }

func remote(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{header: traceparent})
	return trace.SpanContextFromContext(ctx)
}

// Handler adds the trace's id to log records whose context is in a trace.
func Handler(h slog.Handler) slog.Handler { return handler{h} }

type handler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if at := trace.SpanContextFromContext(ctx); at.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", at.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
