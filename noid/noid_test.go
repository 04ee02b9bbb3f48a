package noid_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/noid"
)

func TestCheckChar(t *testing.T) {
	tests := []struct {
		in   string
		want byte
	}{
		{"13030/xf93gt2", 'q'}, // the NOID manual's example
		{"12345/q15fk5zsz", 'x'},
		{"ark:/42409/8k28cs25", 'w'}, // minters that hash the scheme, too
		{"ark:/13030/nq943d25", '1'},
		{"", '0'},
	}
	for _, tt := range tests {
		if got := noid.CheckChar(tt.in); got != tt.want {
			t.Errorf("CheckChar(%q)=%c, want %c", tt.in, got, tt.want)
		}
	}
}

// checked reports whether the name of an ARK ends in its check character.
func checked(a noid.ARK) bool {
	text := strings.TrimPrefix(a.ObjectID(), "ark:/")
	last := len(text) - 1
	return noid.CheckChar(text[:last]) == text[last]
}

func TestCheckChar_ARKs(t *testing.T) {
	for text, want := range map[string]bool{
		"ark:/13030/xf93gt2q": true, "ark:13030/xf93-gt2-q": true, "ark:/13030/xf93gt2q/page/2.tiff?info": true,
		"ark:/13030/xf93gt2r":  false,
		"ark:/13030/xf39gt2q":  false, // swapped
		"ark:/42409/8k28cs25w": false, // computed with its scheme: valid there
	} {
		if got := checked(parse(t, text)); got != want {
			t.Errorf("%s has its check character: %t, want %t", text, got, want)
		}
	}
}

// TestCheckChar_FindsTypos checks that the check character detects every single wrong character and
// every transposition of neighbours, as NOID promises for strings shorter than 29.
func TestCheckChar_FindsTypos(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		char := rapid.SampledFrom([]byte(noid.Alphabet))
		name := rapid.SliceOfN(char, 3, 20).Draw(t, "name")
		good := "12345/" + string(name)
		i := rapid.IntRange(0, len(name)-2).Draw(t, "at")
		wrong := []byte(strings.Clone(good))
		j := len("12345/") + i
		if rapid.Bool().Draw(t, "swap") {
			wrong[j], wrong[j+1] = wrong[j+1], wrong[j]
		} else {
			wrong[j] = char.Draw(t, "other")
		}
		if string(wrong) != good && noid.CheckChar(string(wrong)) == noid.CheckChar(good) {
			t.Fatalf("%s and %s share a check character", good, wrong)
		}
	})
}
