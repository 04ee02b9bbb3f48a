package receipt

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// line writes JSON in the one form of receipts. Hashes are computed over it, so it must never
// change. The output of encoding/json has changed between releases of Go.
type line struct{ b []byte }

func (w *line) text(s string) { w.b = append(w.b, s...) }

func (w *line) number(n int64) { w.b = strconv.AppendInt(w.b, n, 10) }

// timeFormat is a time in UTC with microseconds.
const timeFormat = "2006-01-02T15:04:05.000000Z"

func (w *line) time(t time.Time) { w.string(t.UTC().Format(timeFormat)) }

// string writes a string. It escapes quotes, backslashes and control characters, and writes all
// else as UTF-8. Invalid UTF-8 becomes U+FFFD.
func (w *line) string(s string) {
	const digits = "0123456789abcdef"
	w.b = append(w.b, '"')
	if plain(s) {
		w.b = append(append(w.b, s...), '"')
		return
	}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.b = append(w.b, '\\', byte(r))
		case r < ' ' || r == 0x7f:
			w.b = append(w.b, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
		default:
			w.b = utf8.AppendRune(w.b, r)
		}
	}
	w.b = append(w.b, '"')
}

// plain says whether a text is printable ASCII that neither string nor EscapePath escapes.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '%' {
			return false
		}
	}
	return true
}

func (w *line) digests(d map[string]string) {
	w.text("{")
	for i, algorithm := range slices.Sorted(maps.Keys(d)) {
		if i > 0 {
			w.text(",")
		}
		w.string(algorithm)
		w.text(":")
		w.string(strings.ToLower(d[algorithm]))
	}
	w.text("}")
}

func (w *line) strings(all []string) {
	w.text("[")
	for i, s := range all {
		if i > 0 {
			w.text(",")
		}
		w.string(s)
	}
	w.text("]")
}

func (w *line) event(e Event) {
	w.text(`{"seq":`)
	w.number(e.Seq)
	w.field("object", e.Object)
	w.field("id", e.ID)
	w.numberField("version", int64(e.Version))
	w.field("type", e.Type)
	w.timeField("at", e.At)
	w.field("agent", e.Agent)
	w.field("outcome", e.Outcome)
	w.field("detail", e.Detail)
	w.text("}")
}

func (w *line) format(f FileFormat) {
	w.text(`,"format":{"puid":`)
	w.string(f.PUID)
	w.field("name", f.Name)
	w.field("version", f.Version)
	w.field("registry", f.Registry)
	w.field("warning", f.Warning)
	w.text("}")
}

func (w *line) span(s Span) {
	w.text(`{"first":`)
	w.number(s.First)
	w.numberField("count", s.Count)
	w.field("before", s.Before)
	w.field("after", s.After)
	w.text("}")
}

func (w *line) terms(t Terms) {
	w.text(`,"terms":{"basis":`)
	w.string(t.Basis)
	w.field("status", t.Status)
	w.field("jurisdiction", t.Jurisdiction)
	w.field("statement", t.Statement)
	w.field("uri", t.URI)
	w.field("preservation_level", t.PreservationLevel)
	w.field("embargo_until", t.EmbargoUntil)
	w.field("embargo_reason", t.EmbargoReason)
	w.text("}")
}

func (w *line) header(h Header) {
	w.text(Magic)
	w.number(int64(cmp.Or(h.Format, Format)))
	w.field("object", h.Object)
	w.numberField("version", int64(h.Version))
	w.field("owner", h.Owner)
	w.text(`,"local_ids":`)
	w.strings(h.LocalIDs)
	w.field("title", h.Title)
	w.field("creator", h.Creator)
	w.field("date", h.Date)
	if cmp.Or(h.Format, Format) >= 3 {
		w.field("collection", h.Collection)
		w.field("item", h.Item)
		w.numberField("profile_version", int64(h.ProfileVersion))
		w.field("ezid_item", h.EZIDItem)
		w.timeField("named", h.Named)
		w.terms(h.Terms)
	}
	w.timeField("created", h.Created)
	w.timeField("recorded", h.Recorded)
	w.numberField("files", h.Files)
	w.numberField("bytes", h.Bytes)
	w.field("manifest", h.Manifest)
	w.text(`,"events":`)
	w.span(h.Events)
	w.text(`,"replicas":[`)
	for i, r := range h.Replicas {
		if i > 0 {
			w.text(",")
		}
		w.text(`{"storage":`)
		w.string(r.Storage)
		w.timeField("verified", r.Verified)
		w.field("inventory", r.Inventory)
		w.text("}")
	}
	w.text("]")
	w.field("key", h.Key)
	w.field("public_key", h.PublicKey)
	w.text("}\n")
}

func (w *line) name(name string) {
	w.text(`,"`)
	w.text(name)
	w.text(`":`)
}

func (w *line) field(name, value string) {
	w.name(name)
	w.string(value)
}

func (w *line) numberField(name string, n int64) {
	w.name(name)
	w.number(n)
}

func (w *line) timeField(name string, t time.Time) { w.field(name, t.UTC().Format(timeFormat)) }

// EscapePath returns a path, of any bytes, as text that JSON and XML can carry. It writes "%",
// control characters, invalid UTF-8, U+FFFE and U+FFFF as %XX for each byte. Different paths give
// different texts.
func EscapePath(path string) string {
	if plain(path) {
		return path
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(path); {
		r, n := utf8.DecodeRuneInString(path[i:])
		if r == utf8.RuneError && n == 1 || r < ' ' || r == 0x7f || r == '%' || r == 0xFFFE || r == 0xFFFF {
			for _, c := range []byte(path[i : i+n]) {
				b.Write([]byte{'%', digits[c>>4], digits[c&15]})
			}
		} else {
			b.WriteString(path[i : i+n])
		}
		i += n
	}
	return b.String()
}

// UnescapePath is the inverse of EscapePath. ok is false for a text that EscapePath never returns.
func UnescapePath(text string) (path string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if len(text) < i+3 {
			return "", false
		}
		c, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		i += 2
	}
	path = b.String()
	return path, EscapePath(path) == text
}
