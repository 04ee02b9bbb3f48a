package e2e

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/bagit"
)

// tap is a proxy to the service. It counts the bytes of files, and passes only a limited number.
type tap struct {
	*httptest.Server
	dry chan struct{} // closed when the limit was reached

	mu    sync.Mutex
	limit int64 // below 0: any
	cut   bool  // at the limit the connection breaks; else nothing more comes
	came  int64
}

func newTap(t *testing.T, target string, limit int64, cut bool) *tap {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{dry: make(chan struct{}), limit: limit, cut: cut}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			if strings.HasSuffix(r.Request.URL.Path, "/content") {
				r.Body = &tapped{ReadCloser: r.Body, tap: p, over: r.Request.Context().Done()}
			}
			return nil
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	p.Server = httptest.NewServer(proxy)
	t.Cleanup(func() { p.CloseClientConnections(); p.Close() })
	return p
}

// open removes the limit and resets the count.
func (p *tap) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit, p.came = -1, 0
}

// stop ends a command at the limit: killed, interrupted, or cut off by the tap. Nearly all fetched
// bytes are in the folder by then.
func (p *tap) stop(t *testing.T, cmd *exec.Cmd, how, folder string) {
	t.Helper()
	<-p.dry
	for how != "cut" && written(t, folder) < p.count()-mib/4 {
		time.Sleep(5 * time.Millisecond)
	}
	switch how {
	case "killed":
		cmd.Process.Signal(syscall.SIGKILL)
	case "interrupted":
		cmd.Process.Signal(syscall.SIGINT)
	}
}

func (p *tap) count() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.came
}

type tapped struct {
	io.ReadCloser
	tap  *tap
	over <-chan struct{}
}

// Read implements io.Reader.
func (r *tapped) Read(p []byte) (int, error) {
	r.tap.mu.Lock()
	left := int64(len(p))
	if r.tap.limit >= 0 {
		left = min(left, r.tap.limit-r.tap.came)
	}
	r.tap.mu.Unlock()
	if left == 0 && len(p) > 0 {
		r.tap.mu.Lock()
		select {
		case <-r.tap.dry:
		default:
			close(r.tap.dry)
		}
		r.tap.mu.Unlock()
		if !r.tap.cut {
			<-r.over
		}
		return 0, io.ErrUnexpectedEOF
	}
	n, err := r.ReadCloser.Read(p[:left])
	r.tap.mu.Lock()
	r.tap.came += int64(n)
	r.tap.mu.Unlock()
	return n, err
}

// large submits a folder with a large file among others, and returns the object and its files.
func large(t *testing.T, h *holdfast) (ark string, want map[string]string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "deposit")
	source := rand.NewChaCha8([32]byte{8})
	want = map[string]string{}
	for name, size := range map[string]int{"a.bin": mib, "b/large.bin": 6 * mib, "b/none": 0, "c.txt": 10, "d.bin": mib} {
		data := make([]byte, size)
		_, _ = source.Read(data)
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		want[name] = string(data)
	}
	s, code := h.submit(folder)
	if code != 0 {
		t.Fatalf("submit ended with %d: %+v", code, s)
	}
	return s.Jobs[0].ObjectID, want
}

// untarred returns the files of a tar.
func untarred(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	got := map[string]string{}
	for tr := tar.NewReader(r); ; {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = string(text)
	}
}

// payload reads an export's producer files. It validates a bag.
func payload(t *testing.T, out string, args []string) map[string]string {
	t.Helper()
	form := strings.Join(args, " ")
	var got map[string]string
	var report *bagit.Report
	var err error
	if strings.Contains(form, "--tar") {
		raw, rerr := os.ReadFile(out)
		if rerr != nil {
			t.Fatal(rerr)
		}
		got = untarred(t, bytes.NewReader(raw))
		if strings.Contains(form, "--bag") {
			report, err = bagit.ValidateTar(t.Context(), bytes.NewReader(raw), bagit.Options{})
		}
	} else {
		got = files(t, out)
		if strings.Contains(form, "--bag") {
			report, err = bagit.ValidateFS(t.Context(), os.DirFS(out), bagit.Options{})
		}
	}
	if err != nil || report != nil && !report.Valid {
		t.Fatalf("%s: %v %+v", form, err, report)
	}
	if report == nil {
		return got
	}
	in := map[string]string{}
	for name, text := range got {
		if _, name, ok := strings.Cut(name, "data/"); ok {
			in[name] = text
		}
	}
	return in
}

