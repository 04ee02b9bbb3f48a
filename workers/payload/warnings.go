package payload

import (
	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/intake"
)

const (
	// eventWarnings is the event that tells of a manifest that was taken, but is likely not what was meant.
	eventWarnings = "manifest-warnings"
	// resultWarned says that it was told of, so that no later stage does so again.
	resultWarned = "warned"
	// warningsKept is how many of a manifest's warnings are kept in full.
	warningsKept = 10
)

// warningsOf returns the first warnings of a report as text.
func warningsOf(report intake.Report) []string {
	var texts []string
	warnings := report.Of(intake.Warning)
	for _, f := range warnings[:min(len(warnings), warningsKept)] {
		texts = append(texts, f.Error())
	}
	return texts
}

// Warn writes what is odd about the item's manifest to its history, once. Call it at the very end of a step: events are written
// whatever becomes of the step, and a repeated one would write them again.
func Warn(item *base.Item) error {
	var m Manifest
	if ok, err := item.Result(resultManifest, &m); !ok || err != nil || m.Warnings == 0 {
		return err
	}
	if told, err := item.Result(resultWarned, nil); told || err != nil {
		return err
	}
	if err := item.Event(eventWarnings, map[string]any{"count": m.Warnings, "first": m.Warned}); err != nil {
		return err
	}
	return item.SetResult(resultWarned, true)
}
