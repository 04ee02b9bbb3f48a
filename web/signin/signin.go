// Package signin signs in browsers to the pages: with a token in a form, by a one-time link, or
// with an OpenID provider.
//
// A cookie never holds a token. It holds the secret of a session, whose hash is stored, and which
// ends with the token. Only a person's click uses up a link; a program that previews it does not.
// Attempts are limited and audited.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// LinkGood is how long a one-time link is valid.
const LinkGood = 10 * time.Minute

// Default limits of sessions.
const (
	DefaultIdle = 4 * time.Hour
	DefaultMost = 24 * time.Hour
)

// ProviderPrefix starts the names of users of an OpenID provider, and no other names.
const ProviderPrefix = "oidc:"

// Store is what this package needs of the Registry's store.
type Store interface {
	registry.Signing
	TokenByHash(ctx context.Context, hash string) (registry.Token, error)
}

// Options configure a Service. Store and Log must be set.
type Options struct {
	Store    Store
	Log      *slog.Logger
	Lifetime registry.Lifetime // 0 means the default
	Provider *ProviderOptions  // nil: none
	Now      func() time.Time  // for the bounds on attempts; nil: time.Now
}

// Service signs browsers in and out. Its methods may be called concurrently.
type Service struct {
	store    Store
	log      *slog.Logger
	lifetime registry.Lifetime
	now      func() time.Time
	limiter  limiter
	provider *provider // nil: none
}

// New returns a Service.
func New(o Options) *Service {
	s := &Service{store: o.Store, log: o.Log, lifetime: o.Lifetime, now: o.Now}
	if s.lifetime.Idle <= 0 {
		s.lifetime.Idle = DefaultIdle
	}
	if s.lifetime.Most <= 0 {
		s.lifetime.Most = DefaultMost
	}
	if s.now == nil {
		s.now = time.Now
	}
	if o.Provider != nil {
		s.provider = newProvider(*o.Provider)
	}
	return s
}

// NewSecret returns the secret of a new token.
func NewSecret() string { return "hf_" + rand.Text() }

// Hash returns the form in which the secret of a token, link or session is stored.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// cookieName returns the name of a session's cookie. Over HTTPS the prefix makes browsers refuse a
// cookie that another host of the domain, or plain HTTP, has set.
func cookieName(r *http.Request) string {
	name := ofPort("holdfast_session", r)
	if webserver.Secure(r) {
		name = "__Host-" + name
	}
	return name
}

// ofPort adds the server's port to the name of a cookie. Browsers share cookies between the ports
// of a host, but two servers on one host must have separate sessions.
func ofPort(name string, r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" {
		name += "_" + port
	}
	return name
}

// MakeLink creates a one-time link for a token and returns its path on this service.
func (s *Service) MakeLink(ctx context.Context, tokenID string) (path string, expires time.Time, err error) {
	return MakeLink(ctx, s.store, tokenID, s.now())
}

// MakeLink does the same for callers that have the store.
func MakeLink(ctx context.Context, store registry.Signing, tokenID string, now time.Time) (path string, expires time.Time, err error) {
	secret := rand.Text()
	if err := store.AddLink(ctx, Hash(secret), tokenID, LinkGood); err != nil {
		return "", time.Time{}, err
	}
	return "/login?link=" + secret, now.Add(LinkGood).UTC().Truncate(time.Second), nil
}

// ByToken returns a Session for a caller who uses a token instead.
func ByToken(t registry.Token) registry.Session {
	return registry.Session{TokenID: t.ID, Name: t.Name, Role: t.Role, Collections: t.Collections}
}

// Has reports whether a request has a session cookie.
func (s *Service) Has(r *http.Request) bool {
	c, err := r.Cookie(cookieName(r))
	return err == nil && c.Value != ""
}

// Session returns the session of a request's cookie. active says that a person made the request,
// not a page that reloads itself. If there is no such session, the error is a problem for people.
func (s *Service) Session(r *http.Request, active bool) (registry.Session, error) {
	c, err := r.Cookie(cookieName(r))
	if err != nil || c.Value == "" {
		return registry.Session{}, unauthenticated("you are not signed in")
	}
	found, err := s.store.SessionByHash(r.Context(), Hash(c.Value), active)
	if errors.Is(err, registry.ErrNotFound) {
		return found, unauthenticated("your session has ended; sign in again")
	}
	return found, err
}

