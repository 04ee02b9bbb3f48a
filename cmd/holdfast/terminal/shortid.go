package terminal

import "github.com/holdfast/holdfast/registry"

// IDLength is the length of an id. shownID is the length of its beginning, which narrow tables
// print. The beginning is a time to less than a microsecond, which one process uses once; the rest
// is random.
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
