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
	"github.com/holdfast/holdfast/registry"
)

// mostBody is how many bytes of events are sent at a time, when they are more than one.
const mostBody = 1 << 20

// batchType is the media type of several events in one body (CloudEvents 1.0, JSON batch format).
const batchType = "application/cloudevents-batch+json"

// send makes one try to tell events, or as many of the first of them as one request may carry, and
// returns how many were acknowledged.
func (l *line) send(ctx context.Context, events []registry.Event) (int, error) {
	var bodies [][]byte
	size := 0
	for _, e := range events[:min(len(events), l.most)] {
		body, err := encode(l.turn.Source, e)
		if err != nil {
			return 0, err
		}
		if size += len(body) + 1; size > mostBody && len(bodies) > 0 {
			break
		}
		bodies = append(bodies, body)
	}
	if topic, ok := l.turn.Topic(); ok {
		if err := l.Queue.Send(ctx, l.Prefix+topic, bodies...); err != nil {
			return 0, err
		}
		return len(bodies), nil
	}
	return l.post(ctx, events, bodies)
}

// post tells a webhook. A receiver to whom a body is too large gets smaller ones from then on.
func (l *line) post(ctx context.Context, events []registry.Event, bodies [][]byte) (int, error) {
	u, err := url.Parse(l.turn.Target)
	if err != nil {
		return 0, errors.New("its address cannot be read; correct it")
	}
	w := credential.New(l.Registry, l.Keys, registry.SubscriptionOwner(l.turn.Name))
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
			ID: l.messageID(events[:len(bodies)]), At: time.Now(), Type: batchType,
			Body: slices.Concat([]byte("["), bytes.Join(bodies, []byte(",")), []byte("]")),
		}
		status, err := l.Webhooks.Send(ctx, l.turn.Target, m, authorization, keys...)
		if err == nil {
			return len(bodies), nil
		}
		if status != http.StatusRequestEntityTooLarge || len(bodies) == 1 || ctx.Err() != nil {
			return 0, err
		}
		l.most = max(1, len(bodies)/2)
		bodies = bodies[:l.most]
	}
}

// messageID names a request by what it carries, so that a receiver can tell a repeat from what is
// sent again because somebody asked for that. It has no dots, which separate it from other things
// when it is signed. Numbers of events would not do: after the Registry was brought back from a
// backup others have them.
func (l *line) messageID(events []registry.Event) string {
	return fmt.Sprintf("%s_%d_%s_%s", l.turn.ID, l.turn.Rewinds, events[0].ID, events[len(events)-1].ID)
}
