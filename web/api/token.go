package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *server) tokenRoutes(api huma.API) {
	register(s, api, operation{id: "list-tokens", method: http.MethodGet, path: "/tokens", summary: "List tokens, oldest first, without their secrets"}, s.tokens)
	register(s, api, operation{id: "own-token", method: http.MethodGet, path: "/token", summary: "Show the token that asks, without its secret"}, s.ownToken)
	register(s, api, operation{id: "create-token", method: http.MethodPost, path: "/tokens", status: http.StatusCreated, summary: "Make a token; its secret is answered this once"}, s.createToken)
	register(s, api, operation{id: "revoke-token", method: http.MethodDelete, path: "/tokens/{id}", summary: "Make a token useless from now on"}, s.revokeToken)
}

func (s *server) tokens(ctx context.Context, _ *struct{}) (*output[registry.Page[registry.Token]], error) {
	all, err := s.registry.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	return listed(all), nil
}

func (s *server) ownToken(ctx context.Context, _ *struct{}) (*output[registry.Token], error) {
	return &output[registry.Token]{Body: callOf(ctx).token}, nil
}

type createTokenInput struct {
	Body wire.TokenRequest
}

// createToken makes a token. There is no idempotency key, since a secret cannot be told twice: a repeat is refused by its
// name, and whoever lost the answer revokes that token and makes another.
func (s *server) createToken(ctx context.Context, in *createTokenInput) (*output[wire.TokenResponse], error) {
	made, err := s.makeToken(ctx, in.Body, actor(ctx))
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "token created", "token", made.Token.ID, "name", made.Token.Name, "role", string(made.Token.Role), "actor", actor(ctx))
	return &output[wire.TokenResponse]{Body: made}, nil
}

// MakeToken makes a token as the API does, in the name of actor, for whoever holds the database: the first token can be made
// in no other way. The secret is in the answer and nowhere else.
func MakeToken(ctx context.Context, r Registry, in wire.TokenRequest, actor string) (wire.TokenResponse, error) {
	return (&server{registry: r, now: time.Now}).makeToken(ctx, in, actor)
}

func (s *server) makeToken(ctx context.Context, in wire.TokenRequest, actor string) (wire.TokenResponse, error) {
	tok := registry.Token{
		ID: strings.ToLower(rand.Text()), Name: strings.TrimSpace(in.Name), Role: registry.Role(in.Role),
		Collections: in.Collections, Stages: in.Stages, ExpiresAt: in.ExpiresAt, CreatedBy: actor,
	}
	if err := invalid("no token was made", s.tokenFaults(tok)...); err != nil {
		return wire.TokenResponse{}, err
	}
	for _, c := range tok.Collections {
		if _, err := s.collectionOf(ctx, c); err != nil {
			return wire.TokenResponse{}, err
		}
	}
	secret := "hf_" + rand.Text()
	tok.Hash = TokenHash(secret)
	if err := s.registry.AddToken(ctx, tok); err != nil {
		return wire.TokenResponse{}, err
	}
	tok.CreatedAt = s.now().UTC()
	return wire.TokenResponse{Token: tok, Secret: secret}, nil
}

func (s *server) tokenFaults(tok registry.Token) []wire.Fault {
	faults := append(textFault("body.name", tok.Name, 200), oneOf("body.role", tok.Role, registry.Roles())...)
	fault := func(location, format string, args ...any) {
		faults = append(faults, wire.Fault{Location: location, Message: fmt.Sprintf(format, args...)})
	}
	if tok.Name == "" {
		fault("body.name", "missing: whose token is it? It stands in the history with every act")
	}
	if slices.Contains([]string{"registry", "worker", "holdfast"}, tok.Name) {
		fault("body.name", "%q is what the history calls a part of Holdfast; give another name", tok.Name)
	}
	if strings.HasPrefix(tok.Name, signin.ProviderPrefix) {
		fault("body.name", "names that begin with %q are those of people who sign in at the OpenID provider; give another name", signin.ProviderPrefix)
	}
	switch {
	case tok.Role == "":
		fault("body.role", "missing: one of %v", registry.Roles())
	case tok.Role == registry.RoleDepositor && len(tok.Collections) == 0:
		fault("body.collections", "missing: a depositor's token is good for the collections that it names")
	case tok.Role != registry.RoleDepositor && len(tok.Collections) > 0:
		fault("body.collections", "only a depositor's token is bound to collections; the role %s sees all", tok.Role)
	}
	switch {
	case tok.Role == registry.RoleWorker && len(tok.Stages) == 0:
		fault("body.stages", "missing: a worker's token is good for the stages that it names (--stage on the command line), of %v", registry.Stages())
	case tok.Role != "" && tok.Role != registry.RoleWorker && len(tok.Stages) > 0:
		fault("body.stages", "only a worker's token is bound to stages; the role %s works at none", tok.Role)
	}
	for i, stage := range tok.Stages {
		location := fmt.Sprintf("body.stages[%d]", i)
		if faults = append(faults, oneOf(location, stage, registry.Stages())...); slices.Contains(tok.Stages[:i], stage) {
			fault(location, "%q stands here twice", stage)
		}
	}
	const most = 100
	if len(tok.Collections) > most {
		fault("body.collections", "%d of them; at most %d can be kept", len(tok.Collections), most)
	}
	for i, c := range tok.Collections {
		if slices.Contains(tok.Collections[:i], c) {
			fault(fmt.Sprintf("body.collections[%d]", i), "%q stands here twice", c)
		}
	}
	if tok.ExpiresAt != nil && !tok.ExpiresAt.After(s.now()) {
		fault("body.expires_at", "it is over already")
	}
	return faults
}

// TokenID names a token in a path.
type TokenID struct {
	ID string `path:"id" maxLength:"200"`
}

func (s *server) revokeToken(ctx context.Context, in *TokenID) (*struct{}, error) {
	err := s.registry.RevokeToken(ctx, in.ID, actor(ctx))
	if errors.Is(err, registry.ErrNotFound) {
		return nil, notFound("there is no token %q; list the tokens and give an id (not the secret)", in.ID)
	}
	if err == nil {
		s.log.InfoContext(ctx, "token revoked", "token", in.ID, "actor", actor(ctx))
	}
	return nil, err
}
