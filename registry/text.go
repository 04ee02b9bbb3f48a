package registry

import (
	"fmt"
	"strconv"
	"strings"
)

// CountText formats a number for people with thousands separators: 48,211. A negative number is
// unknown: "?".
func CountText(n int64) string {
	if n < 0 {
		return "?"
	}
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// SizeText formats a number of bytes for people in binary units: 12 GiB, 1.5 MiB, 300 bytes.
func SizeText(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	const units = "KMGTPE"
	v, unit := float64(n)/1024, 0
	for v >= 1023.95 && unit < len(units)-1 { // 1023.95 would be printed as 1024
		v /= 1024
		unit++
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + fmt.Sprintf(" %ciB", units[unit])
}

// sizeTexts formats two different sizes so that people can see which is larger: in bytes if
// rounding makes them equal.
func sizeTexts(a, b int64) (string, string) {
	if a != b && SizeText(a) == SizeText(b) {
		return fmt.Sprintf("%d bytes", a), fmt.Sprintf("%d bytes", b)
	}
	return SizeText(a), SizeText(b)
}

// Nearest returns the name most similar to a word, or "" if none is similar.
func Nearest(word string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		if d := distance(word, n); d < least && d < len(n) {
			best, least = n, d
		}
	}
	return best
}

// distance returns the edit distance of two words (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

// OneOf lists words for people, one of which is to be chosen: "expand, report or scan".
func OneOf[T ~string](words []T) string { return list(words, "or") }

// AllOf lists words for people: "expand, report and scan".
func AllOf[T ~string](words []T) string { return list(words, "and") }

func list[T ~string](words []T, before string) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	last := len(texts) - 1
	if last < 1 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " " + before + " " + texts[last]
}

// Count returns a number with its noun.
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Either returns one if n is 1, and otherwise the format several with n.
func Either(n int64, one, several string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(several, n)
}
