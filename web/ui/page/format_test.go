package page

import (
	"testing"
	"time"

	"github.com/holdfast/holdfast/web/ui/lang"
)

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	texts, err := lang.Open()
	if err != nil {
		t.Fatal(err)
	}
	v := &view{site: &Site{Options: Options{Now: func() time.Time { return now }}}, texts: texts.In("en")}
	for after, want := range map[time.Duration]string{
		-90 * time.Minute: "1 h ago", 0: "0 s ago", time.Millisecond: "0 s ago", time.Minute: "in 1 min", 72 * time.Hour: "in 3 days",
	} {
		if got := v.ago(now.Add(after)); got != want {
			t.Errorf("%v after now is %q, want %q", after, got, want)
		}
	}
	if got := v.ago(time.Time{}); got != "never" {
		t.Errorf("no time is %q", got)
	}
}
