package uitest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Patterns returns a function that finds the pattern of the route, such as "GET /items/{id}", that
// serves a request; "" if there is none.
func Patterns(routes []string) func(method, path string) string {
	mux := http.NewServeMux()
	for _, pattern := range routes {
		mux.Handle(pattern, http.NotFoundHandler())
	}
	return func(method, path string) string {
		at, err := url.Parse(path)
		if err != nil {
			return ""
		}
		_, pattern := mux.Handler(&http.Request{Method: method, URL: at, Host: "h.test"})
		return pattern
	}
}

// Reached are the addresses to which a page leads: by links, and by the buttons of forms that ask what
// to do.
func Reached(t testing.TB, p Visited) (all []string) {
	t.Helper()
	for _, to := range LinksOf(t, p) {
		if strings.HasPrefix(to, "/") {
			all = append(all, to)
		}
	}
	for _, f := range FormsOf(t, p) {
		for name, values := range f.Buttons {
			for _, value := range values {
				if f.Method == http.MethodPost || name == "" {
					continue
				}
				asked := maps.Clone(f.Fields)
				asked.Set(name, value)
				all = append(all, f.Action+"?"+asked.Encode())
			}
		}
	}
	return all
}

// Kind is the same for addresses whose pages differ only in what they are about: of those a few are
// enough. pattern is that of the route.
func Kind(pattern, address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return address
	}
	query := at.Query()
	for name := range query {
		if !slices.Contains([]string{"act", "do", "decision", "as", "span", "order"}, name) {
			query.Set(name, "")
		}
	}
	return pattern + "?" + query.Encode()
}
