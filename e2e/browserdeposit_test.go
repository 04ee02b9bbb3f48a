package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/internal/browsertest"
)

// depositor opens a tab in which a depositor has signed in.
func (h *holdfast) depositor(m browsertest.Mode) *browsertest.Tab {
	h.t.Helper()
	secret, _ := h.token("--name", "ann", "--role", "depositor", "--collection", "default")
	base, _ := h.address()
	tab := browsertest.Open(h.t, base, m)
	tab.SignIn(secret)
	return tab
}

// preserved returns the files of the only object, which must be the only one.
func (h *holdfast) preserved() map[string]string {
	h.t.Helper()
	objects := rows[struct {
		ID string `json:"object_id"`
	}](h, "object", "list")
	if len(objects) != 1 {
		h.t.Fatalf("%d objects, want one: %v", len(objects), objects)
	}
	out := filepath.Join(h.t.TempDir(), "export")
	h.must(0, "object", "export", objects[0].ID, "--out", out)
	return files(h.t, out)
}

// TestBrowser_DepositFolder: a depositor drops a folder, and sees it preserved. Its files are
// preserved byte for byte, at their paths.
func TestBrowser_DepositFolder(t *testing.T) {
	t.Parallel()
	h := up(t)
	tab := h.depositor(browsertest.Mode{})
	folder := filepath.Join(t.TempDir(), "glass plates")
	want := map[string]string{"plate 1.tif": "one", "größe/plate 2.tif": strings.Repeat("two", 1000), "größe/" + strings.Repeat("long/", 30) + "plate 3.tif": "three"}
	for name, content := range want {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tab.Go("/deposit")
	tab.Axe()
	tab.Drop("#drop", folder)
	tab.Await(`document.querySelector("#payloads li")`)
	if text := tab.Text("#payloads"); !strings.Contains(text, "glass plates/") || !strings.Contains(text, "3 files") {
		t.Errorf("the page shows %q", text)
	}
	tab.Type("#title", "Glass plates of the harbour")
	tab.Leaves(func() { tab.Click("#send") })
	tab.Await(`location.pathname.startsWith("/deposits/")`)
	tab.AwaitText("Preserved")
	tab.AwaitText("Keep your copy.") // there is one storage only
	tab.AwaitText("ark:/99999/")
	for _, mode := range browsertest.Modes {
		tab.Mode(mode)
		for _, path := range []string{tab.Path(), "/deposits", "/deposit"} {
			tab.Go(path)
			tab.Axe()
			tab.Fits()
		}
		tab.Go("/deposits")
		tab.Run(chromedp.Click(chromedp.CSS("main tbody a"), chromedp.NodeVisible))
		tab.Await(`location.pathname.startsWith("/deposits/")`)
	}
	if diff := cmp.Diff(want, h.preserved()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// inPieces makes the page send pieces of 256 KiB, and stop for ever before the piece at an offset. It
// notes the offsets at which pieces begin.
const inPieces = `(() => {
	const Upload = tus.Upload;
	tus.Upload = function (blob, options) {
		const before = options.onBeforeRequest;
		return new Upload(blob, { ...options, chunkSize: 256 << 10, async onBeforeRequest(request) {
			await before(request);
			const at = request.getHeader("Upload-Offset");
			if (request.getMethod() !== "PATCH") return;
			sessionStorage.offsets = (sessionStorage.offsets || "") + " " + at;
			if (Number(at) === Number(window.stopAt)) { window.stopped = true; await new Promise(() => {}); }
		} });
	};
	return true;
})()`

// TestBrowser_DepositGoesOn: the server dies in the middle of an upload, and after it, before the
// deposit is submitted. What was sent is not sent again, and it becomes one deposit.
func TestBrowser_DepositGoesOn(t *testing.T) {
	t.Parallel()
	h := upAt(t, freeAddress(t))
	tab := h.depositor(browsertest.Mode{})
	tab.Allow("ERR_CONNECTION_REFUSED")
	tab.Allow("ERR_EMPTY_RESPONSE")
	tab.Allow("ERR_CONNECTION_RESET")
	tab.Allow("ERR_INCOMPLETE_CHUNKED_ENCODING")
	restart := func() {
		_ = h.signal(syscall.SIGKILL)
		h.start()
	}
	content := bytes.Repeat([]byte("0123456789abcdef"), 9<<20/16) // more than what is checked before it is sent
	file := filepath.Join(t.TempDir(), "reel.wav")
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	tab.Go("/deposit")
	browsertest.Eval[bool](tab, inPieces)
	browsertest.Eval[int](tab, "window.stopAt = 1 << 20")
	tab.Drop("#drop", file)
	tab.Await(`document.querySelector("#payloads li")`)
	tab.Type("#title", "A reel of tape")
	tab.Click("#send")
	tab.Await("window.stopped")
	tab.Click("#payloads .acts button") // pause, so that the browser does not ask whether to leave
	restart()

	browsertest.Eval[bool](tab, "(sessionStorage.clear(), true)")
	tab.Go("/deposits") // the page is left as a reload would
	tab.Go("/deposit")
	tab.AwaitText("1.0 MiB of 9.0 MiB received")
	browsertest.Eval[bool](tab, inPieces)
	// The submission never gets out.
	browsertest.Eval[bool](tab, `(() => { const ask = window.fetch; window.fetch = (to, o) => {
		if (o && o.method === "POST" && String(to).endsWith("/batches")) { window.held = true; return new Promise(() => {}); }
		return ask(to, o); }; return true; })()`)
	tab.Drop("#drop", file) // which is enough: its title is known
	tab.Await("window.held")
	if offsets := strings.Fields(browsertest.Eval[string](tab, "sessionStorage.offsets")); len(offsets) == 0 || offsets[0] != "1048576" {
		t.Errorf("it went on at %v, want 1048576", offsets)
	}
	restart()

	tab.Go("/deposits")
	tab.AwaitText("You have not deposited anything yet.")
	tab.Run(chromedp.Navigate(browsertest.Eval[string](tab, "location.origin + '/deposit'")))
	tab.Await(`location.pathname.startsWith("/deposits/")`) // it is submitted by itself
	tab.AwaitText("A reel of tape")
	tab.AwaitText("Preserved")
	if diff := cmp.Diff(map[string]string{"reel.wav": string(content)}, h.preserved()); diff != "" {
		t.Error("the preserved file differs")
	}
	if batches := rows[struct{}](h, "batch", "list"); len(batches) != 1 {
		t.Errorf("%d batches, want one", len(batches))
	}
	if uploads := rows[struct{}](h, "upload", "list", "--all"); len(uploads) != 0 {
		t.Errorf("%d uploads are left", len(uploads))
	}
}

// front is a server before another one. It can keep pieces of uploads from that.
type front struct {
	ending  atomic.Value  // what becomes of each piece but the first: "wait", "silent", "page", or "" if it is passed on
	waits   chan struct{} // receives when a piece waits
	drop    chan struct{} // closed: the connections of pieces that wait are cut
	mu      sync.Mutex
	offsets []string // of the pieces that were passed on
}

// newFront starts a front that lets pieces wait, and returns its address.
func newFront(t *testing.T, behind string) (*front, string) {
	t.Helper()
	target, err := url.Parse(behind)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{waits: make(chan struct{}, 10), drop: make(chan struct{})}
	f.ending.Store("wait")
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host }}
	server, address := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, ending := r.Header.Get("Upload-Offset"), f.ending.Load()
		if r.Method != http.MethodPatch || at == "0" || ending == "" {
			if r.Method == http.MethodPatch {
				f.mu.Lock()
				f.offsets = append(f.offsets, at)
				f.mu.Unlock()
			}
			pass.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		switch ending {
		case "wait":
			f.waits <- struct{}{}
			select {
			case <-f.drop:
			case <-r.Context().Done(): // the tab is closed
			}
			panic(http.ErrAbortHandler)
		case "silent":
			panic(http.ErrAbortHandler)
		case "page":
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			_, _ = io.WriteString(w, "<html><h1>413 Request Entity Too Large</h1></html>")
		}
	}))
	server.Start()
	return f, address
}

