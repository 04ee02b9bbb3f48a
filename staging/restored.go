package staging

import (
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// RestoredPrefix begins the keys of what was restored.
const RestoredPrefix = "restores/"

// RestoredKey is the key of what an attempt of a restore came to. It is the attempt's own, as all its keys are, and lies apart from them: it
// stays when the item has given back everything else.
func RestoredKey(l registry.Lease, name string) string {
	return RestoredPrefix + l.ItemID + "/" + strconv.FormatInt(l.N, 10) + "/" + name
}

// RestoredBy says which item a key that begins with RestoredPrefix belongs to, "" when it is no such key.
func RestoredBy(key string) (itemID string) {
	rest, ok := strings.CutPrefix(key, RestoredPrefix)
	if !ok {
		return ""
	}
	itemID, _, ok = strings.Cut(rest, "/")
	if !ok {
		return ""
	}
	return itemID
}
