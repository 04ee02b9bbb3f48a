package terminal

import "github.com/holdfast/holdfast/registry"

// The length of an id, and of the part of it that tables print where there is no room for all. That part is a moment to less
// than a microsecond, which one process gives to one id only; the rest is chance.
const (
	IDLength = 36
	shownID  = 18
)

// ShortID is an id without its end.
func ShortID(id string) string {
	if len(id) != IDLength || !registry.IDStart(id) {
		return id
	}
	return id[:shownID]
}
