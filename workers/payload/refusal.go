package payload

import (
	"errors"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/intake"
)

// NoteRefusal writes the first hundred errors of what err refuses to the item's history, as an event of a kind: the item's note has
// room for a few. It does nothing when err refuses nothing.
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
