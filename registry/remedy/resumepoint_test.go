package remedy_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/remedy"
)

func TestResumePoint(t *testing.T) {
	files := func(at, end int64) registry.Progress {
		return registry.Progress{Title: "files transferred", Unit: "files", Position: at, End: end, Kept: true}
	}
	bytes := registry.Progress{Title: "bytes transferred", Unit: "bytes", Position: 12 << 37, End: -1, Kept: true}
	reread := registry.Progress{Title: "bytes read back", Unit: "bytes", Position: 5, End: -1}
	at := registry.WorkItem{Stage: registry.Download, Status: registry.Pending, Files: 70_002, SizeBytes: 19 << 37}
	attempt := func(n int64, s registry.Stage, p ...registry.Progress) registry.Attempt {
		return registry.Attempt{N: n, Stage: s, Progress: p}
	}
	with := func(change func(*registry.WorkItem)) registry.WorkItem {
		it := at
		change(&it)
		return it
	}
	for name, c := range map[string]struct {
		item     registry.WorkItem
		attempts []registry.Attempt
		want     string
	}{
		"download": {
			at,
			[]registry.Attempt{attempt(1, registry.Estimate), attempt(2, registry.Download, bytes, files(48_211, -1), reread)},
			"1.5 of 2.4 TiB transferred, 48,211 of 70,002 files transferred; a restart continues here",
		},
		"a successor that has just begun": {
			at,
			[]registry.Attempt{attempt(2, registry.Download, files(9, -1)), attempt(3, registry.Download, files(1, -1))},
			"9 of 70,002 files transferred; a restart continues here",
		},
		"another stage":  {with(func(it *registry.WorkItem) { it.Stage = registry.Process }), []registry.Attempt{attempt(2, registry.Download, files(9, -1))}, ""},
		"nothing kept":   {at, []registry.Attempt{attempt(2, registry.Download, reread)}, ""},
		"nothing begun":  {at, nil, ""},
		"it is over":     {with(func(it *registry.WorkItem) { it.Status = registry.Completed }), []registry.Attempt{attempt(2, registry.Download, files(9, -1))}, ""},
		"more than said": {with(func(it *registry.WorkItem) { it.Files = 3 }), []registry.Attempt{attempt(2, registry.Download, files(9, -1))}, "9 files transferred; a restart continues here"},
		"it failed": {
			with(func(it *registry.WorkItem) { it.Status, it.Stage = registry.Failed, registry.Record }),
			[]registry.Attempt{attempt(5, registry.Record, files(500, 700))},
			"500 of 700 files transferred; a restart continues here",
		},
		"sent back to be checked again": {
			with(func(it *registry.WorkItem) {
				it.Results = map[string]json.RawMessage{registry.ResultRecheck: json.RawMessage("2")}
			}),
			[]registry.Attempt{attempt(2, registry.Download, files(9, -1))},
			"",
		},
	} {
		if got := remedy.ResumePoint(c.item, c.attempts); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
