package endpoint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/holdfast/holdfast/registry"
)

// unknownQuery is what huma says of a parameter that an operation does not have.
const unknownQuery = "unknown query parameter"

// suggest adds to huma's refusal of an unknown field or parameter the known one with the nearest name,
// or all of them if none is near. Other messages stay as they are.
func (s *Server) suggest(op *huma.Operation, d *huma.ErrorDetail) string {
	if op == nil || d.Message != validation.MsgUnexpectedProperty && d.Message != unknownQuery {
		return d.Message
	}
	known := s.namesAt(op, d.Location)
	if near := registry.Nearest(lastName(d.Location), known); near != "" {
		return fmt.Sprintf("unknown; did you mean %s?", near)
	}
	if len(known) == 0 {
		return "unknown; leave it out"
	}
	return "unknown; known are " + strings.Join(known, ", ")
}

// lastName is the name of the field at a location, such as titel of body.rows[3].titel.
func lastName(location string) string { return location[strings.LastIndex(location, ".")+1:] }

// namesAt returns the sorted names that an operation knows where an unknown one is: parameters of the
// query, or fields of the object in the body.
func (s *Server) namesAt(op *huma.Operation, location string) (names []string) {
	path := strings.Split(location, ".")
	if path[0] == "query" {
		for _, p := range op.Parameters {
			if p.In == "query" {
				names = append(names, p.Name)
			}
		}
		slices.Sort(names)
		return names
	}
	if len(path) < 2 || op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		return nil
	}
	at := s.resolved(op.RequestBody.Content["application/json"].Schema)
	for _, name := range path[1 : len(path)-1] {
		name, _, listed := strings.Cut(name, "[")
		if at == nil {
			return nil
		}
		at = s.resolved(at.Properties[name])
		for listed && at != nil && at.Items != nil {
			at = s.resolved(at.Items)
		}
	}
	if at == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(at.Properties))
}

// resolved is a schema, or the one that it refers to.
func (s *Server) resolved(schema *huma.Schema) *huma.Schema {
	for schema != nil && schema.Ref != "" {
		schema = s.api.OpenAPI().Components.Schemas.SchemaFromRef(schema.Ref)
	}
	return schema
}
