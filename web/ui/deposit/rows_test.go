package deposit_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// failedBatch submits a manifest and makes its jobs as the expand worker does, n of them failed rows.
func failedBatch(t *testing.T, s *uitest.Server, n int) registry.WorkItem {
	t.Helper()
	ctx := t.Context()
	manifest := "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest\n#%prefix | mrt: | http://merritt.cdlib.org/terms#\n" +
		"#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n#%fields | nfo:fileUrl\nhttps://example.org/x\n#%eof\n"
	batch := submitted(t, s, send(t, s, map[string]string{"title": "Glass plates"}, "plates.checkm", []byte(manifest)))
	claimed, err := s.Store.Claim(ctx, registry.ClaimRequest{
		RequestID: batch.ID, Stage: registry.Expand, Worker: "w", Lease: time.Minute, MaxAttempts: 5, StuckAfter: time.Minute,
	})
	must(t, err)
	var spec registry.Spec
	must(t, json.Unmarshal(batch.Spec, &spec))
	spec.Type = registry.FileType
	var jobs []registry.NewJob
	for i := range n {
		one := spec
		one.URL, one.Filename, one.SizeBytes, one.Title = fmt.Sprintf("ftp://old.example.org/%d.png", i+1), fmt.Sprintf("%d.png", i+1), -1, fmt.Sprintf("Plate %d", i+1)
		jobs = append(jobs, registry.NewJob{
			Line: int64(i + 6), Row: int64(i + 1), Name: one.Filename, Spec: one,
			Class: registry.ContentFault, Code: "url-scheme", Fault: fmt.Sprintf("line %d, column 1 (nfo:fileUrl): url-scheme", i+6),
		})
	}
	good := spec
	good.URL = "https://example.org/good.png"
	jobs = append(jobs, registry.NewJob{Line: int64(n + 6), Row: int64(n + 1), Name: "good.png", Spec: good})
	_, err = s.Store.AddJobs(ctx, claimed.Lease, jobs)
	must(t, err)
	_, err = s.Store.Settle(ctx, registry.Settlement{Lease: claimed.Lease, Outcome: registry.OutcomeDone})
	must(t, err)
	return batch
}

var rowIDs = regexp.MustCompile(`name="row" value="([^"]+)"`)

// rowsOf is what a browser sends of the form of failed rows, if nothing is typed.
func rowsOf(text string) url.Values {
	form := url.Values{}
	for _, id := range rowIDs.FindAllStringSubmatch(text, -1) {
		form.Add("row", id[1])
	}
	for _, field := range fieldOf.FindAllStringSubmatch(text, -1) {
		form.Add(field[1], html.UnescapeString(field[2]))
	}
	return form
}

var fieldOf = regexp.MustCompile(`<input id="[a-z_]+-[0-9]+" name="([a-z_]+)" maxlength="8192" value="([^"]*)"`)

// manifestOf returns the rows of the manifest that a batch was made of.
func manifestOf(t *testing.T, s *uitest.Server, batch registry.WorkItem) []checkm.Row {
	t.Helper()
	var spec registry.Spec
	must(t, json.Unmarshal(batch.Spec, &spec))
	id, _ := registry.UploadID(spec.URL)
	body, err := s.Staging.Open(t.Context(), source.UploadKey(id), 0, -1)
	must(t, err)
	defer body.Close()
	r := checkm.NewReader(body, checkm.Options{})
	var rows []checkm.Row
	for {
		row, faults, err := r.Next()
		if errors.Is(err, io.EOF) {
			return rows
		}
		must(t, err)
		if checkm.Refused(faults) {
			t.Errorf("a refused row was submitted: %+v: %v", row, faults)
		}
		rows = append(rows, row)
	}
}