// TestBrowser_UploadEndings: an upload ends since there is no network, since nothing answers, and since a
// proxy answers with a page of its own. Each time the page says what happened and what to do, and "Try
// again" goes on where the upload was.
func TestBrowser_UploadEndings(t *testing.T) {
	t.Parallel()
	h := up(t)
	base, _ := h.address()
	f, address := newFront(t, base)
	secret, _ := h.token("--name", "ann", "--role", "depositor", "--collection", "default")
	tab := browsertest.Open(t, address, browsertest.Mode{})
	for _, fault := range []string{"ERR_INTERNET_DISCONNECTED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION", "413 (Request Entity Too Large)"} {
		tab.Allow(fault)
	}
	tab.SignIn(secret)
	file := filepath.Join(t.TempDir(), "reel.wav")
	if err := os.WriteFile(file, bytes.Repeat([]byte("0123456789abcdef"), 1<<20/16), 0o644); err != nil {
		t.Fatal(err)
	}
	tab.Go("/deposit")
	// Pieces are small, and no piece is tried for hours.
	browsertest.Eval[bool](tab, `(() => { const Upload = tus.Upload;
		tus.Upload = function (blob, options) { return new Upload(blob, { ...options, chunkSize: 256 << 10, retryDelays: [] }); }; return true; })()`)
	tab.Drop("#drop", file)
	tab.Await(`document.querySelector("#payloads li")`)
	tab.Type("#title", "A reel of tape")
	tab.Click("#send")
	h.until("a piece waits", func() bool { return len(f.waits) > 0 })
	tab.Offline(true)
	close(f.drop)
	again := func(said, next string) {
		t.Helper()
		tab.AwaitText(said)
		if text := tab.Text("#payloads li"); !strings.Contains(text, "What was sent is kept") || !strings.Contains(text, "Try again") {
			t.Errorf("the page does not say what to do: %s", text)
		}
		f.ending.Store(next)
		tab.Offline(false)
		tab.Click("#payloads .acts button")
	}
	again("There is no connection to the network", "silent")
	again("The server does not answer", "page")
	again("could not take the file", "")
	tab.Await(`location.pathname.startsWith("/deposits/")`)
	tab.AwaitText("Preserved")
	f.mu.Lock()
	defer f.mu.Unlock()
	if want := []string{"0", "262144", "524288", "786432"}; !slices.Equal(f.offsets, want) {
		t.Errorf("pieces were sent at %v, want %v", f.offsets, want)
	}
}

