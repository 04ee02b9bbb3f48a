package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
)

// TestSchedule: the commands create, show, edit, pause, resume, run and delete a schedule.
func TestSchedule(t *testing.T) {
	dir := up(t)
	holdfast(t, "schedule", "list", "--dir", dir).Wants(t, exit.OK).Says(t, "no schedules")
	create := []string{"schedule", "create", "nightly", "--cron", "30 2 1 1 *", "--zone", "Europe/Berlin", "--function", "count", "--args", `{"n":1}`, "--jitter", "10m", "--dir", dir}
	holdfast(t, create...).Wants(t, exit.NotFound).Says(t, `unknown function "count"`)
	announce(t, dir, registry.Function{Name: "count", Args: json.RawMessage(`{"type":"object"}`)})
	if would := holdfast(t, append(create, "--dry-run")...).Wants(t, exit.OK).Out; strings.Count(would, "next") != registry.NextTimes {
		t.Errorf("a dry run:\n%s", would)
	}
	holdfast(t, "schedule", "show", "nightly", "--dir", dir).Wants(t, exit.NotFound)
	holdfast(t, create...).Wants(t, exit.OK)
	holdfast(t, create...).Wants(t, exit.OK) // the answer was lost
	holdfast(t, "schedule", "create", "nightly", "--cron", "@daily", "--function", "count", "--args", "{}", "--dir", dir).Wants(t, exit.Refused).Says(t, "has this name")
	holdfast(t, "schedule", "create", "b", "--cron", "61 * * * *", "--function", "count", "--args", "{}", "--dir", dir).Wants(t, exit.Usage).Says(t, "cron expression")
	holdfast(t, "schedule", "create", "b", "--cron", "@daily", "--dir", dir).Wants(t, exit.Usage).Says(t, "--function")
	shown := holdfast(t, "schedule", "show", "nightly", "--dir", dir).Wants(t, exit.OK).Out
	for _, want := range []string{"30 2 1 1 *", "Europe/Berlin", "count", "10m0s", "skip", "once"} {
		if !strings.Contains(shown, want) {
			t.Errorf("schedule show does not say %q:\n%s", want, shown)
		}
	}
	if n := strings.Count(shown, "next"); n != registry.NextTimes {
		t.Errorf("%d next times:\n%s", n, shown)
	}
	holdfast(t, "schedule", "edit", "nightly", "--cron", "@hourly", "--dry-run", "--dir", dir).Wants(t, exit.OK).Says(t, "nothing was changed")
	edited := holdfast(t, "schedule", "edit", "nightly", "--zone", "UTC", "--dir", dir).Wants(t, exit.OK).Out
	if !strings.Contains(edited, "UTC") || !strings.Contains(edited, "30 2 1 1 *") || !strings.Contains(edited, "10m0s") {
		t.Errorf("edited:\n%s", edited)
	}
	if out := holdfast(t, "schedule", "pause", "nightly", "--reason", "the source moves", "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(out, "the source moves") {
		t.Errorf("paused:\n%s", out)
	}
	ran := strings.TrimSpace(holdfast(t, "schedule", "run", "nightly", "--idempotency-key", "k", "--dir", dir).Wants(t, exit.OK).Out)
	if again := strings.TrimSpace(holdfast(t, "schedule", "run", "nightly", "--idempotency-key", "k", "--dir", dir).Wants(t, exit.OK).Out); again != ran {
		t.Errorf("the repeat made %s, not %s", again, ran)
	}
	holdfast(t, "schedule", "run", "nightly", "--dir", dir).Wants(t, exit.Refused).Says(t, "has not ended")
	holdfast(t, "task", "show", ran, "--dir", dir).Wants(t, exit.OK)
	holdfast(t, "schedule", "resume", "nightly", "--dir", dir).Wants(t, exit.OK)
	var s struct {
		registry.Schedule

		Firings []registry.Firing `json:"firings"`
	}
	text := holdfast(t, "schedule", "show", "nightly", "--json", "--dir", dir).Wants(t, exit.OK).Out
	if err := json.Unmarshal([]byte(text), &s); err != nil || len(s.Firings) != 1 || s.Firings[0].ItemID != ran || s.Version != 2 || s.Paused != nil {
		t.Errorf("%s: %v", text, err)
	}
	if list := holdfast(t, "schedule", "list", "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(list, "nightly") {
		t.Errorf("schedule list:\n%s", list)
	}
	holdfast(t, "schedule", "delete", "nightly", "--dir", dir).Wants(t, exit.OK)
	holdfast(t, "schedule", "show", "nightly", "--dir", dir).Wants(t, exit.NotFound)
}
