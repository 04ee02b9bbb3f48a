// Package tracing makes spans of OpenTelemetry and sends them by OTLP over HTTP. Until [Open] is
// called it makes none, and costs nothing.
//
// The trace context lies in the item ([registry.Trace] in its spec), so a trace stays one whatever is
// killed: only the span of the attempt that died is missing. Span ids of attempts are derived from
// item and attempt, so that a retry can link to the attempt before it, though that left nothing.
//
// Sending never delays work. Spans wait in a bounded queue, and what does not fit is dropped and
// counted.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast/holdfast/metrics"
)

// Bounds of what waits to be sent.
const (
	mostWaiting = 4096 // spans; more are dropped
	batchSize   = 512  // spans in a request
	closeTime   = 5 * time.Second
)

// tracer makes the spans of this process; nil: none are made.
var tracer atomic.Pointer[trace.Tracer]

// Open begins to send spans to an OTLP receiver, such as http://collector:4318. An address without a
// path gets /v1/traces. The standard variables of OpenTelemetry for headers, certificates, sampling
// and resource attributes hold (docs/tracing.md). stop sends what waits, for a few seconds, and ends
// it. A process has one receiver: the last call counts.
func Open(ctx context.Context, address, version string, log *slog.Logger) (stop func() error, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address for traces is not a URL")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, fmt.Errorf("open the exporter of traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "holdfast"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		log.WarnContext(ctx, "some attributes of traces are invalid", "err", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) // sender logs failures
	send := &sender{SpanExporter: exporter, log: log}
	// Its own queue is larger than what gate lets pass, so that it drops nothing uncounted.
	batches := sdk.NewBatchSpanProcessor(send, sdk.WithMaxQueueSize(mostWaiting+batchSize), sdk.WithMaxExportBatchSize(batchSize))
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(&gate{SpanProcessor: batches, send: send}), sdk.WithIDGenerator(ids{}), sdk.WithResource(about))
	t := provider.Tracer("github.com/holdfast/holdfast")
	tracer.Store(&t)
	return func() error { //nolint:contextcheck // it sends although the context may be over
		tracer.CompareAndSwap(&t, nil)
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.WarnContext(ctx, "the last spans could not be sent", "err", err)
		}
		return nil
	}, nil
}

// gate bounds how many spans wait.
type gate struct {
	sdk.SpanProcessor
	send *sender
}

// OnEnd implements sdk.SpanProcessor.
func (g *gate) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if g.send.waiting.Add(1) > mostWaiting {
		g.send.waiting.Add(-1)
		metrics.Spans.Add(1, "dropped")
		return
	}
	g.SpanProcessor.OnEnd(s)
}

// sender counts what is sent. It logs the first of a series of failures, and its end.
type sender struct {
	sdk.SpanExporter
	log     *slog.Logger
	waiting atomic.Int64
	failing atomic.Bool
}

// ExportSpans implements sdk.SpanExporter.
func (s *sender) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.waiting.Add(-int64(len(spans)))
	if err != nil {
		metrics.Spans.Add(float64(len(spans)), "failed")
		if !s.failing.Swap(true) {
			s.log.WarnContext(ctx, "spans could not be sent and are lost; the work goes on", "err", err)
		}
		return err
	}
	metrics.Spans.Add(float64(len(spans)), "sent")
	if s.failing.Swap(false) {
		s.log.InfoContext(ctx, "spans are sent again")
	}
	return nil
}