// TestBrowser_DepositFaults: what is wrong is listed before anything is stored.
func TestBrowser_DepositFaults(t *testing.T) {
	t.Parallel()
	h := up(t)
	tab := h.depositor(browsertest.Mode{Phone: true})
	tab.Allow("422 (Unprocessable Entity)")
	file := filepath.Join(t.TempDir(), "batch.checkm")
	manifest := "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest\n" +
		"#%prefix | mrt: | http://merritt.cdlib.org/terms#\n#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n" +
		"#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName\n" +
		"ftp//nowhere | md5 | zzz | x | | a.zip\n#%eof\n"
	if err := os.WriteFile(file, []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	tab.Go("/deposit")
	tab.Click("main details summary")
	tab.Type("#ark", "nonsense")
	tab.Drop("#drop", file)
	tab.Await(`document.querySelector("#payloads li")`)
	tab.Click("#send")
	// Faults of the fields and of the payload are listed at once: those of fields beside each, and with links to them.
	tab.Await(`document.querySelector("#payloads").textContent.includes("line 6") && document.querySelector('#wrong-fields a[href="#ark"]')`)
	tab.Await(`document.activeElement.id === "ark" && document.activeElement.getAttribute("aria-invalid") === "true"`)
	tab.Await(`document.getElementById(document.querySelector("#ark").getAttribute("aria-describedby")).textContent.includes("is not an ARK")`)
	tab.Axe()
	tab.Fits()
	tab.Type("#ark", " ")
	tab.Click("#send") // tries again what was refused
	tab.Await(`document.querySelector("#payloads").textContent.includes("line 6") && document.querySelector("#wrong-fields").hidden && !document.querySelector("[aria-invalid]")`)
	tab.Axe()
	tab.Fits()
	// Names are judged when a folder is chosen, and a folder without files is no payload.
	folder, empty := filepath.Join(t.TempDir(), "maps"), filepath.Join(t.TempDir(), "nothing")
	for _, path := range []string{folder, empty} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"Map.txt", "map.txt", `..\out.txt`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tab.Drop("#drop", folder, empty)
	tab.Await(`document.querySelectorAll("#payloads li").length === 3`)
	tab.AwaitText("could lead out of its folder")
	tab.AwaitText("differs only in case")
	tab.AwaitText("it has no files")
	if n := tab.Count("#payloads .state.bad"); n != 2 {
		t.Errorf("%d payloads are refused, want both folders", n)
	}
	tab.Axe()
	tab.Fits()
	if uploads := rows[struct{}](h, "upload", "list", "--all"); len(uploads) != 0 {
		t.Errorf("%d uploads, want none", len(uploads))
	}
}

// TestBrowser_CorrectRows: without scripts, rows that failed are corrected on two pages and preserved alone,
// while the rows of neither page that were not touched are left. With scripts, to leave the page asks first.
func TestBrowser_CorrectRows(t *testing.T) {
	t.Parallel()
	h := up(t)
	server, source := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { content(r.URL.Path)(w, r) }))
	server.Start()
	tab := h.depositor(browsertest.Mode{NoScript: true})
	tab.Allow("409 (Conflict)")
	file := filepath.Join(t.TempDir(), "plates.checkm")
	failing := strings.Replace(source, "http:", "ftp:", 1)
	bad := []string{failing + "/one | | | | | one.tif"}
	for i := range 11 { // more than a page has
		bad = append(bad, fmt.Sprintf("%s/%d | | | | | %d.tif", failing, i, i))
	}
	text := manifest("mrt-single-file-batch-manifest", bad...)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	tab.Go("/deposit")
	tab.Run(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
	tab.Follow("#send")
	id := strings.TrimPrefix(tab.Path(), "/deposits/")
	h.run("watch", id) // until it has failed
	tab.Go("/deposits")
	tab.AwaitText("Correct this first")
	tab.Follow(".first .button.main")
	tab.AwaitText("a URL of scheme")
	tab.Type("#url-0", "ftp://nowhere.example.org/one")
	tab.Follow("[data-turn=next]")
	tab.AwaitText("1 changed row of other pages")
	tab.Type("#url-1", source+"/two")
	tab.Follow("[data-turn=prev]")
	if typed := browsertest.Eval[string](tab, `document.querySelector("#url-0").value`); typed != "ftp://nowhere.example.org/one" {
		t.Errorf("back on the first page, %q is typed", typed)
	}
	tab.Follow("[data-turn=next]")
	tab.Follow("form.rows .send .main")
	tab.AwaitText("1 row is still wrong") // which is of the first page
	tab.Type("#url-0", source+"/one")
	tab.Follow("form.rows .send .main")
	tab.AwaitText("These are the corrected rows of")
	again := strings.TrimPrefix(tab.Path(), "/deposits/")
	again, _, _ = strings.Cut(again, "?")
	h.must(0, "watch", again)
	tab.Go("/deposits/" + again)
	tab.AwaitText("Preserved")
	if objects := rows[struct{}](h, "object", "list"); len(objects) != 2 {
		t.Errorf("%d objects, want those of both pages", len(objects))
	}
	tab.Mode(browsertest.Mode{Phone: true})
	tab.Go("/deposits/" + id + "/rows")
	tab.Axe()
	tab.Fits()
	const asks = `!dispatchEvent(new Event("beforeunload", { cancelable: true }))`
	if browsertest.Eval[bool](tab, asks) {
		t.Error("the page asks whether to leave it though nothing was typed")
	}
	tab.Type("#url-1", "https://example.org/1")
	tab.Follow("[data-turn=next]")
	tab.AwaitText("1 changed row of other pages")
	if !browsertest.Eval[bool](tab, asks) {
		t.Error("the page does not ask whether to leave what was typed")
	}
	tab.Follow("[data-turn=prev]")
	tab.Axe()
}

// TestBrowser_DepositWithoutScripts: the plain form sends a file.
func TestBrowser_DepositWithoutScripts(t *testing.T) {
	t.Parallel()
	h := up(t)
	tab := h.depositor(browsertest.Mode{NoScript: true})
	file := filepath.Join(t.TempDir(), "letter.txt")
	if err := os.WriteFile(file, []byte("Dear Ann"), 0o644); err != nil {
		t.Fatal(err)
	}
	tab.Go("/deposit")
	tab.Run(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
	tab.Type("#title", "A letter")
	tab.Follow("#send")
	tab.AwaitText("A letter")
	id := strings.TrimPrefix(tab.Path(), "/deposits/")
	h.must(0, "watch", id)
	tab.Go("/deposits/" + id)
	tab.AwaitText("Preserved")
	if diff := cmp.Diff(map[string]string{"letter.txt": "Dear Ann"}, h.preserved()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
