package account

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) tokenRoutes() {
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-tokens", Method: http.MethodGet, Path: "/tokens", Summary: "List tokens, oldest first, without their secrets"}, s.tokens)
	endpoint.Register(s.Server, endpoint.Operation{ID: "own-token", Method: http.MethodGet, Path: "/token", Summary: "Show your own token, without its secret"}, s.ownToken)
	endpoint.Register(s.Server, endpoint.Operation{ID: "create-token", Method: http.MethodPost, Path: "/tokens", Status: http.StatusCreated, Summary: "Create a token; only this answer contains its secret"}, s.createToken)
	endpoint.Register(s.Server, endpoint.Operation{ID: "revoke-token", Method: http.MethodDelete, Path: "/tokens/{id}", Summary: "Revoke a token at once"}, s.revokeToken)
}

func (s *Service) tokens(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[registry.Token]], error) {
	all, err := s.Registry.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(all), nil
}

func (s *Service) ownToken(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Token], error) {
	return &endpoint.Output[registry.Token]{Body: access.Of(ctx).Token}, nil
}

type createTokenInput struct {
	Body wire.TokenRequest
}

// createToken creates a token. It takes no idempotency key, because a secret is returned only once.
// A repeat is refused because of its name: whoever lost the answer revokes that token and creates
// another.
func (s *Service) createToken(ctx context.Context, in *createTokenInput) (*endpoint.Output[wire.TokenResponse], error) {
	made, err := makeToken(ctx, s.Registry, s.Now(), in.Body, signin.NewSecret(), access.Actor(ctx))
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "token created", "token", made.Token.ID, "name", made.Token.Name, "role", string(made.Token.Role), "actor", access.Actor(ctx))
	return &endpoint.Output[wire.TokenResponse]{Body: made}, nil
}

// MakeToken creates a token as the API does, in the name of actor, for those who can access the
// database. The first token can be created in no other way. secret is one of [signin.NewSecret]; only
// its hash is stored.
func MakeToken(ctx context.Context, r Registry, in wire.TokenRequest, secret, actor string) (wire.TokenResponse, error) {
	return makeToken(ctx, r, time.Now(), in, secret, actor)
}

func makeToken(ctx context.Context, r Registry, now time.Time, in wire.TokenRequest, secret, actor string) (wire.TokenResponse, error) {
	tok := registry.Token{
		ID: strings.ToLower(rand.Text()), Name: strings.TrimSpace(in.Name), Role: registry.Role(in.Role),
		Collections: in.Collections, Stages: in.Stages, ExpiresAt: in.ExpiresAt, CreatedBy: actor,
	}
	if err := endpoint.Invalid("the token was not created", tokenFaults(tok, now)...); err != nil {
		return wire.TokenResponse{}, err
	}
	for _, c := range tok.Collections {
		if _, err := lookup.Collection(ctx, r, c); err != nil {
			return wire.TokenResponse{}, err
		}
	}
	tok.Hash = signin.Hash(secret)
	if err := r.AddToken(ctx, tok); err != nil {
		return wire.TokenResponse{}, err
	}
	tok.CreatedAt = now.UTC()
	return wire.TokenResponse{Token: tok, Secret: secret}, nil
}

func tokenFaults(tok registry.Token, now time.Time) []wire.Fault {
	faults := append(valid.Text("body.name", tok.Name, 200), valid.OneOf("body.role", tok.Role, registry.Roles())...)
	fault := func(location, format string, args ...any) {
		faults = append(faults, wire.Fault{Location: location, Message: fmt.Sprintf(format, args...)})
	}
	if tok.Name == "" {
		fault("body.name", "missing: give the owner's name; the history shows it with every act")
	}
	if slices.Contains([]string{"registry", "worker", "holdfast"}, tok.Name) {
		fault("body.name", "%q is reserved for a part of Holdfast in the history; use another name", tok.Name)
	}
	if strings.HasPrefix(tok.Name, signin.ProviderPrefix) {
		fault("body.name", "names that begin with %q are reserved for people who sign in with the OpenID provider; use another name", signin.ProviderPrefix)
	}
	switch {
	case tok.Role == "":
		fault("body.role", "missing: one of %v", registry.OneOf(registry.Roles()))
	case tok.Role == registry.RoleDepositor && len(tok.Collections) == 0:
		fault("body.collections", "missing: name the collections for which the depositor's token is valid")
	case tok.Role != registry.RoleDepositor && len(tok.Collections) > 0:
		fault("body.collections", "only a depositor's token has collections; the role %s sees all", tok.Role)
	}
	switch {
	case tok.Role == registry.RoleWorker && len(tok.Stages) == 0:
		fault("body.stages", "missing: name the stages for which the worker's token is valid (--stage on the command line), of %v", registry.AllOf(valid.Stages()))
	case tok.Role != "" && tok.Role != registry.RoleWorker && len(tok.Stages) > 0:
		fault("body.stages", "only a worker's token has stages; remove them for the role %s", tok.Role)
	}
	for i, stage := range tok.Stages {
		location := fmt.Sprintf("body.stages[%d]", i)
		if faults = append(faults, valid.Stage(location, stage)...); slices.Contains(tok.Stages[:i], stage) {
			fault(location, "%q is listed twice", stage)
		}
	}
	const most = 100
	if len(tok.Collections) > most {
		fault("body.collections", "%d collections; at most %d are allowed", len(tok.Collections), most)
	}
	for i, c := range tok.Collections {
		if slices.Contains(tok.Collections[:i], c) {
			fault(fmt.Sprintf("body.collections[%d]", i), "%q is listed twice", c)
		}
	}
	if tok.ExpiresAt != nil && !tok.ExpiresAt.After(now) {
		fault("body.expires_at", "the time is in the past")
	}
	return faults
}

// TokenID names a token in a path.
type TokenID struct {
	ID string `path:"id" maxLength:"200"`
}

func (s *Service) revokeToken(ctx context.Context, in *TokenID) (*struct{}, error) {
	err := s.Registry.RevokeToken(ctx, in.ID, access.Actor(ctx))
	if errors.Is(err, registry.ErrNotFound) {
		return nil, endpoint.NotFound("token %q was not found; list the tokens and use an id from the list (not the secret)", in.ID)
	}
	if err == nil {
		s.Log.InfoContext(ctx, "token revoked", "token", in.ID, "actor", access.Actor(ctx))
	}
	return nil, err
}
