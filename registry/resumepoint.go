package registry

import (
	"encoding/json"
	"strings"
)

// ResumePoint tells people how much of an item's present step is done and kept, so that a restart continues there; "" where
// nothing is. attempts are all of the item's, oldest first. What a restart finds may be a little less: a kill costs what
// came after the last checkpoint.
func ResumePoint(it WorkItem, attempts []Attempt) string {
	if it.Status.Settled() && it.Status != Failed && it.Status != Cancelled {
		return ""
	}
	var forgotten int64 // attempts up to this one have left nothing to go on with
	if raw, ok := it.Results[ResultRecheck]; ok {
		_ = json.Unmarshal(raw, &forgotten) // which the Registry wrote
	}
	var furthest []Progress
	for i := len(attempts) - 1; i >= 0 && attempts[i].Stage == it.Stage && attempts[i].N > forgotten; i-- {
		for _, p := range attempts[i].Progress {
			furthest = keep(furthest, p)
		}
	}
	var parts []string
	for _, p := range furthest {
		parts = append(parts, p.kept(it))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "; a restart continues here"
}

// keep adds a measure whose work is kept, unless an attempt came further: a worker that takes over counts up from nothing.
func keep(furthest []Progress, p Progress) []Progress {
	if !p.Kept || p.Position <= 0 {
		return furthest
	}
	for i, have := range furthest {
		if have.Title == p.Title {
			if have.Position < p.Position {
				furthest[i] = p
			}
			return furthest
		}
	}
	return append(furthest, p)
}

// kept says how far a measure is: 48,211 of 70,002 files transferred; 1.2 of 1.9 TiB transferred. Where the measure does
// not know how far it will go, the item may.
func (p Progress) kept(it WorkItem) string {
	text, what, end := CountText, p.Title, p.End
	if p.Unit == "bytes" {
		text, what = SizeText, strings.TrimPrefix(p.Title, "bytes ")
	}
	switch {
	case end >= 0 || it.Stage != Download:
	case p.Unit == "bytes":
		end = it.SizeBytes
	default:
		end = it.Files
	}
	at := text(p.Position)
	if end >= p.Position {
		of := text(end)
		if number, unit, ok := strings.Cut(at, " "); ok && strings.HasSuffix(of, " "+unit) {
			at = number
		}
		at += " of " + of
	}
	return at + " " + what
}
