package source

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mux is a Fetcher that passes each address to the Fetcher for its scheme.
type Mux struct {
	fetchers map[string]Fetcher
}

// NewMux returns a Mux. The keys of fetchers are schemes in lower case without a colon. The map is
// copied.
func NewMux(fetchers map[string]Fetcher) *Mux {
	return &Mux{fetchers: maps.Clone(fetchers)}
}

// Head implements Fetcher. An unknown scheme is a FaultScheme; a text without a scheme is a
// FaultURL.
func (m *Mux) Head(ctx context.Context, rawURL string) (Info, error) {
	f, err := m.pick("head", rawURL)
	if err != nil {
		return Info{}, err
	}
	return f.Head(ctx, rawURL)
}

// Open implements Fetcher. It returns the same errors as Head.
func (m *Mux) Open(ctx context.Context, rawURL string, from Point) (*Body, error) {
	f, err := m.pick("open", rawURL)
	if err != nil {
		return nil, err
	}
	return f.Open(ctx, rawURL, from)
}

func (m *Mux) pick(op, rawURL string) (Fetcher, error) {
	scheme, ok := schemeOf(rawURL)
	if !ok {
		err := fmt.Errorf("it does not begin with one of %s", m.schemes())
		return nil, &Error{Op: op, URL: Redact(rawURL), Kind: FaultURL, Err: err}
	}
	f, ok := m.fetchers[scheme]
	if !ok {
		err := fmt.Errorf("the scheme %q is not one of %s", scheme, m.schemes())
		return nil, &Error{Op: op, URL: Redact(rawURL), Kind: FaultScheme, Err: err}
	}
	return f, nil
}

func (m *Mux) schemes() string {
	return strings.Join(slices.Sorted(maps.Keys(m.fetchers)), ", ")
}

// schemeOf returns the scheme of an address in lower case (RFC 3986, 3.1).
func schemeOf(rawURL string) (string, bool) {
	scheme, _, found := strings.Cut(rawURL, ":")
	if !found || scheme == "" {
		return "", false
	}
	for i, c := range []byte(scheme) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		other := c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
		if !letter && (i == 0 || !other) {
			return "", false
		}
	}
	return strings.ToLower(scheme), true
}
