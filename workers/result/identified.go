package result

import (
	"fmt"
	"strings"
	"time"
)

// Identified summarises the identification of a version's formats: one event over all files.
type Identified struct {
	Agent   string    `json:"agent"` // identifier with its version
	At      time.Time `json:"at"`
	Files   int64     `json:"files"`            // the producer's files
	Known   int64     `json:"known"`            // files of known format
	Kept    int64     `json:"kept,omitempty"`   // known files whose content an earlier version identified
	Warned  int64     `json:"warned,omitempty"` // known files whose format is uncertain
	Large   int64     `json:"large,omitempty"`  // unknown files that are too large for the identifier
	Unknown []string  `json:"unknown,omitempty"`
}

// Detail returns the event's text.
func (r *Identified) Detail() string {
	text := fmt.Sprintf("%d of %d files identified", r.Known, r.Files)
	if r.Kept > 0 {
		text += fmt.Sprintf(", %d of them by an earlier version with the same content", r.Kept)
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
		text += fmt.Sprintf("; %d of these are too large for the identifier", r.Large)
	}
	return text
}
