package client

import (
	"net/url"
	"strconv"
	"strings"
)

// values returns a query of name-value pairs, without the empty ones.
func values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

// number formats n for a query; "" for 0.
func number[T ~int | ~int64](n T) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// in returns a path below folder. It escapes the id, which may contain slashes.
func in(folder, id string, rest ...string) string {
	path := "/" + folder + "/" + url.PathEscape(id)
	for _, r := range rest {
		path += "/" + r
	}
	return path
}

// join formats a list for a query.
func join[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return strings.Join(texts, ",")
}