// TestRows_Corrected: failed rows are corrected on their page and submitted alone. Nothing is submitted
// while a row is wrong, and the page shows which one.
func TestRows_Corrected(t *testing.T) {
	s := asDepositor(t)
	batch := failedBatch(t, s, 3)
	wantAll(t, s.Get(t, "/deposits", http.StatusOK), "/deposits/"+batch.ID+"/rows", "Correct 3 rows")
	address := "/deposits/" + batch.ID + "/rows"
	text := s.Get(t, address, http.StatusOK)
	wantAll(t, text, "3 rows failed", "ftp://old.example.org/2.png", `value="Plate 3"`, "Line 7")
	lacks := func(text, word string) {
		t.Helper()
		if strings.Contains(text, word) {
			t.Errorf("the page has %q:\n%s", word, text)
		}
	}
	lacks(text, "good.png")
	// The field at fault is open, and says why; the others are folded.
	open, folded, _ := strings.Cut(text[strings.Index(text, "<fieldset"):strings.Index(text, "</fieldset>")], "<details>")
	wantAll(t, open, `id="url-0"`, `aria-describedby="why-0"`)
	wantAll(t, folded, `id="title-0"`, `id="digest-0"`)
	if strings.Count(open, `maxlength="8192"`) != 1 {
		t.Errorf("more is open than the address:\n%s", open)
	}
	lacks(text, `value="turn"`)

	// As they are, they are still wrong.
	form := rowsOf(text)
	w := s.Post(t, address, form)
	if w.Code != http.StatusConflict {
		t.Fatalf("wrong rows: %d to %q", w.Code, w.Header().Get("Location"))
	}
	wantAll(t, w.Body.String(), "3 rows are still wrong", `aria-invalid="true"`, `aria-describedby="url-0-wrong" autofocus`, `<a href="#url-2">Line 8`)
	lacks(w.Body.String(), "\ufffd")
	if left, err := s.Store.StoredUploads(t.Context(), "ann", ""); err != nil || len(left.Rows) != 1 {
		t.Errorf("%d uploads, want that of the first batch only: %v", len(left.Rows), err)
	}

	// The replacement shows what it would change, and keeps what was typed.
	form.Set("act", "replace")
	form.Set("from", "gopher://")
	form.Set("to", "https://new.")
	wantAll(t, s.Post(t, address, form).Body.String(), "No address below has this text; nothing was changed.")
	form.Set("from", "ftp://old.")
	form["title"][1] = "The second | plate"
	w = s.Post(t, address, form)
	if w.Code != http.StatusOK {
		t.Fatalf("the replacement: %d", w.Code)
	}
	wantAll(t, w.Body.String(), "https://new.example.org/2.png", "The second | plate", "Nothing was submitted yet")

	form = rowsOf(w.Body.String())
	form.Add("out", form["row"][2])
	w = s.Post(t, address, form)
	again := submitted(t, s, w)
	if again.ID == batch.ID || again.Name != "plates-corrected.checkm" {
		t.Errorf("it became %q, %s", again.Name, again.ID)
	}
	wantAll(t, s.Get(t, w.Header().Get("Location"), http.StatusOK), "These are the corrected rows of", batch.ID)
	rows := manifestOf(t, s, again)
	if len(rows) != 2 || rows[0].URL != "https://new.example.org/1.png" || rows[1].Title != "The second | plate" || rows[1].Name != "2.png" || rows[0].Size != -1 {
		t.Errorf("submitted %+v", rows)
	}
	if same := submitted(t, s, s.Post(t, address, form)); same.ID != again.ID {
		t.Errorf("sent twice, it is two batches: %s and %s", again.ID, same.ID)
	}
}

var turnOf = regexp.MustCompile(`formaction="([^"]+)" data-turn="(next|prev)"`)

var keptOf = regexp.MustCompile(`name="(kept|picked)" value="([^"]*)"`)

// sentFrom is what a browser sends of a page of the form, if nothing is typed, and the addresses of the
// pages beside it.
func sentFrom(text string) (form url.Values, turns map[string]string) {
	form, turns = rowsOf(text), map[string]string{}
	for _, kept := range keptOf.FindAllStringSubmatch(text, -1) {
		form.Add(kept[1], html.UnescapeString(kept[2]))
	}
	for _, turn := range turnOf.FindAllStringSubmatch(text, -1) {
		turns[turn[2]] = html.UnescapeString(turn[1])
	}
	return form, turns
}

// turn sends a page of the form to the one before or after it, and returns that.
func turn(t *testing.T, s *uitest.Server, form url.Values, to string) string {
	t.Helper()
	form.Set("act", "turn")
	w := s.Post(t, to, form)
	if w.Code != http.StatusOK {
		t.Fatalf("the turn to %s: %d %s", to, w.Code, w.Body)
	}
	return uitest.Plain(w.Body.String())
}

