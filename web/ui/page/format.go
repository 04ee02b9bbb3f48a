package page

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
	"github.com/holdfast/holdfast/web/ui/lang"
)

// funcs are the functions of all templates. Those of one subject are methods of what its pages show.
func (v *view) funcs() template.FuncMap {
	return template.FuncMap{
		"t": v.texts.T, "term": v.term, "stage": v.stage, "asset": v.site.assets.url,
		"bytes": v.bytes, "count": v.count, "exactBytes": v.exactBytes,
		"moment": v.moment, "minute": v.minute, "clock": v.clock, "span": v.span, "stamp": stamp, "ago": v.ago, "since": v.since, "inZone": v.inZone, "stateText": v.stateText, "heading": v.heading,
		"because": v.because, "becauseText": v.becauseText, "helps": v.helps, "remedy": v.remedy, "remedyForProducer": v.remedyForProducer, "consequences": v.consequences, "standing": v.standing, "standingText": v.standingText, "measured": v.measured, "measure": v.measure,
		"tone": graphview.Tone, "mark": graphview.Mark, "short": short, "capital": capital, "sentence": lang.Sentence, "refused": v.refused, "details": v.details, "said": v.said, "saidSentence": v.saidSentence, "saidText": v.saidText, "fault": v.fault, "part": percent,
		"label": v.label, "method": v.method, "add": func(a, b int) int { return a + b },
		"objectURL": ObjectURL, "contentURL": ContentURL, "itemURL": ItemURL, "graphURL": GraphURL, "storageURL": StorageURL, "aroundURL": AroundURL,
	}
}

// term is the word for a value of an enumeration, such as a state or a stage.
func (v *view) term(word any) string { return v.texts.T(fmt.Sprint(word)) }

// stage names a stage: in words, or a function as it is called.
func (v *view) stage(s registry.Stage) template.HTML {
	r := &rich{view: v}
	return r.html(r.stage(s))
}

// bytes formats a size with IEC units; "unknown" below 0.
func (v *view) bytes(n int64) string {
	const unit = 1024
	switch {
	case n < 0:
		return v.texts.T("unknown")
	case n < unit:
		return v.texts.T("%d B", n)
	}
	value, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for value >= unit && len(names) > 1 {
		value, names = value/unit, names[1:]
	}
	return v.texts.T("%.1f", value) + " " + names[0]
}

// exactBytes formats a size to the byte.
func (v *view) exactBytes(n int64) string {
	if n < 0 {
		return v.texts.T("unknown")
	}
	return v.texts.T("%d byte|%d bytes", n)
}

// count groups a number's digits in thousands; "unknown" below 0.
func (v *view) count(n any) string {
	if i, ok := n.(int64); ok && i < 0 {
		return v.texts.T("unknown")
	}
	return v.texts.T("%d", n)
}

// percent is how much of the first measure of a progress is done, such as 40 %; "" if that is not
// known.
func percent(all []registry.Progress) string {
	if len(all) == 0 || all[0].End <= all[0].Start {
		return ""
	}
	return fmt.Sprintf("%d\u202f%%", (min(all[0].Position, all[0].End)-all[0].Start)*100/(all[0].End-all[0].Start))
}

// capital makes the first letter a capital.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// moment formats a time to the second, in the viewer's time zone.
func (v *view) moment(t time.Time) string {
	if isNever(t) {
		return v.texts.T("never")
	}
	return t.In(v.zone).Format(v.texts.T("2006-01-02 15:04:05 MST"))
}

// minute formats a time to the minute, in the viewer's time zone.
func (v *view) minute(t time.Time) string {
	if isNever(t) {
		return v.texts.T("never")
	}
	return t.In(v.zone).Format(v.texts.T("2006-01-02 15:04"))
}

// clock formats a time as the day, or as the minute of it, in the viewer's time zone.
func (v *view) clock(t time.Time, day bool) string {
	if day {
		return t.In(v.zone).Format(v.texts.T("2006-01-02"))
	}
	return t.In(v.zone).Format("15:04")
}

func isNever(t time.Time) bool { return t.IsZero() || t.Unix() <= 0 }

// stamp formats a time for programs (RFC 3339).
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// stateText is an item's state as text, with times in the viewer's time zone.
func (v *view) stateText(it registry.WorkItem) string {
	if it.NextTry == nil {
		return v.term(it.State)
	}
	return v.nextTry(*it.NextTry, v.shortTime)
}

// nextTry says when an item is tried again, and how often it was. at formats the time.
func (v *view) nextTry(next registry.NextTry, at func(time.Time) string) string {
	text := v.texts.T("Retry due")
	if next.At.After(v.site.now()) {
		text = v.texts.T("Retry at %s", at(next.At))
	}
	return text + ", " + v.try(next.Attempt, next.Of)
}

