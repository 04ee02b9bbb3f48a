package api_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage/storagetest"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/wire"
)

// exportPath is the address of an export.
func exportPath(query string) string {
	return "/api/v1/objects/" + url.PathEscape(objectARK) + "/export" + query
}

// unzipped returns the files of a zip.
func unzipped(t *testing.T, text string) map[string]string {
	t.Helper()
	in, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	must(t, err)
	out := map[string]string{}
	for _, f := range in.File {
		r, err := f.Open()
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		out[f.Name] = string(content)
	}
	return out
}

// TestExport checks that a version comes back byte for byte as a zip and as a bag, and who may ask.
func TestExport(t *testing.T) {
	b := newBench(t)
	files := testFiles()
	b.preserve(t, objectARK, files)
	answer, text := b.send(t, http.MethodGet, exportPath(""), "")
	if h := answer.Header; answer.StatusCode != http.StatusOK || h.Get("Content-Type") != "application/zip" || h.Get("Content-Disposition") != "attachment; filename=ark-99999-fk4one-v1.zip" {
		t.Fatalf("%d %v", answer.StatusCode, answer.Header)
	}
	want := map[string]string{}
	for path, content := range files {
		if name, ok := strings.CutPrefix(path, "producer/"); ok {
			want[name] = content
		}
	}
	if diff := cmp.Diff(want, unzipped(t, text)); diff != "" {
		t.Errorf("zip (-want +got):\n%s", diff)
	}
	want["system/mrt-erc.txt"] = "erc:"
	if _, text = b.send(t, http.MethodGet, exportPath("?system=true&version=1"), ""); !maps.Equal(unzipped(t, text), want) {
		t.Error("with the system files: other files")
	}
	answer, text = b.send(t, http.MethodGet, exportPath("?format=tar&bag=true&system=true"), "")
	report, err := bagit.ValidateTar(t.Context(), strings.NewReader(text), bagit.Options{})
	if err != nil || !report.Valid || report.PayloadFiles != 5 || answer.ContentLength != int64(len(text)) || answer.Header.Get("Content-Type") != "application/x-tar" {
		t.Errorf("bag: %v %+v %v", err, report, answer.Header)
	}
	for query, status := range map[string]int{
		"?format=rar": http.StatusUnprocessableEntity, "?bag=maybe": http.StatusUnprocessableEntity, "?version=x": http.StatusUnprocessableEntity,
		"?version=2": http.StatusNotFound, "?vresion=1": http.StatusUnprocessableEntity,
	} {
		if answer, text := b.send(t, http.MethodGet, exportPath(query), ""); answer.StatusCode != status {
			t.Errorf("%s: %d %s, want %d", query, answer.StatusCode, text, status)
		}
	}
	for role, status := range map[registry.Role]int{
		registry.RoleViewer: http.StatusOK, registry.RoleDepositor: http.StatusOK, registry.RoleOperator: http.StatusOK, registry.RoleWorker: http.StatusForbidden,
	} {
		if answer, _ := b.send(t, http.MethodGet, exportPath(""), "", "Authorization", "Bearer "+tokenText(role)); answer.StatusCode != status {
			t.Errorf("%s: %d, want %d", role, answer.StatusCode, status)
		}
	}
}

// TestExport_Damage checks that a damaged file comes from another storage, and that without one the
// connection is aborted: nobody takes a part for the whole.
func TestExport_Damage(t *testing.T) {
	var second *ocfl.Root
	b := newBench(t, func(b *bench, o *api.Options) {
		b.alsoIn = []string{"second"}
		var err error
		second, err = ocfl.OpenRoot(t.Context(), storagetest.NewMemory(), "", nil)
		must(t, err)
		o.Objects = append(o.Objects, ocfl.Named{Root: second, Name: "second"})
	})
	ctx := t.Context()
	b.preserve(t, objectARK, map[string]string{"producer/a": "alpha", "producer/b": strings.Repeat("beta", 1<<20+1), "producer/c": "gamma"})
	must(t, second.Replicate(ctx, b.objects, objectARK, 1, nil))
	folder, err := b.objects.ObjectKey(objectARK)
	must(t, err)
	must(t, b.objects.Store().Replace(ctx, folder+"/v1/content/producer/a", []byte("alphA")))
	must(t, b.objects.Store().Delete(ctx, folder+"/v1/content/producer/c"))
	_, text := b.send(t, http.MethodGet, exportPath(""), "")
	if got := unzipped(t, text); got["a"] != "alpha" || got["c"] != "gamma" || len(got) != 3 {
		t.Errorf("%d files, a is %q, c is %q", len(got), got["a"], got["c"])
	}
	must(t, second.Store().Replace(ctx, folder+"/v1/content/producer/c", []byte("gammA")))
	for _, query := range []string{"", "?bag=true", "?format=tar", "?format=tar&bag=true"} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL+exportPath(query), nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+tokenText(registry.RoleViewer))
		answer, err := b.server.Client().Do(r)
		must(t, err)
		part, err := io.ReadAll(answer.Body)
		must(t, answer.Body.Close())
		if err == nil {
			t.Errorf("%s: %d bytes of an export with a damaged file end as if they were all", query, len(part))
		}
		if strings.Contains(query, "tar") {
			continue
		}
		if _, err := zip.NewReader(bytes.NewReader(part), int64(len(part))); err == nil {
			t.Errorf("%s: the part can be opened as a whole zip", query)
		}
	}
	if !strings.Contains(b.log.String(), "producer/c") {
		t.Error("the log does not name the damaged file")
	}
}

