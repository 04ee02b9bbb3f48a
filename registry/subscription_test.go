package registry_test

import (
	"errors"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// A state that is given as a type of event would take nothing, for ever and without a word.
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
