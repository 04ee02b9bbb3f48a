package ui_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// consequential is a Registry in which cancelling has consequences.
type consequential struct{ scope.Registry }

func (c consequential) Command(ctx context.Context, cmd registry.Command) (registry.WorkItem, error) {
	if cmd.Act == registry.ActCancel && !cmd.Confirmed {
		return registry.WorkItem{}, &registry.ConfirmationNeeded{ItemID: cmd.ItemID, Act: cmd.Act, Consequences: []string{
			"the mail to " + hostile + " is not sent", "the folder /x goes",
		}}
	}
	return c.Registry.Command(ctx, cmd)
}

// clerk is the name of an admin, who may do everything.
const clerk = "clerk " + hostile

func withClerk(t *testing.T) *site {
	t.Helper()
	s := uitest.New(t, uitest.Options{Registry: func(r scope.Registry) scope.Registry { return consequential{r} }})
	s.Token = s.TokenOf(t, clerk, registry.RoleAdmin)
	return siteOf(s)
}

// post sends a form.
func (s *site) post(t testing.TB, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	return s.Post(t, path, form)
}

// mainOf is the part of a page that is not the same on all pages.
func mainOf(text string) string {
	_, text, _ = strings.Cut(text, "<main ")
	text, _, _ = strings.Cut(text, "</main>")
	return text
}

// fields reads the fields of the form on a page.
func fields(text string) url.Values {
	form := url.Values{}
	_, text, _ = strings.Cut(text, `class="act">`)
	for _, part := range strings.Split(text, "<input ")[1:] {
		_, name, ok := strings.Cut(part, `name="`)
		name, _, _ = strings.Cut(name, `"`)
		_, value, _ := strings.Cut(part, `value="`)
		value, _, _ = strings.Cut(value, `"`)
		if ok {
			form.Set(name, value)
		}
	}
	return form
}

// TestForms_Confirmation checks that an act with consequences needs a confirmation that lists them,
// and that a form sent twice acts once.
func TestForms_Confirmation(t *testing.T) {
	s := withClerk(t)
	receipt, err := s.store.Submit(t.Context(), registry.Submission{Collection: "default", Name: hostile, Spec: registry.Spec{URL: "http://h.test/"}})
	must(t, err)
	id := receipt.BatchID
	path := "/items/" + id + "/acts"
	text := s.get(t, path+"?act=cancel", http.StatusOK)
	wantTame(t, path, text)
	if strings.Contains(text, "http-equiv") {
		t.Error("the form loads itself again under whoever types")
	}
	if !strings.Contains(text, "The mail to") || !strings.Contains(text, "The folder /x goes") {
		t.Errorf("the form does not say the consequences:\n%s", text)
	}
	form := fields(text)
	if form.Get("confirm") != "yes" {
		t.Error("the form does not confirm the consequences that it shows")
	}
	form.Del("confirm") // as if they had come since
	form.Set("reason", "because "+hostile)
	w := s.post(t, path, form)
	wantTame(t, "confirmation", w.Body.String())
	for _, want := range []string{"Consequences", "The mail to", "The folder /x goes", `name="confirm" value="yes"`, "because"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("confirmation has no %q:\n%s", want, w.Body)
		}
	}
	it, err := s.store.Item(t.Context(), id)
	must(t, err)
	if w.Code != http.StatusConflict || it.Status == registry.Cancelled {
		t.Errorf("unconfirmed: %d, item %s", w.Code, it.Status)
	}
	confirmed := fields(w.Body.String())
	confirmed.Set("reason", "because")
	if confirmed.Get("key") != form.Get("key") || confirmed.Get("key") == "" {
		t.Errorf("key %q, then %q", form.Get("key"), confirmed.Get("key"))
	}
	for range 2 {
		w = s.post(t, path, confirmed)
		if w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/batches/"+id) {
			t.Errorf("confirmed: %d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
		}
	}
	events, err := s.store.Feed(t.Context(), registry.FeedQuery{Types: []string{"cancel"}})
	must(t, err)
	if len(events) != 1 {
		t.Errorf("%d events, want one", len(events))
	}
}

// TestForms_Refused checks that the form shows why the item no longer allows an act.
func TestForms_Refused(t *testing.T) {
	s := withClerk(t)
	batch, jobs := s.fill(t)
	path := "/items/" + jobs[1].ID + "/acts" // failed
	s.get(t, path+"?act=cancel", http.StatusConflict)
	s.get(t, path+"?act=nonsense", http.StatusConflict)
	s.get(t, "/items/none/acts?act=cancel", http.StatusNotFound)
	text := s.get(t, path+"?act=requeue", http.StatusOK)
	if !strings.Contains(text, `<option value="estimate">`) {
		t.Errorf("no stage to begin again at:\n%s", text)
	}
	for name, form := range map[string]url.Values{"no act": {}, "an act of workers": {"act": {"claim"}}} {
		if w := s.post(t, path, form); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d: %s", name, w.Code, w.Body)
		}
	}
	w := s.post(t, path, url.Values{"act": {"cancel"}, "confirm": {"yes"}})
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "Refused") || !strings.Contains(w.Body.String(), "is not allowed") {
		t.Errorf("refused: %d %s", w.Code, w.Body)
	}
	w = s.post(t, path, url.Values{"act": {"requeue"}, "from": {"estimate"}})
	location := w.Header().Get("Location")
	if w.Code != http.StatusSeeOther || !strings.Contains(location, "?did=") {
		t.Fatalf("requeue: %d %q %s", w.Code, location, w.Body)
	}
	if text := s.get(t, location, http.StatusOK); !strings.Contains(text, "Done: requeue by clerk") {
		t.Errorf("the page does not tell:\n%s", text)
	}
	if text := s.get(t, "/items/"+jobs[0].ID+location[strings.Index(location, "?"):], http.StatusOK); strings.Contains(text, "Done:") {
		t.Error("another item's page tells what did not happen to it")
	}
	if text := s.get(t, "/batches/"+batch, http.StatusOK); !strings.Contains(text, "<button name=\"act\"") {
		t.Error("a batch has no buttons")
	}
}