// Good returns registry.ErrNotFound if a session has ended meanwhile.
func (s *Service) Good(ctx context.Context, session registry.Session) error {
	_, err := s.store.SessionByHash(ctx, session.Hash, false)
	return err
}

// Sessions lists the sessions that a caller may see: an admin all, others their own.
func (s *Service) Sessions(ctx context.Context, who registry.Session) ([]registry.Session, error) {
	all, err := s.store.Sessions(ctx)
	if err != nil || who.Role == registry.RoleAdmin {
		return all, err
	}
	var own []registry.Session
	for _, one := range all {
		if one.Same(who) {
			own = append(own, one)
		}
	}
	return own, nil
}

// End ends a session that the caller may see; registry.ErrNotFound for others.
func (s *Service) End(ctx context.Context, who registry.Session, id string) error {
	seen, err := s.Sessions(ctx, who)
	if err != nil {
		return err
	}
	for _, one := range seen {
		if one.ID == id {
			return s.store.EndSession(ctx, id, registry.EventSessionEnded, who.Name)
		}
	}
	return fmt.Errorf("session %s: %w", id, registry.ErrNotFound)
}

// formType is the content type of the form. The other type of forms could carry files, which would
// be written to disk.
const formType = "application/x-www-form-urlencoded"

// SignIn handles the form of the sign-in page. It starts a session for the form's token or link,
// sets the cookie and redirects to the requested page. An error means that nothing was answered.
func (s *Service) SignIn(w http.ResponseWriter, r *http.Request) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != formType {
		return refused(http.StatusUnsupportedMediaType, wire.CodeUnsupportedMedia, "the form must have the content type %s; reload the page", formType)
	}
	if err := r.ParseForm(); err != nil {
		return refused(http.StatusBadRequest, wire.CodeBadRequest, "the form could not be read; reload the page")
	}
	link, token := r.PostForm.Get("link"), strings.TrimSpace(r.PostForm.Get("token"))
	// A valid link is exempt from the bounds: it cannot be guessed, and works once.
	if link != "" {
		if _, err := s.store.LinkToken(r.Context(), Hash(link)); err == nil {
			return s.start(w, r, link, token)
		} else if !errors.Is(err, registry.ErrNotFound) {
			return err
		}
	}
	attempts, failures := bounds(r.RemoteAddr)
	if link == "" {
		failures["failures with "+prefixOf(token)] = failuresEach
	}
	attempt, err := s.limiter.take(s.now(), attempts, failures)
	if err != nil {
		return err
	}
	if err := s.start(w, r, link, token); err != nil {
		return err
	}
	s.limiter.giveBack(attempt, failures)
	return nil
}

// start starts a session and gives it to the browser.
func (s *Service) start(w http.ResponseWriter, r *http.Request, link, token string) error {
	begun, secret, err := s.begin(r, link, token)
	if err != nil {
		return err
	}
	s.enter(w, r, begun, secret, r.PostForm.Get("next"))
	return nil
}

func (s *Service) begin(r *http.Request, link, token string) (begun registry.Session, secret string, err error) {
	ctx := r.Context()
	fresh, secret := newSession(r)
	if link != "" {
		begun, err = s.store.AddLinkedSession(ctx, Hash(link), fresh, s.lifetime)
		if errors.Is(err, registry.ErrNotFound) {
			err = errUsedLink()
		}
		return begun, secret, err
	}
	if token == "" {
		return begun, "", unauthenticated("no token was given; paste the complete token")
	}
	tok, err := s.store.TokenByHash(ctx, Hash(token))
	if err == nil && tok.Role == registry.RoleWorker {
		return begun, "", refused(http.StatusForbidden, wire.CodeForbidden, "this is a worker's token, which is not valid for the pages; ask an admin for a token of your own")
	}
	if err == nil {
		fresh.TokenID, fresh.Method = tok.ID, registry.SignInToken
		begun, err = s.store.AddSession(ctx, fresh, s.lifetime)
	}
	if errors.Is(err, registry.ErrNotFound) {
		err = unauthenticated("the token is unknown, expired or revoked; paste the complete token, or ask an admin for another")
	}
	return begun, secret, err
}