// TestRows_SeveralPages: what was typed stays while pages are turned. At the end the changed rows of all
// pages are one deposit. If some are wrong, these are shown, from whatever page, and nothing is submitted.
func TestRows_SeveralPages(t *testing.T) {
	s := asDepositor(t)
	batch := failedBatch(t, s, 45)
	address := "/deposits/" + batch.ID + "/rows"
	form, turns := sentFrom(s.Get(t, address, http.StatusOK))
	form["url"][2], form["title"][2] = "https://new.example.org/3.png", "Größe | 3 & more"
	form["url"][4] = "https://new.example.org/5.png"
	form.Add("out", form["row"][4])
	second := turn(t, s, form, turns["next"])
	wantAll(t, second, "ftp://old.example.org/11.png", `data-turn="prev"`, `data-turn="next"`, "1 changed row of other pages is submitted too.")
	form, turns = sentFrom(second)
	form["url"][0] = "gopher://new.example.org/11.png"
	third := turn(t, s, form, turns["next"])
	form, back := sentFrom(third)
	form.Add("as_is", form["row"][9])
	wantAll(t, third, "2 changed rows of other pages are submitted too.")
	wantAll(t, turn(t, s, form, back["prev"]), `value="gopher://new.example.org/11.png"`, "2 changed rows of other pages")
	form, back = sentFrom(turn(t, s, form, turns["prev"]))
	first := turn(t, s, form, address)
	wantAll(t, first, `value="https://new.example.org/3.png"`, `value="Größe | 3 &amp; more"`)
	if back["prev"] != "" {
		t.Errorf("the first page has one before it: %s", back["prev"])
	}

	form, _ = sentFrom(first)
	form.Add("out", form["row"][4])
	form.Set("act", "changed")
	w := s.Post(t, address, form)
	if w.Code != http.StatusConflict {
		t.Fatalf("wrong rows: %d to %q", w.Code, w.Header().Get("Location"))
	}
	wrong := uitest.Plain(w.Body.String())
	wantAll(t, wrong, "2 rows are still wrong", `value="gopher://new.example.org/11.png"`, "ftp://old.example.org/30.png", `<a href="#url-1">Line 35`, "Back to the list of rows", "1 changed row of other pages")
	if n := strings.Count(wrong, "<fieldset"); n != 2 {
		t.Errorf("%d rows are shown, want the 2 that are wrong", n)
	}
	form, _ = sentFrom(wrong)
	form["url"][0] = "https://new.example.org/11.png" // the other one is wrong as it is
	form.Add("out", form["row"][1])
	form.Set("act", "changed")
	w = s.Post(t, address, form)
	again := submitted(t, s, w)
	rows := manifestOf(t, s, again)
	if len(rows) != 2 || rows[0].Title != "Größe | 3 & more" || rows[1].URL != "https://new.example.org/11.png" {
		t.Errorf("submitted %+v", rows)
	}
	var spec registry.Spec
	must(t, json.Unmarshal(again.Spec, &spec))
	if want := []registry.LineRange{{First: 8, Last: 8}, {First: 16, Last: 16}}; !slices.Equal(spec.Corrects.Lines, want) {
		t.Errorf("it corrects the lines %v, want %v", spec.Corrects.Lines, want)
	}
	if same := submitted(t, s, s.Post(t, address, form)); same.ID != again.ID {
		t.Errorf("sent twice, it is two batches: %s and %s", again.ID, same.ID)
	}
	wantAll(t, s.Get(t, w.Header().Get("Location"), http.StatusOK), "Correct the next rows", address)

	// Rows that another tab submitted are refused, and then no longer carried.
	form["title"] = []string{"Another title", "x"}
	w = s.Post(t, address, form)
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "already submitted, corrected, as batch "+again.ID) || strings.Count(w.Body.String(), `name="kept"`) != 1 {
		t.Errorf("rows that are corrected already: %d, %d rows are carried, want that which is left out: %s", w.Code, strings.Count(w.Body.String(), `name="kept"`), w.Body)
	}

	// Where no row is left on a page, the first page takes its place, and nothing typed is lost.
	form, _ = sentFrom(s.Get(t, address, http.StatusOK))
	form["title"][0] = "Kept"
	form.Set("act", "replace")
	beyond := address + "?after=" + base64.RawURLEncoding.EncodeToString([]byte("row 1000 1000"))
	wantAll(t, s.Get(t, beyond, http.StatusOK), "No row of this deposit can be corrected here.")
	wantAll(t, s.Post(t, beyond, form).Body.String(), `value="Kept"`, `action="`+address+`"`)

	// All are then those that no deposit has, as they were changed, without those that were left out.
	form, _ = sentFrom(s.Get(t, address, http.StatusOK))
	form["title"][0] = "The first"
	form.Add("out", form["row"][1])
	form.Set("act", "all")
	w = s.Post(t, address, form)
	if w.Code != http.StatusConflict {
		t.Fatalf("wrong rows: %d", w.Code)
	}
	wantAll(t, w.Body.String(), "42 rows are still wrong", `id="url-0-wrong"`, `Found: <span translate="no">ftp://old.example.org/21.png`)
	form.Set("from", "ftp://old")
	form.Set("to", "https://new")
	rows = manifestOf(t, s, submitted(t, s, s.Post(t, address, form)))
	if len(rows) != 42 || rows[41].URL != "https://new.example.org/45.png" || rows[0].Title != "The first" || rows[0].URL != "https://new.example.org/1.png" {
		t.Errorf("all of them: %d rows, the first %+v", len(rows), rows[0])
	}
}

