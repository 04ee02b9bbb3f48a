package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// part is the most that may cross the network twice when a worker ends inside a file (I5).
const part = 16 << 20

// dribble serves one large file, and holds the first request after a given part of it.
type dribble struct {
	url     string
	content []byte
	after   []byte // what the file is from the second request on; nil: the same
	tag     func(content []byte) string
	ranges  bool
	hold    int64 // bytes after which the first answer stops

	mu      sync.Mutex
	held    bool
	ranged  []string // the Range of every request for the body
	served  int64
	resumed int64 // where the last answer began
	left    bool  // the other side of the held answer is gone
}

func newDribble(t *testing.T, size, hold int64, prepare func(*dribble)) *dribble {
	t.Helper()
	d := &dribble{content: randomBytes(1, size), hold: hold, ranges: true}
	d.tag = func(content []byte) string { return fmt.Sprintf(`"%x"`, sha256.Sum256(content)) }
	if prepare != nil {
		prepare(d)
	}
	server, url := listen(t, d)
	d.url = url + "/large.bin"
	server.Start()
	return d
}

func randomBytes(seed uint64, size int64) []byte {
	var key [32]byte
	key[0] = byte(seed)
	raw := make([]byte, size)
	rand.NewChaCha8(key).Read(raw)
	return raw
}

// ServeHTTP answers with the file, the whole or its end.
func (d *dribble) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	content, first := d.content, !d.held
	if d.held && d.after != nil {
		content = d.after
	}
	d.mu.Unlock()
	if tag := d.tag(content); tag != "" {
		w.Header().Set("ETag", tag)
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		return
	}
	if r.Header.Get("Range") == "bytes=0-0" || !d.ranges {
		r.Header.Del("Range")
	}
	reader := &countedReader{Reader: bytes.NewReader(content), d: d, r: r}
	if first {
		reader.hold = d.hold
	}
	if d.ranges {
		w = &noteStart{ResponseWriter: w, d: d, asked: r.Header.Get("Range")}
		http.ServeContent(w, r, "", time.Unix(1_000_000_000, 0), reader)
		return
	}
	d.note("", 0)
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	io.Copy(w, struct{ io.Reader }{reader}) // each read is to be seen
}

func (d *dribble) note(asked string, start int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ranged, d.resumed = append(d.ranged, asked), start
}

// noteStart sees where an answer begins.
type noteStart struct {
	http.ResponseWriter
	d     *dribble
	asked string
}

func (n *noteStart) WriteHeader(code int) {
	var start int64
	if code == http.StatusPartialContent {
		fmt.Sscanf(n.Header().Get("Content-Range"), "bytes %d-", &start)
	}
	n.d.note(n.asked, start)
	n.ResponseWriter.WriteHeader(code)
}

// countedReader counts what is sent, and stops where it is told to until the other side is gone.
type countedReader struct {
	*bytes.Reader
	d    *dribble
	r    *http.Request
	sent int64
	hold int64
}

func (c *countedReader) Read(b []byte) (int, error) {
	if c.hold > 0 && c.sent+int64(len(b)) > c.hold {
		if b = b[:c.hold-c.sent]; len(b) == 0 {
			c.d.mu.Lock()
			c.d.held = true
			c.d.mu.Unlock()
			<-c.r.Context().Done()
			c.d.mu.Lock()
			c.d.left = true
			c.d.mu.Unlock()
			return 0, io.ErrUnexpectedEOF
		}
	}
	n, err := c.Reader.Read(b)
	c.sent += int64(n)
	c.d.mu.Lock()
	c.d.served += int64(n)
	c.d.mu.Unlock()
	return n, err
}

// arrived waits until the first answer is held and all of it was taken, as the item's progress
// tells.
func (d *dribble) arrived(h *holdfast, hold int64) {
	h.t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		for _, it := range rows[struct {
			Stage     string `json:"stage"`
			DoneBytes int64  `json:"done_bytes"`
		}](h, "item", "list") {
			// Bytes are moved in pieces of a mebibyte: the last one is not full yet.
			if it.Stage == "download" && it.DoneBytes >= hold-1<<20 {
				return
			}
		}
	}
	h.t.Fatalf("%d bytes did not arrive: %v", hold, rows[map[string]any](h, "item", "list"))
}

// TestKilledInsideAFile kills and stops the process inside a file. It resumes at the last
// checkpoint if the source proves that the file is unchanged, and starts over otherwise. The stored
// file is right.
func TestKilledInsideAFile(t *testing.T) {
	const size, hold = 48 << 20, 45 << 20
	strong := func(content []byte) string { return fmt.Sprintf(`"%x"`, sha256.Sum256(content)) }
	tests := []struct {
		name    string
		signal  syscall.Signal
		prepare func(d *dribble)
		digest  bool // the depositor gave one
		resumes bool
	}{
		{name: "killed", signal: syscall.SIGKILL, resumes: true},
		{name: "stopped", signal: syscall.SIGTERM, resumes: true},
		{name: "the source has changed", signal: syscall.SIGKILL, prepare: func(d *dribble) { d.after = randomBytes(2, size) }},
		{name: "the source cannot range", signal: syscall.SIGKILL, prepare: func(d *dribble) { d.ranges = false }},
		{name: "a weak ETag", signal: syscall.SIGKILL, prepare: func(d *dribble) { d.tag = func(c []byte) string { return "W/" + strong(c) } }},
		{name: "a weak ETag, and a digest", signal: syscall.SIGKILL, digest: true, resumes: true, prepare: func(d *dribble) {
			d.tag = func(c []byte) string { return "W/" + strong(c) }
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDribble(t, size, hold, tt.prepare)
			h := up(t)
			args := []string{"submit", "--json", d.url, "--type", "file"}
			if tt.digest {
				args = append(args, "--digest", fmt.Sprintf("sha256:%x", sha256.Sum256(d.content)))
			}
			batch := rows[struct {
				BatchID string `json:"batch_id"`
			}](h, args...)[0].BatchID
			d.arrived(h, hold)
			if err := h.signal(tt.signal); (err == nil) != (tt.signal == syscall.SIGTERM) {
				t.Errorf("holdfast ended with %v", err)
			}
			h.start()
			h.watch(batch)
			d.check(t, size, hold, tt.resumes)
			want := d.content
			if d.after != nil {
				want = d.after
			}
			d.stored(t, h, want)
			h.stop()
			h.checkInvariants()
			h.start()
		})
	}
}

// check checks how many bytes crossed the network.
func (d *dribble) check(t *testing.T, size, hold int64, resumes bool) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	twice := d.served - size
	t.Logf("%d bytes were sent twice; the last answer began at %d; asked for: %q", twice, d.resumed, d.ranged)
	if resumes && (d.resumed < hold-part || twice > part) {
		t.Errorf("%d bytes were sent twice, more than one part", twice)
	}
	if !resumes && d.resumed != 0 {
		t.Errorf("it went on at %d in a file that may be another one", d.resumed)
	}
}

// stored compares the object with the file.
func (d *dribble) stored(t *testing.T, h *holdfast, want []byte) {
	t.Helper()
	found := 0
	for name := range files(t, filepath.Join(h.dir, "storage")) {
		if strings.HasSuffix(name, "producer/large.bin") {
			raw, err := os.ReadFile(filepath.Join(h.dir, "storage", name))
			if err != nil || !bytes.Equal(raw, want) {
				t.Errorf("%s differs from the source: %v", name, err)
			}
			found++
		}
	}
	if found != 1 {
		t.Errorf("stored %d times, want once", found)
	}
}
