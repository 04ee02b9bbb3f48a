// Package schema makes JSON schemas of Go types, and checks JSON values against schemas (JSON Schema
// 2020-12).
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Of returns the schema of the JSON of type T. Fields without omitempty are required. It is nil where
// it would say nothing: for an interface, for json.RawMessage, and for an empty struct, whose value
// may be left out.
func Of[T any]() (json.RawMessage, error) {
	of := reflect.TypeFor[T]()
	if of.Kind() == reflect.Interface || of.Kind() == reflect.Struct && of.NumField() == 0 || of == reflect.TypeFor[json.RawMessage]() {
		return nil, nil
	}
	s, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, fmt.Errorf("%s has no JSON schema: %w", of, err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode the schema of %s: %w", of, err)
	}
	return text, nil
}

// Schema is a schema that is ready for use. Anything fits nil.
type Schema struct{ resolved *jsonschema.Resolved }

// compiled keeps the schemas that were read last, by their texts: thousands of values may have the
// same.
var compiled struct {
	sync.Mutex
	of map[string]*Schema
}

// mostCompiled bounds compiled. When it is full it is emptied.
const mostCompiled = 200

// Read reads the text of a schema; an empty one is nil. It may be called concurrently.
func Read(text json.RawMessage) (*Schema, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil //nolint:nilnil // anything fits
	}
	compiled.Lock()
	defer compiled.Unlock()
	if s, ok := compiled.of[string(text)]; ok {
		return s, nil
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, fmt.Errorf("decode schema: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolve schema: %w", err)
	}
	if len(compiled.of) >= mostCompiled || compiled.of == nil {
		compiled.of = map[string]*Schema{}
	}
	s := &Schema{resolved}
	compiled.of[string(text)] = s
	return s, nil
}

// Fits returns an error that says what is wrong unless a JSON value fits the schema.
func (s *Schema) Fits(value json.RawMessage) error {
	if s == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	return s.resolved.Validate(v)
}
