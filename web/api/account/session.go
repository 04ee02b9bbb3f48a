package account

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) sessionRoutes() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "create-sign-in-link", Method: http.MethodPost, Path: "/sign-in-links", Status: http.StatusCreated,
		Summary: "Make a link by which a browser signs in as the token's holder, once, within ten minutes",
	}, s.createSignInLink)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "list-sessions", Method: http.MethodGet, Path: "/sessions", Summary: "List your browsers' sessions, the last used first; everybody's for an admin",
	}, s.listSessions)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "end-session", Method: http.MethodDelete, Path: "/sessions/{id}", Summary: "End a session: its browser has to sign in again",
	}, s.endSession)
}

// errNoSessions answers where no pages are served.
func errNoSessions() error {
	return endpoint.NotFound("this process serves no pages, so nobody can sign in to them")
}

func (s *Service) createSignInLink(ctx context.Context, _ *struct{}) (*endpoint.Output[wire.SignInLink], error) {
	if s.SignIn == nil {
		return nil, errNoSessions()
	}
	path, expires, err := s.SignIn.MakeLink(ctx, access.Of(ctx).Token.ID)
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "sign-in link made", "actor", access.Actor(ctx), "expires_at", expires)
	return &endpoint.Output[wire.SignInLink]{Body: wire.SignInLink{Path: path, ExpiresAt: expires}}, nil
}

func (s *Service) listSessions(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[registry.Session]], error) {
	if s.SignIn == nil {
		return nil, errNoSessions()
	}
	all, err := s.SignIn.Sessions(ctx, access.Person(ctx))
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(all), nil
}

// SessionID names a session in a path.
type SessionID struct {
	ID string `path:"id" maxLength:"200"`
}

func (s *Service) endSession(ctx context.Context, in *SessionID) (*struct{}, error) {
	if s.SignIn == nil {
		return nil, errNoSessions()
	}
	err := s.SignIn.End(ctx, access.Person(ctx), in.ID)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, endpoint.NotFound("there is no session %q, or it is another person's; list the sessions and give an id", in.ID)
	}
	if err == nil {
		s.Log.InfoContext(ctx, "session ended", "session", in.ID, "actor", access.Actor(ctx))
	}
	return nil, err
}

// Account tells the pages who has signed in, and shows them their sessions.
type Account struct{ signIn *signin.Service }

// New returns the Account of the caller in each call's context (web/api/access).
func New(s *signin.Service) *Account { return &Account{s} }

// Current is the session of the page that is asked for; without an ID when it was asked for with a
// token.
func (*Account) Current(ctx context.Context) registry.Session { return access.Of(ctx).Session }

// Sessions lists the sessions that who asks may see and end, the last used first.
func (a *Account) Sessions(ctx context.Context) ([]registry.Session, error) {
	return a.signIn.Sessions(ctx, access.Person(ctx))
}

// EndSession ends one of them; registry.ErrNotFound for all others.
func (a *Account) EndSession(ctx context.Context, id string) error {
	return a.signIn.End(ctx, access.Person(ctx), id)
}
