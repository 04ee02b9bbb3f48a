package forward_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/periodic/forward"
	"github.com/holdfast/holdfast/registry"
)

// documented is a Registry whose only event is the one of the documentation.
type documented struct {
	*fake
	event  registry.Event
	source string
}

func (d *documented) TakeSubscriptions(context.Context, string, time.Duration) ([]registry.SubscriptionTurn, error) {
	return []registry.SubscriptionTurn{{
		Subscription: registry.Subscription{ID: "id", Name: "s", Target: "nsq:t", Cursor: d.event.Seq - 1, Turn: 1}, Source: d.source,
	}}, nil
}

func (d *documented) FeedEnd(context.Context) (int64, error) { return d.event.Seq, nil }

func (d *documented) Feed(_ context.Context, q registry.FeedQuery) ([]registry.Event, error) {
	if q.After >= d.event.Seq || len(q.Types) > 0 {
		return nil, nil
	}
	return []registry.Event{d.event}, nil
}

// TestDocs checks that the event in docs/feed.md is what is sent.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/feed.md")
	must(t, err)
	_, rest, _ := strings.Cut(string(page), "```json\n")
	text, _, ok := strings.Cut(rest, "```")
	var want map[string]any
	var told event
	if !ok || json.Unmarshal([]byte(text), &want) != nil || json.Unmarshal([]byte(text), &told) != nil {
		t.Fatalf("the page's example is no JSON: %s", text)
	}
	sent := make(chan []byte, 1)
	o := options(t, &documented{fake: &fake{asked: map[string]int{}}, event: told.Data.Event, source: told.Source}, "one")
	o.Queue = bodies(sent)
	run(t, quick(forward.New(o)))
	var got map[string]any
	must(t, json.Unmarshal(<-sent, &got))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the page's (-) and what is sent (+):\n%s", diff)
	}
}

// bodies is a Queue that hands on what it is sent.
type bodies chan<- []byte

func (b bodies) Send(_ context.Context, _ string, all ...[]byte) error {
	for _, body := range all {
		b <- body
	}
	return nil
}
