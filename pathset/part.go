package pathset

import "strings"

// MaxPart is the longest part of a path, in bytes, that most file systems can hold: NAME_MAX of
// Linux and macOS.
const MaxPart = 255

// LongPart returns the first part of a path that is longer than MaxPart, or "".
func LongPart(name string) string {
	if len(name) <= MaxPart {
		return ""
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > MaxPart {
			return part
		}
	}
	return ""
}
