package task_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
)

// languages are the example programs that serve count-words, with what they need.
var languages = map[string][]string{
	"python": {"python3", "../examples/python/worker.py"},
	"shell":  {"bash", "../examples/shell/worker.sh"},
}

// TestLanguages runs the example programs of other languages as processes, against a server, and
// checks a result, a failure with its retry, a cancellation, a stop, and a kill in the middle.
func TestLanguages(t *testing.T) {
	for name, command := range languages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, need := range []string{command[0], "curl", "jq"} {
				if _, err := exec.LookPath(need); err != nil {
					proctest.Absent(t, need, err)
				}
			}
			f := &fixture{T: t, url: sqlstoretest.SQLite(t), stages: []registry.Stage{"run:count-words"}}
			var ahead atomic.Int64
			f.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			f.open()
			f.overHTTP()
			first := f.child(command)
			f.await(func() bool {
				all, err := f.store.Functions(f.Context())
				return err == nil && len(all) == 1
			})

			it := f.settled(f.words(`{"lines":["one two","three"],"seconds":0}`))
			if got := string(it.Results[registry.ResultReturned]); it.Status != registry.Completed || got != "3" {
				t.Errorf("%s returned %s: %s", it.Status, got, it.Note)
			}
			if log := f.log(it.ID); len(log) == 0 || log[0].N != 1 || log[0].Level != "INFO" || log[0].At.IsZero() {
				t.Errorf("its log is %+v", log)
			}
			it = f.settled(f.words(`{"lines":["one",null]}`))
			if it.Status != registry.Failed || it.Tries != 2 || !strings.Contains(it.Note, "no text") || len(f.attempts(it.ID)) != 2 {
				t.Errorf("a failure is %s after %d: %s", it.Status, it.Tries, it.Note)
			}

			const long = `{"lines":["one","two","three"],"seconds":600}`
			running := func(id string, n int64) {
				t.Helper()
				f.await(func() bool {
					all := f.attempts(id)
					return int64(len(all)) == n && all[n-1].FinishedAt == nil && len(all[n-1].Progress) == 1
				})
			}
			id := f.words(long)
			running(id, 1)
			_, err := f.store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActCancel, Actor: "curator", Confirmed: true})
			f.must(err)
			first.await("lost " + id)

			id = f.words(long)
			running(id, 1)
			f.must(f.store.Drain(f.Context(), registry.Drain{Until: f.now().Add(24 * time.Hour), Reason: "power cut", Actor: "admin"}))
			f.await(func() bool { return f.item(id).Status == registry.Pending })
			if all := f.attempts(id); all[0].Outcome != registry.OutcomeReleased {
				t.Errorf("a drain ended the attempt as %s", all[0].Outcome)
			}
			_, err = f.store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActCancel, Actor: "curator", Confirmed: true})
			f.must(err)
			f.must(f.store.RemoveHold(f.Context(), registry.HoldAll, "", "admin"))

			id = f.words(long)
			running(id, 1)
			f.must(first.cmd.Process.Signal(syscall.SIGTERM))
			f.must(first.wait())
			if it := f.item(id); it.Status != registry.Pending || it.Tries != 0 {
				t.Errorf("a stop left it %s after %d failures", it.Status, it.Tries)
			}

			second := f.child(command)
			running(id, 2)
			f.must(syscall.Kill(-second.cmd.Process.Pid, syscall.SIGKILL))
			_ = second.wait()
			ahead.Store(int64(time.Hour)) // the lease is over
			_, err = f.store.Sweep(f.Context(), 0)
			f.must(err)
			if all := f.attempts(id); all[1].Outcome != registry.OutcomeLost {
				t.Errorf("the attempt of the killed one is %+v", all[1])
			}
			ahead.Store(int64(2 * time.Hour)) // the wait after the loss is over
			f.child(command)
			running(id, 3)
		})
	}
}

func (f *fixture) log(id string) []registry.LogLine {
	f.Helper()
	page, err := f.store.Log(f.Context(), registry.LogQuery{ItemID: id, Limit: 100})
	f.must(err)
	return page.Rows
}

func (f *fixture) words(args string) string {
	f.Helper()
	it, err := f.store.AddTask(f.Context(), registry.NewTask{Function: "count-words", Args: json.RawMessage(args), Actor: "test"})
	f.must(err)
	return it.ID
}

// child is a running example, in a process group of its own.
type child struct {
	*fixture
	cmd *exec.Cmd
	out *output
	// wait waits for its end, and returns an error if it failed.
	wait func() error
}

func (f *fixture) child(command []string) *child {
	f.Helper()
	c := &child{fixture: f, cmd: exec.Command(command[0], command[1:]...), out: &output{}}
	c.cmd.Env = append(os.Environ(), "HOLDFAST_URL="+f.server, "HOLDFAST_TOKEN="+programSecret)
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.out
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.WaitDelay = time.Second
	f.must(c.cmd.Start())
	c.wait = sync.OnceValue(c.cmd.Wait)
	f.Cleanup(func() {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		_ = c.wait()
		if f.Failed() {
			f.Logf("%v: %s", command, c.out.text())
		}
	})
	return c
}

// await waits until the program has written a line.
func (c *child) await(line string) {
	c.Helper()
	c.fixture.await(func() bool { return strings.Contains(c.out.text(), line+"\n") })
}

// output keeps what a process writes.
type output struct {
	mu   sync.Mutex
	data []byte
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data = append(o.data, p...)
	return len(p), nil
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.data)
}
