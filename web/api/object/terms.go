package object

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

// termsRoute adds PUT /objects/{id}/terms.
func (s *Service) termsRoute() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "set-terms", Method: http.MethodPut, Path: "/objects/{id}/terms",
		Summary: "Replace an object's rights, preservation level and embargo; also ends an embargo before its day",
	}, s.setTerms)
}

type termsInput struct {
	lookup.ObjectID
	Body wire.TermsRequest
}

func (s *Service) setTerms(ctx context.Context, in *termsInput) (*endpoint.Output[registry.Object], error) {
	reason := strings.TrimSpace(in.Body.Reason)
	faults := append(valid.Terms("body.terms", in.Body.Terms), valid.Text("body.reason", reason, valid.MaxText)...)
	if reason == "" {
		faults = append(faults, wire.Fault{Location: "body.reason", Message: "missing: give the reason; it is kept permanently"})
	}
	if err := endpoint.Invalid("the terms were not changed", faults...); err != nil {
		return nil, err
	}
	o, err := lookup.Object(ctx, s.Registry, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.Registry.SetTerms(ctx, o.ID, in.Body.Terms, reason, access.Actor(ctx)); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "terms set", "object", o.ID, "terms", in.Body.Terms.String(), "actor", access.Actor(ctx))
	return endpoint.Answered(lookup.Object(ctx, s.Registry, in.ID))
}

// readable returns why the caller may not read an object's files, or nil: the object is deleted, or an
// embargo keeps the files from others than admins.
func (s *Service) readable(ctx context.Context, id string) error {
	o, err := lookup.Readable(ctx, s.Registry, id)
	if err == nil && o.Terms.Keep(access.Of(ctx).Token.Role, s.Now()) {
		err = wire.NewProblem(http.StatusForbidden, wire.CodeEmbargo, fmt.Sprintf("the files of %s are under %s; ask an admin, who can read them", o.ID, o.Terms.Embargo()))
	}
	return err
}
