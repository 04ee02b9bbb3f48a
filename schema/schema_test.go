package schema_test

import (
	"encoding/json"
	"fmt"
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
