package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

// TokenHash is what the Registry keeps of a bearer token.
func TokenHash(token string) string {
	return signin.Hash(token)
}

// call is what is known of a request beside its input.
type call struct {
	id      string // in the log, and in the answer
	token   registry.Token
	session registry.Session // of a browser; without an ID: none
	server  *server          // that serves the pages; nil for other calls
}

type callKey struct{}

func withCall(ctx context.Context, c call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) call {
	c, _ := ctx.Value(callKey{}).(call)
	return c
}

// withCaller adds whose call it is.
func withCaller(ctx context.Context, token registry.Token, session registry.Session) context.Context {
	c := callOf(ctx)
	c.token, c.session = token, session
	return withCall(ctx, c)
}

// actor is who asks, as it is kept with acts.
func actor(ctx context.Context) string { return callOf(ctx).token.Name }

// newCall gives a request its name.
func newCall() call { return call{id: rand.Text()} }

// authenticated lets only requests with a known token through, before anything of their body is read.
func (s *server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, session, err := s.authenticate(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(withCaller(r.Context(), token, session)))
	})
}

// authenticate finds whose request it is. Browsers' cookies count where nothing is changed, and for the pages' own forms.
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
	token, err := s.registry.TokenByHash(r.Context(), TokenHash(secret))
	switch {
	case errors.Is(err, registry.ErrNotFound):
		err = unauthenticated("the token is not known here; check HOLDFAST_TOKEN or the --dir it is read from")
	case err != nil:
		err = fmt.Errorf("check token: %w", err)
	}
	return token, registry.Session{}, err
}

// reload is in the query of a page that loads itself again. A session is not used by that: it would never end.
const reload = "reload"

func isReload(r *http.Request) bool { return r.URL.Query().Has(reload) }

// isUse says whether somebody has asked for a page. Browsers say so over HTTPS and on localhost; what belongs to a page they load by themselves,
// again and again under an open page that loads itself again.
func isUse(r *http.Request) bool {
	asked := r.Header.Get("Sec-Fetch-Dest")
	return !isReload(r) && (asked == "" || asked == "document") && !strings.HasPrefix(r.URL.Path, "/static/") && r.URL.Path != "/favicon.ico"
}

func unauthenticated(detail string) *wire.Problem {
	return wire.NewProblem(http.StatusUnauthorized, wire.CodeUnauthenticated, detail)
}

// permit returns a problem unless the caller's role may do the operation.
func (s *server) permit(ctx context.Context, operation string) error {
	return s.permitToken(callOf(ctx).token, operation)
}

func (s *server) permitToken(t registry.Token, operation string) error {
	if s.may(t, operation) {
		return nil
	}
	if t.Role == registry.RoleWorker && slices.Contains(s.access[operation], t.Role) {
		return forbidden("token %q is good for the stages %v, which do not need this (%s); use a token of a worker of one of the stages %v",
			t.Name, t.Stages, operation, s.stages[operation])
	}
	return forbidden("token %q has the role %s, which may not do this (%s); use a token with one of the roles %v",
		t.Name, t.Role, operation, s.access[operation])
}
