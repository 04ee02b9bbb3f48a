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

// asCaller adds the caller to a context that has the request's id.
func asCaller(ctx context.Context, token registry.Token, session registry.Session) context.Context {
	c := access.Of(ctx)
	c.Token, c.Session = token, session
	return access.With(ctx, c)
}

// authenticated passes on only requests with a valid token or session. It checks before the body is
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

// authenticate returns the caller of a request. A cookie counts only if the request reads, or one of
// our own pages sent it.
func (s *server) authenticate(r *http.Request) (registry.Token, registry.Session, error) {
	header := r.Header.Get("Authorization")
	if header == "" && s.signIn != nil && s.signIn.Has(r) {
		if err := sameOrigin(r); err != nil {
			return registry.Token{}, registry.Session{}, err
		}
		session, err := s.signIn.Session(r, isUse(r))
		return session.Token(), session, err
	}
	secret, err := bearer(header)
	if err != nil {
		return registry.Token{}, registry.Session{}, err
	}
	token, err := s.registry.TokenByHash(r.Context(), signin.Hash(secret))
	switch {
	case errors.Is(err, registry.ErrNotFound):
		err = unauthenticated("the token is unknown here; check HOLDFAST_TOKEN, or the --dir that it is read from")
	case err != nil:
		err = fmt.Errorf("check token: %w", err)
	}
	return token, registry.Session{}, err
}

// bearer returns the token in the header Authorization.
func bearer(header string) (secret string, err error) {
	if header == "" {
		return "", unauthenticated("the request has no token; send Authorization: Bearer TOKEN, or sign in to the pages")
	}
	scheme, secret, _ := strings.Cut(header, " ")
	if secret = strings.TrimSpace(secret); !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return "", unauthenticated("the Authorization header is malformed; send Authorization: Bearer TOKEN")
	}
	return secret, nil
}

// isUse reports whether a person asked for something. Browsers mark that over HTTPS and on localhost.
// What an open page loads by itself does not count: otherwise it would keep a session alive for ever.
// What a page's script sends counts: it is an upload, which may go on for hours, or an act.
func isUse(r *http.Request) bool {
	asked := r.Header.Get("Sec-Fetch-Dest")
	return (asked == "" || asked == "document" || asked == "empty" && !isRead(r)) && !strings.HasPrefix(r.URL.Path, "/static/") && !strings.HasPrefix(r.URL.Path, wire.Base+"/events") && r.URL.Path != "/live" && r.URL.Path != "/favicon.ico"
}

func unauthenticated(detail string) *wire.Problem {
	return wire.NewProblem(http.StatusUnauthorized, wire.CodeUnauthenticated, detail)
}