// TestExport_GoesOn interrupts exports of every form inside a file, in every way. Incomplete output
// has no final name, and the same command fetches only the missing bytes.
func TestExport_GoesOn(t *testing.T) {
	t.Parallel()
	h := up(t)
	ark, want := large(t, h)
	var total int64
	for _, text := range want {
		total += int64(len(text))
	}
	for _, form := range [][]string{nil, {"--bag"}, {"--tar"}, {"--tar", "--bag"}} {
		for how, code := range map[string]int{"killed": -1, "interrupted": 130, "cut": 5} {
			t.Run(how+strings.Join(form, ""), func(t *testing.T) {
				t.Parallel()
				const limit = 4 * mib
				p := newTap(t, h.url(), limit, how == "cut")
				out := filepath.Join(t.TempDir(), "out")
				run := func() *exec.Cmd {
					cmd := exec.Command(binary, append([]string{"object", "export", ark, "--out", out}, form...)...)
					cmd.Env = append(h.environment(), "HOLDFAST_URL="+p.URL, "HOLDFAST_TOKEN="+h.secret())
					return cmd
				}
				cmd := run()
				end := h.launch(cmd)
				p.stop(t, cmd, how, filepath.Dir(out))
				r := end()
				if r.code != code || code > 0 && !strings.Contains(r.stderr, "To resume: holdfast object export "+ark) {
					t.Errorf("ended with %d, want %d: %s", r.code, code, r.stderr)
				}
				for _, name := range []string{out + "/b/large.bin", out + "/data/b/large.bin", out + "/bagit.txt"} {
					if _, err := os.Lstat(name); err == nil {
						t.Errorf("%s is there before it is whole", name)
					}
				}
				if info, err := os.Lstat(out); err == nil && !info.IsDir() {
					t.Error("the tar has its name before it is whole")
				}
				// Another export is not mixed in.
				if r := h.run("object", "export", ark, "--out", out, "--system", "--tar"); len(form) == 1 && form[0] == "--tar" && (r.code != 8 || !strings.Contains(r.stderr, "has an unfinished export")) {
					t.Errorf("another export into it ended with %d: %s", r.code, r.stderr)
				}
				p.open()
				if r := h.finish(run()); r.code != 0 {
					t.Fatalf("the second run ended with %d: %s", r.code, r.stderr)
				}
				// What was on its way when the end came need not have been written.
				if came := p.count(); came > total-limit+mib {
					t.Errorf("%d bytes were fetched again, want about %d of %d", came, total-limit, total)
				}
				if diff := cmp.Diff(want, payload(t, out, form)); diff != "" {
					t.Error("what was written differs from what was submitted")
				}
				left, err := filepath.Glob(filepath.Join(filepath.Dir(out), "*", ".holdfast*"))
				beside, berr := filepath.Glob(filepath.Join(filepath.Dir(out), ".*holdfast*"))
				if err != nil || berr != nil || len(left)+len(beside) > 0 {
					t.Errorf("left: %v %v", left, beside)
				}
			})
		}
	}
}

