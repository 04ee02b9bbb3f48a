package checkm

import (
	"strconv"
	"time"
)

// parseModified reads a date and time as ISO 8601 has it. A time without a zone is taken
// as UTC. Merritt's own samples end in a fraction of a minute (00:00.000Z), which that
// standard allows.
func parseModified(s string) (time.Time, bool) {
	fraction := time.Duration(0)
	const minute = len("2006-01-02T15:04")
	if len(s) > minute && (s[minute] == '.' || s[minute] == ',') {
		end := minute + 1
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		part, err := strconv.ParseFloat("0."+s[minute+1:end], 64)
		if err != nil || end == minute+1 {
			return time.Time{}, false
		}
		fraction = time.Duration(part * float64(time.Minute))
		s = s[:minute] + s[end:]
	}
	for _, form := range []string{
		time.RFC3339Nano,
		"2006-01-02T15:04:05Z0700",
		"2006-01-02T15:04:05",
		"2006-01-02 15:04:05",
		"2006-01-02T15:04Z07:00",
		"2006-01-02T15:04",
		"2006-01-02",
	} {
		if t, err := time.Parse(form, s); err == nil {
			return t.Add(fraction).UTC(), true
		}
	}
	return time.Time{}, false
}
