package api

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry/wire"
)

// isForm says whether a request is one of the pages' own forms, which browsers send with their cookie. Nothing else that
// changes something takes one.
func isForm(r *http.Request) bool {
	if r.Method != http.MethodPost {
		return false
	}
	parts := strings.Split(r.URL.Path, "/")
	return r.URL.Path == "/holds/release" || r.URL.Path == "/failures/requeue" || strings.HasPrefix(r.URL.Path, "/deletions/") || len(parts) == 4 && parts[0] == "" && parts[1] == "items" && parts[3] == "acts"
}

// sameOrigin refuses a form that does not say that it was sent from our own page: browsers do, and what they sent from
// another site's page was refused before. Whoever sends a token in a header is no browser.
func sameOrigin(r *http.Request) error {
	if r.Header.Get("Authorization") != "" || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return nil
	}
	return wire.NewProblem(http.StatusForbidden, wire.CodeCrossOrigin, "the form does not say which page it was sent from; use the pages here, or the command line")
}

// pages serves the injected pages to whoever has logged in.
func (s *server) pages() http.Handler {
	ui := s.bounded(mostForm, s.ui)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := s.authenticate(r)
		operation := pagesOperation
		if isForm(r) {
			operation = formsOperation
		}
		if err == nil {
			err = s.permitToken(token, operation)
		}
		if err == nil && isForm(r) {
			err = sameOrigin(r)
		}
		r = r.WithContext(withToken(r.Context(), token))
		if err != nil {
			s.loginPage(w, r, err)
			return
		}
		ui.ServeHTTP(w, r)
	})
}

const loginHTML = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Log in · Holdfast</title>
<style>` + loginStyle + `</style></head>
<body><main><h1>Log in to Holdfast</h1>
<p>Open the login link that <code>holdfast up</code> printed when it started. It is this address, with the token that stands
in <code>client.json</code> in its folder, or that an operator gave you:</p>
<p><code>/login?token=TOKEN</code></p>
<p class="why">%s</p>
</main></body></html>
`

// loginStyle stands in the page, because the pages' own style is theirs who have logged in.
const loginStyle = `body{margin:0;font:1rem/1.5 system-ui,sans-serif}main{max-width:38rem;margin:10vh auto;padding:0 1rem}` +
	`h1{font-size:1.5rem}code{overflow-wrap:anywhere}.why{opacity:.75;font-size:.9rem}`

// loginPage says to a person that there is no way in without a token.
func (s *server) loginPage(w http.ResponseWriter, r *http.Request, err error) {
	p := s.problem(r, err)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	sum := sha256.Sum256([]byte(loginStyle))
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = fmt.Fprintf(w, loginHTML, template.HTMLEscapeString("Why you see this: "+p.Detail+".")) // the reader has gone if this fails
}
