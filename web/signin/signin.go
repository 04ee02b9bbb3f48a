// Package signin lets browsers sign in to the pages: with a token in a form, by a one-time link, or
// at an OpenID provider.
//
// A cookie never holds a token, but the secret of a session, which is stored as its hash and ends
// with the token. Only a person's click uses up a link; a program that previews it does not.
// Attempts are limited, and each is audited.
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

// LinkGood is how long a one-time link can be used.
const LinkGood = 10 * time.Minute

// How long sessions last when nothing else is asked for.
const (
	DefaultIdle = 4 * time.Hour
	DefaultMost = 24 * time.Hour
)

// ProviderPrefix begins the names of those who sign in at an OpenID provider, and of nobody else.
const ProviderPrefix = "oidc:"

// Store is what signing in needs of the Registry's store.
type Store interface {
	registry.Signing
	TokenByHash(ctx context.Context, hash string) (registry.Token, error)
}

// Options says how to sign in. Store and Log must be set.
type Options struct {
	Store    Store
	Log      *slog.Logger
	Lifetime registry.Lifetime // what is 0 has a default
	Provider *ProviderOptions  // nil: nobody signs in at one
	Now      func() time.Time  // for the limits on attempts; nil: time.Now
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

// Hash is what is stored of a secret: of a token, of a link or of a session.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// cookieName is the name of the cookie of a session. Over HTTPS the prefix makes browsers refuse
// one that another host of the domain, or plain HTTP, has set.
func cookieName(r *http.Request) string {
	name := ofPort("holdfast_session", r)
	if webserver.Secure(r) {
		name = "__Host-" + name
	}
	return name
}

// ofPort is the name of a cookie of this server. Browsers share cookies between the ports of a
// host: to sign in to one Holdfast must not sign out of another beside it.
func ofPort(name string, r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" {
		name += "_" + port
	}
	return name
}

// MakeLink makes a one-time link for a token and returns its address below the service's own.
func (s *Service) MakeLink(ctx context.Context, tokenID string) (path string, expires time.Time, err error) {
	return MakeLink(ctx, s.store, tokenID, s.now())
}

// MakeLink is that of a Service, for whoever has the store.
func MakeLink(ctx context.Context, store registry.Signing, tokenID string, now time.Time) (path string, expires time.Time, err error) {
	secret := rand.Text()
	if err := store.AddLink(ctx, Hash(secret), tokenID, LinkGood); err != nil {
		return "", time.Time{}, err
	}
	return "/login?link=" + secret, now.Add(LinkGood).UTC().Truncate(time.Second), nil
}

// ByToken is a session in the place of one, for whoever brings a token instead.
func ByToken(t registry.Token) registry.Session {
	return registry.Session{TokenID: t.ID, Name: t.Name, Role: t.Role, Collections: t.Collections}
}

// Has says whether a request brings a session's cookie.
func (s *Service) Has(r *http.Request) bool {
	c, err := r.Cookie(cookieName(r))
	return err == nil && c.Value != ""
}

// Session returns the session of a request's cookie. active says that a person, not a page that
// loads itself again, has asked. The error is a problem for people when there is no such session.
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

// Good returns registry.ErrNotFound when a session has ended meanwhile.
func (s *Service) Good(ctx context.Context, session registry.Session) error {
	_, err := s.store.SessionByHash(ctx, session.Hash, false)
	return err
}

// Sessions lists the sessions that a token, or a session, may see: all for an admin, otherwise
// one's own.
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

// End ends a session that who may see; registry.ErrNotFound for all others.
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

// formType is what browsers send the form as. Its other type could bring files, which are read to
// the disk.
const formType = "application/x-www-form-urlencoded"

// SignIn answers the form of the sign-in page: it begins a session with the token or the link in
// it, sets the cookie and goes to the page that was asked for first. An error means that nothing
// was answered.
func (s *Service) SignIn(w http.ResponseWriter, r *http.Request) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != formType {
		return wire.NewProblem(http.StatusUnsupportedMediaType, wire.CodeUnsupportedMedia, "the form must come as "+formType+"; load the page again")
	}
	if err := r.ParseForm(); err != nil {
		return wire.NewProblem(http.StatusBadRequest, wire.CodeBadRequest, "the form cannot be read; load the page again")
	}
	link, token := r.PostForm.Get("link"), strings.TrimSpace(r.PostForm.Get("token"))
	// A link that is good is let through whatever others have tried: it cannot be guessed, and
	// works once.
	if link != "" {
		if _, err := s.store.LinkToken(r.Context(), Hash(link)); err == nil {
			return s.goOn(w, r, link, token)
		} else if !errors.Is(err, registry.ErrNotFound) {
			return err
		}
	}
	attempts, failures := bounds(r.RemoteAddr)
	if link == "" {
		failures["failures with "+beginning(token)] = failuresEach
	}
	attempt, err := s.limiter.take(s.now(), attempts, failures)
	if err != nil {
		return err
	}
	if err := s.goOn(w, r, link, token); err != nil {
		return err
	}
	s.limiter.giveBack(attempt, failures)
	return nil
}

