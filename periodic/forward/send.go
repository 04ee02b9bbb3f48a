package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/credential"
	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
)

// mostBody is the largest body of several events, in bytes.
const mostBody = 1 << 20

// batchType is the media type of several events in one body (CloudEvents 1.0, JSON batch format).
const batchType = "application/cloudevents-batch+json"

// send makes one try to send events, or as many of the first of them as one request can carry. It
// returns how many were acknowledged.
func (s *sender) send(ctx context.Context, events []registry.Event) (int, error) {
	var bodies [][]byte
	size := 0
	for _, e := range events[:min(len(events), s.most)] {
		body, err := encode(s.turn.Source, e)
		if err != nil {
			return 0, err
		}
		if size += len(body) + 1; size > mostBody && len(bodies) > 0 {
			break
		}
		bodies = append(bodies, body)
	}
	if topic, ok := s.turn.Topic(); ok {
		begun := time.Now()
		err := s.Queue.Send(ctx, s.Prefix+topic, bodies...)
		metrics.Delivery.Since(begun, "topic", metrics.Outcome(err))
		if err != nil {
			return 0, err
		}
		return len(bodies), nil
	}
	return s.post(ctx, events, bodies)
}

// post sends events to a webhook. A receiver that answers 413 gets smaller bodies from then on.
func (s *sender) post(ctx context.Context, events []registry.Event, bodies [][]byte) (int, error) {
	u, err := url.Parse(s.turn.Target)
	if err != nil {
		return 0, errors.New("its address is not a URL; correct it")
	}
	w := credential.New(s.Registry, s.Keys, registry.SubscriptionOwner(s.turn.Name))
	authorization, err := w.Header(ctx, u.Scheme+"://"+u.Host)
	if err != nil {
		return 0, err
	}
	keys, err := w.SigningKeys(ctx)
	if err != nil {
		return 0, err
	}
	for {
		m := callback.Message{
			ID: s.messageID(events[:len(bodies)]), At: time.Now(), Type: batchType,
			Body: slices.Concat([]byte("["), bytes.Join(bodies, []byte(",")), []byte("]")),
		}
		begun := time.Now()
		status, err := s.Webhooks.Send(ctx, s.turn.Target, m, authorization, keys...)
		metrics.Delivery.Since(begun, "webhook", metrics.Outcome(err))
		if err == nil {
			return len(bodies), nil
		}
		if status != http.StatusRequestEntityTooLarge || len(bodies) == 1 || ctx.Err() != nil {
			return 0, err
		}
		s.most = max(1, len(bodies)/2)
		bodies = bodies[:s.most]
	}
}

// messageID names a request by its events, so that a receiver can tell a repeat from events that
// were requested again. It contains no dots, because dots separate the signed parts. It uses the
// ids of events: their numbers may differ after the Registry was restored from a backup.
func (s *sender) messageID(events []registry.Event) string {
	return fmt.Sprintf("%s_%d_%s_%s", s.turn.ID, s.turn.Rewinds, events[0].ID, events[len(events)-1].ID)
}
