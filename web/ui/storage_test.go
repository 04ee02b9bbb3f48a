package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// TestStorages: the pages say where objects lack copies, how far a storage is, and what keeps one from
// being retired. An act shows what it does before it is posted, and only admins are offered it.
func TestStorages(t *testing.T) {
	s := newSite(t)
	as := func(role registry.Role) *uitest.Server {
		other := *s.Server
		other.Token = s.TokenOf(t, "the "+string(role), role)
		return &other
	}
	has := func(text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(text, want) && !strings.Contains(uitest.Plain(text), want) {
				t.Errorf("the page does not have %q:\n%s", want, uitest.Plain(text))
			}
		}
	}
	admin := as(registry.RoleAdmin)
	const ark = "ark:/99999/fk4letters"
	s.preserve(t, "default", "Letters", ark)
	two := 2
	c, err := s.store.Collection(t.Context(), "default")
	must(t, err)
	c.Profile.Storages, c.Profile.Copies = []string{registry.DefaultStorage, "second"}, &two
	must(t, s.store.PutCollection(t.Context(), c, "test"))

	has(s.Get(t, "/storages", http.StatusOK), "second", "1 object is missing", "2 copies", "With too few")
	if strings.Contains(s.Get(t, "/storages", http.StatusOK), "/change/storage") {
		t.Error("a viewer is offered to change storages")
	}
	has(s.Get(t, "/copies?collection=default", http.StatusOK), "Letters", ark, "1 of 2", "nothing yet")
	has(s.Get(t, "/storages/second", http.StatusOK), "Letters", "HOLDFAST_STORAGE_URL")
	has(s.Get(t, "/operations", http.StatusOK), "1 object has fewer copies")
	has(s.Get(t, "/collections/default", http.StatusOK), "2 copies", "1 object has fewer")
	has(s.Get(t, "/objects/"+ark, http.StatusOK), "It has 1 of the 2 copies")
	s.Get(t, "/storages/none", http.StatusNotFound)
	s.Get(t, "/change/storage?act=retire&name=second", http.StatusForbidden)
	if w := s.Post(t, "/change/storage", url.Values{"act": {"retire"}, "name": {"second"}}); w.Code != http.StatusForbidden {
		t.Errorf("a viewer retires a storage: %d", w.Code)
	}
	depositor := as(registry.RoleDepositor)
	depositor.Get(t, "/storages", http.StatusForbidden)
	depositor.Get(t, "/copies", http.StatusForbidden)

	has(admin.Get(t, "/change/storage?act=retire&name=second", http.StatusOK), "2 copies; it is a number from 1 to that of the storages, 1")
	one := 1
	c, err = s.store.Collection(t.Context(), "default")
	must(t, err)
	c.Profile.Copies = &one
	must(t, s.store.PutCollection(t.Context(), c, "test"))
	has(admin.Get(t, "/change/storage?act=retire&name="+registry.DefaultStorage, http.StatusOK), "its objects belong in second", "1 object is copied", `name="reason"`)
	if w := admin.Post(t, "/change/storage", url.Values{"act": {"retire"}, "name": {registry.DefaultStorage}, "reason": {"new disks"}}); w.Code != http.StatusSeeOther {
		t.Fatalf("it is not retired: %d %s", w.Code, w.Body)
	}
	text := admin.Get(t, "/storages/"+registry.DefaultStorage, http.StatusOK)
	has(text, "retiring", "new disks", "1 object has its copies elsewhere", "1 job, copy or batch that writes to it is over", "Letters", "Keep the storage after all")
	has(admin.Get(t, "/change/storage?act=keep&name="+registry.DefaultStorage, http.StatusOK), "its objects belong in storage, second")
	admin.Get(t, "/change/storage?act=erase&name=second", http.StatusBadRequest)
	admin.Get(t, "/change/storage?act=retire", http.StatusBadRequest)
	has(admin.Get(t, "/change/storage?act=add", http.StatusOK), "Show what it would do", `name="collection" value="default"`)
}

// TestTitles_Order: a title turns no letters around on pages.
func TestTitles_Order(t *testing.T) {
	s := newSite(t)
	const ark, title = "ark:/99999/fk4turned", "\u202egpj.exe"
	s.preserve(t, "default", title, ark)
	for _, path := range []string{"/objects", "/objects/" + ark} {
		if text := s.get(t, path, http.StatusOK); !strings.Contains(text, ">⟨U+202E⟩gpj.exe<") || strings.Contains(text, ">"+title) {
			t.Errorf("%s does not show the title %q with a mark", path, title)
		}
	}
}

// TestEmbargo_Pages: under an embargo, others than admins see on pages what describes an object and its
// files, why they cannot have the files, and nothing that leads to them.
func TestEmbargo_Pages(t *testing.T) {
	s := newSite(t)
	const ark, file = "ark:/99999/fk4letters", "producer/Letters.txt"
	s.preserve(t, "default", "Letters", ark)
	must(t, s.store.SetTerms(t.Context(), ark, registry.Terms{EmbargoUntil: "2999-01-01", EmbargoReason: "the donor's letter"}, "asked by the donor", "test"))
	for _, role := range []registry.Role{registry.RoleDepositor, registry.RoleViewer, registry.RoleOperator, registry.RoleAdmin} {
		s.Token = s.TokenOf(t, "embargo "+string(role), role)
		for _, path := range []string{"/objects/" + ark, "/objects/" + ark + "?file=" + url.QueryEscape(file)} {
			text := s.get(t, path, http.StatusOK)
			leads := strings.Contains(text, "/export") || strings.Contains(text, "/content?")
			if role != registry.RoleAdmin && !strings.Contains(text, "2999-01-01") || leads != (role == registry.RoleAdmin) {
				t.Errorf("%s sees of %s: the embargo %v, a way to the bytes %v", role, path, strings.Contains(text, "2999-01-01"), leads)
			}
		}
	}
}
