package cfntest

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast/holdfast/internal/npmtest"
)

// Schema is CloudFormation's own description of all types of resources.
type Schema struct {
	resources map[string]described
	types     map[string]described
}

// described is a type of resource, or of a property.
type described struct {
	Name       string `json:"name"`
	Type       string `json:"cloudFormationType"`
	ID         string `json:"$id"`
	Attributes map[string]any
	Properties map[string]property
}

type property struct {
	Required bool
	Type     kind
}

// kind is the type of a value.
type kind struct {
	Type      string
	Reference struct {
		Ref string `json:"$ref"`
	}
	Element       *kind
	Types         []kind
	AllowedValues []any
}

// schemaVersion is the version of @aws-cdk/aws-service-spec, which has the schema as AWS publishes
// it.
const schemaVersion = "0.1.216"

// LoadSchema reads the schema. Where npm cannot have it, the test is skipped, or fails if
// REQUIRE_SERVICES is 1.
func LoadSchema(t testing.TB) *Schema {
	t.Helper()
	file, err := os.Open(filepath.Join(npmtest.Folder(t.Context(), t, "@aws-cdk/aws-service-spec", schemaVersion), "db.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var db struct {
		Schema struct {
			Resource       struct{ Entities []described }
			TypeDefinition struct{ Entities []described }
		}
	}
	if err := json.NewDecoder(text).Decode(&db); err != nil {
		t.Fatal(err)
	}
	s := &Schema{resources: map[string]described{}, types: map[string]described{}}
	for _, d := range db.Schema.Resource.Entities {
		s.resources[d.Type] = d
	}
	for _, d := range db.Schema.TypeDefinition.Entities {
		s.types[d.ID] = d
	}
	return s
}

// HasAttribute reports whether resources of a type have an attribute for Fn::GetAtt.
func (s *Schema) HasAttribute(resource, attribute string) bool {
	_, ok := s.resources[resource].Attributes[attribute]
	return ok
}

// Faults returns what is wrong with the resources of a template: unknown types, unknown or missing
// properties, and values of another type. Functions may return anything.
func (s *Schema) Faults(t *Template) (faults []string) {
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		r := t.Resources[id]
		d, ok := s.resources[r.Type]
		if !ok {
			faults = append(faults, id+": unknown type "+r.Type)
			continue
		}
		faults = append(faults, s.object(id, r.Properties, d)...)
	}
	return faults
}

func (s *Schema) object(where string, has map[string]any, d described) (faults []string) {
	for _, name := range slices.Sorted(maps.Keys(has)) {
		p, ok := d.Properties[name]
		if !ok {
			faults = append(faults, fmt.Sprintf("%s: %s has no property %s", where, cmp.Or(d.Type, d.Name), name))
			continue
		}
		faults = append(faults, s.value(where+"."+name, has[name], p.Type)...)
	}
	for name, p := range d.Properties {
		if _, ok := has[name]; p.Required && !ok {
			faults = append(faults, fmt.Sprintf("%s: %s needs the property %s", where, cmp.Or(d.Type, d.Name), name))
		}
	}
	return faults
}

func (s *Schema) value(where string, v any, k kind) (faults []string) {
	if name, argument := function(v); name == "Fn::If" {
		words := argument.([]any)
		return append(s.value(where, words[1], k), s.value(where, words[2], k)...)
	} else if name != "" {
		return nil
	}
	wrong := func() []string { return []string{fmt.Sprintf("%s: %v is no %s", where, v, k.Type)} }
	switch k.Type {
	case "ref":
		m, ok := v.(map[string]any)
		if !ok {
			return wrong()
		}
		return s.object(where, m, s.types[k.Reference.Ref])
	case "tag", "map":
		m, ok := v.(map[string]any)
		if !ok {
			return wrong()
		}
		for name, v := range m {
			if k.Element != nil {
				faults = append(faults, s.value(where+"."+name, v, *k.Element)...)
			}
		}
	case "array":
		list, ok := v.([]any)
		if !ok {
			return wrong()
		}
		for i, v := range list {
			faults = append(faults, s.value(fmt.Sprintf("%s.%d", where, i), v, *k.Element)...)
		}
	case "union":
		for _, one := range k.Types {
			found := s.value(where, v, one)
			if len(found) == 0 {
				return nil
			}
			if faults == nil || len(found) < len(faults) {
				faults = found
			}
		}
	case "json":
		if _, ok := v.(map[string]any); !ok {
			return wrong()
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return wrong()
		}
	case "integer":
		if _, ok := v.(int); !ok {
			return wrong()
		}
	case "number":
		switch v.(type) {
		case int, float64:
		default:
			return wrong()
		}
	case "string", "date-time":
		switch v.(type) {
		case string, int, float64: // CloudFormation makes texts of numbers
		default:
			return wrong()
		}
		if len(k.AllowedValues) > 0 && !slices.ContainsFunc(k.AllowedValues, func(a any) bool { return fmt.Sprint(a) == fmt.Sprint(v) }) {
			faults = append(faults, fmt.Sprintf("%s: %v is none of %v", where, v, k.AllowedValues))
		}
	default:
		return []string{where + ": the schema has the unknown kind " + k.Type}
	}
	return faults
}
