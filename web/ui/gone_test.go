package ui_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

var wildcard = regexp.MustCompile(`\{[^}]*\}`)

// TestForms_Gone sends each form about something that another tab has removed. The answer is a page
// that says so, and shows what is there now; nothing is made anew.
func TestForms_Gone(t *testing.T) {
	keys, err := secret.Parse("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	must(t, err)
	s := siteOf(uitest.New(t, uitest.Options{Keys: keys}))
	s.Token = s.TokenOf(t, "keeper", registry.RoleAdmin)
	for _, to := range s.Site.Routes() {
		path, isForm := strings.CutPrefix(to, "POST ")
		if !isForm || !wildcard.MatchString(path) {
			continue
		}
		path = wildcard.ReplaceAllString(path, "01a21ffb-bc83-7963-89d3-000000000000")
		for _, do := range []string{"pause", "call", "check", "requeue", "save"} {
			form := url.Values{"do": {do}, "act": {do}, "reason": {"r"}, "name": {"new"}, "version": {"1"}, "target": {"https://h.test/x"}, "rest": {"{}"}, "cron": {"@daily"}, "function": {"f"}}
			w := s.post(t, path, form)
			if w.Code < http.StatusBadRequest {
				if strings.Contains(path, "remove") || strings.HasPrefix(path, "/uploads/") {
					continue // what is gone need not be removed
				}
				t.Errorf("%s (%s) is carried out: to %s", to, do, w.Header().Get("Location"))
				continue
			}
			if text := w.Body.String(); w.Code >= http.StatusInternalServerError || !strings.Contains(text, `role="alert"`) || !strings.Contains(text, "</form>") {
				t.Errorf("%s (%s): %d:\n%s", to, do, w.Code, mainOf(text))
			}
		}
	}
	all, err := s.store.Subscriptions(t.Context())
	if must(t, err); len(all) != 0 {
		t.Errorf("a save has made %+v", all)
	}
}

// TestForms_ChangedMeanwhile: who saves a subscription that another tab has changed is told, and keeps
// what was typed.
func TestForms_ChangedMeanwhile(t *testing.T) {
	s := siteOf(uitest.New(t, uitest.Options{}))
	_, err := s.store.PutSubscription(t.Context(), registry.SubscriptionRequest{Name: "catalogue", Target: "https://receiver.test/hook", Actor: "test"})
	must(t, err)
	p := s.Visit(t, s.TokenOf(t, "keeper", registry.RoleAdmin))
	const address = "/subscriptions/catalogue/edit"
	mine, theirs := p.Open(address), p.Open(address)
	p.Send(theirs, address, url.Values{"target": {"https://theirs.test/hook"}})
	again, _ := p.Send(mine, address, url.Values{"target": {"https://mine.test/hook"}})
	if again.Status != http.StatusConflict || !strings.Contains(again.Text, "https://theirs.test/hook") || !strings.Contains(again.Text, `value="https://mine.test/hook"`) {
		t.Fatalf("%d:\n%s", again.Status, again.Main())
	}
	p.Send(again, address, nil)
	now, err := s.store.Subscriptions(t.Context())
	if must(t, err); len(now) != 1 || now[0].Target != "https://mine.test/hook" {
		t.Errorf("it is %+v", now)
	}
}

// TestPages_BadCursor: an address with the place of another list says so, and leads to the first page.
func TestPages_BadCursor(t *testing.T) {
	s := siteOf(uitest.New(t, uitest.Options{}))
	for _, cursor := range []string{"after", "before"} {
		for _, path := range []string{"/items?order=oldest", "/objects?text=x"} {
			at, _, _ := strings.Cut(path, "=")
			w := s.Send(t, http.MethodGet, path+"&"+cursor+"=nonsense", nil)
			text := w.Body.String()
			if w.Code != http.StatusUnprocessableEntity || !strings.Contains(text, "Open the first page of the list") || !strings.Contains(text, `href="`+at) || strings.Contains(text, "nonsense") && !strings.Contains(text, `name="next"`) {
				t.Errorf("%s with a wrong %s: %d\n%s", path, cursor, w.Code, mainOf(text))
			}
		}
	}
}
