package deposit_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"html"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asDepositor is a server whose requests are those of the depositor ann.
func asDepositor(t *testing.T) *uitest.Server {
	t.Helper()
	s := uitest.New(t, uitest.Options{})
	s.Token = s.TokenOf(t, "ann", registry.RoleDepositor)
	return s
}

// send sends the form as a browser does, with a file unless its name is "".
func send(t *testing.T, s *uitest.Server, fields map[string]string, name string, content []byte) *httptest.ResponseRecorder {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	must(t, form.WriteField("collection", "default"))
	part, err := form.CreateFormFile("file", name)
	must(t, err)
	_, err = part.Write(content)
	must(t, err)
	for field, value := range fields { // behind the file, as on the page
		must(t, form.WriteField(field, value))
	}
	must(t, form.Close())
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/deposit", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Authorization", "Bearer "+s.Token)
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	return w
}

// submitted returns the batch to which an answer leads.
func submitted(t *testing.T, s *uitest.Server, w *httptest.ResponseRecorder) registry.WorkItem {
	t.Helper()
	id, ok := strings.CutPrefix(w.Header().Get("Location"), "/deposits/")
	if w.Code != http.StatusSeeOther || !ok {
		t.Fatalf("%d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
	}
	id, _, _ = strings.Cut(id, "?")
	it, err := s.Store.Item(t.Context(), id)
	must(t, err)
	return it
}

func wantAll(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("the page does not have %q:\n%s", w, text)
		}
	}
}

// TestForm_File: the form brings a file and its fields without scripts. The file is never in a
// temporary file of the form.
func TestForm_File(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s := asDepositor(t)
	wantAll(t, s.Get(t, "/deposit", http.StatusOK), `enctype="multipart/form-data"`, `<option value="default"`, `type="file"`, `name="url"`)
	it := submitted(t, s, send(t, s, map[string]string{
		"title": "Glass plates", "creator": "Ann", "date": "1897", "local_ids": "plate 1\r\nplate 2", "type": "file", "url": "",
	}, "plates.bin", bytes.Repeat([]byte("x"), 9<<20)))
	text := string(it.Spec)
	if it.Name != "plates.bin" || it.CreatedBy != "ann" {
		t.Errorf("name=%q by %q", it.Name, it.CreatedBy)
	}
	wantAll(t, text, `"Glass plates"`, `"1897"`, `"plate 1","plate 2"`, `"size_bytes":9437184`)
	left, err := os.ReadDir(temp)
	must(t, err)
	if len(left) > 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
	wantAll(t, s.Get(t, "/deposits/"+it.ID, http.StatusOK), "<h1>Glass plates</h1>", "Waiting", "/cancel", "plate 2")
	// The same once more is recognised.
	again := send(t, s, map[string]string{"title": "Glass plates", "creator": "Ann", "date": "1897", "local_ids": "plate 1\r\nplate 2", "type": "file"}, "plates.bin", bytes.Repeat([]byte("x"), 9<<20))
	if same := submitted(t, s, again); same.ID != it.ID {
		t.Errorf("a second batch %s of the same content", same.ID)
	}
	wantAll(t, s.Get(t, again.Header().Get("Location"), http.StatusOK), "Nothing new was made")
}

