package registry

import (
	"strconv"
	"strings"
)

// RestoredPrefix begins the keys of what was restored, on the staging volume.
const RestoredPrefix = "restores/"

// RestoredKey is the key of what an attempt of a restore came to. It is the attempt's own, as all its keys are, and lies apart from them: it
// stays when the item has given back everything else.
func RestoredKey(l Lease, name string) string {
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