// written returns the number of bytes in a folder.
func written(t *testing.T, folder string) int64 {
	t.Helper()
	var sum int64
	_ = filepath.WalkDir(folder, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() { // what is gone has just got another name
			if info, err := d.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

// url is where the service is.
func (h *holdfast) url() string {
	h.t.Helper()
	address, _ := h.address()
	return address
}

// TestExport_Faults: exports report faults, and never touch files that are not theirs.
func TestExport_Faults(t *testing.T) {
	t.Parallel()
	h := up(t)
	ark, want := large(t, h)

	t.Run("standard output", func(t *testing.T) {
		r := h.run("object", "export", ark, "--out", "-", "--tar")
		if r.code != 0 || !strings.Contains(r.stderr, "5 files") {
			t.Fatalf("ended with %d: %s", r.code, r.stderr)
		}
		if !cmp.Equal(want, untarred(t, strings.NewReader(r.stdout))) {
			t.Error("the tar has other files")
		}
		for _, args := range [][]string{{"--out", "-"}, {"--out", "-", "--tar", "--json"}} {
			if r := h.run(append([]string{"object", "export", ark}, args...)...); r.code != 2 {
				t.Errorf("%v ended with %d: %s", args, r.code, r.stderr)
			}
		}
	})
	t.Run("disk full", func(t *testing.T) {
		shell := func(script string) result {
			cmd := exec.Command("sh", "-c", script, binary, "object", "export", ark, "--dir", h.dir)
			cmd.Env = h.environment()
			return h.finish(cmd)
		}
		if r := shell(`exec "$0" "$@" --tar --out - > /dev/full`); r.code != 9 {
			t.Errorf("to a full device: %d %s", r.code, r.stderr)
		}
		for _, form := range []string{"", "--bag", "--tar"} {
			out := filepath.Join(t.TempDir(), "out")
			const limited = `ulimit -f 4096; exec "$0" "$@" %s --out %s`
			if r := shell(fmt.Sprintf(limited, form, out)); r.code != 9 || !strings.Contains(r.stderr, "To resume:") {
				t.Errorf("%s: with no room for the large file: %d %s", form, r.code, r.stderr)
			}
			if _, err := os.Lstat(filepath.Join(out, "b", "large.bin")); err == nil {
				t.Errorf("%s: a part of the file has its name", form)
			}
			if r := h.run(strings.Fields("object export " + ark + " " + form + " --out " + out)...); r.code != 0 {
				t.Errorf("%s: with room again: %d %s", form, r.code, r.stderr)
			}
			if err := exec.Command("unshare", "-Urm", "true").Run(); err != nil {
				t.Logf("no file system can be mounted here that would be full: %v", err)
				continue
			}
			// A disk of 4 MiB, which then grows: the export goes on.
			const full = `mount -t tmpfs -o size=4m none %[2]s || exit 99; "$0" "$@" %[1]s --out %[2]s/x; [ $? = 9 ] || exit 98; ` +
				`[ -e %[2]s/x/b/large.bin -o -e %[2]s/x/bagit.txt -o -f %[2]s/x ] && exit 97; mount -o remount,size=64m %[2]s || exit 96; exec "$0" "$@" %[1]s --out %[2]s/x`
			cmd := exec.Command("unshare", "-Urm", "sh", "-c", fmt.Sprintf(full, form, t.TempDir()), binary, "object", "export", ark, "--dir", h.dir)
			cmd.Env = h.environment()
			if r := h.finish(cmd); r.code != 0 {
				t.Errorf("%s: on a full disk that grows: %d %s", form, r.code, r.stderr)
			}
		}
	})
	t.Run("what is there", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "mine")
		if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"--out", dir}, {"--out", dir, "--bag"}, {"--out", file, "--tar"}, {"--out", dir, "--tar"}} {
			if r := h.run(append([]string{"object", "export", ark}, args...)...); r.code != 8 {
				t.Errorf("%v ended with %d: %s", args, r.code, r.stderr)
			}
		}
		if got := files(t, dir); !cmp.Equal(got, map[string]string{"mine": "mine"}) {
			t.Errorf("it was touched: %d files", len(got))
		}
	})
	t.Run("changed in between", func(t *testing.T) {
		p := newTap(t, h.url(), 4*mib, true)
		out := filepath.Join(t.TempDir(), "out")
		run := func() result {
			cmd := exec.Command(binary, "object", "export", ark, "--out", out)
			cmd.Env = append(h.environment(), "HOLDFAST_URL="+p.URL, "HOLDFAST_TOKEN="+h.secret())
			return h.finish(cmd)
		}
		run()
		p.open()
		if err := os.WriteFile(filepath.Join(out, "a.bin"), []byte("somebody's"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := run(); r.code != 8 || !strings.Contains(r.stderr, "a.bin") {
			t.Errorf("over a file that was changed: %d %s", r.code, r.stderr)
		}
		if raw, err := os.ReadFile(filepath.Join(out, "a.bin")); err != nil || string(raw) != "somebody's" {
			t.Errorf("it is %q now: %v", raw, err)
		}
		if err := os.Remove(filepath.Join(out, "a.bin")); err != nil {
			t.Fatal(err)
		}
		parts, err := filepath.Glob(filepath.Join(out, ".holdfast-part-*"))
		if err != nil || len(parts) != 1 {
			t.Fatalf("parts: %v %v", parts, err)
		}
		spoil(t, parts[0], 17)
		if r := run(); r.code != 0 || !cmp.Equal(want, files(t, out)) {
			t.Errorf("with a part that was spoilt: %d %s", r.code, r.stderr)
		}
	})
	t.Run("names", func(t *testing.T) {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, strings.Repeat("n", 240)), []byte("long"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, ".holdfast-export"), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, code := h.submit(folder)
		if code != 0 {
			t.Fatalf("%d %+v", code, s)
		}
		out := filepath.Join(t.TempDir(), "out")
		if r := h.run("object", "export", s.Jobs[0].ObjectID, "--out", out); r.code != 1 || !strings.Contains(r.stderr, "--tar") {
			t.Errorf("ended with %d: %s", r.code, r.stderr)
		}
		if r := h.run("object", "export", s.Jobs[0].ObjectID, "--out", out+".tar", "--tar"); r.code != 0 {
			t.Errorf("as a tar: %d: %s", r.code, r.stderr)
		}
	})
}

// spoil changes one byte of a file.
func spoil(t *testing.T, name string, at int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}
