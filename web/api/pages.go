package api

import (
	"context"
	"io"
	"net/http"

	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// sameOrigin refuses a request that may change something and has a cookie, unless a header shows that
// one of our own pages sent it. Browsers send such a header. Requests from other sites were already
// refused.
func sameOrigin(r *http.Request) error {
	if isRead(r) || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return nil
	}
	return wire.NewProblem(http.StatusForbidden, wire.CodeCrossOrigin, "the request has a cookie and no Origin header; use the pages here, or the command line")
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// signedIn serves pages to callers who have signed in.
func (s *server) signedIn(pages http.Handler) http.Handler {
	site := pages
	pages = s.ids.Address("", s.Fail, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site.ServeHTTP(w, r)
		noteRoute(r.Context(), r.Pattern) // that of the site's mux
	}))
	// It reads the body first, so that a body that never ends cannot keep a connection open.
	return s.bounded(mostForm, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, session, err := s.authenticate(r)
		if err != nil && r.Header.Get("Authorization") == "" && s.signIn != nil && !s.signIn.Has(r) {
			err = signin.Needed() // a text for people, not for programs
		}
		if err == nil {
			err = s.access.PermitToken(token, access.Pages)
		}
		r = r.WithContext(asCaller(r.Context(), token, session))
		if err != nil {
			s.refusePage(w, r, err)
			return
		}
		pages.ServeHTTP(w, r)
	}))
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

// door performs requests of the API within this process, for the pages. The caller is that of the
// request's context, so the pages can do what the caller's role allows, and nothing else.
type door struct{ api http.Handler }

// RoundTrip implements http.RoundTripper.
func (d door) RoundTrip(r *http.Request) (*http.Response, error) {
	// The page is what was requested, not what it asks.
	asked := *r.WithContext(context.WithValue(r.Context(), routeKey{}, (*route)(nil)))
	asked.RemoteAddr = access.Of(r.Context()).Remote
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	defer asked.Body.Close()
	a := webserver.NewRecording()
	d.api.ServeHTTP(a, &asked)
	return &http.Response{
		Status: http.StatusText(a.Status), StatusCode: a.Status, Header: a.Header(), Body: io.NopCloser(&a.Body), ContentLength: int64(a.Body.Len()), Request: r,
	}, nil
}

// changes tells the pages when something has changed that the caller may see.
type changes struct {
	scope.Registry

	server *server
	done   <-chan struct{}
}

// Good returns an error if the caller's session or token has ended.
func (c changes) Good(ctx context.Context) error {
	caller := access.Of(ctx)
	if caller.Session.ID != "" {
		return c.server.signIn.Good(ctx, caller.Session)
	}
	_, err := c.TokenByHash(ctx, caller.Token.Hash)
	return err
}

// Done is closed when the server begins to stop.
func (c changes) Done() <-chan struct{} { return c.done }