// TestForm_Refused: what is wrong is shown beside what was given. A received file stays, unless it is
// what is wrong.
func TestForm_Refused(t *testing.T) {
	s := asDepositor(t)
	w := send(t, s, map[string]string{"title": "Plates <b>", "ark": "nonsense"}, "a.txt", []byte("content"))
	text := w.Body.String()
	if w.Code != http.StatusConflict {
		t.Fatalf("%d: %s", w.Code, text)
	}
	wantAll(t, text, `role="alert"`, `<a href="#ark">ARK, if the object has one</a>`, `aria-describedby="fault-ark" autofocus=""`, `<details open="">`, `value="Plates &lt;b&gt;"`, "a.txt", "waits for this form")
	id := regexp.MustCompile(`name="upload" value="([^"]+)"`).FindStringSubmatch(text)
	if id == nil {
		t.Fatalf("the form has no upload:\n%s", text)
	}
	form := url.Values{"collection": {"default"}, "title": {"Plates"}, "upload": {id[1]}}
	it := submitted(t, s, s.Post(t, "/deposit", form))
	if same := submitted(t, s, s.Post(t, "/deposit", form)); same.ID != it.ID {
		t.Errorf("sent twice, it is two batches: %s and %s", it.ID, same.ID)
	}
	var bad bytes.Buffer
	z := zip.NewWriter(&bad)
	entry, err := z.Create("../escaped.txt")
	must(t, err)
	_, err = entry.Write([]byte("x"))
	must(t, err)
	must(t, z.Close())
	w = send(t, s, map[string]string{"type": "container"}, "bad.zip", bad.Bytes())
	if w.Code != http.StatusConflict {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	wantAll(t, w.Body.String(), "escaped.txt", `name="file"`)
	w = send(t, s, nil, "", nil)
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "Choose a file, or give an address.") {
		t.Errorf("nothing at all: %d: %s", w.Code, w.Body)
	}
	uploads, err := s.Store.StoredUploads(t.Context(), "ann", "")
	must(t, err)
	if len(uploads.Rows) != 1 {
		t.Errorf("%d uploads are left, want the one of the batch", len(uploads.Rows))
	}
}

