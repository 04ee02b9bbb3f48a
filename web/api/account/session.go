package account

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) sessionRoutes() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "create-sign-in-link", Method: http.MethodPost, Path: "/sign-in-links", Status: http.StatusCreated,
		Summary: "Create a link that signs in a browser as the token's holder, once and within ten minutes",
	}, s.createSignInLink)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "list-sessions", Method: http.MethodGet, Path: "/sessions", Summary: "List your browser sessions, last used first; an admin sees those of all users",
	}, s.listSessions)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "end-session", Method: http.MethodDelete, Path: "/sessions/{id}", Summary: "End a session; its browser must sign in again",
	}, s.endSession)
}

// errNoSessions is the error of a process without pages.
func errNoSessions() error {
	return endpoint.NotFound("this process serves no pages, so there are no sessions; ask a process that serves them")
}

func (s *Service) createSignInLink(ctx context.Context, _ *struct{}) (*endpoint.Output[wire.SignInLink], error) {
	if s.SignIn == nil {
		return nil, errNoSessions()
	}
	path, expires, err := s.SignIn.MakeLink(ctx, access.Of(ctx).Token.ID)
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "sign-in link created", "actor", access.Actor(ctx), "expires_at", expires)
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
		return nil, endpoint.NotFound("session %q was not found among yours; list the sessions and use an id from the list", in.ID)
	}
	if err == nil {
		s.Log.InfoContext(ctx, "session ended", "session", in.ID, "actor", access.Actor(ctx))
	}
	return nil, err
}
