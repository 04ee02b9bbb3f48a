package pathset

import (
	"strings"
	"testing"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// plainFold is Fold by its definition, whatever the name is made of.
func plainFold(name string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFD.String(name)))
}

// TestFold_EveryRune compares the fast paths for ASCII with the definition, for every letter that
// may have case, alone and among others.
func TestFold_EveryRune(t *testing.T) {
	t.Parallel()
	for r := range rune(0x20000) { // no letter beyond has case
		for _, name := range []string{string(r), "Box/F" + string(r) + "Z.tif"} {
			want := plainFold(name)
			if got := Fold(name); got != want {
				t.Fatalf("Fold(%q) = %q, want %q", name, got, want)
			}
			if got := string(appendFold([]byte("x"), name)); got != "x"+want {
				t.Fatalf("appendFold(%q) = %q, want x and %q", name, got, want)
			}
		}
	}
}

func FuzzFold(f *testing.F) {
	for _, name := range []string{"", "a", "Box/F\u00e9.TIF", "\x00A", "\xff\xc3", "straße", "\u1f80\u0345", strings.Repeat("A", 300)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		want := plainFold(name)
		if got := Fold(name); got != want {
			t.Fatalf("Fold(%q) = %q, want %q", name, got, want)
		}
		if got := string(appendFold(nil, name)); got != want {
			t.Fatalf("appendFold(%q) = %q, want %q", name, got, want)
		}
	})
}
