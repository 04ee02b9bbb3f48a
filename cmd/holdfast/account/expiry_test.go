package account

import (
	"testing"
	"time"
)

func TestExpiry(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"12h": now.Add(12 * time.Hour), "90d": now.Add(90 * 24 * time.Hour), "2027-01-31T00:00:00Z": time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC),
	} {
		if got, err := expiry(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "-1h", "0d", "-3d", "99999999d", "d", "tomorrow"} {
		if got, err := expiry(text, now); err == nil {
			t.Errorf("%s: %v, want an error", text, got)
		}
	}
	if got, err := expiry("", now); got != nil || err != nil {
		t.Errorf("nothing: %v %v, want never", got, err)
	}
}
