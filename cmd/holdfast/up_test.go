package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/export"
)

// buffer can be written and read at once.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	grew chan struct{}
}

func newBuffer() *buffer { return &buffer{grew: make(chan struct{}, 1)} }

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.grew <- struct{}{}:
	default:
	}
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// up runs `holdfast up` on a new folder until the test ends, and returns the folder.
func up(t *testing.T) string {
	t.Helper()
	clitest.NoEnvironment(t)
	t.Setenv("HOLDFAST_NET_ALLOW", "127.0.0.1")
	t.Setenv("HOLDFAST_STAGING_FULL", "100")
	t.Setenv("HOLDFAST_STAGING_FULL_UNESTIMATED", "100")
	t.Setenv("HOLDFAST_STAGING_RESERVE", "0")
	t.Setenv("HOLDFAST_LOG_LEVEL", "error")
	dir := filepath.Join(t.TempDir(), "data")
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	out, errs := newBuffer(), newBuffer()
	over := make(chan exit.Code, 1)
	go func() {
		over <- execute(ctx, []string{"up", "--dir", dir, "--listen", "127.0.0.1:0"}, strings.NewReader(""), out, errs)
	}()
	t.Cleanup(func() {
		stop()
		select {
		case code := <-over:
			if code != 0 {
				t.Errorf("up ended with exit code %d:\n%s", code, errs)
			}
		case <-time.After(time.Minute):
			t.Error("up did not end")
		}
	})
	for !strings.Contains(out.String(), "Sign in:    holdfast login --dir ") {
		select {
		case <-out.grew:
		case code := <-over:
			over <- code
			t.Fatalf("up ended with exit code %d:\n%s", code, errs)
		}
	}
	return dir
}

// TestEndToEnd: a folder and a file are submitted, shown, exported and verified; then damage is
// found.
func TestEndToEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole Holdfast")
	}
	dir := up(t)
	in := func(args ...string) clitest.Result { t.Helper(); return holdfast(t, append(args, "--dir", dir)...) }

	folder := filepath.Join(t.TempDir(), "deposit")
	want := clitest.WriteDeposit(t, folder)
	for _, name := range []string{"50%25 off.txt", "100%", "two\nlines.txt"} { // a bag's manifests must escape these
		want[name] = name
		clitest.WriteFile(t, filepath.Join(folder, name), name)
	}
	s := in("submit", folder, "--wait", "--json", "--title", "A deposit", "--local-id", "d1").Wants(t, exit.OK).Summary(t)
	if s.State != "Completed" || s.Completed != 1 || len(s.Jobs) != 1 || s.Jobs[0].Version != 1 || s.Jobs[0].ObjectID == "" {
		t.Fatalf("summary %+v, want one completed job with version 1", s)
	}
	ark := s.Jobs[0].ARK

	again := in("submit", folder, "--wait", "--json", "--title", "A deposit", "--local-id", "d1").Wants(t, exit.OK).Summary(t)
	if !again.Duplicate || again.BatchID != s.BatchID {
		t.Errorf("the same deposit again: %+v, want a duplicate of %s", again, s.BatchID)
	}
	if r := in("submit", folder, "--title", "A deposit", "--local-id", "d1").Wants(t, exit.OK).Says(t, "already submitted"); strings.TrimSpace(r.Out) != s.BatchID {
		t.Errorf("stdout %q, want the id alone", r.Out)
	}

	table := in("watch", s.BatchID).Wants(t, exit.OK)
	if !strings.Contains(table.Out, ark) || !strings.Contains(table.Err, "100.0 %") {
		t.Errorf("watch of a settled batch:\n%s\n%s", table.Out, table.Err)
	}
	if r := in("watch", s.Jobs[0].ItemID, "--json").Wants(t, exit.OK).Summary(t); r.BatchID != s.BatchID || len(r.Jobs) != 1 || r.Jobs[0].ARK != ark {
		t.Errorf("summary of an item %+v, want its job", r)
	}
	for _, args := range [][]string{
		{"batch", "list"},
		{"batch", "show", s.BatchID},
		{"batch", "report", s.BatchID},
		{"batch", "report", s.BatchID, "--csv"},
		{"item", "list", "--batch", s.BatchID},
		{"item", "show", s.Jobs[0].ItemID},
		{"item", "history", s.Jobs[0].ItemID},
		{"item", "why", s.Jobs[0].ItemID},
		{"object", "list"},
		{"object", "show", ark},
		{"object", "events", ark},
		{"collection", "list"},
		{"collection", "show", "default"},
	} {
		if r := in(args...).Wants(t, exit.OK); strings.Count(r.Out, "\n") < 2 {
			t.Errorf("%v printed %q", args, r.Out)
		}
		if args[len(args)-1] == "--csv" {
			continue
		}
		for line := range strings.Lines(in(append(args, "--json")...).Wants(t, exit.OK).Out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%v --json printed %q", args, line)
			}
		}
	}
	in("health").Wants(t, exit.OK)
	in("item", "list", "batch:"+s.BatchID[:7]).Wants(t, exit.Usage).Says(t, "first 8 characters")
	kept := clitest.WriteFile(t, filepath.Join(t.TempDir(), "kept"), "kept")
	in("object", "receipt", ark, "--out", kept).Wants(t, exit.Usage).Says(t, kept, "another name")
	if r := in("object", "receipt", ark, "--out", "-").Wants(t, exit.OK); len(r.Out) < 100 {
		t.Errorf("a receipt to standard output: %q", r.Out)
	}
	in("item", "hold", s.Jobs[0].ItemID, "--reason", "why").Wants(t, exit.Refused).Says(t, "it is Completed and cannot be held; no act is possible any more; state change")

	t.Run("short ids", func(t *testing.T) { shortIDs(t, in, s) })
	t.Run("identical rows", func(t *testing.T) { identicalRows(t, in) })
	t.Run("export", func(t *testing.T) { exported(t, in, ark, want) })
	t.Run("refusals", func(t *testing.T) { refusals(t, in) })
	t.Run("held", func(t *testing.T) { heldThenReleased(t, in) })
	t.Run("address", func(t *testing.T) { mixed(t, in) })
	t.Run("damage", func(t *testing.T) { damaged(t, in, dir, ark) })
}

