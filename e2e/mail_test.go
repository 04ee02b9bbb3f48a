package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast/holdfast/mail/mailtest"
	"github.com/holdfast/holdfast/registry"
)

// TestMail: depositors get mails when their batch is accepted, when it ends and when it changes;
// operators get the digest; and the institution's own templates are used.
func TestMail(t *testing.T) {
	t.Parallel()
	server := mailtest.Start(t, mailtest.Options{User: "holdfast", Password: "secret"})
	templates := t.TempDir()
	if err := os.WriteFile(filepath.Join(templates, "queued.txt"), []byte(`{{define "subject"}}Eingang: {{.Name}}{{end}}Wir haben {{.ID}} erhalten.`), 0o600); err != nil {
		t.Fatal(err)
	}
	var mended atomic.Bool
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/b.txt") && !mended.Load() {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, "this is %s", r.URL.Path)
	}))
	t.Cleanup(files.Close)
	manifest := filepath.Join(t.TempDir(), "maps.checkm")
	text := `#%checkm_0.7
#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest
#%prefix | mrt: | http://merritt.cdlib.org/terms#
#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#
#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date
`
	for _, name := range []string{"a.txt", "b.txt"} {
		text += files.URL + "/" + name + " | | | | | " + name + " | | loc-" + name + " | | Title of " + name + " |\n"
	}
	if err := os.WriteFile(manifest, []byte(text+"#%eof\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := up(t, "HOLDFAST_SMTP_URL="+server.URL(), "HOLDFAST_MAIL_FROM=Holdfast <holdfast@example.org>", "HOLDFAST_MAIL_TEMPLATES="+templates,
		"HOLDFAST_MAIL_OPERATORS=ops@example.org", "HOLDFAST_MAIL_URL=https://holdfast.example.org")
	h.collection("mailed", `"mail": {"to": ["curator@example.org"], "queued": true, "safe": true}`)
	var inbox []mailtest.Mail
	// await waits until a mail to somebody has come whose subject says something.
	await := func(to, subject string) (got mailtest.Mail) {
		t.Helper()
		h.until("a mail to "+to+": "+subject, func() bool {
			inbox = append(inbox, server.Got()...)
			for _, m := range inbox {
				if m.To == to && strings.Contains(m.Subject, subject) {
					got = m
					return true
				}
			}
			return false
		})
		return got
	}
	await("ops@example.org", "Holdfast: nothing needs attention")
	s, code := h.submit(manifest, "--collection", "mailed", "--notify", "Ann <ann@example.org>")
	if code != 3 || len(s.Jobs) != 2 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	says(t, "queued", await("ann@example.org", "Eingang: maps.checkm").Text, "Wir haben "+s.BatchID+" erhalten.")
	for _, to := range []string{"ann@example.org", "curator@example.org"} {
		m := await(to, "Holdfast FAILED: batch maps.checkm (mailed) - 1 completed, 1 failed")
		says(t, "the report", m.Text, "b.txt (loc-b.txt): Failed", "404", "https://holdfast.example.org/items/"+s.BatchID)
		var list struct {
			Failed []registry.JobResult `json:"failed_jobs"`
		}
		if err := json.Unmarshal(m.Files["failed.json"], &list); err != nil || len(list.Failed) != 1 {
			t.Fatalf("failed.json: %v, %s", err, m.Files["failed.json"])
		}
	}
	h.until("the delivery is shown", func() bool {
		return strings.Contains(h.must(0, "item", "show", s.BatchID).stdout, "mail report, which tells of failures, to ann@example.org: delivered at")
	})
	says(t, "requeue of a batch whose jobs failed", h.must(8, "item", "requeue", s.BatchID).stderr, "would only make another report",
		"item requeue --match 'batch:"+s.BatchID+" state:failed'", "batch update-report "+s.BatchID)
	mended.Store(true)
	for _, j := range s.Jobs {
		if j.State == string(registry.StateFailed) {
			h.must(0, "item", "requeue", j.ItemID)
			h.must(0, "watch", j.ItemID)
		}
	}
	h.must(0, "batch", "update-report", s.BatchID)
	m := await("ann@example.org", "Holdfast UPDATED: batch maps.checkm (mailed) - 2 completed, 0 failed")
	says(t, "the update", m.Text, "Since report 1: 1 now completed, 0 still failed", "b.txt (loc-b.txt): ark:/99999/")
	says(t, "the last mail", await("ann@example.org", "is safe, you can delete your own copy").Text, "Objects:    2, each in storage")
	before := await("curator@example.org", "UPDATED").Header.Get("Message-Id")
	inbox = nil
	h.must(0, "item", "redeliver", s.BatchID)
	if again := await("curator@example.org", "UPDATED").Header.Get("Message-Id"); again != before {
		t.Errorf("told again as %s, want %s", again, before)
	}

	// Whoever ends a batch for good is told first what cannot be undone, and its people hear of it.
	h.must(0, "collection", "hold", "mailed", "--reason", "moving")
	ended := h.begin(manifest, "--collection", "mailed", "--notify", "Ann <ann@example.org>", "--force")
	for _, bulk := range []bool{false, true} {
		args := []string{"item", "abort", ended}
		if bulk {
			args = []string{"item", "abort", "--match", "id:" + ended}
		}
		says(t, "an abort that nobody confirmed", h.must(7, args...).stderr, "Not confirmed")
	}
	says(t, "what an abort takes along", h.must(7, "item", "abort", ended).stderr, "the batch ends for good", "submit what is still wanted", "a mail to curator@example.org, ann@example.org says that it was aborted")
	h.must(0, "item", "abort", ended, "--yes", "--reason", "the wrong list")
	says(t, "of what was ended", await("ann@example.org", "Holdfast STOPPED: batch maps.checkm (mailed) was aborted").Text, "the wrong list", ended, "none: nothing of it was ingested")

	quiet := up(t)
	path := filepath.Join(t.TempDir(), "c.txt")
	if err := os.WriteFile(path, []byte("gamma"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := quiet.must(0, "submit", path, "--notify", "ann@example.org", "--wait")
	says(t, "a Holdfast without mail", r.stderr, "warning: ", "no mail will be sent")
}
