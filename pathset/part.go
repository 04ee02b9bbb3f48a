package pathset

import "strings"

// MaxPart is the greatest length of a path segment in bytes on most file systems: NAME_MAX of Linux
// and macOS.
const MaxPart = 255

// LongPart returns the first segment of a path that is longer than MaxPart, or "".
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
