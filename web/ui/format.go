package ui

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
)

func (p *pages) funcs() template.FuncMap {
	return template.FuncMap{
		"bytes": formatBytes, "count": formatCount, "moment": moment, "stamp": stamp, "ago": p.ago, "since": p.since,
		"tone": graphview.Tone, "mark": graphview.Mark, "objectURL": objectURL, "deletionURL": deletionURL, "decisionLabel": decisionLabel, "contentURL": contentURL, "details": details, "short": short,
		"capital": capital, "counted": counted, "label": label, "stateText": p.stateText, "holdURL": holdURL, "method": method, "uploadURL": uploadURL, "progressOf": progressOf,
		"inZone": inZone, "graphURL": graphURL, "aroundURL": aroundURL, "itemURL": itemURL, "add": func(a, b int) int { return a + b }, "part": part, "failedActs": func() []registry.Act { return failedActs },
	}
}

// formatBytes formats a size for people; "unknown" below 0.
func formatBytes(n int64) string {
	const unit = 1024
	switch {
	case n < 0:
		return "unknown"
	case n < unit:
		return strconv.FormatInt(n, 10) + " B"
	}
	value, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for value >= unit && len(names) > 1 {
		value, names = value/unit, names[1:]
	}
	return fmt.Sprintf("%.1f %s", value, names[0])
}

// formatCount groups a number's digits in thousands; "unknown" below 0.
func formatCount(n int64) string {
	if n < 0 {
		return "unknown"
	}
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// counted is a number of things, with the noun in the singular or plural.
func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return formatCount(n) + " " + what + "s"
}

// part is how much of the first measure of a progress is done, in percent; "" if that is not known.
func part(all []registry.Progress) string {
	if len(all) == 0 || all[0].End <= all[0].Start {
		return ""
	}
	return fmt.Sprintf("%d %%", (min(all[0].Position, all[0].End)-all[0].Start)*100/(all[0].End-all[0].Start))
}

// capital makes the first letter of a sentence a capital.
func capital(sentence string) string {
	first, size := utf8.DecodeRuneInString(sentence)
	return string(unicode.ToUpper(first)) + sentence[size:]
}

// moment formats a time for people, in UTC.
func moment(t time.Time) string {
	if t.IsZero() || t.Unix() <= 0 {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// stamp formats a time for programs (RFC 3339).
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// stateText is an item's state as text, with times in UTC.
func (p *pages) stateText(it registry.WorkItem) string { return it.StateText(p.now().UTC()) }

// ago formats the time since t, or until t if that is to come.
func (p *pages) ago(t time.Time) string {
	if t.IsZero() || t.Unix() <= 0 {
		return "never"
	}
	d := p.now().Sub(t)
	if d <= -time.Second {
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

// since formats a duration, up to now if it has no end.
func (p *pages) since(start time.Time, end *time.Time) string {
	if end == nil {
		return span(p.now().Sub(start))
	}
	return span(end.Sub(start))
}

func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d/day))
}

// objectURL is the address of an object's page.
func objectURL(id string) string { return (&url.URL{Path: "/objects/" + id}).String() }

// contentURL is the address of a file's bytes.
func contentURL(id string, version int, path string) string {
	return "/api/v1/objects/" + url.PathEscape(id) + "/content?" +
		url.Values{"path": {path}, "version": {strconv.Itoa(version)}}.Encode()
}

// details formats an event's data as names and values, sorted by name.
func details(raw json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return string(raw)
	}
	parts := make([]string, 0, len(fields))
	for name, value := range fields {
		text := string(value)
		if s := ""; json.Unmarshal(value, &s) == nil {
			text = s
		}
		if bulk, ok := bulkOf(value); ok {
			name, text = "requested", bulk
		} else if object, ok := registry.ObjectSpecIn(value); ok {
			name, text = "requested", object.Text()
		}
		if text != "" {
			parts = append(parts, strings.ReplaceAll(name, "_", " ")+": "+text)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " · ")
}

// bulkOf describes the request of a bulk act; ok is false if raw is none.
func bulkOf(raw json.RawMessage) (text string, ok bool) {
	var b registry.BulkSpec
	if json.Unmarshal(raw, &b) != nil || b.Act == "" {
		return "", false
	}
	text = fmt.Sprintf("%s (%s)", b.Title(), counted(b.Matched, "item"))
	if b.Reason != "" {
		text += ", reason: " + b.Reason
	}
	return text, true
}

// short cuts a digest or an id to fit a narrow column.
func short(text string) string {
	const most = 12
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
