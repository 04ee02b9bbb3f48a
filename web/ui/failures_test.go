package ui_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// TestFailures_Requeue checks that pages group failures by cause, and that a form requeues a group,
// once even if it is sent twice.
func TestFailures_Requeue(t *testing.T) {
	s := withClerk(t)
	batch, jobs := s.fill(t)
	list, err := s.store.Failures(t.Context(), registry.ItemQuery{ParentID: batch})
	must(t, err)
	if len(list.Rows) != 1 || list.Rows[0].ItemID != jobs[1].ID {
		t.Fatalf("groups %+v", list.Rows)
	}
	cause := "cause:" + list.Rows[0].Fingerprint
	address := func(match string) string {
		return "/items/act?" + url.Values{"act": {"requeue"}, "all": {"yes"}, "q": {match}}.Encode()
	}
	for path, match := range map[string]string{"/operations": "-class:jobs " + cause, "/batches/" + batch: "batch:" + batch + " " + cause} {
		text := s.get(t, path, http.StatusOK)
		wantTame(t, path, text)
		for _, want := range []string{`<form action="/items/act"`, `<button name="q" value="` + match + `">Requeue this one</button>`, "The producer corrects the deposit", `<a href="/items?q=` + strings.ReplaceAll(url.PathEscape(match), ":", "%3a") + `">`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q:\n%s", path, want, text)
			}
		}
		wants := s.get(t, "/items?"+url.Values{"q": {match}}.Encode(), http.StatusOK) // the cause as an address
		if !strings.Contains(wants, "1 item matches") || !strings.Contains(wants, "/items/"+jobs[1].ID) {
			t.Errorf("the list of %s:\n%s", match, wants)
		}
	}
	text := s.get(t, address("batch:"+batch+" "+cause), http.StatusOK)
	wantTame(t, "the form", text)
	for _, want := range []string{"Requeue: 1 item", "1 item matches now", "Why they failed", "The producer corrects the deposit"} {
		if !strings.Contains(text, want) {
			t.Errorf("the form has no %q:\n%s", want, text)
		}
	}
	form := fields(text)
	form.Set("reason", "mended "+hostile)
	form.Set("now", "yes")
	var home string
	for range 2 {
		w := s.post(t, "/items/act", form)
		location := w.Header().Get("Location")
		if w.Code != http.StatusSeeOther || !strings.HasPrefix(location, "/bulk/") || home != "" && location != home {
			t.Fatalf("%d to %q, before to %q: %s", w.Code, location, home, w.Body)
		}
		home = location
	}
	bulk, err := s.store.Item(t.Context(), strings.TrimPrefix(home, "/bulk/"))
	must(t, err)
	var spec registry.BulkSpec
	must(t, json.Unmarshal(bulk.Spec, &spec))
	if spec.Act != registry.ActRequeue || spec.Match.String() != "batch:"+batch+" "+cause || spec.Reason != form.Get("reason") || spec.Matched != 1 || bulk.CreatedBy != "clerk "+hostile {
		t.Errorf("asked %+v by %s", spec, bulk.CreatedBy)
	}
	p, err := s.store.ApplyNext(t.Context(), s.claim(t, registry.Apply))
	must(t, err)
	it, err := s.store.Item(t.Context(), jobs[1].ID)
	must(t, err)
	if p.Applied != 1 || it.RetryCount != 1 || it.Status == registry.Failed {
		t.Errorf("applied %+v, item %s, requeued %d times", p, it.Status, it.RetryCount)
	}
	if text := s.get(t, address("batch:"+batch+" "+cause), http.StatusOK); !strings.Contains(text, "There is nothing to do.") {
		t.Errorf("nothing has failed, and the form says:\n%s", text)
	}
	form.Set("reason", "another")
	if w := s.post(t, "/items/act", form); !strings.Contains(w.Body.String(), `role="alert"`) {
		t.Errorf("the key with another reason: %d", w.Code)
	}
	if text := s.get(t, "/batches/"+batch, http.StatusOK); strings.Contains(text, "Failures") {
		t.Error("the batch shows failures that there are not")
	}
}

// TestFailures_Read checks that who may not act sees the groups, without buttons.
func TestFailures_Read(t *testing.T) {
	reader := newSite(t)
	reader.fill(t)
	if text := reader.get(t, "/operations", http.StatusOK); !strings.Contains(text, "Failed items by cause") || !strings.Contains(text, "cause%3a") || strings.Contains(text, "/items/act") {
		t.Errorf("a reader does not see the groups, or sees buttons:\n%s", text)
	}
	form := url.Values{"act": {"requeue"}, "q": {"cause:0f0f0f0f0f0f0f0f"}}
	if w := reader.post(t, "/items/act", form); w.Code != http.StatusForbidden {
		t.Errorf("a reader acts: %d", w.Code)
	}
	long := url.Values{"act": {"requeue"}, "q": {"cause:0f0f0f0f0f0f0f0f"}, "reason": {strings.Repeat("x", 2001)}}
	if w := withClerk(t).post(t, "/items/act", long); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a long reason: %d", w.Code)
	}
}
