// Package schema makes JSON schemas of Go types, and checks JSON values against schemas (JSON Schema
// 2020-12).
package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
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
type Schema struct {
	resolved *jsonschema.Resolved
	refers   *part // the whole schema, if it has references
}

// compiled keeps the schemas that were read last, by their texts: thousands of values may have the
// same.
var compiled struct {
	sync.Mutex
	of map[string]*Schema
}

// mostCompiled bounds compiled. When it is full it is emptied.
const mostCompiled = 200

// Read reads the text of a schema; an empty one is nil. References lead to parts of the schema by their
// paths, such as #/$defs/name, and to nothing else. It may be called concurrently.
func Read(text json.RawMessage) (*Schema, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil //nolint:nilnil // anything fits
	}
	compiled.Lock()
	defer compiled.Unlock()
	if s, ok := compiled.of[string(text)]; ok {
		return s, nil
	}
	schema, err := decode(text)
	if err != nil {
		return nil, err
	}
	all, err := parts(schema)
	if err != nil {
		return nil, err
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolve schema: %w", err)
	}
	if len(compiled.of) >= mostCompiled || compiled.of == nil {
		compiled.of = map[string]*Schema{}
	}
	s := &Schema{resolved: resolved}
	for _, p := range all {
		if p.ref != "" {
			s.refers = all[top]
		}
	}
	compiled.of[string(text)] = s
	return s, nil
}

func decode(text json.RawMessage) (*jsonschema.Schema, error) {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("decode schema: %w", err)
	}
	switch v.(type) {
	case bool, map[string]any:
	default:
		return nil, errors.New("a schema is an object, true or false")
	}
	if _, err := (&checks{}).number(v, 0); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			field := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
			return nil, fmt.Errorf("decode schema: a %s is not valid for %s", wrong.Value, cmp.Or(field, "a part of it"))
		}
		return nil, fmt.Errorf("decode schema: %w", err)
	}
	return &s, nil
}

// Fits returns an error that says what is wrong unless a JSON value fits the schema. It has at most a
// few hundred bytes.
func (s *Schema) Fits(value json.RawMessage) error {
	if s == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	if s.refers != nil {
		c := checks{counted: map[check]int{}}
		numbered, err := c.number(v, 0)
		if err != nil {
			return err
		}
		if c.of(s.refers, numbered) > mostChecks {
			return errChecks
		}
	}
	if err := s.resolved.Validate(v); err != nil {
		return plain(err)
	}
	return nil
}

// within is what the library writes before an error for each part of the schema that it is in.
var within = regexp.MustCompile(`^validating (.*?): `)

// ofType is what the library says of a value of the wrong type, with the value as Go writes it.
var ofType = regexp.MustCompile(`^type: .* has type "(\w+)", want (?:one of )?"([\w, ]+)"$`)

// plain rewrites an error of the library: it names the innermost part of the schema only, on one line.
func plain(err error) error {
	text, at := err.Error(), ""
	for {
		found := within.FindStringSubmatch(text)
		if found == nil {
			break
		}
		text, at = text[len(found[0]):], found[1]
	}
	text = strings.Join(strings.Fields(text), " ")
	if found := ofType.FindStringSubmatch(text); found != nil {
		text = fmt.Sprintf("its type is %s; expected: %s", found[1], strings.ReplaceAll(found[2], ", ", " or "))
	}
	if strings.HasPrefix(at, "/") {
		text = top + at + ": " + text
	}
	return errors.New(middle(text))
}

// middle cuts the middle out of a long text: the library quotes whole values, and says at the end what
// was expected.
func middle(text string) string {
	const first, last, mark = 300, 200, " … "
	if len(text) <= first+len(mark)+last {
		return text
	}
	return strings.ToValidUTF8(text[:first], "") + mark + strings.ToValidUTF8(text[len(text)-last:], "")
}
