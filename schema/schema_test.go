package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/schema"
)

type order struct {
	Number int      `json:"number"`
	Words  []string `json:"words,omitempty"`
}

func TestOf(t *testing.T) {
	text, err := schema.Of[order]()
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	for value, fits := range map[string]bool{
		`{"number":1}`: true, `{"number":1,"words":["a"]}`: true, `{}`: false, `{"number":"1"}`: false, `{"number":1,"other":2}`: false, `null`: false, `{`: false, ``: false,
	} {
		if err := s.Fits(json.RawMessage(value)); (err == nil) != fits {
			t.Errorf("%s: %v, want that it fits: %v", value, err, fits)
		}
	}
	for name, of := range map[string]func() (json.RawMessage, error){"any": schema.Of[any], "struct{}": schema.Of[struct{}], "RawMessage": schema.Of[json.RawMessage]} {
		if text, err := of(); text != nil || err != nil {
			t.Errorf("%s: %s, %v; want none", name, text, err)
		}
	}
	if _, err := schema.Of[chan int](); err == nil {
		t.Error("a channel has a schema")
	}
}

func TestRead(t *testing.T) {
	for _, bad := range []string{`{"type":5}`, `{"$ref":"#/nowhere"}`, `nonsense`} {
		if _, err := schema.Read(json.RawMessage(bad)); err == nil {
			t.Errorf("%s is a schema", bad)
		}
	}
	for i := range 1000 { // many more than are kept
		s, err := schema.Read(json.RawMessage(fmt.Sprintf(`{"const":%d}`, i)))
		if err != nil || s.Fits(json.RawMessage(fmt.Sprint(i))) != nil || s.Fits(json.RawMessage(fmt.Sprint(i+1))) == nil {
			t.Fatalf("schema %d: %v", i, err)
		}
	}
	if s, err := schema.Read(nil); err != nil || s.Fits(json.RawMessage(`5`)) != nil {
		t.Errorf("without a schema: %v", err)
	}
}

// TestRead_Ends: a check that does not end fills the stack, which ends the process.
func TestRead_Ends(t *testing.T) {
	for _, endless := range []string{
		`{"$ref":"#"}`,
		`{"$REF":"#"}`,
		`{"allOf":[{"$ref":"#"}]}`,
		`{"properties":{"a":{"anyOf":[{"type":"string"},{"not":{"$ref":"#/properties/a"}}]}}}`,
		`{"$defs":{"a/~%":{"$ref":"#/$defs/b"},"b":{"if":{"$ref":"#/$defs/a~1~0%25"}}}}`,
		`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`,
		`{"$id":"http://a/","$defs":{"b":{"$id":"http://a/b","$ref":"#"}}}`,
	} {
		if _, err := schema.Read(json.RawMessage(endless)); err == nil {
			t.Errorf("%s is a schema", endless)
		}
	}
	tree, err := schema.Read(json.RawMessage(`{"type":"object","properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}},"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	nested := func(name string, levels int) string {
		return strings.Repeat(`{"`+name+`":`, levels) + `{}` + strings.Repeat(`}`, levels)
	}
	for value, fits := range map[string]bool{nested("left", 100): true, nested("middle", 1): false, nested("left", 9000): false} {
		if err := tree.Fits(json.RawMessage(value)); (err == nil) != fits {
			t.Errorf("%.40s: %v, want that it fits: %v", value, err, fits)
		}
	}
}

// TestFits_TakesFewChecks: each level of the value is checked twice as often as the one above it.
func TestFits_TakesFewChecks(t *testing.T) {
	double, err := schema.Read(json.RawMessage(`{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for levels, fits := range map[int]bool{5: true, 100: false} {
		if err := double.Fits(json.RawMessage(strings.Repeat(`{"a":`, levels) + `1` + strings.Repeat(`}`, levels))); (err == nil) != fits {
			t.Errorf("%d levels: %v, want that it fits: %v", levels, err, fits)
		}
	}
}

func TestErrors(t *testing.T) {
	s, err := schema.Read(json.RawMessage(`{"$defs":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/n"},"m":{"type":"integer"},"s":{"type":["string","null"],"enum":["x",null]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{"m":"x"}`: "#/properties/m: its type is string; expected: integer",
		`{"n":1.5}`: "#/$defs/n: its type is number; expected: integer",
		`{"s":{}}`:  "#/properties/s: its type is object; expected: string or null",
		`{"s":"y"}`: `#/properties/s: enum: y does not equal any of: [x <nil>]`,
	} {
		if err := s.Fits(json.RawMessage(value)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
	if err := s.Fits(json.RawMessage(`{"s":"` + strings.Repeat("x", 1<<20) + `"}`)); err == nil || len(err.Error()) > 1000 {
		t.Errorf("a long value: %.100v", err)
	}
	for bad, want := range map[string]string{
		`{"type":"text"}`: `#: the type "text" does not exist; the types are array, boolean, integer, null, number, object, string`,
		`{"properties":{"a":{"type":["null","x"]}}}`: `#/properties/a: the type "x" does not exist; the types are array, boolean, integer, null, number, object, string`,
		`"text"`:          "a schema is an object, true or false",
		`{"minimum":"1"}`: "decode schema: a string is not valid for minimum",
		`{"$ref":"https://example.org/schema.json"}`:                         `#: the $ref "https://example.org/schema.json" does not lead to a part of this schema, such as #/$defs/name`,
		strings.Repeat(`{"not":`, 9000) + "true" + strings.Repeat("}", 9000): "it is nested more than 200 levels deep",
	} {
		if _, err := schema.Read(json.RawMessage(bad)); err == nil || err.Error() != want {
			t.Errorf("%.40s: %v, want %s", bad, err, want)
		}
	}
}
