package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// ProviderOptions configure an OpenID provider, and who its users are here. Issuer, ClientID and
// Roles must be set.
type ProviderOptions struct {
	Issuer       string
	ClientID     string
	ClientSecret string   // "": a public client, secured by PKCE alone
	Scopes       []string // in addition to openid; nil: email and profile
	// NameClaim is the claim whose value is the user's name in the history; "": email. The subject
	// is used instead if the claim is missing, or if it is an e-mail address that the provider has
	// not verified.
	NameClaim        string
	RolesClaim       string // the claim whose values Roles map; "": groups
	CollectionsClaim string // the claim with further collections of depositors; "": none
	Roles            []RoleRule
	Roots            *x509.CertPool // nil: the machine's
}

// providerTime bounds one request to a provider.
const providerTime = 10 * time.Second

// provider is an OpenID provider. Its description is read at the first sign-in, and again until
// that succeeds.
type provider struct {
	ProviderOptions
	http *http.Client

	mu    sync.Mutex
	known *oidc.Provider
	end   string // its end_session_endpoint; "": none
}

func newProvider(o ProviderOptions) *provider {
	o.NameClaim, o.RolesClaim = cmp.Or(o.NameClaim, "email"), cmp.Or(o.RolesClaim, "groups")
	if o.Scopes == nil {
		o.Scopes = []string{"email", "profile"}
	}
	return &provider{ProviderOptions: o, http: &http.Client{Timeout: providerTime, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: providerTime,
		TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
	}}}
}

// errProvider says that the provider does not answer, or not as OpenID Connect requires.
var errProvider = errors.New("the OpenID provider does not answer")

// discover returns the provider's description.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known != nil {
		return p.known, nil
	}
	// The returned Provider fetches keys later too, so it must not end with this request.
	known, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.http), p.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errProvider, err)
	}
	var more struct {
		End string `json:"end_session_endpoint"`
	}
	if err := known.Claims(&more); err != nil {
		return nil, fmt.Errorf("%w: %w", errProvider, err)
	}
	p.known, p.end = known, more.End
	return known, nil
}

func (p *provider) client(known *oidc.Provider, r *http.Request) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: known.Endpoint(),
		RedirectURL: ownURL(r, "/login/oidc/callback"), Scopes: append([]string{oidc.ScopeOpenID}, p.Scopes...),
	}
}

// ownURL returns the address of a path on this server, as the browser sees it.
func ownURL(r *http.Request, path string) string {
	u := url.URL{Scheme: "http", Host: r.Host, Path: path}
	if webserver.Secure(r) {
		u.Scheme = "https"
	}
	return u.String()
}

// endAt returns the address that signs out a browser at the provider, "" if there is none.
func (p *provider) endAt(r *http.Request) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	u, err := url.Parse(p.end)
	if err != nil || p.end == "" {
		return ""
	}
	query := u.Query()
	query.Set("client_id", p.ClientID)
	query.Set("post_logout_redirect_uri", ownURL(r, "/login"))
	u.RawQuery = query.Encode()
	return u.String()
}

// signInState is what a browser's cookie holds while it is at the provider. It binds the provider's
// answer to the browser that asked.
type signInState struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // of PKCE (RFC 7636)
	Next     string `json:"next"`
}

func stateCookie(r *http.Request) string {
	return strings.Replace(cookieName(r), "session", "provider", 1)
}

func (s *Service) setState(w http.ResponseWriter, r *http.Request, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: stateCookie(r), Value: value, Path: "/", HttpOnly: true, Secure: webserver.Secure(r), SameSite: http.SameSiteLaxMode, MaxAge: maxAge,
	})
}

// ToProvider redirects the browser to the OpenID provider. An error means that nothing was
// answered.
func (s *Service) ToProvider(w http.ResponseWriter, r *http.Request) error {
	if s.provider == nil {
		return errNoProvider()
	}
	attempts, _ := bounds(r.RemoteAddr) // there is nothing yet that can fail
	if _, err := s.limiter.take(s.now(), attempts); err != nil {
		return err
	}
	known, err := s.provider.discover(r.Context())
	if err != nil {
		return s.providerFault(r, err)
	}
	on := signInState{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: local(r.URL.Query().Get("next"))}
	text, err := json.Marshal(on)
	if err != nil {
		return fmt.Errorf("redirect to the OpenID provider: %w", err)
	}
	s.setState(w, r, base64.RawURLEncoding.EncodeToString(text), int(LinkGood.Seconds()))
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, s.provider.client(known, r).AuthCodeURL(on.State, oidc.Nonce(on.Nonce), oauth2.S256ChallengeOption(on.Verifier)), http.StatusSeeOther)
	return nil
}

