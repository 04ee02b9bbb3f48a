package workers

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/staging"
)

// identification is what identifying the formats of a version's files came to: one event over all of them.
type identification struct {
	Agent   string    `json:"agent"` // that found them, with its version
	At      time.Time `json:"at"`
	Files   int64     `json:"files"`            // the producer's
	Known   int64     `json:"known"`            // of them, those whose format is known
	Kept    int64     `json:"kept,omitempty"`   // of the known ones, those whose content an earlier version identified
	Warned  int64     `json:"warned,omitempty"` // of the known ones, those whose format is not certain
	Large   int64     `json:"large,omitempty"`  // of the others, those that are larger than the identifier takes
	Unknown []string  `json:"unknown,omitempty"`
}

// add counts a file. Where nobody was asked for its format, its media type is what is known of it.
func (r *identification) add(f staging.File, t finding, asked bool) {
	known := t.Format != nil
	if !asked {
		known = f.MIMEType != format.Unknown
	}
	r.Files++
	switch {
	case known:
		r.Known++
		r.Kept += count(t.kept)
		r.Warned += count(t.Format != nil && t.Format.Warning != "")
		return
	case len(r.Unknown) < named:
		r.Unknown = append(r.Unknown, strings.TrimPrefix(f.Name, producerFolder))
	}
	r.Large += count(t.Large)
}

func count(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// detail is the event's text.
func (r *identification) detail() string {
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
