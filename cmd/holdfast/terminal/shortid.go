package terminal

import "github.com/holdfast/holdfast/registry"

// IDLength is the length of an id. Narrow tables print the first shownID characters: a time to less
// than a microsecond, which one process uses once. The rest is random.
const (
	IDLength = 36
	shownID  = 18
)

// ShortID returns the beginning of an id.
func ShortID(id string) string {
	if len(id) != IDLength || !registry.IDStart(id) {
		return id
	}
	return id[:shownID]
}
