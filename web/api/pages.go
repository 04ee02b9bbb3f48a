package api

import (
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// isForm reports whether a request is one of the pages' own forms. Only these may change something
// with a cookie.
func isForm(r *http.Request) bool {
	if r.Method != http.MethodPost {
		return false
	}
	parts := strings.Split(r.URL.Path, "/")
	return r.URL.Path == endSessionPath || r.URL.Path == "/holds/release" || r.URL.Path == "/failures/requeue" || r.URL.Path == "/schedules/acts" || strings.HasPrefix(r.URL.Path, "/deletions/") || strings.HasPrefix(r.URL.Path, uploadPages) || len(parts) == 4 && parts[0] == "" && parts[1] == "items" && parts[3] == "acts"
}

// sameOrigin refuses a form without a header that shows its origin. Browsers send one, and forms
// from other sites were already refused. A request with a token is not from a browser's form.
func sameOrigin(r *http.Request) error {
	if r.Header.Get("Authorization") != "" || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return nil
	}
	return wire.NewProblem(http.StatusForbidden, wire.CodeCrossOrigin, "the form has no Origin header; use the pages here, or the command line")
}

// endSessionPath is the path of the form that ends a session.
const endSessionPath = "/sessions/end"

// uploadPages is the path of the pages of single uploads. Their forms remove uploads, which
// depositors may do too.
const uploadPages = "/uploads/"

// signedIn serves pages to callers who have signed in.
func (s *server) signedIn(pages http.Handler) http.Handler {
	pages = s.ids.Address("", s.Fail, pages)
	// It reads the body first, so that a body that never ends cannot keep a connection open.
	return s.bounded(mostForm, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, session, err := s.authenticate(r)
		if err != nil && r.Header.Get("Authorization") == "" && s.signIn != nil && !s.signIn.Has(r) {
			err = unauthenticated("sign in to see this page") // a text for people, not for programs
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

// withoutReload removes the mark of an automatic reload from the address, so that the page's links
// do not have it.
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

// refusePage shows why a page is refused, and how to sign in.
func (s *server) refusePage(w http.ResponseWriter, r *http.Request, err error) {
	p := s.Problem(r, err)
	if s.signIn == nil {
		endpoint.WriteProblem(w, p)
		return
	}
	s.signIn.Refuse(w, r, err, p)
}

// signInRoutes adds the routes that sign in and out.
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
