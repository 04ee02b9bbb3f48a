// Package looptest is for tests that inject a fault at each call in turn: the first, the second,
// and so on. A complete run visits all calls. A normal run visits some, different ones each time,
// so that many short runs together cover what one long run does.
//
// TEST_ALL=1 requests a complete run (make test-all does). TEST_SEED=N repeats a run; a failed test
// prints its seed.
package looptest

import (
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Steps yields the numbers of the calls to visit, from 1, until the loop ends. The first four are
// always visited. Then each step is larger than the last by about half, so that a dozen steps cover
// a hundred calls.
func Steps(t testing.TB) iter.Seq[int] {
	t.Helper()
	all, random := choose(t)
	return func(yield func(int) bool) {
		for n := 1; yield(n); n++ {
			if !all && n >= 4 {
				n += random.IntN(1 + n)
			}
		}
	}
}

// Some returns a function that decides whether to visit one of many similar cases: always in a
// complete run, else every nth time, from a random one of the first n on. So each case has the same
// chance, and each run takes as long.
func Some(t testing.TB, n int) func() bool {
	t.Helper()
	all, random := choose(t)
	left := 0 // cases to leave out before the next
	if !all {
		left = random.IntN(n)
	}
	return func() bool {
		if all || left == 0 {
			left = n - 1
			return true
		}
		left--
		return false
	}
}

// All reports whether this is a complete run.
func All() bool { return os.Getenv("TEST_ALL") == "1" }

// Number returns a random number below n, to start elsewhere each time; 0 in a complete run.
func Number(t testing.TB, n int) int {
	t.Helper()
	all, random := choose(t)
	if all {
		return 0
	}
	return random.IntN(n)
}

// choose returns whether to visit all cases, and otherwise a random source. It depends on the run's
// seed and the test's name, not on which tests ran before.
func choose(t testing.TB) (all bool, random *rand.Rand) {
	t.Helper()
	if All() {
		return true, nil
	}
	from := seed()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to repeat it: TEST_SEED=%d go test -run '^%s$'; to visit every call: TEST_ALL=1", from, t.Name())
		}
	})
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name())) // it never fails
	return false, rand.New(rand.NewPCG(from, name.Sum64()))
}

var seed = sync.OnceValue(func() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("TEST_SEED"), 10, 64); err == nil {
		return n
	}
	return uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
})