// TestForms_None checks that a viewer only reads.
func TestForms_None(t *testing.T) {
	s := newSite(t)
	_, jobs := s.fill(t)
	if text := s.get(t, "/items/"+jobs[0].ID, http.StatusOK); strings.Contains(mainOf(text), "<button") {
		t.Error("a page has buttons that nothing is behind")
	}
	s.get(t, "/items/"+jobs[0].ID+"/acts?act=cancel", http.StatusForbidden)
	if w := s.post(t, "/items/"+jobs[0].ID+"/acts", url.Values{"act": {"cancel"}}); w.Code != http.StatusForbidden {
		t.Errorf("post: %d", w.Code)
	}
	if w := s.post(t, "/holds/release", url.Values{"scope": {"all"}}); w.Code != http.StatusForbidden {
		t.Errorf("release: %d", w.Code)
	}
}

// queue is a Registry that knows how the queue stands.
type queue struct {
	scope.Registry
	status registry.QueueStatus
}

func (q queue) QueueStatus(context.Context) (registry.QueueStatus, error) { return q.status, nil }

func over(t *testing.T, q queue) *site {
	t.Helper()
	return siteOver(t, func(r scope.Registry) scope.Registry { q.Registry = r; return q }, nil)
}

func TestPages_SayWhenTheQueueStands(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stands := queue{status: registry.QueueStatus{Failing: []registry.Subscription{{Name: hostile, Error: hostile, FailingSince: &since, Behind: 17}}, Paused: &registry.Hold{Reason: hostile, Actor: "ann"}, Accepting: registry.Accepting{Reason: "moving " + hostile, Actor: "bob"}}}
	text := over(t, stands).get(t, "/operations", http.StatusOK)
	wantTame(t, "/operations", text)
	for _, want := range []string{"The queue is paused", "by ann", "Submissions are not accepted", "moving", "since 2026-03-01 12:00:00 UTC", "17 events wait"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	stands.status.Failing = append(stands.status.Failing, registry.Subscription{Name: "mirror", FailingSince: &since, Behind: 4})
	if text := over(t, stands).get(t, "/operations", http.StatusOK); !strings.Contains(text, "The receivers of 2 subscriptions fail") || strings.Contains(text, "17 events wait") {
		t.Error("two subscriptions that fail are not told in one line")
	}
	goes := queue{status: registry.QueueStatus{Accepting: registry.Accepting{On: true}}}
	if text := over(t, goes).get(t, "/operations", http.StatusOK); strings.Contains(text, "paused") || strings.Contains(text, "not accepted") {
		t.Error("the page says that the queue stands")
	}
}

func TestPages_Holds(t *testing.T) {
	s := withClerk(t)
	if text := s.get(t, "/holds", http.StatusOK); !strings.Contains(text, "There are no holds") {
		t.Error("an empty list does not say so")
	}
	batch, _ := s.fill(t)
	must(t, s.store.AddHold(t.Context(), registry.Hold{Scope: registry.HoldBatch, Key: batch, Reason: hostile, Actor: hostile}))
	text := s.get(t, "/holds", http.StatusOK)
	wantTame(t, "/holds", text)
	if !strings.Contains(text, `href="/batches/`+batch) || !strings.Contains(text, `href="/holds/release?key=`) {
		t.Errorf("holds:\n%s", text)
	}
}

// TestPages_Bulk checks that the page of a bulk act shows its request, progress and refusals.
func TestPages_Bulk(t *testing.T) {
	s := withClerk(t)
	s.fill(t)
	match, err := query.Parse("state:failed,completed")
	must(t, err)
	bulk, err := s.store.Bulk(t.Context(), registry.BulkRequest{Match: match, Act: registry.ActDelete, Reason: hostile, Actor: hostile, Confirmed: true})
	must(t, err)
	lease := s.claim(t, registry.Apply)
	for { // a portion at a time
		p, err := s.store.ApplyNext(t.Context(), lease)
		must(t, err)
		if p.Done {
			break
		}
	}
	text := s.get(t, "/items/"+bulk.ID, http.StatusOK)
	wantTame(t, "bulk", text)
	for _, want := range []string{"<dt>Done</dt><dd>1 item</dd>", "requested: delete state:failed,completed"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	for _, unwanted := range []string{"map[", "<dt>Size", "<dd></dd>"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("the page says %q", unwanted)
		}
	}
}

// TestForms_ReleaseOfAnother checks that releasing an item that another hold covers is refused in
// the form.
func TestForms_ReleaseOfAnother(t *testing.T) {
	s := withClerk(t)
	receipt, err := s.store.Submit(t.Context(), registry.Submission{Collection: "default", Name: "a", Spec: registry.Spec{URL: "http://h.test/"}})
	must(t, err)
	must(t, s.store.AddHold(t.Context(), registry.Hold{Scope: registry.HoldAll, Reason: "disks", Actor: "ann"}))
	w := s.post(t, "/items/"+receipt.BatchID+"/acts", url.Values{"act": {"release-hold"}})
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "Refused") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}
