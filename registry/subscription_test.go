package registry_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// TestFeedFilter_StatesAreNoTypes: a state given as an event type would silently select nothing.
func TestFeedFilter_StatesAreNoTypes(t *testing.T) {
	for _, s := range registry.States() {
		err := registry.FeedFilter{Types: []string{string(s)}}.Check()
		if !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("type %s: %v, want it refused", s, err)
		}
	}
	if err := (registry.FeedFilter{Types: []string{"completed"}}).Check(); !errors.Is(err, registry.ErrInvalid) {
		t.Errorf("type completed: %v, want it refused", err)
	}
	for _, tr := range registry.Transitions() {
		if err := (registry.FeedFilter{Types: []string{string(tr.Act)}}).Check(); err != nil {
			t.Errorf("type %s: %v", tr.Act, err)
		}
	}
}

// TestSubscription_NotToWakeUps: a feed may not use the topics of wake-ups, because workers would
// take events for items.
func TestSubscription_NotToWakeUps(t *testing.T) {
	topics := map[string]bool{"life": true, "ingest": true, "ingest.downloads": true, "download": true, "batch.download": true}
	for _, r := range registry.Routes() {
		for _, s := range r.Steps {
			wake := string(r.Action) + "." + string(s.Stage)
			topics[wake], topics["site-"+wake], topics["site."+wake] = false, false, false
		}
	}
	for topic, good := range topics {
		err := registry.SubscriptionRequest{Name: "s", Target: "nsq:" + topic}.Check()
		if good != (err == nil) || !good && !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("topic %s: %v, want it taken: %t", topic, err, good)
		}
	}
}

// TestFeedFilter_TakesSomething: exactly the filters that can select nothing are refused, with the
// reason.
func TestFeedFilter_TakesSomething(t *testing.T) {
	for _, tt := range []struct {
		name   string
		filter registry.FeedFilter
		reason string // "": it is taken
	}{
		{"nothing", registry.FeedFilter{}, ""},
		{"an update", registry.FeedFilter{States: []registry.State{"updatereporting"}}, "use the state Reporting"},
		{"held", registry.FeedFilter{States: []registry.State{registry.StateHeld}}, "use the types hold"},
		{"an action's state", registry.FeedFilter{Actions: []registry.Action{registry.Ingest}, States: []registry.State{"downloading"}}, ""},
		{"another's state", registry.FeedFilter{Actions: []registry.Action{registry.Ingest}, States: []registry.State{registry.StateReporting}}, "such an action (ingest)"},
		{"one of two states", registry.FeedFilter{Actions: []registry.Action{registry.Ingest}, States: []registry.State{registry.StateReporting, "failed"}}, ""},
		{"one of two actions", registry.FeedFilter{Actions: []registry.Action{registry.Ingest, registry.Batch}, States: []registry.State{registry.StateReporting}}, ""},
		{"what goes is never cancelled", registry.FeedFilter{Actions: []registry.Action{registry.Tidy}, States: []registry.State{registry.StateCancelled}}, "such an action (tidy)"},
		{"a hold with a state", registry.FeedFilter{Types: []string{"hold"}, States: []registry.State{"failed"}}, "none of the types (hold)"},
		{"a worker's type with an action", registry.FeedFilter{Types: []string{"minted"}, Actions: []registry.Action{registry.Ingest}}, "none of the types (minted)"},
		{"hold or fail", registry.FeedFilter{Types: []string{"hold", "fail"}, States: []registry.State{"failed"}}, ""},
		{"a worker's type", registry.FeedFilter{Types: []string{"minted"}, Collections: []string{"maps"}}, ""},
		{"a type and another's state", registry.FeedFilter{Types: []string{"complete"}, States: []registry.State{"failed"}}, "such a type (complete)"},
		{"lost too often", registry.FeedFilter{Types: []string{"lose"}, States: []registry.State{"failed"}}, ""},
		{"sealed into the midst", registry.FeedFilter{Types: []string{"seal"}, States: []registry.State{"downloading"}}, "such a type (seal)"},
		{"sealed", registry.FeedFilter{Types: []string{"seal"}, States: []registry.State{"pending"}}, ""},
		{"sent back", registry.FeedFilter{Types: []string{"send-back"}, States: []registry.State{"downloading"}}, ""},
		{"a batch stopped while it waits", registry.FeedFilter{Types: []string{"cancel"}, States: []registry.State{"processing"}}, ""},
	} {
		err := tt.filter.Check()
		if tt.reason == "" && err != nil {
			t.Errorf("%s: %v, want it taken", tt.name, err)
		}
		if tt.reason != "" && (!errors.Is(err, registry.ErrInvalid) || !strings.Contains(err.Error(), tt.reason)) {
			t.Errorf("%s: %v, want it refused because of %q", tt.name, err, tt.reason)
		}
	}
}