// FromProvider signs in the browser that returns from the OpenID provider. An error means that it
// was not signed in.
func (s *Service) FromProvider(w http.ResponseWriter, r *http.Request) error {
	if s.provider == nil {
		return errNoProvider()
	}
	attempts, failures := bounds(r.RemoteAddr)
	attempt, err := s.limiter.take(s.now(), attempts, failures)
	if err != nil {
		return err
	}
	on, err := stateOf(r)
	if err != nil {
		return err
	}
	s.setState(w, r, "", -1)
	query := r.URL.Query()
	if refused := query.Get("error"); refused != "" {
		return unauthenticated("the OpenID provider did not sign you in (%.100q); try again", refused)
	}
	fresh, secret := newSession(r)
	if err := s.identify(r, on, query.Get("code"), &fresh); err != nil {
		return err
	}
	begun, err := s.store.AddSession(r.Context(), fresh, s.lifetime)
	if err != nil {
		return err
	}
	s.limiter.giveBack(attempt, failures)
	s.enter(w, r, begun, secret, on.Next)
	return nil
}

// stateOf reads the cookie of a browser that returns from the provider, and checks that the answer
// belongs to it.
func stateOf(r *http.Request) (on signInState, err error) {
	c, err := r.Cookie(stateCookie(r))
	if err == nil {
		var text []byte
		if text, err = base64.RawURLEncoding.DecodeString(c.Value); err == nil {
			err = json.Unmarshal(text, &on)
		}
	}
	if err != nil || on.State == "" || subtle.ConstantTimeCompare([]byte(on.State), []byte(r.URL.Query().Get("state"))) != 1 {
		return on, unauthenticated("this browser did not start this sign-in within the last ten minutes; sign in again")
	}
	return on, nil
}

// identify asks the provider for the user and sets the user's name and role in a session.
func (s *Service) identify(r *http.Request, on signInState, code string, who *registry.Session) error {
	p := s.provider
	ctx := oidc.ClientContext(r.Context(), p.http)
	known, err := p.discover(ctx)
	if err != nil {
		return s.providerFault(r, err)
	}
	tokens, err := p.client(known, r).Exchange(ctx, code, oauth2.VerifierOption(on.Verifier))
	if err != nil {
		if refused := new(oauth2.RetrieveError); errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError {
			s.log.InfoContext(ctx, "the OpenID provider refused a code", "err", err)
			return unauthenticated("the sign-in at the OpenID provider has expired; sign in again")
		}
		return s.providerFault(r, err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := known.Verifier(&oidc.Config{ClientID: p.ClientID}).Verify(ctx, raw)
	if err != nil {
		return s.providerFault(r, err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(on.Nonce)) != 1 {
		return unauthenticated("the answer of the OpenID provider belongs to another sign-in; sign in again")
	}
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return s.providerFault(r, err)
	}
	if known.UserInfoEndpoint() != "" {
		info, err := known.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
		if err != nil || info.Subject != token.Subject {
			return s.providerFault(r, fmt.Errorf("ask who %s is: %w", token.Subject, cmp.Or(err, errors.New("the answer is about another user"))))
		}
		more := map[string]any{}
		if err := info.Claims(&more); err != nil {
			return s.providerFault(r, err)
		}
		maps.Copy(more, claims) // signed claims take precedence
		claims = more
	}
	who.Method, who.Subject, who.Name = registry.SignInOIDC, token.Issuer+" "+token.Subject, ProviderPrefix+p.name(token.Subject, claims)
	who.Role, who.Collections = p.role(claims)
	if who.Role == "" {
		return refused(http.StatusForbidden, wire.CodeForbidden,
			"the OpenID provider knows you as %s, but no value of its claim %q gives you a role here; ask an admin of Holdfast",
			strings.TrimPrefix(who.Name, ProviderPrefix), p.RolesClaim)
	}
	return nil
}

// providerFault logs a fault of the provider and returns a problem without its details.
func (s *Service) providerFault(r *http.Request, err error) error {
	s.log.WarnContext(r.Context(), "signing in with the OpenID provider failed", "issuer", s.provider.Issuer, "err", err)
	return refused(http.StatusServiceUnavailable, wire.CodeUnavailable, "the OpenID provider does not answer correctly; try again later, or sign in with a token")
}

func errNoProvider() error {
	return refused(http.StatusNotFound, wire.CodeNotFound, "no OpenID provider is configured; sign in with a token")
}