// TestRows_MostKept: what the form carries is bounded. A turn of the page beyond that is refused, and
// loses nothing; a form that no page can have sent is refused as well.
func TestRows_MostKept(t *testing.T) {
	s := asDepositor(t)
	batch := failedBatch(t, s, 12)
	address := "/deposits/" + batch.ID + "/rows"
	form, turns := sentFrom(s.Get(t, address, http.StatusOK))
	form["title"][1] = "Kept"
	for i := range registry.MostLineRanges - 10 {
		form.Add("kept", url.Values{"row": {fmt.Sprint("away", i)}, "title": {"x"}}.Encode())
	}
	form.Set("act", "turn")
	w := s.Post(t, turns["next"], form)
	if w.Code != http.StatusConflict {
		t.Fatalf("the turn: %d", w.Code)
	}
	wantAll(t, w.Body.String(), "no more can be kept", `value="Kept"`, "Back to the list of rows")
	for _, rows := range []url.Values{{"kept": {"%zz"}}, {"row": slices.Repeat(form["row"][:1], 11)}, {"kept": slices.Repeat(form["kept"], 2)}} {
		if w := s.Post(t, address, rows); w.Code != http.StatusUnprocessableEntity && w.Code != http.StatusBadRequest {
			t.Errorf("%d kept, %d rows: %d", len(rows["kept"]), len(rows["row"]), w.Code)
		}
	}
}

// TestRows_TwoTabs: of two tabs that correct the same rows otherwise, one is taken. The other is told
// which deposit has them, and both rows say so.
func TestRows_TwoTabs(t *testing.T) {
	s := asDepositor(t)
	batch := failedBatch(t, s, 4)
	address := "/deposits/" + batch.ID + "/rows"
	form := rowsOf(s.Get(t, address, http.StatusOK))
	for i := range form["url"] {
		form["url"][i] = fmt.Sprintf("https://new.example.org/%d.png", i)
	}
	form["out"] = form["row"][2:] // the other two are left
	first := submitted(t, s, s.Post(t, address, form))
	form["title"][1] = "Another title"
	w := s.Post(t, address, form)
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "already submitted, corrected, as batch "+first.ID) {
		t.Errorf("the second tab: %d %s", w.Code, w.Body)
	}
	shown := `Corrected by <a href="/deposits/` + first.ID + `">`
	for _, where := range []string{address, "/deposits/" + batch.ID} {
		text := s.Get(t, where, http.StatusOK)
		if n := strings.Count(text, shown); n != 2 {
			t.Errorf("%s names the correction of %d rows, want 2:\n%s", where, n, text)
		}
	}
	wantAll(t, s.Get(t, "/deposits/"+batch.ID, http.StatusOK), "Correct 2 rows")
	form["out"] = form["row"][:2]
	if second := submitted(t, s, s.Post(t, address, form)); second.ID == first.ID {
		t.Error("the rows that were left cannot be submitted")
	}
}

