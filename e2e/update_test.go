package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// TestUpdateOfNothing_IsRefusedAtOnce: an update of a file that names no object is refused at
// submission, or, if only the source shows that it is a file, as soon as it is examined, before any
// download. A row is refused like other rows.
func TestUpdateOfNothing_IsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	server, url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/batch.checkm" {
			content(manifest("mrt-single-file-batch-manifest", self(r)+"/a.txt | | | | | a.txt", self(r)+"/b.txt | | | | | b.txt | | mine"))(w, r)
			return
		}
		content("some text")(w, r)
	}))
	server.Start()
	h := up(t)
	r := h.must(2, "submit", url+"/a.txt", "--type", "file", "--update")
	says(t, "submit", r.stderr, "an update must say what it updates", "ARK or a local id")
	if batches := h.list("action:batch"); len(batches) != 0 {
		t.Errorf("%d batches were made", len(batches))
	}
	s, code := h.submit(url+"/a.txt", "--update")
	if it := h.item(s.BatchID); code != 6 || it.Stage != "expand" || len(h.list("--batch", s.BatchID)) != 0 {
		t.Errorf("exit=%d, it failed at %s, want 6 at expand and no jobs", code, it.Stage)
	}
	s, _ = h.submit(url+"/batch.checkm", "--update")
	codes := map[string]int{}
	for _, g := range rows[failureGroup](h, "batch", "failures", s.BatchID) {
		codes[g.Code] += g.Count
	}
	if codes["identifier-missing"] != 1 || codes["no-object"] != 1 || len(codes) != 2 {
		t.Errorf("failures %v, want one row without an identifier, and one whose object is not there", codes)
	}
}

// TestUpdateUnnamedByItsPayload_IsRefusedAtOnce: an uploaded update is refused at submission unless
// the command or the payload names the object: by mrt-erc.txt or mrt-dc.xml where these count, or
// in a file that is still to be fetched.
func TestUpdateUnnamedByItsPayload_IsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	h := up(t)
	const erc, unassigned = "erc:\nwho: A\nwhat: B\nwhen: 1999\nwhere: mine\n", "erc:\nwho: A\nwhat: B\nwhen: 1999\nwhere: (:unas)\n"
	dc := `<DublinCore xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier>mine</dc:identifier></DublinCore>`
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte("text")))
	bag := map[string]string{
		"bagit.txt":           "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
		"manifest-sha256.txt": digest + "  data/a.txt\n", "data/a.txt": "text",
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		args  []string
		code  int // of submit
	}{
		{"bare", map[string]string{"a.txt": "text"}, nil, 2},
		{"undescribed", map[string]string{"a.txt": "text", "mrt-erc.txt": unassigned, "deep/mrt-erc.txt": erc}, nil, 2},
		{"bag", bag, nil, 2},
		{"objects.checkm", map[string]string{"": manifest("mrt-ingest-manifest", "http://127.0.0.1:1/a.txt | | | | | a.txt")}, nil, 2},
		{"given", map[string]string{"a.txt": "text"}, []string{"--local-id", "mine"}, 0},
		{"erc", map[string]string{"a.txt": "text", "mrt-erc.txt": erc}, nil, 0},
		{"dc", map[string]string{"a.txt": "text", "mrt-dc.xml": dc}, nil, 0},
		{"fetched.checkm", map[string]string{"": manifest("mrt-ingest-manifest", "http://127.0.0.1:1/e | | | | | mrt-erc.txt")}, nil, 0},
	} {
		payload := filepath.Join(t.TempDir(), c.name)
		for name, text := range c.files {
			file := filepath.Join(payload, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		before := len(h.list("action:batch"))
		r := h.must(c.code, append([]string{"submit", payload, "--update"}, c.args...)...)
		made := len(h.list("action:batch")) - before
		if c.code == 0 && made != 1 || c.code != 0 && made != 0 {
			t.Errorf("%s: %d batches were made", c.name, made)
		}
		if c.code != 0 {
			says(t, c.name, r.stderr, "an update must say what it updates", "ARK or a local id")
		}
	}
}
