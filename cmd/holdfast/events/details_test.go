package events

import "testing"

func TestDetailsText(t *testing.T) {
	for raw, want := range map[string]string{
		``: "", `null`: "", `{}`: "",
		`{"to_stage":"record","n":3,"empty":"","ok":true,"list":["a"]}`: `list: a, n: 3, ok: true, to stage: record`,
		`["odd"]`: `["odd"]`,
	} {
		if got := DetailsText([]byte(raw)); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
