package sqlstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// gather makes n calls at once, so that they come in one group, and returns each one's error. The
// writer stands still until all callers are there; fault is asked before each statement.
func gather(s *sqlstore.Store, n int, fault func(query string) error, call func(i int) error) []error {
	var ready atomic.Int64
	var once sync.Once
	s.SetFault(func(query string) error {
		once.Do(func() {
			for ready.Load() < int64(n) {
				runtime.Gosched()
			}
			for tries := 0; callersWaiting() < n && tries < 10_000; tries++ {
				runtime.Gosched()
			}
		})
		return fault(query)
	})
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			ready.Add(1)
			errs[i] = call(i)
		})
	}
	all.Wait()
	s.SetFault(nil)
	return errs
}

// callersWaiting returns how many callers wait for a writer.
func callersWaiting() (n int) {
	text := make([]byte, 1<<20)
	for _, goroutine := range strings.Split(string(text[:runtime.Stack(text, true)]), "\n\n") {
		state, stack, _ := strings.Cut(goroutine, "\n")
		if strings.Contains(stack, "sqldb.(*DB).Queue(") && (strings.Contains(state, "[select") || strings.Contains(state, "[chan receive")) {
			n++
		}
	}
	return n
}

// crowd adds n tokens at once.
func crowd(t *testing.T, s *sqlstore.Store, n int, fault func(query string) error) []error {
	t.Helper()
	return gather(s, n, fault, func(i int) error {
		return s.AddToken(t.Context(), registry.Token{ID: fmt.Sprint(i), Hash: fmt.Sprint(i), Name: fmt.Sprint(i)})
	})
}

func hasToken(t *testing.T, s *sqlstore.Store, i int) bool {
	t.Helper()
	_, err := s.TokenByHash(t.Context(), fmt.Sprint(i))
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// checkCrowd checks that each caller's answer is the truth, and that all of want failed and no
// other.
func checkCrowd(t *testing.T, s *sqlstore.Store, errs []error, failed func(i int) bool) {
	t.Helper()
	for i, err := range errs {
		if (err != nil) != failed(i) {
			t.Errorf("write %d: %v", i, err)
		}
		if got := hasToken(t, s, i); got != (err == nil) {
			t.Errorf("write %d: answered %v, and yet stored=%v", i, err, got)
		}
	}
}

func newStore(t *testing.T) *sqlstore.Store {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "registry.db"), nil)
}

func TestGroup(t *testing.T) {
	const n = 20
	never := func(int) bool { return false }
	always := func(int) bool { return true }
	t.Run("writes that wait share a commit", func(t *testing.T) {
		s := newStore(t)
		commits := 0
		errs := crowd(t, s, n, func(q string) error {
			if q == "COMMIT" {
				commits++
			}
			return nil
		})
		checkCrowd(t, s, errs, never)
		if commits == n {
			t.Errorf("%d commits for %d writes", commits, n)
		}
	})
	t.Run("R10 a bad write does not touch its neighbours", func(t *testing.T) {
		s := newStore(t)
		if err := s.AddToken(t.Context(), registry.Token{ID: "7", Hash: "x"}); err != nil {
			t.Fatal(err)
		}
		errs := crowd(t, s, n, func(string) error { return nil })
		checkCrowd(t, s, errs, func(i int) bool { return i == 7 }) // its id is there already
	})
	t.Run("R10 a bad write that cannot be undone alone does not touch its neighbours", func(t *testing.T) {
		s := newStore(t)
		if err := s.AddToken(t.Context(), registry.Token{ID: "7", Hash: "x"}); err != nil {
			t.Fatal(err)
		}
		errs := crowd(t, s, n, func(q string) error {
			if q == "ROLLBACK TO SAVEPOINT w" {
				return errFault
			}
			return nil
		})
		checkCrowd(t, s, errs, func(i int) bool { return i == 7 })
	})
	t.Run("R10 a group that is run again takes its time and is run whole", func(t *testing.T) {
		s := newStore(t)
		if err := s.AddToken(t.Context(), registry.Token{ID: "7", Hash: "x"}); err != nil {
			t.Fatal(err)
		}
		slow := 0
		errs := crowd(t, s, n, func(q string) error {
			if q == "SAVEPOINT w" {
				// Longer than a group may go on taking more writes.
				for begun := time.Now(); time.Since(begun) < 60*time.Millisecond; {
					runtime.Gosched()
				}
				slow++
			}
			return nil
		})
		checkCrowd(t, s, errs, func(i int) bool { return i == 7 })
		if slow == 0 {
			t.Error("no group was run again")
		}
	})
	t.Run("R10 a commit that fails once", func(t *testing.T) {
		s := newStore(t)
		failed := false
		errs := crowd(t, s, n, func(q string) error {
			if q == "COMMIT" && !failed {
				failed = true
				return errFault
			}
			return nil
		})
		// Alone in the first group, its only write fails; in company each gets a transaction of its
		// own.
		bad := 0
		for _, err := range errs {
			if err != nil {
				bad++
			}
		}
		if bad > 1 {
			t.Errorf("%d writes failed", bad)
		}
		checkCrowd(t, s, errs, func(i int) bool { return errs[i] != nil })
	})
	t.Run("a commit that fails for ever fails them all", func(t *testing.T) {
		s := newStore(t)
		errs := crowd(t, s, n, func(q string) error {
			if q == "COMMIT" {
				return errFault
			}
			return nil
		})
		checkCrowd(t, s, errs, always)
		for i, err := range errs {
			if !errors.Is(err, errFault) {
				t.Errorf("write %d: %v", i, err)
			}
		}
		if err := s.AddToken(t.Context(), registry.Token{ID: "after", Hash: "after"}); err != nil {
			t.Errorf("the store did not get over it: %v", err)
		}
	})
	t.Run("R10 a statement that fails once fails one write", func(t *testing.T) {
		s := newStore(t)
		inserts := 0
		errs := crowd(t, s, n, func(q string) error {
			if strings.HasPrefix(q, "INSERT INTO token") {
				inserts++
				if inserts == 3 {
					return errFault
				}
			}
			return nil
		})
		checkCrowd(t, s, errs, func(i int) bool { return errors.Is(errs[i], errFault) })
	})
}

