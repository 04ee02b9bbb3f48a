package open

import (
	"net/url"
	"path"
	"strings"
)

// Overlap says whether what two addresses name, as [URL] takes them, is the same place or lies one
// in the other. Symbolic links and other names of a host are not looked through.
func Overlap(a, b string) bool {
	one, other := placeOf(a), placeOf(b)
	return one != "" && other != "" && (strings.HasPrefix(one, other) || strings.HasPrefix(other, one))
}

// placeOf is an address in one form, ending in a slash; "" for none.
func placeOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Query().Get("endpoint")) + "/" + path.Join("/", u.Host, u.Path) + "/"
}
