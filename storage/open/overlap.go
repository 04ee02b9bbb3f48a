package open

import (
	"net/url"
	"path"
	"strings"
)

// Overlap reports whether two addresses, in the form that [URL] accepts, name the same place, or
// one lies in the other. It does not resolve symbolic links or other names of a host.
func Overlap(a, b string) bool {
	one, other := placeOf(a), placeOf(b)
	return one != "" && other != "" && (strings.HasPrefix(one, other) || strings.HasPrefix(other, one))
}

// placeOf returns an address in a normal form that ends in a slash; "" for an invalid one.
func placeOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Query().Get("endpoint")) + "/" + path.Join("/", u.Host, u.Path) + "/"
}
