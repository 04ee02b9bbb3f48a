package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/process"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/remote"
	"github.com/holdfast/holdfast/task/tasktest"
)

// The test binary is the program under test when these name a Registry and a token.
const (
	adderURL    = "PROCESS_TEST_ADDER_URL"
	adderToken  = "PROCESS_TEST_ADDER_TOKEN"
	adderWorker = "PROCESS_TEST_ADDER_WORKER" // the name of this start
)

// sum is the state of a process that adds up the arguments of its calls.
type sum struct {
	Sum    int `json:"sum"`
	Timers int `json:"timers"`
}

// adder serves such processes. Each call adds its argument, answers the sum, and sets a timer.
func adder(address string) error {
	r := remote.Open(address, os.Getenv(adderToken))
	defer r.Close()
	var m task.Mux
	process.Handle(&m, namespace, func(_ context.Context, s *process.Step[sum]) error {
		switch s.Kind {
		case registry.StepCall:
			var n int
			if err := s.Args(&n); err != nil {
				return err
			}
			s.State.Sum += n
			s.Event(n)
			s.Respond(s.State.Sum)
			s.ContinueIn(0)
		case registry.StepTimeout:
			s.State.Timers++
			s.Event("timer")
		}
		return nil
	})
	return task.Serve(context.Background(), r, &m, task.Options{Worker: os.Getenv(adderWorker)})
}

// killer is a proxy between the program and the API. Once it is armed, it kills the program at one of
// its requests: before the API gets it, or after the API has carried it out.
type killer struct {
	*fixture
	api   *tasktest.API
	to    http.Handler
	proxy *httptest.Server

	mu      sync.Mutex
	program *exec.Cmd
	starts  int
	ended   chan struct{} // closed when the program has ended
	left    int           // the request at which to kill, counted from now; 0: not armed
	after   bool
	killed  bool
}

func newKiller(f *fixture) *killer {
	f.Helper()
	k := &killer{fixture: f, api: tasktest.NewAPI(f, f.store)}
	to, err := url.Parse(k.api.URL)
	f.must(err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) } // of a program that is dead
	k.to = proxy
	k.proxy = httptest.NewServer(k)
	f.Cleanup(k.proxy.Close)
	f.caller = k.api.Client(registry.Token{Name: "curator", Role: registry.RoleOperator})
	f.Cleanup(k.end)
	return k
}

// ServeHTTP implements http.Handler.
func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	now := false
	if k.left > 0 {
		k.left--
		now = k.left == 0
	}
	after := k.after
	k.mu.Unlock()
	if !now {
		k.to.ServeHTTP(w, r)
		return
	}
	if after {
		k.to.ServeHTTP(httptest.NewRecorder(), r)
	}
	k.mu.Lock()
	k.killed = true
	_ = k.program.Process.Kill()
	k.mu.Unlock()
	panic(http.ErrAbortHandler) // it gets no answer
}

// start starts the program.
func (k *killer) start() {
	k.Helper()
	self, err := os.Executable()
	k.must(err)
	cmd := exec.Command(self)
	k.starts++
	cmd.Env = append(os.Environ(), adderURL+"="+k.proxy.URL, adderWorker+"="+k.worker(), adderToken+"="+k.api.Token(registry.Token{
		Name: "program", Role: registry.RoleWorker, Stages: []registry.Stage{"step:test"},
	}))
	cmd.Stderr = os.Stderr
	k.must(cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.program, k.ended, k.killed, k.left = cmd, ended, false, 0
}

// worker is the name of the program's last start.
func (k *killer) worker() string { return fmt.Sprint("start ", k.starts) }

// orphaned reports whether a step runs whose program is dead.
func (k *killer) orphaned() bool {
	k.Helper()
	page, err := k.caller.TraceProcess(k.Context(), registry.TraceQuery{ProcessKey: key, Limit: 500})
	k.must(err)
	for _, s := range page.Rows {
		if s.Status != registry.Running {
			continue
		}
		all, err := k.store.Attempts(k.Context(), s.ItemID)
		k.must(err)
		if last := all[len(all)-1]; last.FinishedAt == nil && last.Worker != k.worker() {
			return true
		}
	}
	return false
}

// arm lets the program be killed at its n-th request from now on.
func (k *killer) arm(n int, after bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left, k.after = n, after
}

// disarm lets the program live, and reports whether that comes too late.
func (k *killer) disarm() (killed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = 0
	return k.killed
}

func (k *killer) dead() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.killed
}

// end kills the program, and waits for its end.
func (k *killer) end() {
	k.mu.Lock()
	program, ended := k.program, k.ended
	k.mu.Unlock()
	if program != nil {
		_ = program.Process.Kill()
		<-ended
	}
}

// TestProgram_KilledAtEachRequest kills a program by SIGKILL at each of its requests around the steps of
// a call and of the timer that this sets: before the Registry has the request, and after it has carried
// it out. Another program then goes on. State, history, answers and steps are as if nothing had
// happened.
func TestProgram_KilledAtEachRequest(t *testing.T) {
	for name, database := range map[string]func(testing.TB) string{"sqlite": sqlstoretest.SQLite, "postgres": sqlstoretest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ahead atomic.Int64
			f := &fixture{T: t}
			var err error
			f.store, err = sqlstore.Open(t.Context(), sqlstore.Options{URL: database(t), Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
			f.must(err)
			t.Cleanup(func() { _ = f.store.Close() })
			k := newKiller(f)
			k.start()
			f.await(func() bool {
				all, err := f.caller.Namespaces(f.Context())
				return err == nil && len(all) > 0
			})
			f.init(nil)
			calls, kills := 0, 0
			for n, survived := 1, 0; survived < 2; n++ { // with a kill before, and with one after
				survived = 0
				for _, after := range []bool{false, true} {
					calls++
					k.arm(n, after)
					a := f.ask(fmt.Sprint(calls))
					whole := func() bool { return len(f.get(registry.HistoryRange{}).History) == 2*calls }
					f.await(func() bool { return k.dead() || whole() })
					if !k.disarm() {
						survived++
					} else {
						kills++
						k.end()
						k.start()
						f.await(func() bool {
							ahead.Add(int64(time.Hour)) // the lease is over, and so is the wait after a loss
							if k.orphaned() {
								_, err := f.store.Sweep(f.Context(), 0)
								f.must(err)
							}
							return whole()
						})
					}
					if got, want := string(f.answer(a).Response), fmt.Sprint(calls*(calls+1)/2); got != want {
						f.Errorf("call %d, killed at request %d (after: %t), is answered %s, want %s", calls, n, after, got, want)
					}
				}
			}
			p := f.get(registry.HistoryRange{})
			var got sum
			f.must(json.Unmarshal(p.State, &got))
			if want := (sum{calls * (calls + 1) / 2, calls}); got != want || p.Status != registry.ProcessRunning || p.Timer != nil {
				f.Errorf("the process is %+v with %+v, want %+v", p, got, want)
			}
			var want []string
			for n := range calls {
				want = append(want, fmt.Sprint(n+1), `"timer"`)
			}
			if got := texts(p.History); got != strings.Join(want, " ") {
				f.Errorf("history %s", got)
			}
			want = []string{"init completed"}
			for range calls {
				want = append(want, "call completed", "timeout completed")
			}
			if got := f.trace(); strings.Join(got, ", ") != strings.Join(want, ", ") {
				f.Errorf("steps %v", got)
			}
			f.Logf("%d kills in %d calls", kills, calls)
			if kills < 6 {
				f.Errorf("there were %d kills only", kills)
			}
		})
	}
}
