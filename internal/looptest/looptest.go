// Package looptest is for tests that let a fault befall each call of something in turn: the first,
// the second, and so on. A whole run visits them all; a usual one visits some, other ones each
// time, so that many short runs come to what one long run does.
//
// TEST_ALL=1 asks for all (make test-all does). TEST_SEED=N repeats a run: a test that fails says
// which it was.
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

// Steps yields the numbers of the calls to visit, from 1, until the loop ends. It grows by about
// half of what it has come to, so that a hundred calls are visited in about a dozen steps; the
// first four always are.
func Steps(t testing.TB) iter.Seq[int] {
	t.Helper()
	all, random := choice(t)
	return func(yield func(int) bool) {
		for n := 1; yield(n); n++ {
			if !all && n >= 4 {
				n += random.IntN(1 + n)
			}
		}
	}
}

// Some is whether to visit one of many that are alike: always in a whole run, else one time in n.
func Some(t testing.TB, n int) func() bool {
	t.Helper()
	all, random := choice(t)
	return func() bool { return all || random.IntN(n) == 0 }
}

// All says that the run is a whole one.
func All() bool { return os.Getenv("TEST_ALL") == "1" }

// Number is a number below n by which to begin elsewhere each time; 0 in a whole run.
func Number(t testing.TB, n int) int {
	t.Helper()
	all, random := choice(t)
	if all {
		return 0
	}
	return random.IntN(n)
}

// choice says whether to visit all, and otherwise by what to choose: by the run's seed and the
// test's name, so that it does not matter which tests ran before.
func choice(t testing.TB) (all bool, random *rand.Rand) {
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
	_, _ = name.Write([]byte(t.Name())) // which never fails
	return false, rand.New(rand.NewPCG(from, name.Sum64()))
}

var seed = sync.OnceValue(func() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("TEST_SEED"), 10, 64); err == nil {
		return n
	}
	return uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
})
