package api_test

import (
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage/storagetest"
	"github.com/holdfast/holdfast/web/api"
)

// TestReplicas checks that content comes from the first storage that has it, or from the requested
// one. Every replica is verified, and an unknown storage is a fault.
func TestReplicas(t *testing.T) {
	var second *ocfl.Root
	b := newBench(t, func(b *bench, o *api.Options) {
		b.alsoIn = []string{"second", "gone"}
		var err error
		second, err = ocfl.OpenRoot(t.Context(), storagetest.NewMemory(), "", nil)
		must(t, err)
		o.Objects = append(o.Objects, ocfl.Named{Root: second, Name: "second"})
	})
	ctx := t.Context()
	b.preserve(t, objectARK, map[string]string{"producer/a": "alpha"})
	must(t, second.Replicate(ctx, b.objects, objectARK, 1, nil))
	b.keepReceipt(t, objectARK, second)
	address := "/api/v1/objects/" + url.PathEscape(objectARK) + "/content?path=producer/a"
	from := func(query string, want string) {
		t.Helper()
		answer, text := b.send(t, http.MethodGet, address+query, "")
		if got := answer.Header.Get("X-Holdfast-Storage"); answer.StatusCode != http.StatusOK || text != "alpha" || got != want {
			t.Errorf("%q: %d %q from %q, want alpha from %q", query, answer.StatusCode, text, got, want)
		}
	}
	from("", registry.DefaultStorage)
	from("&storage=second", "second")
	folder, err := b.objects.ObjectKey(objectARK)
	must(t, err)
	must(t, b.objects.Store().Delete(ctx, folder+"/v1/content/producer/a"))
	from("", "second")
	c := b.as(t, registry.RoleOperator)
	in, err := c.Content(ctx, objectARK, 0, "producer/a", "", 0)
	must(t, err)
	if got, err := io.ReadAll(in); err != nil || string(got) != "alpha" {
		t.Errorf("read %q: %v", got, err)
	}
	must(t, in.Close())
	for query, want := range map[string]int{"&storage=storage": http.StatusInternalServerError, "&storage=none": http.StatusNotFound} {
		if answer, text := b.send(t, http.MethodGet, address+query, ""); answer.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", query, answer.StatusCode, text, want)
		}
	}
	report, err := c.Verify(ctx, objectARK)
	must(t, err)
	sound := map[string]bool{}
	for _, r := range report.Replicas {
		sound[r.Storage] = r.Valid
	}
	if report.Valid || len(sound) != 3 || sound[registry.DefaultStorage] || !sound["second"] || sound["gone"] {
		t.Errorf("report %+v", report)
	}
	codes := map[string]string{}
	for _, f := range report.Faults {
		if f.Code[0] != 'W' {
			codes[f.Storage] = f.Code
		}
	}
	if codes["gone"] != "R003" || codes[registry.DefaultStorage] == "" || codes["second"] != "" {
		t.Errorf("faults by storage: %v", codes)
	}
}
