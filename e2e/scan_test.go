package e2e

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/clamd/clamdtest"
	"github.com/holdfast/holdfast/format/siegfried/siegfriedtest"
)

// TestScanAndFormats: a deposit with a virus fails on its content, and none of it is preserved. A
// clean one completes and records the scanner and the formats of its files.
func TestScanAndFormats(t *testing.T) {
	t.Parallel()
	h := up(t, "HOLDFAST_CLAMD_ADDR="+clamdtest.Start(t).Socket, "HOLDFAST_SIEGFRIED_URL="+siegfriedtest.Start(t))
	h.collection("guarded", `"scan": true`)

	bad := filepath.Join(t.TempDir(), "bad.txt")
	must(t, os.WriteFile(bad, []byte("x "+clamdtest.Virus), 0o600))
	s, code := h.submit("--collection", "guarded", bad)
	if code != 6 || s.Failed != 1 || s.Jobs[0].State != "Failed" || s.Jobs[0].ErrorClass != "content" {
		t.Errorf("exit code %d, %+v, want 6 and one job that failed on its content", code, s)
	}
	for _, word := range []string{"bad.txt", clamdtest.Signature} {
		if !strings.Contains(s.Jobs[0].Error, word) {
			t.Errorf("error %q does not name %s", s.Jobs[0].Error, word)
		}
	}
	if objects := rows[map[string]any](h, "object", "list"); len(objects) != 0 {
		t.Errorf("objects %v, want none", objects)
	}
	for name := range files(t, h.place("storage")) {
		if strings.Contains(name, "/content/") {
			t.Errorf("preserved: %s", name)
		}
	}

	good := filepath.Join(t.TempDir(), "good.zip")
	out, err := os.Create(good)
	must(t, err)
	w := zip.NewWriter(out)
	for name, text := range map[string]string{"a.pdf": "%PDF-1.4\n%%EOF\n", "noise": "\xff\x00\x13\x99"} {
		f, err := w.Create(name)
		must(t, err)
		_, err = f.Write([]byte(text))
		must(t, err)
	}
	must(t, w.Close())
	must(t, out.Close())
	s, code = h.submit("--collection", "guarded", "--type", "container", good)
	if code != 0 || s.Completed != 1 {
		t.Fatalf("exit code %d, %+v", code, s)
	}
	found := map[string]string{}
	for _, e := range rows[struct{ Type, Agent, Detail string }](h, "object", "events", s.Jobs[0].ARK) {
		found[e.Type] = e.Agent + ": " + e.Detail
	}
	if e := found["virus check"]; !strings.HasPrefix(e, "ClamAV 1.") || !strings.HasSuffix(e, ": no virus found in 2 files") {
		t.Errorf("virus check %q", e)
	}
	if e := found["format identification"]; !strings.HasPrefix(e, "siegfried 1.") || !strings.HasSuffix(e, ": 1 of 2 files identified; not identified: noise") {
		t.Errorf("format identification %q", e)
	}
	puids := map[string]string{}
	for _, f := range rows[struct {
		Path     string `json:"path"`
		MIMEType string `json:"mime_type"`
		Format   struct {
			PUID string `json:"puid"`
		} `json:"format"`
	}](h, "object", "files", s.Jobs[0].ARK) {
		puids[f.Path] = f.MIMEType + " " + f.Format.PUID
	}
	if puids["producer/a.pdf"] != "application/pdf fmt/18" || puids["producer/noise"] != "application/octet-stream " {
		t.Errorf("formats %v", puids)
	}
	if doc := h.run("object", "events", s.Jobs[0].ARK, "--premis").stdout; !strings.Contains(doc, "formatRegistryKey>fmt/18<") {
		t.Errorf("the PREMIS document does not have the format:\n%s", doc)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
