// Package endpoint has what all operations of the API share: registration and description, paging
// of lists, streaming of long answers, and the conversion of every error to a problem document (RFC
// 9457).
//
// A package of operations embeds a [Server] in its Service. It adds operations with [Register]. For
// bodies or answers of unlimited length it uses [Server.HandleFunc], because huma keeps those in
// memory. This package knows the errors of the Registry's contract, but no operation.
package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/holdfast/holdfast/web/api/shortid"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// Operation describes one route of the API.
type Operation struct {
	ID      string // in the access table and the specification
	Method  string
	Path    string // below wire.Base
	Summary string
	Status  int // of success; 0: 200, or 204 without a body
	// Nothing describes an answer without a body (204) that the operation has besides the one with
	// a body; "": it has none.
	Nothing string
	// Refuses lists the statuses of refusals that this operation has and similar ones do not.
	Refuses []int
}

// Output is an answer with a body.
type Output[T any] struct {
	Body T
}

// newAPI returns huma's API on mux. It switches off huma's pages, which load from other hosts, and
// its schema links in answers.
func (s *Server) newAPI(mux *http.ServeMux) huma.API {
	format := huma.Format{Marshal: marshal, Unmarshal: json.Unmarshal}
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaNamer())
	schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[wire.Problem]())
	config := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Holdfast", Version: "1",
				Description: "Ingest for digital preservation. Every refusal is a problem document (RFC 9457).",
			},
			Components: &huma.Components{
				Schemas:         schemas,
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}},
			},
			Security: []map[string][]string{{"token": {}}},
			Tags:     allTags(),
		},
		Formats:                      map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{s.ourProblem},
	}
	return humago.NewWithPrefix(mux, wire.Base, config)
}

// schemaNamer names each type. If two packages have types of one name, the second one's name gets
// its package as a prefix.
func schemaNamer() func(reflect.Type, string) string {
	taken := map[string]reflect.Type{}
	return func(t reflect.Type, hint string) string {
		name := huma.DefaultSchemaNamer(t, hint)
		if t.Name() == "" {
			return name
		}
		if first, ok := taken[name]; ok && first != t {
			return strings.ToUpper(path.Base(t.PkgPath())[:1]) + path.Base(t.PkgPath())[1:] + name
		}
		taken[name] = t
		return name
	}
}

func marshal(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Register adds an operation. Only roles of the access table may call it. The handler's errors
// become problems in the same way for all operations.
func Register[I, O any](s *Server, o Operation, handle func(context.Context, *I) (*O, error)) {
	op := s.Describe(o)
	op.Middlewares = huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		if err := s.Permit(r.Context(), o.ID); err != nil {
			s.Fail(w, r, err)
			return
		}
		next(huma.WithValue(ctx, requestKey{}, r))
	}}
	op.MaxBodyBytes = MaxBody + 1 // the caller of the Server has already bounded it
	// The caller of the Server has also read the body. huma's deadline for that would cut off
	// answers that take longer than 5 s.
	op.BodyReadTimeout = -1
	ids := shortid.Has(reflect.TypeFor[I]())
	huma.Register(s.api, op, func(ctx context.Context, in *I) (out *O, err error) {
		if ids {
			err = s.ids.Input(ctx, reflect.ValueOf(in))
		}
		if err == nil {
			out, err = handle(ctx, in)
		}
		if err != nil {
			r, _ := ctx.Value(requestKey{}).(*http.Request)
			return nil, refusal{s.Problem(r, err)}
		}
		return out, nil
	})
}

type requestKey struct{}

// Describe returns the description of an operation for the specification.
func (s *Server) Describe(o Operation) huma.Operation {
	roles := make([]string, len(s.access.Roles[o.ID]))
	for i, r := range s.access.Roles[o.ID] {
		roles[i] = string(r)
	}
	text := "Roles: " + strings.Join(roles, ", ") + "."
	if stages := s.access.Stages[o.ID]; len(stages) > 0 {
		words := make([]string, len(stages))
		for i, stage := range stages {
			words[i] = string(stage)
		}
		text += " Workers: only those of the stages " + strings.Join(words, ", ") + "."
	}
	op := huma.Operation{
		OperationID: o.ID, Method: o.Method, Path: o.Path, Summary: o.Summary, DefaultStatus: o.Status,
		Description: text,
		Tags:        []string{tagOf(o.Path)},
		Errors:      o.statuses(),
	}
	if o.Nothing != "" {
		op.Responses = map[string]*huma.Response{strconv.Itoa(http.StatusNoContent): {Description: o.Nothing}}
	}
	return op
}

// statuses returns the statuses of an operation's possible refusals. Tests fail if an operation
// answers with another one.
func (o Operation) statuses() []int {
	out := []int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusInternalServerError,
		http.StatusServiceUnavailable,
	}
	if strings.Contains(o.Path, "{id}") {
		out = append(out, http.StatusConflict) // a short id that is ambiguous
	}
	if strings.HasPrefix(o.Path, "/objects/{id}/") {
		out = append(out, http.StatusGone)
	}
	switch o.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		out = append(out, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	case http.MethodDelete:
		out = append(out, http.StatusNotFound, http.StatusConflict)
	default:
		if strings.Contains(o.Path, "{") {
			out = append(out, http.StatusNotFound)
		}
	}
	out = append(out, o.Refuses...)
	slices.Sort(out)
	return slices.Compact(out)
}

// Specification returns the OpenAPI 3.1 document of all operations that were added, indented.
func (s *Server) Specification() ([]byte, error) {
	text, err := json.MarshalIndent(s.api.OpenAPI(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode specification: %w", err)
	}
	return append(text, '\n'), nil
}

// refusal is a problem in the form that huma needs.
type refusal struct{ *wire.Problem }

// GetStatus implements huma.StatusError.
func (r refusal) GetStatus() int { return r.Status }

// GetHeaders implements huma.HeadersError.
func (r refusal) GetHeaders() http.Header {
	if after := retryAfter(r.Problem); after != "" {
		return http.Header{"Retry-After": {after}}
	}
	return nil
}

// ContentType implements huma.ContentTypeFilter.
func (r refusal) ContentType(string) string { return "application/problem+json" }

// ourProblem converts huma's own refusals of bad input.
func (s *Server) ourProblem(ctx huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	codes := map[int]wire.Code{
		http.StatusUnprocessableEntity: wire.CodeInvalid, http.StatusUnsupportedMediaType: wire.CodeUnsupportedMedia,
		http.StatusRequestEntityTooLarge: wire.CodeTooLarge, http.StatusInternalServerError: wire.CodeInternal,
	}
	code, ok := codes[e.Status]
	if !ok {
		code = wire.CodeBadRequest
	}
	r, _ := humago.Unwrap(ctx)
	p := wire.NewProblem(e.Status, code, fmt.Sprintf("%s %s was not understood: %s; correct the fields that the errors name",
		r.Method, webserver.Path(r), e.Detail))
	for _, d := range e.Errors {
		if d != nil {
			// Values are omitted: they may be secrets.
			p.Faults = append(p.Faults, wire.Fault{Location: d.Location, Message: s.suggest(ctx.Operation(), d)})
		}
	}
	return s.Problem(r, p), nil
}
