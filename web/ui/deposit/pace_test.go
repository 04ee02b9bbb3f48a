package deposit

import (
	"testing"
	"time"
)

func TestPaces(t *testing.T) {
	var p paces
	at := time.Unix(1000, 0)
	for _, step := range []struct {
		after time.Duration
		done  int64
		want  float64
	}{
		{0, 0, 0},
		{time.Second, 500, 0},          // too early to tell
		{5 * time.Second, 5000, 1000},  //
		{10 * time.Second, 5000, 500},  // it slows down
		{200 * time.Second, 5000, 0},   // and stands still
		{205 * time.Second, 6000, 200}, // what was long ago does not count
		{206 * time.Second, 10, 0},     // it began again
	} {
		if got := p.add("a", step.done, at.Add(step.after)); got != step.want {
			t.Errorf("after %v: %v a second, want %v", step.after, got, step.want)
		}
	}
	if got := p.add("b", 5000, at.Add(time.Hour)); got != 0 {
		t.Errorf("of another: %v", got)
	}
}