// A shortened id works everywhere; an ambiguous one lists the candidates.
func shortIDs(t *testing.T, in func(...string) clitest.Result, s clitest.Summary) {
	batch, job := s.BatchID, s.Jobs[0].ItemID
	for _, args := range [][]string{
		{"batch", "show", terminal.ShortID(batch)},
		{"batch", "report", strings.ToUpper(terminal.ShortID(batch))},
		{"batch", "report", terminal.ShortID(batch), "--list"},
		{"item", "show", terminal.ShortID(batch)},
		{"item", "history", terminal.ShortID(batch)},
		{"item", "why", terminal.ShortID(job)},
		{"item", "list", "--batch", terminal.ShortID(batch)},
		{"item", "list", "batch:" + terminal.ShortID(batch)},
		{"item", "list", "batch:" + strings.ToUpper(batch)},
		{"item", "show", strings.ToUpper(batch)},
		{"events", "--item", terminal.ShortID(batch)},
		{"watch", terminal.ShortID(job)},
	} {
		if r := in(append(args, "--json")...).Wants(t, exit.OK); !strings.Contains(r.Out, batch) && !strings.Contains(r.Out, job) {
			t.Errorf("%v printed %q, want what is of batch %s", args, r.Out, batch)
		}
	}
	in("batch", "failures", terminal.ShortID(batch)).Wants(t, exit.OK)
	// A command of batches means batches only, one of items any.
	in("batch", "show", batch[:13], "--json").Wants(t, exit.OK)
	in("item", "show", batch[:8]).Wants(t, exit.Usage).Says(t, "give more", batch, job)
	in("item", "cancel", batch[:8]).Wants(t, exit.Usage).Says(t, batch, job)
	in("item", "show", "00000000").Wants(t, exit.NotFound).Says(t, "00000000", "item list")
}

