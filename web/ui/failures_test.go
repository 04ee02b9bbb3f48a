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
	for path, match := range map[string]string{"/operations": "-class:jobs " + cause, "/batches/" + batch: "batch:" + batch + " " + cause} {
		text := s.get(t, path, http.StatusOK)
		wantTame(t, path, text)
		if !strings.Contains(text, `<button name="match" value="`+match+`">Requeue this one</button>`) || !strings.Contains(text, "the producer corrects the deposit") {
			t.Errorf("%s has no button for %q:\n%s", path, match, text)
		}
	}
	address := "/failures/requeue?" + url.Values{"match": {"batch:" + batch + " " + cause}}.Encode()
	text := s.get(t, address, http.StatusOK)
	wantTame(t, address, text)
	if !strings.Contains(text, "Requeue 1 item") || strings.Contains(text, "http-equiv") {
		t.Errorf("form:\n%s", text)
	}
	form := fields(text)
	form.Set("reason", "mended "+hostile)
	var home string
	for range 2 {
		w := s.post(t, "/failures/requeue", form)
		location := w.Header().Get("Location")
		if w.Code != http.StatusSeeOther || !strings.HasPrefix(location, "/items/") || home != "" && location != home {
			t.Fatalf("%d to %q, before to %q: %s", w.Code, location, home, w.Body)
		}
		home = location
	}
	bulk, err := s.store.Item(t.Context(), strings.TrimPrefix(home, "/items/"))
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
	s.get(t, address, http.StatusConflict)
	form.Set("reason", "another")
	if w := s.post(t, "/failures/requeue", form); w.Code != http.StatusConflict {
		t.Errorf("the key with another reason: %d", w.Code)
	}
	if text := s.get(t, "/batches/"+batch, http.StatusOK); strings.Contains(text, "Failures") {
		t.Error("the batch shows failures that there are not")
	}
}

// TestFailures_Refused checks that the form refuses queries that do not select a group of failures.
func TestFailures_Refused(t *testing.T) {
	s := withClerk(t)
	_, jobs := s.fill(t)
	for name, match := range map[string]string{
		"nothing": "", "everything that failed": "state:failed", "all but a cause": "-cause:0f0f0f0f0f0f0f0f", "no query": "weather:fine", "no cause": "cause:x",
	} {
		form := url.Values{"match": {match}, "reason": {"r"}}
		s.get(t, "/failures/requeue?"+form.Encode(), http.StatusBadRequest)
		if w := s.post(t, "/failures/requeue", form); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d: %s", name, w.Code, w.Body)
		}
	}
	long := url.Values{"match": {"cause:0f0f0f0f0f0f0f0f"}, "reason": {strings.Repeat("x", 2001)}}
	if w := s.post(t, "/failures/requeue", long); w.Code != http.StatusBadRequest {
		t.Errorf("a long reason: %d", w.Code)
	}
	s.get(t, "/failures/requeue?match=cause%3A0f0f0f0f0f0f0f0f", http.StatusConflict)
	if it, err := s.store.Item(t.Context(), jobs[1].ID); err != nil || it.Status != registry.Failed {
		t.Errorf("item %s, %v", it.Status, err)
	}
	reader := newSite(t)
	reader.fill(t)
	if text := reader.get(t, "/operations", http.StatusOK); !strings.Contains(text, "Failed items by cause") || strings.Contains(text, "/failures/requeue") {
		t.Error("without forms the groups are not shown, or have buttons")
	}
	reader.get(t, "/failures/requeue?match=cause%3A0f0f0f0f0f0f0f0f", http.StatusForbidden)
	if w := reader.post(t, "/failures/requeue", long); w.Code != http.StatusForbidden {
		t.Errorf("post without forms: %d", w.Code)
	}
}