// TestRows_Twice: a deposit whose failed rows were submitted, corrected, says so, asks for nothing, and
// takes no others for the same rows, unless the correction failed as a whole.
func TestRows_Twice(t *testing.T) {
	s := asDepositor(t)
	ctx := t.Context()
	batch := failedBatch(t, s, 3)
	address := "/deposits/" + batch.ID + "/rows"
	form := rowsOf(s.Get(t, address, http.StatusOK))
	for i := range form["url"] {
		form["url"][i] = fmt.Sprintf("https://new.example.org/%d.png", i)
	}
	jobs, err := s.Store.Items(ctx, registry.ItemQuery{ParentID: batch.ID, Status: registry.Pending})
	must(t, err)
	for _, job := range jobs.Rows {
		_, err := s.Store.Command(ctx, registry.Command{ItemID: job.ID, Act: registry.ActCancel, Reason: "x", Actor: "a"})
		must(t, err)
	}
	c, err := s.Store.Claim(ctx, registry.ClaimRequest{RequestID: "report", Stage: registry.Report, Worker: "w", Lease: time.Minute, MaxAttempts: 5, StuckAfter: time.Minute})
	must(t, err)
	_, err = s.Store.Settle(ctx, registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
	must(t, err)
	wantAll(t, s.Get(t, "/deposits", http.StatusOK), "Correct this first", "You must correct it")

	first := submitted(t, s, s.Post(t, address, form))
	link := `href="/deposits/` + first.ID + `"`
	list := s.Get(t, "/deposits", http.StatusOK)
	wantAll(t, list, "Corrected by", link)
	for _, text := range []string{list, s.Get(t, "/deposits/"+batch.ID, http.StatusOK)} {
		for _, word := range []string{"Correct this first", "You must correct it", "Correct 3 rows"} {
			if strings.Contains(text, word) {
				t.Errorf("a corrected deposit still says %q", word)
			}
		}
	}
	rows := s.Get(t, address, http.StatusOK)
	wantAll(t, rows, link, "Nothing is left to be corrected")
	if strings.Contains(rows, `name="row"`) {
		t.Error("the same rows are offered again")
	}
	form["title"][0] = "Another title"
	if w := s.Post(t, address, form); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), first.ID) {
		t.Errorf("a second correction: %d %s", w.Code, w.Body)
	}
	_, err = s.Store.Command(ctx, registry.Command{ItemID: first.ID, Act: registry.ActCancel, Reason: "x", Actor: "a"})
	must(t, err)
	wantAll(t, s.Get(t, "/deposits", http.StatusOK), "Correct this first", "Correct 3 rows")
	if second := submitted(t, s, s.Post(t, address, form)); second.ID == first.ID {
		t.Error("after a correction that was cancelled, nothing can be submitted")
	}
}

// TestRows_WhileRunning: a deposit whose failed rows can be corrected needs attention before it ends, in the
// list, its filter, its count and on its page alike; once they are corrected it only runs.
func TestRows_WhileRunning(t *testing.T) {
	t.Parallel()
	s := asDepositor(t)
	batch := failedBatch(t, s, 2)
	const now = "You can correct that now; the rest goes on."
	standing := func(state string, counts [3]int) {
		t.Helper()
		list := s.Get(t, "/deposits", http.StatusOK)
		for i, name := range []string{"Need attention", "In progress", "Ended"} {
			if want := fmt.Sprintf(`%s <span class="figures">%d</span>`, name, counts[i]); !strings.Contains(list, want) {
				t.Errorf("%s: the list has no %q", state, want)
			}
			shown := s.Get(t, "/deposits?show="+[]string{"needs", "open", "done"}[i], http.StatusOK)
			if got := strings.Contains(shown, `id="deposit-`+batch.ID); got != (counts[i] == 1) {
				t.Errorf("%s: the filter %s has the deposit: %t", state, name, got)
			}
		}
		for address, text := range map[string]string{"/deposits": list, "the page": s.Get(t, "/deposits/"+batch.ID, http.StatusOK)} {
			if needs := counts[0] == 1; strings.Contains(text, now) != needs || strings.Contains(text, "/deposits/"+batch.ID+"/rows") != needs || strings.Contains(text, "You must correct it") != needs {
				t.Errorf("%s: %s says that rows can be corrected: %t, want %t", state, address, !needs, needs)
			}
		}
	}
	standing("two rows failed", [3]int{1, 0, 0})
	for _, row := range []int64{1, 2} {
		waiting := [3]int{1, 0, 0}
		if row == 2 {
			waiting = [3]int{0, 1, 0}
		}
		_, err := s.Store.Submit(t.Context(), registry.Submission{Collection: batch.Collection, Actor: "somebody else", Spec: registry.Spec{
			URL: fmt.Sprintf("http://h.test/%d", row), Corrects: &registry.Corrects{BatchID: batch.ID, Rows: 1, Lines: []registry.LineRange{{First: row + 5, Last: row + 5}}},
		}})
		must(t, err)
		standing(fmt.Sprintf("%d of them corrected", row), waiting)
	}
}
