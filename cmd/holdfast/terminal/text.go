package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	textwidth "golang.org/x/text/width"

	"github.com/holdfast/holdfast/registry"
)

// SizeText formats a number of bytes in binary units, such as 1.2 GiB. A negative number is
// unknown.
func SizeText(n int64) string {
	if n < 0 {
		return "?"
	}
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	v, unit := float64(n)/1024, 0
	for v >= 1023.95 && unit < len(sizeUnits)-1 { // 1023.95 would be printed as 1024.0
		v /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", v, sizeUnits[unit])
}

const sizeUnits = "KMGTPE"

// ExactSize formats a size in binary units and in bytes.
func ExactSize(n int64) string {
	if n < 0 {
		return "unknown"
	}
	if n < 1024 {
		return registry.CountText(n) + " bytes"
	}
	return fmt.Sprintf("%s (%s bytes)", SizeText(n), registry.CountText(n))
}

// TimeText formats a time in the local zone, the zero time as "".
func TimeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.RFC3339)
}

// SpanText formats a span like a clock: 0:42, 4:10, 1:02:03.
func SpanText(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Plural formats a count with its noun.
func Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return registry.CountText(n) + " " + many
}

// Clean makes untrusted text safe to print: it replaces line breaks and control characters.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d':
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Cells returns the number of columns that text takes on a terminal.
func Cells(text string) int {
	n := 0
	for _, r := range text {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch textwidth.LookupRune(r).Kind() {
	case textwidth.EastAsianWide, textwidth.EastAsianFullwidth:
		return 2
	case textwidth.Neutral, textwidth.EastAsianAmbiguous, textwidth.EastAsianNarrow, textwidth.EastAsianHalfwidth:
	}
	return 1
}

// cut shortens text to at most limit columns, including an ellipsis.
func cut(text string, limit int) string {
	if limit <= 0 {
		return ""
	}
	if Cells(text) <= limit {
		return text
	}
	head, _ := split(text, limit-1)
	return head + "…"
}

// split divides text after at most limit columns.
func split(text string, limit int) (head, rest string) {
	for i, r := range text {
		if limit -= runeCells(r); limit < 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// SinceText formats since when something is stopped, by whom and why.
func SinceText(at time.Time, actor, reason string) string {
	return fmt.Sprintf("since %s by %s (%s)", TimeText(at), actor, reason)
}
