package api

import (
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// isForm says whether a request is one of the pages' own forms, which browsers send with their
// cookie. Nothing else that changes something takes one.
func isForm(r *http.Request) bool {
	if r.Method != http.MethodPost {
		return false
	}
	parts := strings.Split(r.URL.Path, "/")
	return r.URL.Path == endSessionPath || r.URL.Path == "/holds/release" || r.URL.Path == "/failures/requeue" || strings.HasPrefix(r.URL.Path, "/deletions/") || strings.HasPrefix(r.URL.Path, uploadPages) || len(parts) == 4 && parts[0] == "" && parts[1] == "items" && parts[3] == "acts"
}

// sameOrigin refuses a form that does not say that it was sent from our own page: browsers do, and
// what they sent from another site's page was refused before. Whoever sends a token in a header is
// no browser.
func sameOrigin(r *http.Request) error {
	if r.Header.Get("Authorization") != "" || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return nil
	}
	return wire.NewProblem(http.StatusForbidden, wire.CodeCrossOrigin, "the form does not say which page it was sent from; use the pages here, or the command line")
}

// endSessionPath takes the form that ends a session.
const endSessionPath = "/sessions/end"

// uploadPages is where the pages of single uploads begin. Their forms remove them, which depositors
// may do, too.
const uploadPages = "/uploads/"

// signedIn serves pages to whoever has signed in.
func (s *server) signedIn(pages http.Handler) http.Handler {
	pages = s.ids.Address("", s.Fail, pages)
	// In front of all, so that nobody keeps a connection by a body that never ends, whether anybody
	// reads it or not.
	return s.bounded(mostForm, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, session, err := s.authenticate(r)
		if err != nil && r.Header.Get("Authorization") == "" && s.signIn != nil && !s.signIn.Has(r) {
			err = unauthenticated("sign in to see this page") // which a person reads, and no program
		}
		operation := access.Pages
		switch {
		case isForm(r) && strings.HasPrefix(r.URL.Path, uploadPages):
			operation = "remove-upload"
		case isForm(r) && r.URL.Path != endSessionPath:
			operation = access.Forms
		}
		if err == nil {
			err = s.access.PermitToken(token, operation)
		}
		if err == nil && isForm(r) {
			err = sameOrigin(r)
		}
		r = withoutReload(r.WithContext(asCaller(r.Context(), token, session)))
		if err != nil {
			s.refusePage(w, r, err)
			return
		}
		pages.ServeHTTP(w, r)
	}))
}

// withoutReload takes from the address what only says that the page has loaded itself again: no
// link of it shall say so.
func withoutReload(r *http.Request) *http.Request {
	if !isReload(r) {
		return r
	}
	query := r.URL.Query()
	query.Del(reload)
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	return r
}

// refusePage says to a person why a page is not shown, and how to sign in.
func (s *server) refusePage(w http.ResponseWriter, r *http.Request, err error) {
	p := s.Problem(r, err)
	if s.signIn == nil {
		endpoint.WriteProblem(w, p)
		return
	}
	s.signIn.Refuse(w, r, err, p)
}

// signInRoutes are the ways into the pages and out of them.
func (s *server) signInRoutes(mux *http.ServeMux) {
	for path, do := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /login": s.signIn.Ask, "GET /login/oidc": s.signIn.ToProvider, "GET /login/oidc/callback": s.signIn.FromProvider,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if err := do(w, r); err != nil {
				s.refusePage(w, r, err)
			}
		})
	}
	form := func(do func(http.ResponseWriter, *http.Request) error) http.Handler {
		return s.bounded(mostForm, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			err := sameOrigin(r)
			if err == nil {
				err = do(w, r)
			}
			if err != nil {
				s.refusePage(w, r, err)
			}
		}))
	}
	mux.Handle("POST /login", form(s.signIn.SignIn))
	mux.Handle("POST /logout", form(func(w http.ResponseWriter, r *http.Request) error {
		s.signIn.SignOut(w, r)
		return nil
	}))
}
