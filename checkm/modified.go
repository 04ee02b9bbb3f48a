package checkm

import (
	"strconv"
	"time"
)

// parseModified reads an ISO 8601 date and time. A time without a zone is UTC. Merritt's own
// samples have a fraction of a minute (00:00.000Z), which the standard allows.
func parseModified(s string) (time.Time, bool) {
	if t, ok := plainModified(s); ok {
		return t, true
	}
	return anyModified(s)
}

// plainModified recognizes most dates, 2006-01-02T15:04:05Z, in a fifth of the time.
func plainModified(s string) (time.Time, bool) {
	const form = "0000-00-00T00:00:00Z"
	if len(s) != len(form) {
		return time.Time{}, false
	}
	for i := range len(form) {
		if f := form[i]; s[i] != f && (f != '0' || s[i] < '0' || s[i] > '9') {
			return time.Time{}, false
		}
	}
	two := func(at int) int { return int(s[at]-'0')*10 + int(s[at+1]-'0') }
	year, month, day := two(0)*100+two(2), two(5), two(8)
	hour, minute, second := two(11), two(14), two(17)
	if month < 1 || month > 12 || day < 1 || day > 28 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false // invalid, or a day that not every month has
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC), true
}

// anyModified reads all supported forms.
func anyModified(s string) (time.Time, bool) {
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
