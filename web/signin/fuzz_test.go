package signin

import (
	"context"
	"net/http"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// oneSession is a store that has one session.
type oneSession struct {
	Store
	hash string
}

func (s oneSession) SessionByHash(_ context.Context, hash string, _ bool) (registry.Session, error) {
	if hash != s.hash {
		return registry.Session{}, registry.ErrNotFound
	}
	return registry.Session{Hash: hash, Name: "one"}, nil
}

// FuzzSessionCookie checks that a browser has the session whose secret it sends in the right
// cookie, or none.
func FuzzSessionCookie(f *testing.F) {
	const secret = "S3CRET"
	for _, header := range []string{
		"", "holdfast_session=" + secret, "holdfast_session_8080=" + secret, "__Host-holdfast_session=" + secret, `holdfast_session="` + secret + `"`,
		"holdfast_session=" + Hash(secret), "holdfast_session=; holdfast_session=" + secret, "a=b;holdfast_session=" + secret + "\x00", "holdfast_token=" + secret,
	} {
		f.Add(header, "h.test")
		f.Add(header, "h.test:8080")
	}
	s := New(Options{Store: oneSession{hash: Hash(secret)}})
	f.Fuzz(func(t *testing.T, header, host string) {
		r := &http.Request{Method: http.MethodGet, Host: host, Header: http.Header{"Cookie": {header}}}
		found, err := s.Session(r, true)
		c, missing := r.Cookie(cookieName(r))
		if sent := missing == nil && c.Value == secret; sent != (err == nil) || sent != (found.Name == "one") || sent && !s.Has(r) {
			t.Errorf("%q to %q: %+v, %v", header, host, found, err)
		}
	})
}
