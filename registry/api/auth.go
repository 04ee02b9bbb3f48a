package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// cookieName is the cookie that a login leaves in a browser. Browsers share cookies between the ports of a host, so the
// port is in the name: to log in to one Holdfast must not log out of another beside it.
func cookieName(r *http.Request) string {
	const name = "holdfast_token"
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" {
		return name + "_" + port
	}
	return name
}

// TokenHash is what the Registry keeps of a bearer token.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// call is what is known of a request beside its input.
type call struct {
	id    string // in the log, and in the answer
	token registry.Token
}

type callKey struct{}

func withCall(ctx context.Context, c call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) call {
	c, _ := ctx.Value(callKey{}).(call)
	return c
}

// withToken adds whose call it is.
func withToken(ctx context.Context, token registry.Token) context.Context {
	c := callOf(ctx)
	c.token = token
	return withCall(ctx, c)
}

// actor is who asks, as it is kept with acts.
func actor(ctx context.Context) string { return callOf(ctx).token.Name }

// newCall gives a request its name.
func newCall() call { return call{id: rand.Text()} }

// authenticated lets only requests with a known token through, before anything of their body is read.
func (s *server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := s.authenticate(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(withToken(r.Context(), token)))
	})
}

// authenticate finds whose request it is. Browsers' cookies count where nothing is changed, and for the pages' own forms.
func (s *server) authenticate(r *http.Request) (registry.Token, error) {
	secret, err := secretOf(r)
	if err != nil {
		return registry.Token{}, err
	}
	token, err := s.registry.TokenByHash(r.Context(), TokenHash(secret))
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return token, unauthenticated("the token is not known here; check HOLDFAST_TOKEN or the --dir it is read from")
	case err != nil:
		return token, fmt.Errorf("check token: %w", err)
	}
	return token, nil
}

func secretOf(r *http.Request) (string, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, secret, _ := strings.Cut(header, " ")
		if secret = strings.TrimSpace(secret); !strings.EqualFold(scheme, "Bearer") || secret == "" {
			return "", unauthenticated("the Authorization header must be Bearer and a token")
		}
		return secret, nil
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead || isForm(r) {
		if c, err := r.Cookie(cookieName(r)); err == nil && c.Value != "" {
			return c.Value, nil
		}
	}
	return "", unauthenticated("a token is needed: send Authorization: Bearer TOKEN, or open the login link for the pages")
}

func unauthenticated(detail string) *wire.Problem {
	return wire.NewProblem(http.StatusUnauthorized, wire.CodeUnauthenticated, detail)
}

// permit returns a problem unless the caller's role may do the operation.
func (s *server) permit(ctx context.Context, operation string) error {
	return s.permitToken(callOf(ctx).token, operation)
}

func (s *server) permitToken(t registry.Token, operation string) error {
	if s.may(t.Role, operation) {
		return nil
	}
	return wire.NewProblem(http.StatusForbidden, wire.CodeForbidden, fmt.Sprintf(
		"token %q has the role %s, which may not do this (%s); use a token with one of the roles %v",
		t.Name, t.Role, operation, s.access[operation]))
}

// login takes the token of a login link into a cookie and goes to the pages. The token is neither logged nor left in the
// address that the browser shows.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	secret := r.URL.Query().Get("token")
	if secret == "" {
		s.loginPage(w, r, unauthenticated("the login link has no token; open the one that holdfast up printed"))
		return
	}
	_, err := s.registry.TokenByHash(r.Context(), TokenHash(secret))
	if errors.Is(err, registry.ErrNotFound) {
		err = unauthenticated("the login link's token is not known; open the one that holdfast up printed last")
	}
	if err != nil {
		s.loginPage(w, r, err)
		return
	}
	// Lax, since links to pages stand in mails and chats; but no other site's form is sent with it.
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: secret, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
