package catalog

import (
	"encoding/json"
	"maps"
	"testing"
)

// FuzzPlainDigests: what is read the short way is read the same by encoding/json.
func FuzzPlainDigests(f *testing.F) {
	for _, text := range []string{
		`{}`, `null`, ``, `{"md5":"00ff"}`, `{"md5":"00ff","sha512":"ab"}`, `{"md5":"1","md5":"2"}`, `{"md5": "1"}`, `{"md5":"1"}x`,
		`{"md5":"1",}`, `{"a\u0062":"1"}`, `{"a":"\n"}`, `{"a":"é"}`, `{"":""}`, `{"a":1}`, `{"a":"1","b":2}`, `{"a":"1"`, `{"a,"b":"c"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := plainDigests(text)
		var want map[string]string
		err := json.Unmarshal([]byte(text), &want)
		if ok && (err != nil || !maps.Equal(got, want)) {
			t.Fatalf("%q: %v, want %v, %v", text, got, want, err)
		}
		all, decodeErr := decodeDigests(text)
		if (decodeErr == nil) != (err == nil) || err == nil && !maps.Equal(all, want) {
			t.Fatalf("%q: %v, %v, want %v, %v", text, all, decodeErr, want, err)
		}
	})
}

// TestPlainDigests: what we write is read the short way.
func TestPlainDigests(t *testing.T) {
	t.Parallel()
	for _, digests := range []map[string]string{
		{"sha512": "00ff"}, {"md5": "d41d8cd98f00b204e9800998ecf8427e", "sha256": "ab", "sha512/256": "cd"},
	} {
		text, err := json.Marshal(digests)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := plainDigests(string(text)); !ok || !maps.Equal(got, digests) {
			t.Errorf("%s: %v, %t", text, got, ok)
		}
	}
}
