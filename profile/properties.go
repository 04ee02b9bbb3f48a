package profile

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// property is a line of a Merritt profile.
type property struct {
	name, value string
	line        int
}

// base returns the name without its number: Notification for Notification.2.
func (p property) base() string {
	if m := aNumbered.FindStringSubmatch(p.name); m != nil {
		return m[1]
	}
	return p.name
}

var (
	aProperty = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_.-]*)[ \t]*[:=][ \t]*(.*)$`)
	aNumbered = regexp.MustCompile(`^(.+)\.[0-9]+$`)
)

// properties reads key: value lines, as Java's Properties does. Where Java deviates from what
// people expect, it reports a fault: for backslashes, which Java drops, and repeated names, of
// which Java keeps only the last.
func properties(text []byte) (list []property, faults Faults) {
	if len(text) > MaxSize {
		return nil, Faults{{Place{Line: 1}, fmt.Sprintf("it has %d bytes; a profile may have at most %d", len(text), MaxSize)}}
	}
	first := map[string]int{}
	number := 0
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	for line := range strings.Lines(strings.ReplaceAll(strings.ReplaceAll(string(text), "\r\n", "\n"), "\r", "\n")) {
		number++
		fault := func(message string, args ...any) {
			faults = append(faults, Fault{Place{Line: number}, fmt.Sprintf(message, args...)})
		}
		line = strings.Trim(line, " \t\f\n")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		m := aProperty.FindStringSubmatch(line)
		switch {
		case !utf8.ValidString(line):
			fault("it is not UTF-8; convert the file")
		case strings.ContainsRune(line, '\\'):
			fault("the line has a backslash, which Java reads as an escape; remove it")
		case m == nil:
			fault("not a property; write NAME: VALUE")
		case first[m[1]] > 0:
			fault("%s is already on line %d; remove one of the two", m[1], first[m[1]])
		default:
			first[m[1]] = number
			list = append(list, property{m[1], m[2], number})
		}
	}
	return list, faults
}
