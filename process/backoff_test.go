package process

import (
	"testing"
	"time"

	"github.com/holdfast/holdfast/base"
)

// TestBackoff_Grows: a wait grows by its exact factor, and the longest wait is a cap, not an end.
// progressor truncates each wait to whole seconds: 3 s x 1.2 stays 3 s.
func TestBackoff_Grows(t *testing.T) {
	h := &handler{}
	Backoff(3*time.Second, 1.2, 5*time.Second)(h)
	var _ base.Handler = h
	for i, want := range []time.Duration{3000, 3600, 4320, 5000, 5000} {
		if got := h.Backoff(i + 1).Round(time.Millisecond); got != want*time.Millisecond {
			t.Errorf("wait %d is %v, want %v", i+1, got, want*time.Millisecond)
		}
	}
	if got := h.Backoff(1000); got != 5*time.Second {
		t.Errorf("wait 1000 is %v", got)
	}
}
