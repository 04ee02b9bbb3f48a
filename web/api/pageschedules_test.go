package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// TestPages_Schedules: operators run, pause and resume schedules; viewers see them without buttons,
// and depositors not at all.
func TestPages_Schedules(t *testing.T) {
	b := newBench(t, withPages)
	const hostile = `<script>alert(1)</script>`
	operator, viewer := newBrowser(t, b, registry.RoleOperator), newBrowser(t, b, registry.RoleViewer)
	get := func(v *browser) string {
		t.Helper()
		answer, text := v.send(t, http.MethodGet, "/schedules", nil)
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%d: %s", answer.StatusCode, text)
		}
		return text
	}
	if text := get(operator); !strings.Contains(text, "There is none yet") || !strings.Contains(text, `<a href="/schedules" aria-current="true"`) {
		t.Errorf("without schedules: %s", text)
	}
	must(t, b.store.Announce(t.Context(), []registry.Function{{Name: "harvest"}}))
	_, err := b.store.AddSchedule(t.Context(), registry.ScheduleRequest{Name: "nightly", Actor: "ann", ScheduleSpec: registry.ScheduleSpec{
		Cron: "30 2 * * *", Zone: "Europe/Berlin", Task: &registry.ScheduledTask{Function: "harvest", Args: json.RawMessage(`1`)},
	}})
	must(t, err)
	text := get(operator)
	if n := strings.Count(text, "02:30 CE"); n != registry.NextTimes {
		t.Errorf("%d next times: %s", n, text)
	}
	for _, want := range []string{"nightly", "harvest", "30 2 * * *", "Europe/Berlin", "<summary>then</summary>", "none yet", `value="run"`, `value="pause"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q: %s", want, text)
		}
	}
	if text := get(viewer); !strings.Contains(text, "nightly") || strings.Contains(mainOf(text), "<button") {
		t.Errorf("a viewer sees %s", text)
	}
	depositor := newBrowser(t, b, registry.RoleDepositor)
	if answer, _ := depositor.send(t, http.MethodGet, "/schedules", nil); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a depositor: %d", answer.StatusCode)
	}
	if _, text := depositor.send(t, http.MethodGet, "/operations", nil); strings.Contains(text, "/schedules") {
		t.Error("a depositor has a link to the schedules")
	}

	act := func(v *browser, status int, pairs ...string) string {
		t.Helper()
		form := url.Values{"name": {"nightly"}}
		for i := 0; i+1 < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		answer, text := v.send(t, http.MethodPost, "/schedules/acts", form, "Sec-Fetch-Site", "same-origin")
		if answer.StatusCode != status {
			t.Fatalf("%v: %d, want %d: %s", form, answer.StatusCode, status, text)
		}
		return answer.Header.Get("Location") + text
	}
	act(viewer, http.StatusForbidden, "act", "run", "key", "k")
	first := act(operator, http.StatusSeeOther, "act", "run", "key", "k")
	if again := act(operator, http.StatusSeeOther, "act", "run", "key", "k"); again != first || !strings.HasPrefix(first, "/items/") {
		t.Errorf("the form sent twice leads to %s and %s", first, again)
	}
	if text := act(operator, http.StatusConflict, "act", "run", "key", "other"); !strings.Contains(text, "has not ended") {
		t.Errorf("a second run: %s", text)
	}
	act(operator, http.StatusNotFound, "act", "resume", "name", "nowhere")
	act(operator, http.StatusUnprocessableEntity, "act", "pause", "reason", " ")
	act(operator, http.StatusBadRequest, "act", "explode")
	act(operator, http.StatusSeeOther, "act", "pause", "reason", hostile)
	s, err := b.store.Schedule(t.Context(), "nightly")
	must(t, err)
	if s.Paused == nil || s.Paused.Actor != "the operator" || s.Last == nil || s.Last.Actor != "the operator" {
		t.Errorf("after pause and run: %+v", s)
	}
	if text := get(operator); strings.Contains(text, hostile) || !strings.Contains(text, `value="resume"`) || !strings.Contains(text, first) || !strings.Contains(text, "none</td>") {
		t.Errorf("paused: %s", text)
	}
	act(operator, http.StatusSeeOther, "act", "resume")
	s, err = b.store.Schedule(t.Context(), "nightly")
	must(t, err)
	if s.Paused != nil {
		t.Errorf("after resume: %+v", s.Paused)
	}
}
