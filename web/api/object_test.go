package api_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

const objectARK = "ark:/99999/fk4one"

func testFiles() map[string]string {
	return map[string]string{
		"producer/a":           "alpha",
		"producer/a b/ü%2F.x":  strings.Repeat("0123456789", 300_000),
		"producer/a`":          "after a by a hair",
		"producer/empty":       "",
		"system/mrt-erc.txt":   "erc:",
		"producer/<script>.js": "x",
	}
}

// TestObject_RoundTrip checks that preserved files are returned byte for byte, for every spelling
// of the ARK.
func TestObject_RoundTrip(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	want := testFiles()
	b.preserve(t, objectARK, want)
	c := b.as(t, registry.RoleViewer)
	for _, spelling := range []string{objectARK, "ark:99999/fk4one", "ARK:/99999/fk4-one", " ark:/99999/fk4one"} {
		o, err := c.Object(ctx, spelling)
		if err != nil || o.ID != objectARK || len(o.Versions) != 1 {
			t.Errorf("%q: object=%+v (%v), want %s", spelling, o, err, objectARK)
		}
	}
	got := map[string]string{}
	after := ""
	for {
		files, err := c.Files(ctx, "ark:99999/fk4one", 0, after, 2)
		must(t, err)
		if len(files) == 0 {
			break
		}
		for _, f := range files {
			in, err := c.Content(ctx, objectARK, 1, f.Path, "", 0)
			must(t, err)
			text, err := io.ReadAll(in)
			must(t, err)
			must(t, in.Close())
			if in.Size != f.SizeBytes || in.Digests["sha512"] != f.Digests["sha512"] {
				t.Errorf("%s: size=%d digests=%v, want %+v", f.Path, in.Size, in.Digests, f)
			}
			got[f.Path], after = string(text), f.Path
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	objects, err := c.Objects(ctx, registry.ObjectQuery{LocalID: "local"})
	if err != nil || len(objects.Rows) != 1 {
		t.Errorf("objects=%+v (%v), want one", objects, err)
	}
	events, err := c.PremisEvents(ctx, objectARK, "", 0)
	if err != nil || len(events.Rows) != 1 {
		t.Errorf("events=%+v (%v), want one", events, err)
	}
	for _, missing := range []struct {
		path    string
		version int
	}{{"producer/none", 0}, {"producer/A", 0}, {"producer", 1}, {"producer/a", 2}, {"producer/zzz", 0}} {
		_, err := c.Content(ctx, objectARK, missing.version, missing.path, "", 0)
		problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)
	}
	_, err = c.Files(ctx, objectARK, 7, "", 0)
	problemOf(t, err, http.StatusNotFound, wire.CodeNotFound)
}

func TestObject_ContentHeadersAndRange(t *testing.T) {
	b := newBench(t)
	b.preserve(t, objectARK, testFiles())
	address := "/api/v1/objects/" + url.PathEscape(objectARK) + "/content?path=" + url.QueryEscape("producer/a b/ü%2F.x")
	answer, text := b.send(t, http.MethodGet, address, "")
	h := answer.Header
	if answer.ContentLength != 3_000_000 || len(text) != 3_000_000 || h.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(h.Get("Content-Disposition"), "attachment;") || !strings.HasPrefix(h.Get("Repr-Digest"), "sha-512=:") ||
		!strings.HasPrefix(h.Get(wire.DigestHeader), "sha512:") {
		t.Errorf("headers=%v, want length, digest, nosniff, attachment", h)
	}
	answer, text = b.send(t, http.MethodGet, address, "", "Range", "bytes=2999990-", "If-Range", h.Get("ETag"))
	if answer.StatusCode != http.StatusPartialContent || text != "0123456789" {
		t.Errorf("range: status=%d text=%.20q, want the last ten bytes", answer.StatusCode, text)
	}
	for _, query := range []string{"", "?path=", "?path=producer/a&version=x", "?path=producer/a&vresion=1"} {
		answer, text = b.send(t, http.MethodGet, "/api/v1/objects/"+url.PathEscape(objectARK)+"/content"+query, "")
		wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
	}
}

// TestObject_Damage checks that damage in storage is reported, and damaged bytes are not returned
// as intact.
func TestObject_Damage(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	b.preserve(t, objectARK, map[string]string{"producer/a": "alpha", "producer/b": "beta"})
	c := b.as(t, registry.RoleOperator)
	report, err := c.Verify(ctx, objectARK)
	must(t, err)
	if !report.Valid || report.Version != 1 || report.Recorded != 1 || report.Files != 2 || report.Bytes != 9 {
		t.Errorf("report=%+v, want 2 files in order", report)
	}
	folder, err := b.objects.ObjectKey(objectARK)
	must(t, err)
	must(t, b.objects.Store().Replace(ctx, folder+"/v1/content/producer/a", []byte("alphA")))
	must(t, b.objects.Store().Delete(ctx, folder+"/v1/content/producer/b"))
	if report, err = c.Verify(ctx, objectARK); err != nil || report.Valid || len(report.Faults) < 2 {
		t.Errorf("report=%+v (%v), want both faults", report, err)
	}
	in, err := c.Content(ctx, objectARK, 0, "producer/a", "", 0)
	must(t, err)
	defer in.Close()
	_, err = io.ReadAll(in)
	var wrong *client.DigestError
	if !errors.As(err, &wrong) {
		t.Errorf("error=%v, want a DigestError", err)
	}
	_, err = c.Content(ctx, objectARK, 0, "producer/b", "", 0)
	problemOf(t, err, http.StatusInternalServerError, wire.CodeDamaged)
	must(t, b.objects.Store().DeletePrefix(ctx, folder))
	if report, err = c.Verify(ctx, objectARK); err != nil || report.Valid || len(report.Faults) != 1 || report.Faults[0].Code != "R001" {
		t.Errorf("report=%+v (%v), want R001", report, err)
	}
}