func exported(t *testing.T, in func(...string) clitest.Result, ark string, want map[string]string) {
	out := filepath.Join(t.TempDir(), "out")
	in("object", "export", ark, "--out", out).Wants(t, exit.OK)
	if diff := cmp.Diff(want, content(t, out)); diff != "" {
		t.Errorf("exported (-want +got):\n%s", diff)
	}
	in("object", "export", ark, "--out", out).Wants(t, exit.Refused).Says(t, "not empty", out)
	system := filepath.Join(t.TempDir(), "system")
	in("object", "export", ark, "--out", system, "--system", "--version", "1").Wants(t, exit.OK)
	got := content(t, system)
	if got[filepath.Join("system", "mrt-erc.txt")] == "" || got["a.txt"] != "a" {
		t.Errorf("with system files: %d files, want mrt-erc.txt and a.txt among them", len(got))
	}
	exportedAsBag(t, in, ark, want)
	in("object", "export", ark, "--out", filepath.Join(t.TempDir(), "x"), "--version", "9").Wants(t, exit.NotFound).Says(t, "versions 1 to 1")
	in("object", "export", "ark:/99999/fk4nothere", "--out", filepath.Join(t.TempDir(), "x")).Wants(t, exit.NotFound)
}

// An export is a valid bag with the producer's bytes, and with Holdfast's own files as tag files.
func exportedAsBag(t *testing.T, in func(...string) clitest.Result, ark string, want map[string]string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "bag")
	in("object", "export", ark, "--out", out, "--bag", "--system").Wants(t, exit.OK)
	report, err := bagit.ValidateFS(t.Context(), os.DirFS(out), bagit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !report.Valid || report.Version != bagit.Version10 || strings.Join(report.Algorithms, " ") != "sha256" || report.PayloadFiles != int64(len(want)) {
		t.Errorf("valid=%t, BagIt %v with %v, %d files: %v", report.Valid, report.Version, report.Algorithms, report.PayloadFiles, report.Faults)
	}
	for _, f := range report.Faults {
		if f.Rule != bagit.RulePortableName { // which the depositor's own names break
			t.Errorf("fault %v", f)
		}
	}
	payload, system := map[string]string{}, 0
	for name, text := range content(t, out) {
		if rest, ok := strings.CutPrefix(filepath.ToSlash(name), "data/"); ok {
			payload[rest] = text
		} else if strings.HasPrefix(filepath.ToSlash(name), "system/") {
			system++
		}
	}
	if diff := cmp.Diff(want, payload); diff != "" || system == 0 {
		t.Errorf("payload (-want +got), %d system files:\n%s", system, diff)
	}
	tags := map[string]string{}
	for _, tag := range report.Info {
		tags[tag.Label] = tag.Value
	}
	if tags["External-Identifier"] != ark || tags["Object-Version"] != "1" || tags["Internal-Sender-Identifier"] != "d1" ||
		tags["External-Description"] != "A deposit" || tags["Bagging-Date"] == "" || tags["Payload-Oxum"] == "" || tags["Bag-Software-Agent"] == "" {
		t.Errorf("tags %v", tags)
	}
	in("object", "export", ark, "--out", out, "--bag").Wants(t, exit.Refused).Says(t, "not empty")
}

