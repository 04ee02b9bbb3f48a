package result

import (
	"fmt"
	"strings"
	"time"
)

// Identified is what identifying the formats of a version's files came to: one event over all of
// them.
type Identified struct {
	Agent   string    `json:"agent"` // that found them, with its version
	At      time.Time `json:"at"`
	Files   int64     `json:"files"`            // the producer's
	Known   int64     `json:"known"`            // of them, those whose format is known
	Kept    int64     `json:"kept,omitempty"`   // of the known ones, those whose content an earlier version identified
	Warned  int64     `json:"warned,omitempty"` // of the known ones, those whose format is not certain
	Large   int64     `json:"large,omitempty"`  // of the others, those that are larger than the identifier takes
	Unknown []string  `json:"unknown,omitempty"`
}

// Detail is the event's text.
func (r *Identified) Detail() string {
	text := fmt.Sprintf("%d of %d files identified", r.Known, r.Files)
	if r.Kept > 0 {
		text += fmt.Sprintf(", %d as an earlier version was, whose content they have", r.Kept)
	}
	if r.Warned > 0 {
		text += fmt.Sprintf(", %d with a warning", r.Warned)
	}
	missing := r.Files - r.Known
	if missing == 0 {
		return text
	}
	text += "; not identified: " + strings.Join(r.Unknown, ", ")
	if more := missing - int64(len(r.Unknown)); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if r.Large > 0 {
		text += fmt.Sprintf("; %d of these are larger than the identifier takes", r.Large)
	}
	return text
}
