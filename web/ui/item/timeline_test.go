package item

import (
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// TestTimeline: each attempt has a bar in the row of its stage, each wait a thin one; the height is
// that of the route; a wait that is longer than the work is cut, and says how long it was.
func TestTimeline(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	end := func(d time.Duration) *time.Time { e := at.Add(d); return &e }
	it := registry.WorkItem{Action: registry.Ingest, Stage: registry.Download, Status: registry.Running, CreatedAt: at}
	if timelineOf(it, nil, at) != nil {
		t.Error("an item without attempts has a timeline")
	}
	d := timelineOf(it, []registry.Attempt{
		{N: 1, Stage: registry.Estimate, StartedAt: at.Add(24 * time.Hour), FinishedAt: end(24*time.Hour + time.Minute), Outcome: registry.OutcomeDone},
		{N: 2, Stage: registry.Download, StartedAt: at.Add(24*time.Hour + time.Minute), FinishedAt: end(24*time.Hour + 2*time.Minute), Outcome: registry.OutcomeRetry},
		{N: 3, Stage: registry.Download, StartedAt: at.Add(24*time.Hour + 2*time.Minute)},
	}, at.Add(24*time.Hour+5*time.Minute))
	route, _ := it.Route()
	if len(d.Rows) != len(route.Steps) || d.Height != timelineTop+len(route.Steps)*timelineRow {
		t.Errorf("%d rows in %d, want one for each of %d stages", len(d.Rows), d.Height, len(route.Steps))
	}
	first, download := d.Rows[0], d.Rows[2]
	if len(first.Bars) != 2 || first.Bars[0].Tone != "wait" || !first.Bars[0].Cut || first.Bars[0].Span != 24*time.Hour || first.Bars[1].Tone != "good" {
		t.Errorf("estimate: %+v", first)
	}
	if download.Stage != registry.Download || len(download.Bars) != 2 || download.Bars[0].Tone != "bad" || download.Bars[1].Tone != "active" || download.Time != 4*time.Minute || download.Tries != 2 {
		t.Errorf("download: %+v", download)
	}
	if !d.Shortened || !d.To.Equal(at.Add(24*time.Hour+5*time.Minute)) {
		t.Errorf("shortened %v, ends %v", d.Shortened, d.To)
	}
}

// TestMeasures: rate and time left are those since the attempt began; what the item knows completes
// what the step does not.
func TestMeasures(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	it := registry.WorkItem{SizeBytes: 6000, Files: -1}
	got := measuresOf(it, registry.Attempt{StartedAt: at, Progress: []registry.Progress{
		{Title: "bytes transferred", Unit: "bytes", Start: 1000, Position: 4000, End: -1, Kept: true},
		{Title: "rows", Unit: "rows", Position: 20, End: 10},
		{Title: "files transferred", Unit: "files", End: -1, Kept: true},
	}}, at.Add(time.Minute))
	if len(got) != 2 {
		t.Fatalf("%+v, want the two that say something", got)
	}
	if m := got[0]; m.Share != 66 || m.Rate != 50 || m.Left != 40*time.Second {
		t.Errorf("bytes: %+v", m)
	}
	if m := got[1]; m.Share != 100 || m.Rate != 20 || m.Left != 0 {
		t.Errorf("rows: %+v, never above 100 %%", m)
	}
}