// TestFolder lists an object folder by folder, in pages.
func TestFolder(t *testing.T) {
	b := newBench(t)
	files := map[string]string{"producer/a": "1", "producer/d!": "2", "producer/d0": "3", "producer/z": "4", "system/x": "5"}
	for i := range 60 {
		files["producer/d/many/"+strings.Repeat("n", i+1)] = "6"
		files["producer/e/"+strings.Repeat("n", i+1)+"/f"] = "7"
	}
	b.preserve(t, objectARK, files)
	c := b.as(t, registry.RoleDepositor)
	list := func(folder string, limit int) string {
		t.Helper()
		var names []string
		for after := ""; ; {
			p, err := c.Folder(t.Context(), objectARK, 1, folder, after, limit)
			must(t, err)
			for _, e := range p.Rows {
				if (e.File == nil) != strings.HasSuffix(e.Path, "/") || strings.TrimSuffix(e.Path, "/") != folder+e.Name {
					t.Errorf("entry %+v", e)
				}
				names = append(names, strings.TrimPrefix(e.Path, folder))
			}
			if after = p.Next; after == "" {
				return strings.Join(names, " ")
			}
		}
	}
	for _, limit := range []int{1, 2, 3, 500} {
		if got := list("producer/", limit); got != "a d! d/ d0 e/ z" {
			t.Errorf("by %d: %s", limit, got)
		}
		if got := len(strings.Fields(list("producer/d/many/", limit))); got != 60 {
			t.Errorf("by %d: %d files", limit, got)
		}
		if got := len(strings.Fields(list("producer/e/", limit))); got != 60 {
			t.Errorf("by %d: %d folders", limit, got)
		}
	}
	_, err := c.Folder(t.Context(), objectARK, 1, "producer/none/", "", 0)
	problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)
	_, err = c.Folder(t.Context(), objectARK, 1, "producer", "", 0)
	problemOf(t, err, http.StatusUnprocessableEntity, wire.CodeInvalid)
}

// TestAccesses: whoever reads what is preserved is in the audit log before the first byte, in bounded
// many entries, which depositors do not see.
func TestAccesses(t *testing.T) {
	b := newBench(t, func(b *bench, o *api.Options) { o.Now = b.now })
	b.preserve(t, objectARK, testFiles())
	restore := b.restored(t, objectARK, "a bag")
	path := func(query string) string { return "/api/v1/objects/" + url.PathEscape(objectARK) + query }
	read := func(header ...string) {
		t.Helper()
		for name := range testFiles() {
			for range 2 {
				if answer, text := b.send(t, http.MethodGet, path("/content?path="+url.QueryEscape(name)), "", header...); answer.StatusCode/100 != 2 {
					t.Fatalf("%s: %d %s", name, answer.StatusCode, text)
				}
			}
		}
	}
	b.send(t, http.MethodHead, path("/content?path=producer%2Fa"), "") // reads nothing
	read()
	read("Range", "bytes=0-")
	read("User-Agent", "holdfast/1.0", wire.ExportHeader, "one")
	read("User-Agent", "holdfast/1.0", wire.ExportHeader, "two")
	for range 2 {
		b.send(t, http.MethodGet, exportPath(""), "")
		b.send(t, http.MethodGet, exportPath("?bag=true&format=tar"), "")
		b.send(t, http.MethodGet, path("/restores/1/content"), "")
	}
	b.pass(24 * time.Hour)
	b.send(t, http.MethodGet, path("/content?path=producer%2Fa"), "")
	if answer, _ := b.send(t, http.MethodGet, path("/content?path=producer%2Fa"), "", wire.ExportHeader, strings.Repeat("x", 101)); answer.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("an id of 101 bytes: %d", answer.StatusCode)
	}
	kinds := []string{registry.EventExported, registry.EventFilesRead, registry.EventRestoreFetched}
	page, err := b.store.Audit(t.Context(), registry.AuditQuery{Types: kinds})
	must(t, err)
	var got []registry.Access
	for _, e := range page.Rows {
		a := registry.Access{}
		must(t, json.Unmarshal(e.Data, &a))
		if a.Remote == "" || a.Collection == "" || e.Actor == "" || e.ItemID != objectARK || e.Collection != "" || (a.File == "") == (e.Type == registry.EventFilesRead) {
			t.Errorf("%+v of %+v", a, e)
		}
		got = append(got, registry.Access{Kind: e.Type, ObjectID: a.ObjectID, Version: a.Version, By: a.By, Form: a.Form, Export: a.Export, Restore: a.Restore})
	}
	entry := func(kind string, by registry.AccessWay, more registry.Access) registry.Access {
		more.Kind, more.By, more.ObjectID, more.Version = kind, by, objectARK, 1
		return more
	}
	zipped, bagged := entry(registry.EventExported, registry.ByAPI, registry.Access{Form: "zip"}), entry(registry.EventExported, registry.ByAPI, registry.Access{Form: "bag in tar"})
	want := []registry.Access{
		entry(registry.EventFilesRead, registry.ByAPI, registry.Access{}), bagged, zipped,
		entry(registry.EventRestoreFetched, registry.ByAPI, registry.Access{Restore: restore.N}), bagged, zipped,
		entry(registry.EventExported, registry.ByCommand, registry.Access{Export: "two"}), entry(registry.EventExported, registry.ByCommand, registry.Access{Export: "one"}),
		entry(registry.EventFilesRead, registry.ByAPI, registry.Access{}),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("accesses, newest first (-want +got):\n%s", diff)
	}
	feed, err := b.as(t, registry.RoleDepositor).Feed(t.Context(), registry.FeedQuery{Types: kinds})
	if err != nil || len(feed) > 0 {
		t.Errorf("a depositor's feed: %v %v", feed, err)
	}
}