// try names a try by its number, and by that of the last one, if it is known.
func (v *view) try(n, of int) string {
	if of > 0 {
		return v.texts.T("attempt %d of %d", n, of)
	}
	return v.texts.T("attempt %d", n)
}

// ago formats the time since t, or until t.
func (v *view) ago(t time.Time) string {
	switch since := v.site.now().Sub(t); {
	case isNever(t):
		return v.texts.T("never")
	case since < -time.Second:
		return v.texts.T("in %s", v.span(-since))
	default:
		return v.texts.T("%s ago", v.span(since))
	}
}

// since formats a duration, up to now if it has no end.
func (v *view) since(start time.Time, end *time.Time) string {
	if end == nil {
		return v.span(v.site.now().Sub(start))
	}
	if d := end.Sub(start); d < time.Second {
		return v.texts.T("%d ms", max(d, 0).Milliseconds())
	}
	return v.span(end.Sub(start))
}

// span formats a duration by its largest unit.
func (v *view) span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return v.texts.T("%d s", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return v.texts.T("%d min", int(d.Minutes()))
	case d < 2*day:
		return v.texts.T("%d h", int(d.Hours()))
	}
	return v.texts.T("%d day|%d days", int(d/day))
}

// inZone formats a time with its weekday, in a time zone, or in UTC if this process does not know that.
func (v *view) inZone(t time.Time, zone string) string {
	at, err := time.LoadLocation(zone)
	if err != nil {
		at = time.UTC
	}
	t = t.In(at)
	return v.texts.T(weekday(t.Weekday())) + " " + t.Format(v.texts.T("2006-01-02 15:04 MST"))
}

// weekday is the short name of a day.
func weekday(d time.Weekday) string {
	switch d {
	case time.Monday:
		return "Mon"
	case time.Tuesday:
		return "Tue"
	case time.Wednesday:
		return "Wed"
	case time.Thursday:
		return "Thu"
	case time.Friday:
		return "Fri"
	case time.Saturday:
		return "Sat"
	default:
		return "Sun"
	}
}

// label is the text of an act's button.
func (v *view) label(a registry.Act) string { return v.texts.T(Label(a)) }

// Label is the text of an act's button, in English.
func Label(a registry.Act) string {
	switch a {
	case registry.ActUnhold:
		return "Release"
	case registry.ActRetryNow:
		return "Retry now"
	case registry.ActPriority:
		return "Change priority"
	default:
		return capital(strings.ReplaceAll(string(a), "-", " "))
	}
}

// method says how a person signed in.
func (v *view) method(m registry.SignInMethod) string {
	switch m {
	case registry.SignInToken:
		return v.texts.T("with a token")
	case registry.SignInLink:
		return v.texts.T("by a link")
	case registry.SignInOIDC:
		return v.texts.T("with the identity provider")
	}
	return string(m)
}

// ObjectURL is the address of an object's page.
func ObjectURL(id string) string { return (&url.URL{Path: "/objects/" + id}).String() }

// ContentURL is the address of a file's bytes.
func ContentURL(id string, version int, path string) string {
	return "/api/v1/objects/" + url.PathEscape(id) + "/content?" +
		url.Values{"path": {path}, "version": {strconv.Itoa(version)}}.Encode()
}

// ReceiptURL is the address of a version's deposit receipt.
func ReceiptURL(id string, version int) string {
	return "/api/v1/objects/" + url.PathEscape(id) + "/versions/" + strconv.Itoa(version) + "/receipt"
}

// ItemURL is the address of an item's page.
func ItemURL(it registry.WorkItem) string {
	if it.Action == registry.Batch {
		return "/batches/" + url.PathEscape(it.ID)
	}
	return "/items/" + url.PathEscape(it.ID)
}

// GraphURL is the address of a graph's page.
func GraphURL(id string) string { return (&url.URL{Path: "/graphs/" + id}).String() }

// StorageURL is the address of a storage's page.
func StorageURL(name string) string { return "/storages/" + url.PathEscape(name) }

// ReleaseURL is the address of the form that releases a hold, and then leads to another page of the
// site.
func ReleaseURL(h registry.Hold, back string) string {
	return "/holds/release?" + url.Values{"scope": {string(h.Scope)}, "key": {h.Key}, "next": {back}}.Encode()
}

// AroundURL is the address of the page of what is around an item.
func AroundURL(id string) string { return "/items/" + url.PathEscape(id) + "/graph" }

