package search_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// saved posts a form of a view and returns the view that it leads to.
func (s site) saved(t *testing.T, path string, form url.Values) registry.View {
	t.Helper()
	w := s.Post(t, path, form)
	id, ok := strings.CutPrefix(w.Header().Get("Location"), "/items?view=")
	if w.Code != http.StatusSeeOther || !ok {
		t.Fatalf("%d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
	}
	v, err := s.Store.View(t.Context(), id)
	must(t, err)
	return v
}

// TestViews saves the present list, opens it by its address, replaces, renames, shares and removes it.
func TestViews(t *testing.T) {
	s := newSite(t, registry.RoleOperator)
	s.submit(t, "psalter", "harbour")
	form := url.Values{"q": {"action:batch psalter"}, "col": {"size", "by"}, "order": {"oldest"}, "name": {"Psalters <b>"}}
	v := s.saved(t, "/views", form)
	if v.Owner != "ann" || v.Query != "action:batch psalter" || !v.Oldest || strings.Join(v.Columns, " ") != "size by" || v.Shared {
		t.Errorf("saved %+v", v)
	}
	address := "view=" + v.ID
	wants(t, "opened", s.list(t, address), []string{"psalter", "Submitted by", `aria-current="true" title="action:batch psalter">Psalters &lt;b&gt;`, "Newest first", "This view", "Remove this view"}, ">harbour<", `<th scope="col">Stage`)
	wants(t, "the same list by itself", s.list(t, form.Encode()), []string{`aria-current="true" title="action:batch psalter">`}, "This view")
	wants(t, "another list", s.list(t, "q=harbour"), []string{`title="action:batch psalter">Psalters`, "Save as a view"}, `aria-current="true" title="action:batch psalter"`, "This view")
	s.Get(t, "/items?view=nothing", http.StatusNotFound)

	// A name that is used is replaced only when the reader says so, and only as the reader saw it.
	form.Set("q", "harbour")
	w := s.Post(t, "/views", form)
	wants(t, "the name again", w.Body.String(), []string{"Your view of this name", "<code>action:batch psalter</code>", "Replace it"})
	_, text, _ := strings.Cut(w.Body.String(), "Your view of this name")
	again := fields(text)
	again["col"] = form["col"]
	stale := url.Values{}
	for k, v := range again {
		stale[k] = v
	}
	v = s.saved(t, "/views", again)
	if v.Query != "harbour" || v.Version != 2 {
		t.Errorf("replaced %+v", v)
	}
	stale.Set("q", "other")
	if w := s.Post(t, "/views", stale); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "<code>harbour</code>") || !strings.Contains(w.Body.String(), `name="version" value="2"`) {
		t.Errorf("replaced as an earlier version: %d %s", w.Code, w.Body)
	}
	s.saved(t, "/views", url.Values{"name": {"taken"}})
	if w := s.Post(t, "/views/"+v.ID, url.Values{"name": {"taken"}, "version": {"2"}}); w.Code != http.StatusConflict {
		t.Errorf("renamed to a name that is used: %d %s", w.Code, w.Body)
	}
	v = s.saved(t, "/views/"+v.ID, url.Values{"name": {"Harbours"}, "shared": {"yes"}, "version": {"2"}})
	if v.Name != "Harbours" || !v.Shared || v.Query != "harbour" || !v.Oldest {
		t.Errorf("renamed %+v", v)
	}

	s.Token = s.TokenOf(t, "vic", registry.RoleViewer)
	wants(t, "a viewer", s.list(t, address), []string{`aria-current="true" title="harbour">Harbours <span class="figures">ann</span>`}, "Save as a view", "This view", "taken")
	if w := s.Post(t, "/views", form); w.Code != http.StatusForbidden {
		t.Errorf("a viewer saves: %d", w.Code)
	}
	if w := s.Post(t, "/views/"+v.ID+"/remove", nil); w.Code != http.StatusForbidden {
		t.Errorf("a viewer removes: %d", w.Code)
	}
	s.Token = s.TokenOf(t, "root", registry.RoleAdmin)
	wants(t, "an admin", s.list(t, address), []string{"Shared by ann.", "Remove this view"}, `id="rename"`)
	w = s.Post(t, "/views/"+v.ID+"/remove", nil)
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/items?col=size&col=by&order=oldest&q=harbour" {
		t.Errorf("removed: %d to %s", w.Code, to)
	}
	s.Get(t, "/items?"+address, http.StatusNotFound)
}

// TestViews_Pages checks that a view stays opened while its pages are turned.
func TestViews_Pages(t *testing.T) {
	s := newSite(t, registry.RoleOperator)
	names := make([]string, 60)
	for i := range names {
		names[i] = "b"
	}
	s.submit(t, names...)
	v := s.saved(t, "/views", url.Values{"q": {"action:batch"}, "name": {"all"}})
	next := link(s.list(t, "view="+v.ID), "next")
	if !strings.Contains(next, "view="+v.ID) || strings.Contains(next, "q=") {
		t.Errorf("the next page is %s", next)
	}
	wants(t, "the next page", s.list(t, strings.TrimPrefix(next, "/items?")), []string{"60 items match", "This view"})
}
