package api

import (
	"fmt"
	"html/template"
	"net/http"
)

// pages serves the injected pages to whoever has logged in.
func (s *server) pages() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := s.authenticate(r)
		if err == nil {
			err = s.permitToken(token, pagesOperation)
		}
		r = r.WithContext(withToken(r.Context(), token))
		if err != nil {
			s.loginPage(w, r, err)
			return
		}
		s.ui.ServeHTTP(w, r)
	})
}

const loginHTML = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Holdfast: log in</title>
<h1>Log in</h1>
<p>%s</p>
<p>Open the login link that <code>holdfast up</code> printed when it started.</p>
</html>
`

// loginPage says to a person that there is no way in without a token.
func (s *server) loginPage(w http.ResponseWriter, r *http.Request, err error) {
	p := s.problem(r, err)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = fmt.Fprintf(w, loginHTML, template.HTMLEscapeString(p.Detail)) // the reader has gone if this fails
}