// details shows an event's data on one line: names of data in the viewer's language, and what Holdfast said.
func (v *view) details(e registry.Event) template.HTML {
	r := &rich{view: v}
	all := e.Details()
	for i, one := range all {
		name, value, ok := strings.Cut(one, ": ")
		if !ok {
			all[i] = r.data(one)
			continue
		}
		said, how := r.texts.SaidIn(words{r}, value)
		if how == lang.Nothing {
			said = r.data(value)
		}
		all[i] = r.dataName(name) + ": " + said
	}
	return r.html(strings.Join(all, " · "))
}

// dataName names a part of an event's data.
func (r *rich) dataName(name string) string {
	if DataName(name) == "" {
		return r.data(name)
	}
	return r.texts.T(DataName(name))
}

// short cuts a digest or an id to fit a narrow column.
func short(text string) string {
	const most = 12
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}

// DataName is the text for the name of a part of an event's data; "" for one that is shown as it is.
func DataName(name string) string { //nolint:cyclop // a list
	switch name {
	case "action":
		return "action"
	case "address":
		return "address"
	case "after":
		return "after event"
	case "agent":
		return "agent"
	case "ark":
		return "ark"
	case "attempt":
		return "attempt"
	case "batch":
		return "batch"
	case "before":
		return "previously"
	case "bytes":
		return "bytes"
	case "cause":
		return "cause"
	case "code":
		return "code"
	case "collection":
		return "collection"
	case "collections":
		return "collections"
	case "count":
		return "count"
	case "cron":
		return "cron"
	case "cursor":
		return "cursor"
	case "delay":
		return "delay"
	case "digest":
		return "digest"
	case "error":
		return "error"
	case "files":
		return "files"
	case "filter":
		return "filter"
	case "format":
		return "format"
	case "from":
		return "from there"
	case "function":
		return "function"
	case "host":
		return "host"
	case "id":
		return "id"
	case "item":
		return "item"
	case "key":
		return "key"
	case "kind":
		return "kind"
	case "limit":
		return "limit"
	case "line":
		return "line"
	case "lines":
		return "lines"
	case "lost":
		return "lost"
	case "matched":
		return "matched"
	case "method":
		return "method"
	case "missed":
		return "missed"
	case "most":
		return "most"
	case "name":
		return "name"
	case "namespace":
		return "namespace"
	case "note":
		return "note"
	case "object":
		return "object"
	case "objects":
		return "objects"
	case "origin":
		return "origin"
	case "outcome":
		return "outcome"
	case "owner":
		return "owner"
	case "path":
		return "path"
	case "priority":
		return "priority"
	case "progress":
		return "progress"
	case "query":
		return "query"
	case "reason":
		return "reason"
	case "receiver":
		return "receiver"
	case "remedy":
		return "remedy"
	case "requested":
		return "requested"
	case "results":
		return "results"
	case "role":
		return "role"
	case "row":
		return "row"
	case "rows":
		return "rows"
	case "schedule":
		return "schedule"
	case "scope":
		return "scope"
	case "shared":
		return "shared"
	case "size":
		return "size"
	case "stage":
		return "stage"
	case "stages":
		return "stages"
	case "status":
		return "status"
	case "storage":
		return "storage"
	case "storages":
		return "storages"
	case "subject":
		return "subject"
	case "target":
		return "target"
	case "task":
		return "task"
	case "terms":
		return "terms"
	case "text":
		return "text"
	case "title":
		return "title"
	case "to":
		return "to there"
	case "token":
		return "token"
	case "tries":
		return "tries"
	case "type":
		return "type"
	case "until":
		return "until then"
	case "uploads":
		return "uploads"
	case "url":
		return "url"
	case "version":
		return "version"
	case "versions":
		return "versions"
	case "wait":
		return "wait"
	case "weight":
		return "weight"
	case "worker":
		return "worker"
	case "warnings":
		return "warnings"
	case "asked by":
		return "asked by"
	case "approved by":
		return "approved by"
	case "batch id":
		return "batch"
	case "error class":
		return "error class"
	case "expires at":
		return "expires"
	case "item id":
		return "item"
	case "object id":
		return "object"
	case "to stage":
		return "to stage"
	case "size bytes":
		return "size"
	case "local id":
		return "local id"
	case "local ids":
		return "local ids"
	case "from stage":
		return "from stage"
	case "idempotency key":
		return "idempotency key"
	case "graph id":
		return "graph"
	case "http status":
		return "HTTP status"
	case "key id":
		return "key"
	case "media type":
		return "media type"
	case "next try":
		return "next try"
	case "retry at":
		return "next try"
	case "run at":
		return "starts at"
	case "scheduled at":
		return "scheduled at"
	case "started at":
		return "started at"
	case "ended at":
		return "ended at"
	}
	return ""
}
