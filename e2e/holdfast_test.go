package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/powerloss"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// patience limits every wait of these tests. It is generous: an item whose message was lost is
// enqueued again after 30 s, and then after a minute more, so two lost messages fail no test.
const patience = 3 * time.Minute

// holdfast is a folder on which `holdfast up` runs.
type holdfast struct {
	t      *testing.T
	dir    string
	env    []string
	client string // whose commands ask it; "": the program under test
	proc   *exec.Cmd
	log    *logText
	done   chan error

	listen string // its address; "": a new one at each start
	trace  string // where strace writes its file operations; "": it runs without
	slow   bool   // under strace, each syncfs takes long

	database string         // the Registry's address on PostgreSQL; "": registry.db in the folder
	redis    string         // Redis' address for interim data; "": interim.db in the folder
	bucket   *s3test.Server // has staging and storage; nil: they are in the folder
}

// place is where the bytes of "staging" or "storage" lie.
func (h *holdfast) place(name string) string {
	if h.bucket != nil {
		return filepath.Join(h.bucket.Folder, name)
	}
	return filepath.Join(h.dir, name)
}

// logText is what a process has written to its log so far.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String implements fmt.Stringer.
func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// up starts Holdfast on a new folder, with loopback sources allowed, and stops it at the end of the
// test.
func up(t *testing.T, env ...string) *holdfast {
	t.Helper()
	return upAt(t, "", env...)
}

// upAt is up at an address that it keeps when it is started again.
func upAt(t *testing.T, listen string, env ...string) *holdfast {
	t.Helper()
	h := &holdfast{t: t, dir: filepath.Join(t.TempDir(), "data"), listen: listen, env: append([]string{"HOLDFAST_NET_ALLOW=127.0.0.1"}, env...)}
	h.start()
	t.Cleanup(func() {
		h.stop()
		if t.Failed() {
			t.Logf("holdfast's log:\n%s", h.log)
		}
	})
	return h
}

// start starts the process, with more flags if there are any, and waits until it is ready.
func (h *holdfast) start(flags ...string) {
	h.t.Helper()
	args := append([]string{"up", "--dir", h.dir, "--listen", cmp.Or(h.listen, "127.0.0.1:0")}, flags...)
	h.proc = exec.Command(binary, args...)
	if h.trace != "" {
		h.proc = powerloss.Command(h.trace, binary, args...)
		if h.slow {
			powerloss.SlowSyncfs(h.proc)
		}
	}
	h.proc.Env = h.environment()
	h.log = &logText{}
	h.proc.Stderr = h.log
	out, err := h.proc.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.proc.Start(); err != nil {
		h.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		h.t.Fatalf("holdfast up printed nothing: %v\n%s", h.proc.Wait(), h.log)
	}
	proc, done := h.proc, make(chan error, 1)
	h.done = done
	go func() {
		for lines.Scan() {
		}
		done <- proc.Wait()
	}()
}

// environment is this process's without HOLDFAST_*, plus the test's settings. A test must not
// depend on how full this machine's disk is.
func (h *holdfast) environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HOLDFAST_") {
			env = append(env, v)
		}
	}
	return append(append(env, "HOLDFAST_STAGING_FULL=100", "HOLDFAST_STAGING_RESERVE=0", "HOLDFAST_STAGING_FULL_UNESTIMATED=100", "HOLDFAST_LOG_LEVEL=info"), h.env...)
}

// signal sends a signal and returns how the process ended.
func (h *holdfast) signal(s os.Signal) error {
	h.t.Helper()
	to := h.proc.Process
	if h.trace != "" {
		var err error
		if to, err = powerloss.Traced(h.proc); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := to.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		h.t.Fatal(err)
	}
	select {
	case err := <-h.done:
		h.done <- err
		return err
	case <-time.After(patience):
		h.proc.Process.Kill()
		h.t.Fatalf("holdfast did not end after %v\n%s", s, h.log)
		return nil
	}
}

func (h *holdfast) stop() {
	h.t.Helper()
	if err := h.signal(syscall.SIGTERM); err != nil {
		h.t.Errorf("holdfast up ended with %v\n%s", err, h.log)
	}
}

// result is what a command printed and how it ended.
type result struct {
	code           int
	stdout, stderr string
}

// run runs a client command against this Holdfast.
func (h *holdfast) run(args ...string) result {
	h.t.Helper()
	return h.runIn("", append(args, "--dir", h.dir)...)
}

func (h *holdfast) runIn(folder string, args ...string) result {
	h.t.Helper()
	cmd := exec.Command(cmp.Or(h.client, binary), args...)
	cmd.Dir, cmd.Env = folder, h.environment()
	return h.finish(cmd)
}

func (h *holdfast) finish(cmd *exec.Cmd) result {
	h.t.Helper()
	return h.launch(cmd)()
}

// launch starts a command and returns a function that waits for its end.
func (h *holdfast) launch(cmd *exec.Cmd) (end func() result) {
	h.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	return func() result {
		h.t.Helper()
		defer timer.Stop()
		err := cmd.Wait()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			h.t.Fatal(err)
		}
		return result{code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: errs.String()}
	}
}

// summary is the last line of `submit --wait --json`.
type summary struct {
	MessageType string `json:"message_type"`
	BatchID     string `json:"batch_id"`
	State       string `json:"state"`
	Completed   int    `json:"completed"`
	Failed      int    `json:"failed"`
	Error       string `json:"error"`
	ErrorClass  string `json:"error_class"`
	Jobs        []job  `json:"jobs"`
}

type job struct {
	ItemID     string `json:"item_id"`
	Name       string `json:"name"`
	State      string `json:"state"`
	ARK        string `json:"ark"`
	ObjectID   string `json:"object_id"`
	Version    int    `json:"version"`
	Error      string `json:"error"`
	ErrorClass string `json:"error_class"`
}

// submit submits, waits and returns the summary and the exit code.
func (h *holdfast) submit(args ...string) (summary, int) {
	h.t.Helper()
	r := h.run(append([]string{"submit", "--wait", "--json"}, args...)...)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	var s summary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil || s.MessageType != "summary" {
		h.t.Fatalf("submit %v ended with %d and no summary: %v\n%s\n%s", args, r.code, err, r.stdout, r.stderr)
	}
	return s, r.code
}

// rows decodes the JSON lines of a list.
func rows[T any](h *holdfast, args ...string) []T {
	h.t.Helper()
	r := h.run(append(args, "--json")...)
	if r.code != 0 {
		h.t.Fatalf("%v ended with %d: %s%s", args, r.code, r.stdout, r.stderr)
	}
	var out []T
	for line := range strings.Lines(r.stdout) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			h.t.Fatalf("%v printed %q: %v", args, line, err)
		}
		out = append(out, v)
	}
	return out
}

// files returns the files below a folder by slash-separated name.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		out[filepath.ToSlash(name)] = string(raw)
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}
