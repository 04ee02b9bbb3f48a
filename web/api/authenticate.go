package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

// asCaller adds whose request it is to a context that has the request's id.
func asCaller(ctx context.Context, token registry.Token, session registry.Session) context.Context {
	c := access.Of(ctx)
	c.Token, c.Session = token, session
	return access.With(ctx, c)
}

// authenticated lets only requests with a known token through, before anything of their body is
// read.
func (s *server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, session, err := s.authenticate(r)
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(asCaller(r.Context(), token, session)))
	})
}

// authenticate finds whose request it is. Browsers' cookies count where nothing is changed, and for
// the pages' own forms.
func (s *server) authenticate(r *http.Request) (registry.Token, registry.Session, error) {
	header := r.Header.Get("Authorization")
	read := r.Method == http.MethodGet || r.Method == http.MethodHead || isForm(r)
	if header == "" && read && s.signIn != nil && s.signIn.Has(r) {
		session, err := s.signIn.Session(r, isUse(r))
		return session.Token(), session, err
	}
	if header == "" {
		return registry.Token{}, registry.Session{}, unauthenticated("a token is needed: send Authorization: Bearer TOKEN, or sign in to the pages")
	}
	scheme, secret, _ := strings.Cut(header, " ")
	if secret = strings.TrimSpace(secret); !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return registry.Token{}, registry.Session{}, unauthenticated("the Authorization header must be Bearer and a token")
	}
	token, err := s.registry.TokenByHash(r.Context(), signin.Hash(secret))
	switch {
	case errors.Is(err, registry.ErrNotFound):
		err = unauthenticated("the token is not known here; check HOLDFAST_TOKEN or the --dir it is read from")
	case err != nil:
		err = fmt.Errorf("check token: %w", err)
	}
	return token, registry.Session{}, err
}

// reload is in the query of a page that loads itself again. A session is not used by that: it would
// never end.
const reload = "reload"

func isReload(r *http.Request) bool { return r.URL.Query().Has(reload) }

// isUse says whether somebody has asked for a page. Browsers say so over HTTPS and on localhost;
// what belongs to a page they load by themselves, again and again under an open page that loads
// itself again.
func isUse(r *http.Request) bool {
	asked := r.Header.Get("Sec-Fetch-Dest")
	return !isReload(r) && (asked == "" || asked == "document") && !strings.HasPrefix(r.URL.Path, "/static/") && r.URL.Path != "/favicon.ico"
}

func unauthenticated(detail string) *wire.Problem {
	return wire.NewProblem(http.StatusUnauthorized, wire.CodeUnauthenticated, detail)
}
