package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *server) sessionRoutes(api huma.API) {
	register(s, api, operation{
		id: "create-sign-in-link", method: http.MethodPost, path: "/sign-in-links", status: http.StatusCreated,
		summary: "Make a link by which a browser signs in as the token's holder, once, within ten minutes",
	}, s.createSignInLink)
	register(s, api, operation{
		id: "list-sessions", method: http.MethodGet, path: "/sessions", summary: "List your browsers' sessions, the last used first; everybody's for an admin",
	}, s.listSessions)
	register(s, api, operation{
		id: "end-session", method: http.MethodDelete, path: "/sessions/{id}", summary: "End a session: its browser has to sign in again",
	}, s.endSession)
}

// errNoSessions answers where no pages are served.
func errNoSessions() error {
	return notFound("this process serves no pages, so nobody can sign in to them")
}

func (s *server) createSignInLink(ctx context.Context, _ *struct{}) (*output[wire.SignInLink], error) {
	if s.signIn == nil {
		return nil, errNoSessions()
	}
	path, expires, err := s.signIn.MakeLink(ctx, callOf(ctx).token.ID)
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "sign-in link made", "actor", actor(ctx), "expires_at", expires)
	return &output[wire.SignInLink]{Body: wire.SignInLink{Path: path, ExpiresAt: expires}}, nil
}

func (s *server) listSessions(ctx context.Context, _ *struct{}) (*output[registry.Page[registry.Session]], error) {
	if s.signIn == nil {
		return nil, errNoSessions()
	}
	all, err := NewAccount(s.signIn).Sessions(ctx)
	if err != nil {
		return nil, err
	}
	return listed(all), nil
}

// SessionID names a session in a path.
type SessionID struct {
	ID string `path:"id" maxLength:"200"`
}

func (s *server) endSession(ctx context.Context, in *SessionID) (*struct{}, error) {
	if s.signIn == nil {
		return nil, errNoSessions()
	}
	err := NewAccount(s.signIn).EndSession(ctx, in.ID)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, notFound("there is no session %q, or it is another person's; list the sessions and give an id", in.ID)
	}
	if err == nil {
		s.log.InfoContext(ctx, "session ended", "session", in.ID, "actor", actor(ctx))
	}
	return nil, err
}

// Account tells the pages who has signed in, and shows them their sessions.
type Account struct{ signIn *signin.Service }

// NewAccount returns the Account of whoever asks, for the contexts that [New]'s handler makes.
func NewAccount(s *signin.Service) *Account { return &Account{s} }

// Current is the session of the page that is asked for; without an ID when it was asked for with a token.
func (*Account) Current(ctx context.Context) registry.Session { return callOf(ctx).session }

// Sessions lists the sessions that who asks may see and end, the last used first.
func (a *Account) Sessions(ctx context.Context) ([]registry.Session, error) {
	return a.signIn.Sessions(ctx, a.caller(ctx))
}

// EndSession ends one of them; registry.ErrNotFound for all others.
func (a *Account) EndSession(ctx context.Context, id string) error {
	return a.signIn.End(ctx, a.caller(ctx), id)
}

// caller is who asks, by a session or by a token.
func (*Account) caller(ctx context.Context) registry.Session {
	c := callOf(ctx)
	if c.session.ID != "" {
		return c.session
	}
	return signin.ByToken(c.token)
}
