package siegfried

import (
	"encoding/json"
	"testing"
)

// An answer in siegfried's place is refused, or gives a format with PUID and registry, or none.
func FuzzAnswer(f *testing.F) {
	const good = `{"siegfried":"1.11.1","identifiers":[{"name":"pronom","details":"DROID_SignatureFile_V118.xml"}],"files":[{"filename":"x","matches":[` +
		`{"ns":"pronom","id":"fmt/43","format":"JPEG","version":"1.01","warning":""},{"ns":"pronom","id":"fmt/44"}]}]}`
	for _, text := range []string{"", "{}", "null", good, `{"siegfried":"1","files":[{}]}`, `{"siegfried":"1","files":[{"matches":[{"ns":"pronom","id":"UNKNOWN"}]}]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := parse(raw)
		switch {
		case err != nil && a.Format != nil:
			t.Errorf("%q: %v, and a format: %+v", raw, err, a.Format)
		case err == nil && (!json.Valid(raw) || a.Agent == ""):
			t.Errorf("%q is taken for an answer: %+v", raw, a)
		case a.Format != nil && (a.Format.PUID == unknown || a.Format.Registry == ""):
			t.Errorf("%q: %+v, want a format that its registry knows", raw, a.Format)
		}
	})
}
