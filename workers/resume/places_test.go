package resume //nolint:testpackage // the set is nobody else's

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Places
		want := map[int]bool{}
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 40)).Draw(t, "numbers") {
			p = p.Add(n)
			want[n] = true
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var read Places
		if err := json.Unmarshal(raw, &read); err != nil {
			t.Fatal(err)
		}
		for n := -1; n < 43; n++ {
			if read.Has(n) != want[n] {
				t.Fatalf("has(%d)=%v, want %v: %s", n, read.Has(n), want[n], raw)
			}
		}
		for i := 1; i < len(p); i++ {
			if p[i-1][1] >= p[i][0] {
				t.Fatalf("spans touch: %s", raw)
			}
		}
	})
}
