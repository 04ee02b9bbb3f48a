package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// valve is a proxy to the service. It counts the bytes and passes only a limited number.
type valve struct {
	in     net.Listener
	target string
	wait   sync.WaitGroup

	mu     sync.Mutex
	more   *sync.Cond
	limit  int64 // bytes to the service in all; below 0: any
	passed int64
	closed bool
	open   map[net.Conn]bool
}

func newValve(t *testing.T, target string, limit int64) *valve {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{in: l, target: target, limit: limit, open: map[net.Conn]bool{}}
	v.more = sync.NewCond(&v.mu)
	v.wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			v.wait.Go(func() { v.pass(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		v.mu.Lock()
		v.closed = true
		for c := range v.open {
			c.Close()
		}
		v.more.Broadcast()
		v.mu.Unlock()
		v.wait.Wait()
	})
	return v
}

func (v *valve) pass(from net.Conn) {
	defer from.Close()
	to, err := net.DialTimeout("tcp", v.target, time.Second)
	if err != nil {
		return
	}
	defer to.Close()
	v.mu.Lock()
	v.open[from], v.open[to] = true, true
	v.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(from, to) // the service has ended it
		from.Close()
		v.mu.Lock()
		v.more.Broadcast()
		delete(v.open, from)
		v.mu.Unlock()
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && v.let(from, int64(n)) {
			if _, failed := to.Write(buf[:n]); failed != nil {
				break
			}
		} else if n > 0 {
			break
		}
		if err != nil {
			break
		}
	}
	to.Close()
	back.Wait()
}

// let waits until n more bytes may pass. It returns false when the connection has ended.
func (v *valve) let(from net.Conn, n int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.limit >= 0 && v.passed+n > v.limit && !v.closed && v.open[from] {
		v.more.Wait()
	}
	v.passed += n
	return !v.closed && v.open[from]
}

// release lets everything through from now on, and counts anew.
func (v *valve) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.limit, v.passed = -1, 0
	v.more.Broadcast()
}

func (v *valve) count() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.passed
}

const mib = 1 << 20

// big makes a file, and returns its path and SHA-256.
func big(t *testing.T, size int) (path, sum string) {
	t.Helper()
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(data)
	path = filepath.Join(t.TempDir(), "big.bin")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s := sha256.Sum256(data)
	return path, hex.EncodeToString(s[:])
}

// behind starts Holdfast on an address that it keeps, with a valve in front of it, and returns what
// a client's environment is to be.
func behind(t *testing.T, limit int64) (*holdfast, *valve, []string) {
	t.Helper()
	listen := freeAddress(t)
	h := upAt(t, listen)
	v := newValve(t, listen, limit)
	return h, v, append(h.environment(), "HOLDFAST_URL=http://"+v.in.Addr().String(), "HOLDFAST_TOKEN="+h.secret())
}

// secret is the token that up left in its folder.
func (h *holdfast) secret() string {
	h.t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.dir, "client.json"))
	if err != nil {
		h.t.Fatal(err)
	}
	var c struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		h.t.Fatal(err)
	}
	return c.Token
}

// acknowledged waits until this much of the one upload on its way is acknowledged, and returns how
// much is.
func (h *holdfast) acknowledged(least int64) int64 {
	h.t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		r, err := http.NewRequest(http.MethodGet, "http://"+h.listen+"/api/v1/uploads", nil)
		if err != nil {
			h.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+h.secret())
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			h.t.Fatal(err)
		}
		var page struct {
			Rows []struct {
				Offset int64 `json:"offset"`
			} `json:"rows"`
		}
		err = json.NewDecoder(answer.Body).Decode(&page)
		answer.Body.Close()
		if err != nil {
			h.t.Fatal(err)
		}
		if len(page.Rows) == 1 && page.Rows[0].Offset >= least {
			return page.Rows[0].Offset
		}
		time.Sleep(10 * time.Millisecond)
	}
	h.t.Fatalf("%d bytes of the upload are never acknowledged\n%s", least, h.log)
	return 0
}

