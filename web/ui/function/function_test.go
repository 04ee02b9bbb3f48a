package function_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

func as(t testing.TB, s *uitest.Server, role registry.Role) *uitest.Server {
	t.Helper()
	other := *s
	other.Token = s.TokenOf(t, "the "+string(role), role)
	return &other
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func has(t testing.TB, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
}

func lacks(t testing.TB, text string, nots ...string) {
	t.Helper()
	for _, not := range nots {
		if strings.Contains(text, not) {
			t.Errorf("the page has %q:\n%s", not, text)
		}
	}
}

func TestSchedule(t *testing.T) {
	const hostile = `<script>alert(1)</script>`
	s := uitest.New(t, uitest.Options{})
	operator := as(t, s, registry.RoleOperator)
	must(t, s.Store.Announce(t.Context(), []registry.Function{{Name: "harvest", Title: "Harvest " + hostile, Policy: registry.FunctionPolicy{AtOnce: 3}}}))
	has(t, operator.Get(t, "/functions", http.StatusOK), "harvest", "Harvest &lt;script&gt;", "at most 3", "none")
	has(t, operator.Get(t, "/new/schedule", http.StatusOK), `<option value="harvest">`)
	form := url.Values{
		"name": {"nightly"}, "cron": {"61 2 * * *"}, "zone": {"Europe/Berlin"}, "function": {"harvest"}, "args": {"[1"}, "title": {hostile},
		"overlap": {"allow"}, "catch_up": {"all"}, "jitter": {"soon"}, "priority": {"7"},
	}
	has(t, operator.Post(t, "/new/schedule", form).Body.String(), "Refused:", "not JSON; write text", "is not a whole number", "61 2 * * *", "&lt;script&gt;")
	form.Set("args", `{"from": 1}`)
	form.Set("jitter", "60")
	has(t, operator.Post(t, "/new/schedule", form).Body.String(), "Refused:", `value="60"`)
	form.Set("cron", "30 2 * * *")
	form.Set("function", "harvset")
	has(t, operator.Post(t, "/new/schedule", form).Body.String(), "Refused:", `value="harvset"`)
	form.Set("function", "harvest")

	// The times are shown before anything is saved.
	form.Set("do", "try")
	w := operator.Post(t, "/new/schedule", form)
	if n := strings.Count(w.Body.String(), "02:30 CE"); w.Code != http.StatusOK || n != registry.NextTimes {
		t.Errorf("status %d, %d next times: %s", w.Code, n, w.Body)
	}
	has(t, w.Body.String(), "Nothing is saved yet", `value="30 2 * * *"`)
	operator.Get(t, "/schedules/nightly", http.StatusNotFound)
	form.Del("do")
	if w := operator.Post(t, "/new/schedule", form); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/schedules/nightly" {
		t.Fatalf("status %d to %s: %s", w.Code, w.Header().Get("Location"), w.Body)
	}
	text := operator.Get(t, "/schedules/nightly", http.StatusOK)
	if n := strings.Count(text, "02:30 CE"); n != registry.NextTimes {
		t.Errorf("%d next times: %s", n, text)
	}
	has(t, text, "another one is submitted", "all are caught up", "up to 60 s", "{&#34;from&#34;:1}", "It has not fired yet", "&lt;script&gt;", "Remove the schedule")
	lacks(t, text, hostile)

	// A viewer sees the same without buttons.
	text = s.Get(t, "/schedules/nightly", http.StatusOK)
	lacks(t, text, `class="act"`, "/edit", `name="act"`)
	s.Get(t, "/schedules/nightly/edit", http.StatusForbidden)
	s.Get(t, "/new/schedule", http.StatusForbidden)
	for _, path := range []string{"/new/schedule", "/schedules/nightly/edit", "/schedules/nightly/remove", "/schedules/acts"} {
		if w := s.Post(t, path, url.Values{"name": {"nightly"}, "act": {"run"}, "cron": {"@daily"}, "function": {"harvest"}}); w.Code != http.StatusForbidden {
			t.Errorf("a viewer posts to %s: %d", path, w.Code)
		}
	}
	as(t, s, registry.RoleDepositor).Get(t, "/schedules/nightly", http.StatusForbidden)

	// Two people edit; the second is told.
	first, err := s.Store.Schedule(t.Context(), "nightly")
	must(t, err)
	has(t, operator.Get(t, "/schedules/nightly/edit", http.StatusOK), `name="version" value="1"`, `value="30 2 * * *"`, `value="allow" selected`)
	form = url.Values{"version": {"1"}, "cron": {"@daily"}, "zone": {"UTC"}, "function": {"harvest"}, "overlap": {"skip"}, "catch_up": {"once"}}
	if w := operator.Post(t, "/schedules/nightly/edit", form); w.Code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	form.Set("cron", "@hourly")
	w = operator.Post(t, "/schedules/nightly/edit", form)
	has(t, w.Body.String(), "Refused:", `value="@hourly"`, `name="version" value="2"`)
	now, err := s.Store.Schedule(t.Context(), "nightly")
	must(t, err)
	if now.Cron != "@daily" || now.Version != first.Version+1 {
		t.Errorf("the schedule is %+v", now)
	}
	if w := operator.Post(t, "/schedules/acts", url.Values{"name": {"nightly"}, "act": {"pause"}, "reason": {hostile}, "at": {"page"}}); w.Header().Get("Location") != "/schedules/nightly" {
		t.Errorf("%d to %s", w.Code, w.Header().Get("Location"))
	}
	has(t, operator.Get(t, "/schedules/nightly", http.StatusOK), "paused", "&lt;script&gt;", "None while it is paused")
	if w := operator.Post(t, "/schedules/nightly/remove", nil); w.Code != http.StatusSeeOther {
		t.Errorf("status %d", w.Code)
	}
	operator.Get(t, "/schedules/nightly", http.StatusNotFound)
}

