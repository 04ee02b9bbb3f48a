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

// line writes JSON in the one form that receipts have. It is our own, since hashes are taken over
// it: what encoding/json writes has changed with releases of Go, and may again.
type line struct{ b []byte }

func (w *line) text(s string) { w.b = append(w.b, s...) }

func (w *line) number(n int64) { w.b = strconv.AppendInt(w.b, n, 10) }

// timeForm is a moment in UTC, to the microsecond.
const timeForm = "2006-01-02T15:04:05.000000Z"

func (w *line) time(t time.Time) { w.string(t.UTC().Format(timeForm)) }

// string writes a string: quote, backslash and control characters escaped, all others as they are
// in UTF-8. What is no UTF-8 becomes U+FFFD.
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

// plain says of text that it is printable ASCII in which nothing is ever escaped.
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

func (w *line) event(e Event) {
	w.text(`{"seq":`)
	w.number(e.Seq)
	w.text(`,"object":`)
	w.string(e.Object)
	w.text(`,"id":`)
	w.string(e.ID)
	w.text(`,"version":`)
	w.number(int64(e.Version))
	w.text(`,"type":`)
	w.string(e.Type)
	w.text(`,"at":`)
	w.time(e.At)
	w.text(`,"agent":`)
	w.string(e.Agent)
	w.text(`,"outcome":`)
	w.string(e.Outcome)
	w.text(`,"detail":`)
	w.string(e.Detail)
	w.text("}")
}

func (w *line) header(h Header) {
	w.text(Magic)
	w.number(int64(cmp.Or(h.Format, Format)))
	w.named("object", h.Object)
	w.text(`,"version":`)
	w.number(int64(h.Version))
	w.named("owner", h.Owner)
	w.text(`,"local_ids":[`)
	for i, id := range h.LocalIDs {
		if i > 0 {
			w.text(",")
		}
		w.string(id)
	}
	w.text("]")
	w.named("title", h.Title)
	w.named("creator", h.Creator)
	w.named("date", h.Date)
	w.text(`,"created":`)
	w.time(h.Created)
	w.text(`,"recorded":`)
	w.time(h.Recorded)
	w.text(`,"files":`)
	w.number(h.Files)
	w.text(`,"bytes":`)
	w.number(h.Bytes)
	w.named("manifest", h.Manifest)
	w.text(`,"events":{"first":`)
	w.number(h.Events.First)
	w.text(`,"count":`)
	w.number(h.Events.Count)
	w.named("before", h.Events.Before)
	w.named("after", h.Events.After)
	w.text(`},"replicas":[`)
	for i, r := range h.Replicas {
		if i > 0 {
			w.text(",")
		}
		w.text(`{"storage":`)
		w.string(r.Storage)
		w.text(`,"verified":`)
		w.time(r.Verified)
		w.named("inventory", r.Inventory)
		w.text("}")
	}
	w.text("]")
	w.named("key", h.Key)
	w.named("public_key", h.PublicKey)
	w.text("}\n")
}

func (w *line) named(name, value string) {
	w.text(`,"` + name + `":`)
	w.string(value)
}

// EscapePath writes a path, whatever its bytes, as text that JSON and XML can carry: "%", control
// characters, bytes that are no UTF-8, and U+FFFE and U+FFFF are written as %XX for each byte. No
// two paths come to the same.
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

// UnescapePath is the inverse of EscapePath; ok is false for what that never writes.
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