// stored fails unless the one object has the file.
func (h *holdfast) stored(sum string) {
	h.t.Helper()
	found := 0
	for name, text := range files(h.t, h.place("storage")) {
		if !strings.HasSuffix(name, "content/producer/big.bin") {
			continue
		}
		found++
		if s := sha256.Sum256([]byte(text)); hex.EncodeToString(s[:]) != sum {
			h.t.Errorf("%s is not what was sent", name)
		}
	}
	if found != 1 {
		h.t.Errorf("stored %d times, want once", found)
	}
	for name := range files(h.t, h.place("staging")) {
		if strings.Contains(name, "/uploads/") || strings.HasPrefix(name, "uploads/") {
			h.t.Errorf("left in staging: %s", name)
		}
	}
}

// slack is what other requests cost, and what stood in the valve when it was opened: little beside
// the 16 MiB that a kill may cost.
const slack = mib

// TestUpload_RegistryKilled kills the Registry during an upload request. The same command continues
// with the next Registry, and acknowledged bytes are not sent again.
func TestUpload_RegistryKilled(t *testing.T) {
	t.Parallel()
	const size = 60 * mib
	path, sum := big(t, size)
	h, v, env := behind(t, 40*mib)
	cmd := exec.Command(binary, "submit", path, "--wait", "--json")
	cmd.Env = env
	end := h.launch(cmd)
	acked := h.acknowledged(32 * mib)
	if err := h.signal(syscall.SIGKILL); err == nil {
		t.Fatal("holdfast ended cleanly when it was killed")
	}
	v.release()
	h.start()
	r := end()
	if r.code != 0 {
		t.Fatalf("submit ended with %d: %s%s\n%s", r.code, r.stdout, r.stderr, h.log)
	}
	if sent := v.count(); sent > size-acked+slack {
		t.Errorf("%d bytes were sent after the kill, want at most %d: %d were acknowledged", sent, size-acked+slack, acked)
	}
	h.stored(sum)
}

// TestUpload_CommandKilled kills the command inside a file. The same command resumes the upload,
// and says so.
func TestUpload_CommandKilled(t *testing.T) {
	t.Parallel()
	const size = 60 * mib
	path, sum := big(t, size)
	for _, how := range []os.Signal{syscall.SIGKILL, syscall.SIGINT} {
		t.Run(fmt.Sprint(how), func(t *testing.T) {
			t.Parallel()
			h, v, env := behind(t, 40*mib)
			cmd := exec.Command(binary, "submit", path, "--wait", "--json")
			cmd.Env = env
			end := h.launch(cmd)
			acked := h.acknowledged(32 * mib)
			if err := cmd.Process.Signal(how); err != nil {
				t.Fatal(err)
			}
			if r := end(); how == syscall.SIGINT && (r.code != 130 || !strings.Contains(r.stderr, "To resume: holdfast submit "+path)) {
				t.Errorf("interrupted: %d %s, want 130 and how to go on", r.code, r.stderr)
			}
			v.release()
			again := exec.Command(binary, "submit", path, "--wait", "--json")
			again.Env = env
			r := h.finish(again)
			if r.code != 0 || !strings.Contains(r.stderr, "resuming the upload of big.bin") {
				t.Fatalf("submit again ended with %d: %s%s\n%s", r.code, r.stdout, r.stderr, h.log)
			}
			if sent := v.count(); sent > size-acked+slack {
				t.Errorf("%d bytes were sent again, want at most %d: %d were acknowledged", sent, size-acked+slack, acked)
			}
			h.stored(sum)
		})
	}
}

// TestUploadDays: an upload shows when it expires, as the operator has set.
func TestUploadDays(t *testing.T) {
	h := upAt(t, freeAddress(t), "HOLDFAST_UPLOAD_DAYS=3")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+h.listen+"/api/v1/uploads", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + h.secret(), "Tus-Resumable": "1.0.0", "Upload-Length": "5", "Upload-Metadata": "filename YQ==",
	} {
		r.Header.Set(name, value)
	}
	began := time.Now()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body) // only to be shown
	answer.Body.Close()
	expires, err := http.ParseTime(answer.Header.Get("Upload-Expires"))
	if answer.StatusCode != http.StatusCreated || err != nil {
		t.Fatalf("%s, %v: %s", answer.Status, err, text)
	}
	const days = 3 * 24 * time.Hour
	if least, most := began.Add(days-2*time.Second), time.Now().Add(days+2*time.Second); expires.Before(least) || expires.After(most) {
		t.Errorf("it expires at %s, want between %s and %s", expires, least, most)
	}
}
