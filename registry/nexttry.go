package registry

import (
	"fmt"
	"time"
)

// NextTry is the try that an item waits for since its step failed on a system fault.
type NextTry struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`      // of this step: from 2 on
	Of      int       `json:"of,omitempty"` // the try after which the item fails; 0: not known
}

// StateText is a state as people read it. Of an item that waits for its next try nothing runs, so that it is told when that is
// due instead of the step's name: Retry at 18:23, attempt 3 of 5. Times are in the zone of now, which is named when it is UTC.
func StateText(s State, next *NextTry, now time.Time) string {
	if next == nil {
		return string(s)
	}
	text := "Retry due"
	if at := next.At.In(now.Location()); at.After(now) {
		form := "15:04"
		if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
			form = "2006-01-02 15:04"
		}
		if now.Location() == time.UTC {
			form += " MST"
		}
		text = "Retry at " + at.Format(form)
	}
	text += fmt.Sprintf(", attempt %d", next.Attempt)
	if next.Of > 0 {
		text += fmt.Sprintf(" of %d", next.Of)
	}
	return text
}

// StateText is the item's state as people read it, see [StateText].
func (it WorkItem) StateText(now time.Time) string { return StateText(it.State, it.NextTry, now) }

// StateText is the job's state as people read it, see [StateText].
func (j JobResult) StateText(now time.Time) string { return StateText(j.State, j.NextTry, now) }