// newSession returns a session for a request, with a new secret.
func newSession(r *http.Request) (fresh registry.Session, secret string) {
	secret = rand.Text() + rand.Text()
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	return registry.Session{ID: strings.ToLower(rand.Text()), Hash: Hash(secret), Agent: shortened(r.UserAgent()), Address: address}, secret
}

// shortened limits the length of a browser's User-Agent.
func shortened(agent string) string {
	const most = 300
	return agent[:min(len(agent), most)]
}

// enter gives the browser its session, ends its earlier one, and redirects.
func (s *Service) enter(w http.ResponseWriter, r *http.Request, begun registry.Session, secret, next string) {
	if before, err := s.Session(r, false); err == nil {
		s.end(r, before)
	}
	// Lax, because links to pages occur in mails and chats; forms of other sites are still sent
	// without it.
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: secret, Path: "/", HttpOnly: true, Secure: webserver.Secure(r), SameSite: http.SameSiteLaxMode,
		MaxAge: int(begun.ExpiresAt.Sub(begun.CreatedAt).Seconds()),
	})
	s.log.InfoContext(r.Context(), "signed in", "session", begun.ID, "name", begun.Name, "method", string(begun.Method), "remote", r.RemoteAddr)
	dropToken(w, r)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, local(next), http.StatusSeeOther)
}

// dropToken removes the cookie of old versions, which held a token itself.
func dropToken(w http.ResponseWriter, r *http.Request) {
	name := ofPort("holdfast_token", r)
	if _, err := r.Cookie(name); err == nil {
		expire(w, r, name)
	}
}

// expire removes a cookie from the browser.
func expire(w http.ResponseWriter, r *http.Request, name string) {
	http.SetCookie(w, &http.Cookie{Name: name, Path: "/", HttpOnly: true, Secure: webserver.Secure(r), SameSite: http.SameSiteLaxMode, MaxAge: -1})
}

// SignOut ends the session of a request and shows that.
func (s *Service) SignOut(w http.ResponseWriter, r *http.Request) {
	v := view{Out: true}
	if found, err := s.Session(r, false); err == nil {
		s.end(r, found)
		if found.Method == registry.SignInOIDC && s.provider != nil {
			v.ProviderEnd = s.provider.endAt(r)
		}
	}
	expire(w, r, cookieName(r))
	s.show(w, r, http.StatusOK, v)
}

// end ends a session at the request of its browser.
func (s *Service) end(r *http.Request, session registry.Session) {
	err := s.store.EndSession(r.Context(), session.ID, registry.EventSignedOut, session.Name)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		s.log.WarnContext(r.Context(), "ending a session failed; it will expire", "session", session.ID, "err", err)
	}
}

// local returns text if it is the address of a page here, and "/" otherwise: a form must not lead
// elsewhere.
func local(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") ||
		strings.ContainsAny(text, "\\\r\n\t") || u.Path == "/login" || strings.HasPrefix(u.Path, "/login/") || u.Path == "/logout" {
		return "/"
	}
	return text
}

func errUsedLink() error {
	return unauthenticated("this link has been used or has expired: it is valid once, for ten minutes; get another with `holdfast login`")
}

// refusal is why a browser is not signed in, as a text of the catalogue.
type refusal struct {
	problem *wire.Problem
	text    string
	args    []any
}

// Error returns the text in English.
func (r *refusal) Error() string { return r.problem.Error() }

// Unwrap returns the API's problem.
func (r *refusal) Unwrap() error { return r.problem }

// refused returns the error of somebody who is not signed in, whose text is of the catalogue.
func refused(status int, code wire.Code, text string, args ...any) error {
	return &refusal{wire.NewProblem(status, code, fmt.Sprintf(text, args...)), text, args}
}

func unauthenticated(text string, args ...any) error {
	return refused(http.StatusUnauthorized, wire.CodeUnauthenticated, text, args...)
}

// Needed is the error of a browser that asks for a page without having signed in.
func Needed() error { return unauthenticated("sign in to see this page") }
