package registry

import (
	"fmt"
	"strconv"
	"strings"
)

// CountText groups a number by thousands, for people: 48,211. A negative one is unknown: "?".
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

// SizeText gives a number of bytes in binary units, for people: 12 GiB, 1.5 MiB, 300 bytes.
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

// sizeTexts are two sizes for people who are to see which is larger: in bytes where rounding makes
// them alike.
func sizeTexts(a, b int64) (string, string) {
	if a != b && SizeText(a) == SizeText(b) {
		return fmt.Sprintf("%d bytes", a), fmt.Sprintf("%d bytes", b)
	}
	return SizeText(a), SizeText(b)
}

// Nearest returns the name that differs least from a word, "" when none is near.
func Nearest(word string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		if d := distance(word, n); d < least && d < len(n) {
			best, least = n, d
		}
	}
	return best
}

// distance counts the letters that must be added, left out or replaced to make one word of another
// (Levenshtein).
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
