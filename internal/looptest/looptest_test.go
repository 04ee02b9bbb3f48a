package looptest_test

import (
	"slices"
	"testing"

	"github.com/holdfast/holdfast/internal/looptest"
)

// visited are the calls that a loop over n of them visits.
func visited(t *testing.T, n int) (steps []int) {
	t.Helper()
	for step := range looptest.Steps(t) {
		if step > n {
			break
		}
		steps = append(steps, step)
	}
	return steps
}

func TestSteps_WholeRun(t *testing.T) {
	t.Setenv("TEST_ALL", "1")
	if steps := visited(t, 100); len(steps) != 100 || steps[99] != 100 {
		t.Errorf("visited %v, want all", steps)
	}
	if often := looptest.Some(t, 1000); !often() {
		t.Error("one of many was left out")
	}
}

func TestSteps_Sample(t *testing.T) {
	t.Setenv("TEST_ALL", "")
	steps := visited(t, 1000)
	if !slices.Equal(steps[:4], []int{1, 2, 3, 4}) {
		t.Errorf("visited %v first, want the first four", steps[:4])
	}
	if !slices.IsSorted(steps) || len(slices.Compact(slices.Clone(steps))) != len(steps) || len(steps) < 9 || len(steps) > 200 {
		t.Errorf("visited %v, want some, each once", steps)
	}
	if again := visited(t, 1000); !slices.Equal(steps, again) {
		t.Errorf("visited %v and then %v: the same seed visits the same", steps, again)
	}
	if n := looptest.Number(t, 7); n < 0 || n > 6 || n != looptest.Number(t, 7) {
		t.Errorf("began at %d, want the same below 7", n)
	}
	seen := 0
	some := looptest.Some(t, 4)
	for range 1000 {
		if some() {
			seen++
		}
	}
	if seen != 250 {
		t.Errorf("%d of 1,000 visited, want each fourth", seen)
	}
}