// goOn begins a session and gives it to the browser.
func (s *Service) goOn(w http.ResponseWriter, r *http.Request, link, token string) error {
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
		return begun, "", unauthenticated("no token was given; paste the whole of it")
	}
	tok, err := s.store.TokenByHash(ctx, Hash(token))
	if err == nil && tok.Role == registry.RoleWorker {
		return begun, "", wire.NewProblem(http.StatusForbidden, wire.CodeForbidden, "this is a worker's token, which cannot be used for the pages; ask an admin for one of your own")
	}
	if err == nil {
		fresh.TokenID, fresh.Method = tok.ID, registry.SignInToken
		begun, err = s.store.AddSession(ctx, fresh, s.lifetime)
	}
	if errors.Is(err, registry.ErrNotFound) {
		err = unauthenticated("the token is not known here, has expired or was revoked; paste the whole of it, or ask an admin for another")
	}
	return begun, secret, err
}

// newSession is a session that begins with a request, with a secret that there never was before.
func newSession(r *http.Request) (fresh registry.Session, secret string) {
	secret = rand.Text() + rand.Text()
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	return registry.Session{ID: strings.ToLower(rand.Text()), Hash: Hash(secret), Agent: shortened(r.UserAgent()), Address: address}, secret
}

// shortened is a browser's name for people.
func shortened(agent string) string {
	const most = 300
	return agent[:min(len(agent), most)]
}

// enter gives the browser its session, ends the one that it had before, and goes on.
func (s *Service) enter(w http.ResponseWriter, r *http.Request, begun registry.Session, secret, next string) {
	if before, err := s.Session(r, false); err == nil {
		s.end(r, before)
	}
	// Lax, since links to pages stand in mails and chats; but no other site's form is sent with it.
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: secret, Path: "/", HttpOnly: true, Secure: webserver.Secure(r), SameSite: http.SameSiteLaxMode,
		MaxAge: int(begun.ExpiresAt.Sub(begun.CreatedAt).Seconds()),
	})
	s.log.InfoContext(r.Context(), "signed in", "session", begun.ID, "name", begun.Name, "method", string(begun.Method), "remote", r.RemoteAddr)
	dropToken(w, r)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, local(next), http.StatusSeeOther)
}

// dropToken makes a browser forget the cookie of before there were sessions, which holds a token
// itself.
func dropToken(w http.ResponseWriter, r *http.Request) {
	name := ofPort("holdfast_token", r)
	if _, err := r.Cookie(name); err == nil {
		expire(w, r, name)
	}
}

// expire makes a browser forget a cookie.
func expire(w http.ResponseWriter, r *http.Request, name string) {
	http.SetCookie(w, &http.Cookie{Name: name, Path: "/", HttpOnly: true, Secure: webserver.Secure(r), SameSite: http.SameSiteLaxMode, MaxAge: -1})
}

// SignOut ends the session of a request and says so.
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

// end ends a session because its browser wants it.
func (s *Service) end(r *http.Request, session registry.Session) {
	err := s.store.EndSession(r.Context(), session.ID, registry.EventSignedOut, session.Name)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		s.log.WarnContext(r.Context(), "a session could not be ended; it ends by itself", "session", session.ID, "err", err)
	}
}

// local is the address of a page here, "/" when text is none: a form must not lead elsewhere.
func local(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") ||
		strings.ContainsAny(text, "\\\r\n\t") || u.Path == "/login" || strings.HasPrefix(u.Path, "/login/") || u.Path == "/logout" {
		return "/"
	}
	return text
}

func errUsedLink() error {
	return unauthenticated("this link has been used or has expired: it is good once, within ten minutes; print another by `holdfast login`")
}

func unauthenticated(detail string) *wire.Problem {
	return wire.NewProblem(http.StatusUnauthorized, wire.CodeUnauthenticated, detail)
}