func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		got[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A refused payload leaves nothing behind, and the message says what to correct.
func refusals(t *testing.T, in func(...string) clitest.Result) {
	dir := t.TempDir()
	before := in("batch", "list", "--json", "--limit", "0").Wants(t, exit.OK).Out
	bad := clitest.WriteFile(t, filepath.Join(dir, "bad.checkm"), "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n"+
		"#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName\nhttps://example.org/a | md5 | zz | many | | a\n")
	r := in("submit", bad, "--wait", "--json").Wants(t, exit.Content).Says(t, "line 4", "fix: ")
	if s := r.Summary(t); s.State != "Refused" || s.BatchID != "" || s.ExitCode != int(exit.Content) || s.Jobs == nil {
		t.Errorf("summary of a refusal: %+v", s)
	}
	in("submit", clitest.WriteFile(t, filepath.Join(dir, "empty"), "")).Wants(t, exit.Content).Says(t, "empty")
	good := clitest.WriteFile(t, filepath.Join(dir, "good.txt"), "good")
	in("submit", good, "--digest", "sha256:"+strings.Repeat("0", 64)).Wants(t, exit.Content).Says(t, "sha256")
	in("submit", good, "--collection", "nowhere").Wants(t, exit.NotFound).Says(t, `collection "nowhere" was not found`, "default")
	in("submit", good, "--ark", "not an ark").Wants(t, exit.Usage).Says(t, "ARK")
	in("batch", "show", "nothing").Wants(t, exit.NotFound)
	in("watch", "nothing").Wants(t, exit.NotFound).Says(t, "holdfast batch list")
	if after := in("batch", "list", "--json", "--limit", "0").Wants(t, exit.OK).Out; after != before {
		t.Errorf("a refused payload left a batch behind:\n%s", after)
	}
}

func heldThenReleased(t *testing.T, in func(...string) clitest.Result) {
	in("hold", "add", "--scope", "collection", "--key", "default", "--reason", "stock-taking").Wants(t, exit.OK)
	if r := in("hold", "list").Wants(t, exit.OK); !strings.Contains(r.Out, "stock-taking") {
		t.Errorf("holds:\n%s", r.Out)
	}
	file := clitest.WriteFile(t, filepath.Join(t.TempDir(), "held.txt"), "held")
	s := in("submit", file, "--wait", "--json").Wants(t, exit.Held).Summary(t)
	if r := in("item", "why", s.BatchID).Wants(t, exit.OK); !strings.Contains(r.Out, "stock-taking") {
		t.Errorf("why:\n%s", r.Out)
	}
	in("hold", "remove", "--scope", "collection", "--key", "default").Wants(t, exit.OK)
	in("hold", "remove", "--scope", "collection", "--key", "default").Wants(t, exit.NotFound)
	in("watch", s.BatchID).Wants(t, exit.OK)
}

// A batch, fetched from an address, in which one job is at fault.
func mixed(t *testing.T, in func(...string) clitest.Result) {
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/batch.checkm":
			_, _ = fmt.Fprintf(w, "#%%checkm_0.7\n#%%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest\n"+
				"#%%prefix | mrt: | http://merritt.cdlib.org/terms#\n#%%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n"+
				"#%%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date\n"+
				"%[1]s/there.txt | | | | | there.txt | | there\n%[1]s/absent.txt | | | | | absent.txt | | absent\n#%%eof\n", srv.URL)
		case "/there.txt":
			_, _ = w.Write([]byte("there"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	s := in("submit", srv.URL+"/batch.checkm", "--wait", "--json").Wants(t, exit.Partly).Summary(t)
	if s.State != "Failed" || s.Completed != 1 || s.Failed != 1 || len(s.Jobs) != 2 {
		t.Fatalf("summary %+v, want one completed and one failed", s)
	}
	for _, j := range s.Jobs {
		if j.State == "Failed" && (j.Class != "content" || !strings.Contains(j.Error, "404")) {
			t.Errorf("failed job %+v, want a content fault that says 404", j)
		}
	}
	report := in("batch", "report", s.BatchID).Wants(t, exit.OK)
	if !strings.Contains(report.Out, "1 completed, 1 failed") || !strings.Contains(report.Out, "content: ") {
		t.Errorf("report:\n%s", report.Out)
	}
	in("item", "requeue", s.Jobs[0].ItemID).Wants(t, exit.Refused) // it completed
}

// `verify` and `export` find a flipped byte in storage, and the export leaves no file with that
// name.
func damaged(t *testing.T, in func(...string) clitest.Result, dir, ark string) {
	in("object", "verify", ark).Wants(t, exit.OK)
	hit := false
	err := filepath.WalkDir(filepath.Join(dir, "storage"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(path) != "c" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		raw[7] ^= 1
		hit = true
		return errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, raw, 0o644))
	})
	if err != nil || !hit {
		t.Fatalf("no stored file to damage: %v", err)
	}
	if r := in("object", "verify", "--all").Wants(t, exit.Failed); !strings.Contains(r.Out, "DAMAGED  "+ark) || !strings.Contains(r.Out, "sub/c") {
		t.Errorf("verify does not say what and where:\n%s", r.Out)
	}
	out := filepath.Join(t.TempDir(), "out")
	in("object", "export", ark, "--out", out).Wants(t, exit.Failed).Says(t, "sub/c", "the bytes differ from the record", "object verify")
	bag := filepath.Join(t.TempDir(), "bag")
	in("object", "export", ark, "--out", bag, "--bag").Wants(t, exit.Failed).Says(t, "sub/c", "the bytes differ from the record", "object verify")
	tarred := filepath.Join(t.TempDir(), "out.tar")
	in("object", "export", ark, "--out", tarred, "--tar").Wants(t, exit.Failed).Says(t, "sub/c", "the bytes differ from the record", "object verify")
	if r := in("object", "export", ark, "--out", "-", "--tar").Wants(t, exit.Failed).Says(t, "sub/c"); strings.HasSuffix(r.Out, strings.Repeat("\x00", export.TarEnd)) {
		t.Error("a damaged object comes out as a whole tar")
	}
	for _, dir := range []string{out, bag, filepath.Dir(tarred)} {
		for name := range content(t, dir) {
			if strings.HasSuffix(name, "c") || strings.HasSuffix(name, "out.tar") || strings.HasSuffix(name, "bagit.txt") {
				t.Errorf("left behind: %q", name)
			}
		}
	}
}

func TestUp_Refuses(t *testing.T) {
	clitest.NoEnvironment(t)
	t.Setenv("HOLDFAST_LOG_LEVEL", "error")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := filepath.Join(t.TempDir(), "data")
	holdfast(t, "up", "--dir", dir, "--listen", taken.Addr().String()).Wants(t, exit.Temporary).
		Says(t, taken.Addr().String(), "already in use", "--listen")
	if _, err := os.Stat(filepath.Join(dir, node.ClientFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a client file of an `up` that does not run: %v", err)
	}
	t.Run("a storage without a name", func(t *testing.T) {
		t.Setenv("HOLDFAST_STORAGE_URL", "s3://bucket/prefix")
		holdfast(t, "up", "--dir", dir, "--listen", taken.Addr().String()).Wants(t, exit.Usage).Says(t, "HOLDFAST_STORAGE_URL", "second=s3://BUCKET/PREFIX")
	})
	file := clitest.WriteFile(t, filepath.Join(t.TempDir(), "file"), "")
	r := holdfast(t, "up", "--dir", filepath.Join(file, "data"), "--listen", "127.0.0.1:0").Says(t, file)
	if r.Code == 0 {
		t.Error("started on a folder that cannot be")
	}
	if os.Geteuid() != 0 {
		sealed := filepath.Join(t.TempDir(), "sealed")
		if err := os.Mkdir(sealed, 0o500); err != nil {
			t.Fatal(err)
		}
		holdfast(t, "up", "--dir", filepath.Join(sealed, "data")).Wants(t, exit.Refused).Says(t, sealed, "permission denied")
	}
	t.Setenv("HOLDFAST_STAGING_FULL", "800")
	holdfast(t, "up", "--dir", dir).Wants(t, exit.Usage).Says(t, "HOLDFAST_STAGING_FULL")
}

func TestUp_FolderInUse(t *testing.T) {
	dir := up(t)
	holdfast(t, "up", "--dir", dir, "--listen", "127.0.0.1:0").Wants(t, exit.Temporary).Says(t, dir, "another holdfast is running", "--dir")
	info, err := os.Stat(filepath.Join(dir, node.ClientFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("client file: %v, %v; want mode 0600", info, err)
	}
}

// An interrupted wait ends at once, and prints how to continue.
func TestSubmit_Interrupted(t *testing.T) {
	dir := up(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out, errs := newBuffer(), newBuffer()
	over := make(chan exit.Code, 1)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	defer slow.CloseClientConnections()
	go func() {
		over <- execute(ctx, []string{"submit", slow.URL + "/never", "--type", "file", "--wait", "--dir", dir}, strings.NewReader(""), out, errs)
	}()
	for !strings.Contains(errs.String(), "as batch ") {
		<-errs.grew
	}
	interrupt()
	if code := <-over; code != exit.Interrupted {
		t.Errorf("exit code %d, want %d\n%s", code, exit.Interrupted, errs)
	}
	if !strings.Contains(errs.String(), "holdfast watch ") || !strings.Contains(errs.String(), "--dir "+dir) {
		t.Errorf("no command to go on with:\n%s", errs)
	}
}
