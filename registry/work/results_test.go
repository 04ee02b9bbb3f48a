package work

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// decodeResults must agree with package json about everything that encodeResults writes.
func TestDecodeResults(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{`\`, `"`, `\"`, `{`, `}`, `,`, `:`, `[]`, "<\u2028>", `\\"`}))
	leaf := rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return text.Draw(t, "text")
		case 1:
			return rapid.Float64Range(-1e9, 1e9).Draw(t, "number")
		case 2:
			return rapid.Bool().Draw(t, "bool")
		}
		return nil
	})
	value := rapid.OneOf(leaf, rapid.Map(rapid.SliceOf(leaf), func(v []any) any { return v }),
		rapid.Map(rapid.MapOf(text, leaf), func(v map[string]any) any { return []any{v, v} }))
	rapid.Check(t, func(t *rapid.T) {
		raw := map[string]json.RawMessage{}
		for name, v := range rapid.MapOf(text, value).Draw(t, "results") {
			encoded, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			raw[name] = encoded
		}
		written := []byte(encodeResults(raw))
		var want map[string]json.RawMessage
		if err := json.Unmarshal(written, &want); err != nil {
			t.Fatal(err)
		}
		got, err := decodeResults(written)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %q, %v, want %q", written, got, err, want)
		}
	})
	for _, damaged := range []string{``, `null`, `[]`, `{"a":1`, `{"a":{}`, `{"a":"`, `{a:1}`} {
		if got, err := decodeResults([]byte(damaged)); err == nil {
			t.Errorf("%q: %v", damaged, got)
		}
	}
}