func TestProcess(t *testing.T) {
	s := uitest.New(t, uitest.Options{})
	operator := as(t, s, registry.RoleOperator)
	must(t, s.Store.AnnounceNamespaces(t.Context(), []registry.Namespace{{Name: "curate"}}))
	_, err := s.Store.PutProcess(t.Context(), registry.PutProcess{
		ProcessKey: registry.ProcessKey{Namespace: "curate", ProcessID: "a b/c"}, History: []registry.ProcessEvent{{ID: 1, Payload: json.RawMessage(`"plates"`)}},
	})
	must(t, err)
	has(t, operator.Get(t, "/processes", http.StatusOK), "a b/c", "Functions")
	const path = "/processes/curate/a%20b%2Fc"
	has(t, operator.Get(t, path, http.StatusOK), "plates", "Call", "Remove")
	lacks(t, s.Get(t, path, http.StatusOK), `class="act"`, `name="do"`)
	for _, do := range []string{"call", "remove", "retry", "repair"} {
		if w := s.Post(t, path, url.Values{"do": {do}, "key": {"k"}}); w.Code != http.StatusForbidden {
			t.Errorf("a viewer may %s: %d", do, w.Code)
		}
	}
	if w := operator.Post(t, path, url.Values{"do": {"call"}, "args": {"{"}}); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("arguments that are no JSON: %d", w.Code)
	}
	if w := operator.Post(t, path, url.Values{"do": {"call"}, "args": {`{"n": 1}`}, "key": {"k"}}); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/items/") {
		t.Errorf("a call: %d to %s: %s", w.Code, w.Header().Get("Location"), w.Body)
	}
	if w := operator.Post(t, path, url.Values{"do": {"remove"}}); w.Code != http.StatusSeeOther && w.Code != http.StatusConflict {
		t.Errorf("a removal: %d: %s", w.Code, w.Body)
	}
}
