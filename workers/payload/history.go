package payload

import (
	"errors"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
)

const (
	// resultWarned records that the event was written, so that no later stage repeats it.
	resultWarned = "warned"
	// warningsKept is how many of a manifest's warnings are recorded in full.
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

// Warn records the warnings about the item's manifest in its history, once. Call it at the very end
// of a step: events are written whatever the outcome, and a repeated step would write them again.
func Warn(item *base.Item) error {
	var m Manifest
	if ok, err := item.Result(resultManifest, &m); !ok || err != nil || m.Warnings == 0 {
		return err
	}
	if told, err := item.Result(resultWarned, nil); told || err != nil {
		return err
	}
	if err := item.Event(registry.EventManifestWarnings, map[string]any{"count": m.Warnings, "first": m.Warned}); err != nil {
		return err
	}
	return item.SetResult(resultWarned, true)
}

// NoteRefusal records the first hundred errors of a refusal in the item's history, as an event of a
// kind; the item's note has room for only a few. It does nothing if err is no refusal.
func NoteRefusal(item *base.Item, kind string, err error) error {
	const told = 100
	var refused *intake.Refusal
	if !errors.As(err, &refused) {
		return nil
	}
	report := refused.Report
	errs := report.Of(intake.Error)
	report.Faults = errs[:min(len(errs), told)]
	return item.Event(kind, report)
}