// TestForm_Address: an address is submitted by the same form, once for each form.
func TestForm_Address(t *testing.T) {
	s := asDepositor(t)
	form := url.Values{"collection": {"default"}, "url": {"https://example.org/plates.zip"}, "title": {"Plates"}, "key": {"page 1"}}
	it := submitted(t, s, s.Post(t, "/deposit", form))
	if same := submitted(t, s, s.Post(t, "/deposit", form)); same.ID != it.ID {
		t.Error("a form that is sent twice submits twice")
	}
	form.Set("url", "ftp://example.org/x")
	form.Set("key", "page 2")
	w := s.Post(t, "/deposit", form)
	if w.Code != http.StatusConflict {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	wantAll(t, w.Body.String(), `<a href="#url">Address of the file</a>: `, `id="fault-url"`, `value="ftp://example.org/x"`)
}

// TestForm_MailAddress: a wrong address is one fault, which says which of them it is, in the list and
// beside the field.
func TestForm_MailAddress(t *testing.T) {
	s := asDepositor(t)
	form := url.Values{"collection": {"default"}, "url": {"https://example.org/plates.zip"}, "notify": {"bob@example.org, ann at example.org; ann at example.org"}}
	w := s.Post(t, "/deposit", form)
	text := w.Body.String()
	wrong := `Not a mail address. Found: <span translate="no">ann at example.org</span>.`
	if n := strings.Count(text, wrong); w.Code != http.StatusConflict || n != 2 {
		t.Errorf("%d, %d times %q, want 2:\n%s", w.Code, n, wrong, text)
	}
}

// TestForm_Terms: rights, preservation level and embargo are those of the collection, which the form shows,
// or the deposit's own. What is missing is asked for all at once.
func TestForm_Terms(t *testing.T) {
	s := asDepositor(t)
	must(t, s.Store.PutCollection(t.Context(), registry.Collection{Mnemonic: "default", Profile: registry.Profile{
		Terms: registry.Terms{PreservationLevel: "full", Rights: &registry.Rights{Basis: registry.License, Statement: "by agreement"}},
	}}, "test"))
	wantAll(t, s.Get(t, "/deposit?collection=default", http.StatusOK), "as the collection has it:", "by agreement", "Preservation level: full")
	form := url.Values{
		"collection": {"default"}, "url": {"https://example.org/a.zip"}, "key": {"page 1"}, "terms.rights.basis": {"copyright"},
		"terms.preservation_level": {"bit-level"}, "terms.embargo_until": {"2040-01-01"}, "terms.embargo_reason": {"a letter"},
	}
	w := s.Post(t, "/deposit", form)
	wantAll(t, w.Body.String(), `<a href="#status">`, `<a href="#law">`, `id="fault-law"`, `value="bit-level"`, `<option value="copyright" selected="">`)
	form.Set("terms.rights.status", "copyrighted")
	form.Set("terms.rights.jurisdiction", "de")
	it := submitted(t, s, s.Post(t, "/deposit", form))
	wantAll(t, string(it.Spec), `"basis":"copyright"`, `"jurisdiction":"de"`, `"preservation_level":"bit-level"`, `"embargo_until":"2040-01-01"`)
	wantAll(t, s.Get(t, "/deposits/"+it.ID, http.StatusOK), "copyright (copyrighted)", "bit-level", "2040-01-01", "2040-01-01 (a letter)")
	wantAll(t, s.Get(t, "/deposit?from="+it.ID, http.StatusOK), `value="bit-level"`, `<option value="copyright" selected`)
}

// TestForm_Unfinished: what was received and not submitted, and what is incoming, is listed.
func TestForm_Unfinished(t *testing.T) {
	s := asDepositor(t)
	_, err := s.Store.BeginUpload(t.Context(), registry.NewUpload{ID: "coming", Filename: "coming.tar", SizeBytes: 1000, CreatedBy: "ann", Keep: 1 << 40, Collection: "default"})
	must(t, err)
	_, err = s.Store.BeginUpload(t.Context(), registry.NewUpload{ID: "foreign", Filename: "foreign.tar", SizeBytes: 1000, CreatedBy: "bob", Keep: 1 << 40, Collection: "default"})
	must(t, err)
	send(t, s, map[string]string{"ark": "nonsense"}, "sent.txt", []byte("content"))
	text := s.Get(t, "/deposit", http.StatusOK)
	wantAll(t, text, "Not finished yet", "coming.tar", `data-upload="coming"`, "sent.txt", "/deposit?upload=")
	if strings.Contains(text, "foreign.tar") {
		t.Error("it shows the upload of another depositor")
	}
}

// TestDeposits lists a depositor's own deposits by what they need, and those of others on request.
func TestDeposits(t *testing.T) {
	s := asDepositor(t)
	wantAll(t, s.Get(t, "/deposits", http.StatusOK), "You have not deposited anything yet.", `href="/deposit"`)
	form := url.Values{"collection": {"default"}, "url": {"https://example.org/plates.zip"}, "title": {"Mine"}}
	mine := submitted(t, s, s.Post(t, "/deposit", form))
	_, err := s.Store.Submit(t.Context(), registry.Submission{Collection: "default", Name: "theirs", Actor: "bob", Spec: registry.Spec{URL: "http://h.test/x", Title: "Theirs"}})
	must(t, err)
	must(t, s.Store.PutCollection(t.Context(), registry.Collection{Mnemonic: "secret"}, "test"))
	_, err = s.Store.Submit(t.Context(), registry.Submission{Collection: "secret", Name: "hidden", Actor: "ann", Spec: registry.Spec{URL: "http://h.test/x", Title: "Hidden"}})
	must(t, err)
	for path, want := range map[string]string{
		"/deposits": "Mine", "/deposits?show=waiting": "Mine", "/deposits?show=needs": "", "/deposits?show=done": "", "/deposits?q=mine": "Mine",
		"/deposits?q=title%3Amine": "Mine", "/deposits?q=theirs": "", "/deposits?of=all&q=theirs": "Theirs", "/deposits?of=all&q=hidden": "",
		"/deposits?of=all": "Mine Theirs", "/deposits?q=name%3Aplates": "Mine", "/deposits?q=colour%3Ared": "Mine",
	} {
		text := s.Get(t, path, http.StatusOK)
		var got []string
		for _, title := range []string{"Mine", "Theirs", "Hidden"} {
			if strings.Contains(text, "<strong>"+title+"</strong>") {
				got = append(got, title)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s shows %v, want %q", path, got, want)
		}
	}
	wantAll(t, s.Get(t, "/deposits?q=colour%3Ared", http.StatusOK), `role="alert"`, "colour")
	text := s.Get(t, "/deposits", http.StatusOK)
	wantAll(t, text, `id="deposit-`+mine.ID+`" data-live`, "/deposits/"+mine.ID+"/cancel", "sse-connect", `aria-current="true">All <span class="figures">1</span>`)
}

// TestCancel: a depositor cancels a deposit of its own, and no other.
func TestCancel(t *testing.T) {
	s := asDepositor(t)
	form := url.Values{"collection": {"default"}, "url": {"https://example.org/plates.zip"}}
	mine := submitted(t, s, s.Post(t, "/deposit", form))
	other, err := s.Store.Submit(t.Context(), registry.Submission{Collection: "default", Name: "theirs", Actor: "bob", Spec: registry.Spec{URL: "http://h.test/x"}})
	must(t, err)
	if text := s.Get(t, "/deposits/"+other.BatchID, http.StatusOK); strings.Contains(text, "/cancel") {
		t.Error("the page of another's deposit shows how to cancel it")
	}
	s.Get(t, "/deposits/"+other.BatchID+"/cancel", http.StatusForbidden)
	if w := s.Post(t, "/deposits/"+other.BatchID+"/cancel", url.Values{}); w.Code != http.StatusForbidden {
		t.Errorf("another's: %d", w.Code)
	}
	wantAll(t, s.Get(t, "/deposits/"+mine.ID+"/cancel", http.StatusOK), "Nothing of it is preserved yet", `name="reason"`)
	for range 2 {
		if w := s.Post(t, "/deposits/"+mine.ID+"/cancel", url.Values{"key": {"once"}, "reason": {"sent twice"}}); w.Code != http.StatusSeeOther {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
	}
	if it, err := s.Store.Item(t.Context(), mine.ID); err != nil || it.Status != registry.Cancelled {
		t.Errorf("status=%s (%v)", it.Status, err)
	}
	w := s.Post(t, "/deposits/"+mine.ID+"/cancel", url.Values{"key": {"again"}})
	if text := w.Body.String(); w.Code != http.StatusConflict || !strings.Contains(text, `role="alert"`) || !strings.Contains(text, "this deposit has already ended") || strings.Contains(text, `name="reason"`) {
		t.Errorf("a cancelled deposit: %d: %s", w.Code, w.Body)
	}
	wantAll(t, s.Get(t, "/deposits/"+mine.ID, http.StatusOK), "Cancelled")
}

// TestViewer: a viewer sees deposits and no buttons.
func TestViewer(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	r, err := s.Store.Submit(t.Context(), registry.Submission{Collection: "default", Name: "theirs", Actor: "bob", Spec: registry.Spec{URL: "http://h.test/x"}})
	must(t, err)
	for _, path := range []string{"/deposits", "/deposits/" + r.BatchID} {
		text := s.Get(t, path, http.StatusOK)
		wantAll(t, text, "theirs")
		if strings.Contains(text, "/cancel") || strings.Contains(text, `href="/deposit"`) {
			t.Errorf("%s shows a viewer how to act", path)
		}
	}
	s.Get(t, "/deposit", http.StatusForbidden)
	if w := send(t, s, nil, "a.txt", []byte("x")); w.Code != http.StatusForbidden {
		t.Errorf("a viewer's form: %d", w.Code)
	}
}

// TestList_Turn: the list is read in both directions, by addresses that keep the filter.
func TestList_Turn(t *testing.T) {
	s := asDepositor(t)
	for i := range 30 {
		n := strconv.Itoa(i)
		submitted(t, s, s.Post(t, "/deposit", url.Values{"collection": {"default"}, "url": {"https://example.org/" + n}, "title": {"Plate no. " + n + "."}, "key": {"page " + n}}))
	}
	turn := func(text, rel string) string {
		t.Helper()
		found := regexp.MustCompile(`href="([^"]+)" rel="` + rel + `"`).FindStringSubmatch(text)
		if found == nil {
			return ""
		}
		return html.UnescapeString(found[1])
	}
	first := s.Get(t, "/deposits?show=waiting", http.StatusOK)
	if turn(first, "prev") != "" || strings.Contains(first, "Plate no. 3.") {
		t.Errorf("the first page is not the newest one:\n%s", first)
	}
	next := turn(first, "next")
	second := s.Get(t, next, http.StatusOK)
	wantAll(t, second, "Plate no. 3.", "Plate no. 0.")
	back := turn(second, "prev")
	if turn(second, "next") != "" || !strings.Contains(next, "show=waiting") || !strings.Contains(back, "show=waiting") || strings.Contains(back, "after=") {
		t.Errorf("from %q back to %q", next, back)
	}
	wantAll(t, s.Get(t, back, http.StatusOK), "Plate no. 29.", "Plate no. 5.")
}

// TestList_First: what a depositor must correct stands above all others, with the one act.
func TestList_First(t *testing.T) {
	s := asDepositor(t)
	ctx := t.Context()
	batch := submitted(t, s, s.Post(t, "/deposit", url.Values{"collection": {"default"}, "url": {"https://example.org/lost.zip"}, "key": {"page 1"}}))
	c, err := s.Store.Claim(ctx, registry.ClaimRequest{RequestID: "r", Stage: registry.Expand, Worker: "w", Lease: time.Minute, MaxAttempts: 5, StuckAfter: time.Minute})
	must(t, err)
	_, err = s.Store.Settle(ctx, registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "404 Not Found"})
	must(t, err)
	text := s.Get(t, "/deposits", http.StatusOK)
	wantAll(t, text, "Correct this first", "404 Not Found", "/deposit?from="+batch.ID)
	wantAll(t, s.Get(t, "/deposits?q=glass+plate+state:failed", http.StatusOK), "No deposit matches", `href="/objects?text=glass%20plate"`)
	if strings.Contains(s.Get(t, "/deposits?show=done", http.StatusOK), "Correct this first") {
		t.Error("it stands above a list that was narrowed to others")
	}
	// The address that was wrong is there to be corrected.
	wantAll(t, s.Get(t, "/deposit?from="+batch.ID, http.StatusOK), `value="https://example.org/lost.zip"`)
	s.Token = s.TokenOf(t, "a second viewer", registry.RoleViewer)
	if strings.Contains(s.Get(t, "/deposits?of=all", http.StatusOK), "/deposit?from=") {
		t.Error("a viewer is shown a button")
	}
}

// TestForm_Rules: the form says what the chosen collection asks for.
func TestForm_Rules(t *testing.T) {
	s := asDepositor(t)
	quota, days := int64(10<<20), 0
	must(t, s.Store.PutCollection(t.Context(), registry.Collection{Mnemonic: "default", Profile: registry.Profile{
		Name: "Maps", Description: "Only maps before 1900.", StopOnBadRow: true, UploadBytes: &quota, DuplicateDays: &days,
		BagProfile: json.RawMessage(`{"BagIt-Profile-Info": {"BagIt-Profile-Identifier": "https://example.org/p.json"}, "Bag-Info": {"Contact-Name": {"required": true}, "Box": {"recommended": true}, "Note": {}}}`),
	}}, "test"))
	text := s.Get(t, "/deposit?collection=default", http.StatusOK)
	wantAll(t, text, "Maps (default)", "Only maps before 1900.", "One wrong row", "<code>Contact-Name</code>", "<code>Box</code>", "10.0 MiB", "is stored again", "keep your own copy")
	if strings.Contains(text, "<code>Note</code>") {
		t.Error("a tag that bags may have is shown as one that they must have")
	}
}
