package api_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/client"
	"github.com/holdfast/holdfast/registry/wire"
)

// brokenBag is a bag in a zip whose only file has another digest than its manifest says.
func brokenBag(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range [][2]string{
		{"bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"},
		{"data/a.txt", "alpha"},
		{"manifest-md5.txt", "00000000000000000000000000000000  data/a.txt\n00000000000000000000000000000000  data/b.txt\n"},
	} {
		w, err := z.Create(f[0])
		must(t, err)
		_, err = io.WriteString(w, f[1])
		must(t, err)
	}
	must(t, z.Close())
	return out.String()
}

// A body is judged and nothing of it is kept; an upload is judged and stays.
func TestCheck(t *testing.T) {
	b := newBench(t)
	ask := func(query, body string) intake.Report {
		t.Helper()
		answer, text := b.send(t, http.MethodPost, "/api/v1/check"+query, body)
		var r intake.Report
		if err := json.Unmarshal([]byte(text), &r); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%d %s (%v)", answer.StatusCode, text, err)
		}
		return r
	}
	bad := ask("", brokenBag(t))
	if bad.Valid || bad.Accepted || bad.Type != "bag" || bad.Errors != 2 {
		t.Errorf("%+v, want a bag with two errors", bad)
	}
	if r := ask("?type=file", "anything"); !r.Valid || r.Type != "file" || r.Bytes != 8 {
		t.Errorf("%+v, want a valid file", r)
	}
	if left := b.staged(t); len(left) > 0 {
		t.Errorf("left in staging: %v, want nothing", left)
	}
	u, err := b.as(t, registry.RoleDepositor).SendUpload(t.Context(), client.Upload{Filename: "b.zip", Body: strings.NewReader(brokenBag(t)), Size: -1})
	must(t, err)
	if r := ask("?upload_id="+u.ID, ""); r.Errors != 2 || len(b.staged(t)) != 1 {
		t.Errorf("%+v with %v staged, want two errors and the upload", r, b.staged(t))
	}
	for query, code := range map[string]wire.Code{"?type=zip": wire.CodeInvalid, "?typ=file": wire.CodeInvalid, "?upload_id=none": wire.CodeNotFound, "": wire.CodeEmptyUpload} {
		answer, text := b.send(t, http.MethodPost, "/api/v1/check"+query, "")
		wantProblem(t, answer, text, answer.StatusCode, code)
	}
}

// A bag that is not valid is refused when it is submitted, with all that is wrong with it, and removed.
func TestSubmit_RefusesABadBag(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleDepositor)
	u, err := c.SendUpload(t.Context(), client.Upload{Filename: "b.zip", Body: strings.NewReader(brokenBag(t)), Size: -1})
	must(t, err)
	_, err = c.Submit(t.Context(), wire.SubmitRequest{UploadID: u.ID}, "")
	p := problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeContentInvalid)
	if len(p.Faults) != 2 || p.Faults[0].Location != "data/a.txt (manifest-md5.txt:1)" || p.Faults[1].Rule != "missing" {
		t.Errorf("%+v, want both faults", p)
	}
	if left := b.staged(t); len(left) > 0 {
		t.Errorf("left in staging: %v, want nothing", left)
	}
	if page, err := b.store.Items(t.Context(), registry.ItemQuery{}); err != nil || len(page.Rows) > 0 {
		t.Errorf("items %v (%v), want none", page.Rows, err)
	}
}
