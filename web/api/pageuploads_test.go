package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/web/wire"
)

// TestUploadPages checks that an admin sees all uploads with their quotas and removes unused ones,
// that a depositor does so for its own, and that nobody else does.
func TestUploadPages(t *testing.T) {
	b := newBench(t, within(upload.Limits{TokenBytes: 4096, CollectionBytes: 8192, TenantOpen: 7}), withPages)
	send := func(role registry.Role, name string, size int) string {
		u, err := b.as(t, role).SendUpload(t.Context(), oneRequest{Filename: name, Body: strings.NewReader(strings.Repeat(name[:1], size)), Size: int64(size)})
		must(t, err)
		return u.ID
	}
	mine, theirs := send(registry.RoleDepositor, "mine <b>.txt", 1024), send(registry.RoleAdmin, "theirs.txt", 2048)
	used := send(registry.RoleDepositor, "used.txt", 512)
	_, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{Collection: "default", Type: "file", UploadID: used}, "")
	must(t, err)
	b.begin(t, 300, named("coming.bin"))
	same := []string{"Sec-Fetch-Site", "same-origin"}
	admin, depositor, viewer := newBrowser(t, b, registry.RoleAdmin), newBrowser(t, b, registry.RoleDepositor), newBrowser(t, b, registry.RoleViewer)
	has := func(text string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("the page does not have %q:\n%s", w, text)
			}
		}
	}
	load := func(v *browser, path string, status int) string {
		t.Helper()
		answer, text := v.send(t, http.MethodGet, path, nil)
		if answer.StatusCode != status {
			t.Errorf("%s: %d, want %d: %s", path, answer.StatusCode, status, text)
		}
		return text
	}
	text := load(admin, "/uploads", http.StatusOK)
	has(text, "mine &lt;b&gt;.txt", "theirs.txt", "used.txt", "coming.bin", "0 % received", "1.8 KiB of 4.0 KiB", "1.8 KiB of 8.0 KiB", "1 of 7", "removed with its batch", `href="/uploads" aria-current`)
	if strings.Count(text, ">Remove</button>") != 3 {
		t.Errorf("want a button for each upload that no batch has:\n%s", text)
	}
	text = load(depositor, "/uploads", http.StatusOK)
	has(text, "mine &lt;b&gt;.txt", "1.8 KiB of 4.0 KiB")
	if strings.Contains(text, "theirs") || strings.Contains(text, "everybody") {
		t.Errorf("a depositor sees another's uploads:\n%s", text)
	}
	load(depositor, "/uploads/"+theirs, http.StatusNotFound)
	if text := load(viewer, "/operations", http.StatusOK); strings.Contains(text, `href="/uploads"`) {
		t.Error("a viewer is shown the way to the page")
	}
	load(viewer, "/uploads", http.StatusForbidden)
	has(load(admin, "/uploads/"+mine, http.StatusOK), "cannot be undone", "Remove the upload", "mine &lt;b&gt;.txt")

	post := func(v *browser, id string, status int, header ...string) string {
		t.Helper()
		answer, text := v.send(t, http.MethodPost, "/uploads/"+id, url.Values{}, header...)
		if answer.StatusCode != status {
			t.Errorf("remove %s: %d, want %d: %s", id, answer.StatusCode, status, text)
		}
		return text
	}
	post(admin, mine, http.StatusForbidden, "Sec-Fetch-Site", "cross-site")
	post(viewer, mine, http.StatusForbidden, same...)
	post(depositor, theirs, http.StatusSeeOther, same...) // which is not there for them
	has(post(admin, used, http.StatusConflict, same...), "Refused: ", "is removed when that batch")
	if all, err := b.as(t, registry.RoleAdmin).AllUploads(t.Context()); err != nil || len(all) != 4 {
		t.Fatalf("%d uploads are left (%v), want all four", len(all), err)
	}
	post(depositor, mine, http.StatusSeeOther, same...)
	post(depositor, mine, http.StatusSeeOther, same...) // once more
	post(admin, theirs, http.StatusSeeOther, same...)
	all, err := b.as(t, registry.RoleAdmin).AllUploads(t.Context())
	if err != nil || len(all) != 2 {
		t.Errorf("%d uploads are left (%v), want the batch's and the one on its way", len(all), err)
	}
}