// TestTransitionCosts counts the statements of a transition, BEGIN and COMMIT included, for one item
// and for 32 that come in one group, and the pages that SQLite writes for them. docs/design.md, "The
// two databases", has the numbers.
func TestTransitionCosts(t *testing.T) {
	for n, most := range map[int]map[string]int{
		1:  {"offer": 11, "claim": 15, "settle": 8, "reserve": 5, "continue": 13},
		32: {"offer": 11, "claim": 15, "settle": 8, "reserve": 3*32 + 2, "continue": 14},
	} {
		path := filepath.Join(t.TempDir(), "registry.db")
		s := open(t, path, nil)
		batch := expandingBatch(t, s)
		jobs := make([]registry.NewJob, n)
		for i := range jobs {
			jobs[i] = registry.NewJob{Line: int64(i + 1), Spec: registry.Spec{Type: registry.FileType, URL: "https://example.org/x"}}
		}
		if _, err := s.AddJobs(t.Context(), batch, jobs); err != nil {
			t.Fatal(err)
		}
		stages := map[registry.Stage]int{registry.Estimate: n, registry.Provision: n, registry.Download: n}
		if _, err := s.Renew(t.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{ID: "w", Capacity: stages}, Lease: time.Minute}); err != nil {
			t.Fatal(err)
		}
		pages := func() int64 {
			wal, err := os.Stat(path + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			return wal.Size() / 4120 // a frame is a page with a header
		}
		count := func(step string, calls int, call func(i int) error) {
			t.Helper()
			statements, groups, before := 0, 0, pages()
			each := func(query string) error {
				statements++
				if strings.HasPrefix(query, "BEGIN") {
					groups++ // on a busy machine some callers come late, and form another group
				}
				return nil
			}
			for i, err := range gather(s, calls, each, call) {
				if err != nil {
					t.Fatalf("%s %d of %d: %v", step, i, calls, err)
				}
			}
			t.Logf("%s of %d: %d statements, %d pages", step, n, statements, pages()-before)
			if statements > groups*most[step] {
				t.Errorf("%s of %d items takes %d statements in %d groups, want at most %d in one", step, n, statements, groups, most[step])
			}
		}
		claims := make([]registry.Claim, n)
		request := func(i int, stage registry.Stage) registry.ClaimRequest {
			return registry.ClaimRequest{RequestID: fmt.Sprint(stage, i), Stage: stage, Hint: claims[i].Item.ID, Worker: "w", Lease: time.Minute, MaxAttempts: 5}
		}
		claim := func(stage registry.Stage) func(int) error {
			return func(i int) (err error) {
				claims[i], err = s.Claim(t.Context(), request(i, stage))
				return err
			}
		}
		settled := func(i int) registry.Settlement {
			return registry.Settlement{Lease: claims[i].Lease, Outcome: registry.OutcomeDone}
		}
		count("offer", 1, func(int) error {
			_, err := s.Due(t.Context(), registry.DueRequest{Window: 1, Renudge: time.Minute, RenudgeMax: time.Hour})
			return err
		})
		count("claim", n, claim(registry.Estimate))
		count("settle", n, func(i int) error {
			_, err := s.Settle(t.Context(), settled(i))
			return err
		})
		for i := range n {
			if err := claim(registry.Provision)(i); err != nil {
				t.Fatal(err)
			}
		}
		count("reserve", n, func(i int) error {
			return s.Reserve(t.Context(), claims[i].Lease, registrytest.Room(1, 0))
		})
		count("continue", n, func(i int) error {
			_, c, err := s.SettleAndClaim(t.Context(), settled(i), request(i, registry.Download))
			if err == nil && c == nil {
				err = errors.New("it did not continue")
			}
			return err
		})
	}
}

// TestCloseWhileWritesWait checks that each write's answer is true if the store closes meanwhile.
func TestCloseWhileWritesWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	s := open(t, path, nil)
	const n = 50
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			errs[i] = s.AddToken(t.Context(), registry.Token{ID: fmt.Sprint(i), Hash: fmt.Sprint(i)})
		})
		if i == n/2 {
			for range 3 {
				all.Go(func() {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
	all.Wait()
	again := open(t, path, nil)
	checkCrowd(t, again, errs, func(i int) bool { return errs[i] != nil })
	registrytest.CheckInvariants(t, again)
}
