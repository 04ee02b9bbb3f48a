package api

import (
	"context"
	"encoding/json"
	"errors"
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

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// operation describes one route of the API.
type operation struct {
	id      string // in the access table and in the specification
	method  string
	path    string // below wire.Base
	summary string
	status  int // of success; 0: 200, or 204 without a body
	// refuses are the statuses of refusals that this operation has beside those that all like it have.
	refuses []int
}

// output is an answer with a body.
type output[T any] struct {
	Body T
}

// newHuma returns the API on mux, with nothing of huma's that we do not want: no pages that load from elsewhere, no
// schema links in answers.
func (s *server) newHuma(mux *http.ServeMux) huma.API {
	format := huma.Format{Marshal: marshal, Unmarshal: json.Unmarshal}
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaNamer())
	schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[wire.Problem]())
	config := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Holdfast", Version: "1",
				Description: "Digital-preservation ingest. Every refusal is a problem document (RFC 9457).",
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

// schemaNamer gives each type a name of its own. What a person may say of a thing and what the contract says of it may have
// one name in their packages; the second that comes is named with its package.
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

// register adds an operation. The handler's errors become problems by the one table, and only the roles of the access table
// get to it.
func register[I, O any](s *server, api huma.API, o operation, handle func(context.Context, *I) (*O, error)) {
	op := s.describe(o)
	op.Middlewares = huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		if err := s.permit(r.Context(), o.id); err != nil {
			s.fail(w, r, err)
			return
		}
		next(huma.WithValue(ctx, requestKey{}, r))
	}}
	op.MaxBodyBytes = maxBody + 1 // bounded has been here before
	// And it has read the body. A deadline that stands after that would cut off an answer that takes longer, after 5 s.
	op.BodyReadTimeout = -1
	ids := hasIDs(reflect.TypeFor[I]())
	huma.Register(api, op, func(ctx context.Context, in *I) (out *O, err error) {
		if ids {
			err = s.wholeInput(ctx, "", reflect.ValueOf(in))
		}
		if err == nil {
			out, err = handle(ctx, in)
		}
		if err != nil {
			r, _ := ctx.Value(requestKey{}).(*http.Request)
			return nil, refusal{s.problem(r, err)}
		}
		return out, nil
	})
}

type requestKey struct{}

// describe is what an operation is in the specification.
func (s *server) describe(o operation) huma.Operation {
	roles := make([]string, len(s.access[o.id]))
	for i, r := range s.access[o.id] {
		roles[i] = string(r)
	}
	text := "Roles: " + strings.Join(roles, ", ") + "."
	if stages := s.stages[o.id]; len(stages) > 0 {
		words := make([]string, len(stages))
		for i, stage := range stages {
			words[i] = string(stage)
		}
		text += " Of workers those of the stages " + strings.Join(words, ", ") + "."
	}
	return huma.Operation{
		OperationID: o.id, Method: o.method, Path: o.path, Summary: o.summary, DefaultStatus: o.status,
		Description: text,
		Tags:        []string{tagOf(o.path)},
		Errors:      o.statuses(),
	}
}

// statuses are those of the refusals that an operation may answer with. The tests fail where one answers with another.
func (o operation) statuses() []int {
	out := []int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusInternalServerError,
		http.StatusServiceUnavailable,
	}
	if strings.Contains(o.path, "{id}") {
		out = append(out, http.StatusConflict) // an id in short that several begin with
	}
	if strings.HasPrefix(o.path, "/objects/{id}/") {
		out = append(out, http.StatusGone)
	}
	switch o.method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		out = append(out, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	case http.MethodDelete:
		out = append(out, http.StatusNotFound, http.StatusConflict)
	default:
		if strings.Contains(o.path, "{") {
			out = append(out, http.StatusNotFound)
		}
	}
	out = append(out, o.refuses...)
	slices.Sort(out)
	return slices.Compact(out)
}

// specification returns the OpenAPI document, indented.
func specification(api huma.API) ([]byte, error) {
	text, err := json.MarshalIndent(api.OpenAPI(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode specification: %w", err)
	}
	return append(text, '\n'), nil
}

// refusal is a problem as huma takes it.
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

// ourProblem turns the refusals that huma itself makes of bad input into ours.
func (s *server) ourProblem(ctx huma.Context, _ string, v any) (any, error) {
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
	p := wire.NewProblem(e.Status, code, fmt.Sprintf("%s %s cannot be understood: %s; correct what the errors name",
		r.Method, webserver.Path(r), e.Detail))
	for _, d := range e.Errors {
		if d != nil {
			// Values are not echoed: they may be secrets.
			p.Faults = append(p.Faults, wire.Fault{Location: d.Location, Message: d.Message})
		}
	}
	return s.problem(r, p), nil
}

// page makes a page that is never null in JSON.
func page[T any](p registry.Page[T]) *output[registry.Page[T]] {
	if p.Rows == nil {
		p.Rows = []T{}
	}
	return &output[registry.Page[T]]{Body: p}
}

// listed is a page of a list that has no end but its own.
func listed[T any](rows []T) *output[registry.Page[T]] { return page(registry.Page[T]{Rows: rows}) }

// Paging is where a page begins and how long it is.
type Paging struct {
	After string `query:"after" maxLength:"4096" doc:"next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" doc:"Rows of a page; 50 when not given"`
}

// size is the limit that the Registry will use.
func (p Paging) size() int {
	const normal = 50
	if p.Limit <= 0 {
		return normal
	}
	return p.Limit
}

// before is the number that a list of numbered things, the newest first, goes on below; 0: it begins.
func (p Paging) before() (int, error) {
	if p.After == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(p.After)
	if err != nil || n < 1 {
		return 0, invalid("the list cannot be made", wire.Fault{Location: "query.after", Message: "it is no cursor of this list", Found: p.After})
	}
	return n, nil
}

// numbered is a page of such a list.
func numbered[T any](rows []T, limit int, number func(T) int) registry.Page[T] {
	p := registry.Page[T]{Rows: rows}
	if len(rows) == limit {
		p.Next = strconv.Itoa(number(rows[limit-1]))
	}
	return p
}

// badCursor turns the Registry's answer to a cursor that it never gave into one about the input.
func (p Paging) badCursor(err error) error {
	if p.After != "" && errors.Is(err, registry.ErrNotFound) {
		return invalid("the page cannot be found", wire.Fault{
			Location: "query.after", Message: "it is no cursor that was given out; begin without it",
		})
	}
	return err
}

// oneOf returns a fault unless value is one of those there are; nothing is the same as not to ask.
func oneOf[T ~string](location string, value T, known []T) []wire.Fault {
	if value == "" || slices.Contains(known, value) {
		return nil
	}
	return []wire.Fault{{Location: location, Message: fmt.Sprintf("%q is not one of %v", value, known), Found: string(value)}}
}
