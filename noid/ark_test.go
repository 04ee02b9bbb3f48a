package noid_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/noid"
)

func TestParseARK(t *testing.T) {
	tests := []struct {
		name, in   string
		want       noid.ARK
		wantString string
	}{
		{"with a slash", "ark:/13030/xf93gt2q", noid.ARK{NAAN: "13030", Name: "xf93gt2q"}, "ark:/13030/xf93gt2q"},
		{"without a slash", "ark:13030/xf93gt2q", noid.ARK{NAAN: "13030", Name: "xf93gt2q"}, "ark:/13030/xf93gt2q"},
		{"scheme in capitals", "ARK:/13030/xf93gt2q", noid.ARK{NAAN: "13030", Name: "xf93gt2q"}, "ark:/13030/xf93gt2q"},
		{"white space around", " ark:/13030/xf93gt2q\n", noid.ARK{NAAN: "13030", Name: "xf93gt2q"}, "ark:/13030/xf93gt2q"},
		{"hyphens kept", "ark:/13030/xf9-3gt-2q", noid.ARK{NAAN: "13030", Name: "xf9-3gt-2q"}, "ark:/13030/xf9-3gt-2q"},
		{"a dash of a word processor", "ark:/13030/xf9\u20133gt2q", noid.ARK{NAAN: "13030", Name: "xf9-3gt2q"}, "ark:/13030/xf9-3gt2q"},
		{"letters in the NAAN", "ark:/B5072/fk2x", noid.ARK{NAAN: "b5072", Name: "fk2x"}, "ark:/b5072/fk2x"},
		{"case of the name kept", "ark:/12345/aBc", noid.ARK{NAAN: "12345", Name: "aBc"}, "ark:/12345/aBc"},
		{
			"qualifier", "ark:/12345/x54xz321/s3/f8.05v.tiff",
			noid.ARK{NAAN: "12345", Name: "x54xz321", Qualifier: "/s3/f8.05v.tiff"},
			"ark:/12345/x54xz321/s3/f8.05v.tiff",
		},
		{"inflection", "ark:/12345/x54?info", noid.ARK{NAAN: "12345", Name: "x54", Inflection: "?info"}, "ark:/12345/x54?info"},
		{"double question mark", "ark:/12345/x54/p2??", noid.ARK{NAAN: "12345", Name: "x54", Qualifier: "/p2", Inflection: "??"}, "ark:/12345/x54/p2??"},
		{"escape", "ark:/12345/a%2fb", noid.ARK{NAAN: "12345", Name: "a%2fb"}, "ark:/12345/a%2fb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := noid.ParseARK(tt.in)
			if err != nil {
				t.Fatalf("ParseARK(%q): %v", tt.in, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("ParseARK(%q) (-want +got):\n%s", tt.in, diff)
			}
			if got.String() != tt.wantString {
				t.Errorf("String()=%q, want %q", got.String(), tt.wantString)
			}
		})
	}
}

func TestParseARK_Errors(t *testing.T) {
	tests := []struct {
		in   string
		part noid.Part
	}{
		{"", noid.PartScheme},
		{"13030/xf93gt2q", noid.PartScheme},
		{"doi:10.5072/x", noid.PartScheme},
		{"https://n2t.net/ark:/13030/x", noid.PartScheme},
		{"ark:", noid.PartNAAN},
		{"ark:/", noid.PartNAAN},
		{"ark://13030/x", noid.PartNAAN},
		{"ark:/-/x", noid.PartNAAN},
		{"ark:/foo", noid.PartNAAN}, // merritt.md 3.4, case 32
		{"ark:/130 30/x", noid.PartNAAN},
		{"ark:/13030", noid.PartName},
		{"ark:/13030/", noid.PartName},
		{"ark:/13030/-", noid.PartName},
		{"ark:/13030//p1", noid.PartName},
		{"ark:/13030/a b", noid.PartName},
		{"ark:/13030/a;b", noid.PartName},
		{"ark:/13030/é", noid.PartName},
		{"ark:/13030/a\x00", noid.PartName},
		{"ark:/13030/a%2", noid.PartName},
		{"ark:/13030/a%zz", noid.PartName},
		{"ark:/13030/a/b%", noid.PartQualifier},
		{"ark:/13030/a/b c", noid.PartQualifier},
		{"ark:/13030/a?in fo", noid.PartQualifier},
		{"ark:/13030/" + strings.Repeat("b", noid.MaxARK), noid.PartName},
	}
	for _, tt := range tests {
		got, err := noid.ParseARK(tt.in)
		var ae *noid.ARKError
		if !errors.As(err, &ae) {
			t.Errorf("ParseARK(%.40q)=%v, %v, want an *ARKError", tt.in, got, err)
			continue
		}
		if ae.Part != tt.part {
			t.Errorf("ParseARK(%.40q): part=%s (%v), want %s", tt.in, ae.Part, err, tt.part)
		}
		if !got.IsZero() {
			t.Errorf("ParseARK(%.40q)=%v beside an error", tt.in, got)
		}
	}
}

func TestARK_Equal(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"ark:/12345/x54xz321", "ark:12345/x54-xz-321", true},
		{"ark:/12345/x54xz321", "ark:/12345/x54xz321?info", true},
		{"ark:/12345/x5/", "ark:/12345/x5", true},
		{"ark:/12345/x5//p2./", "ark:/12345/x5/p2", true},
		{"ark:/12345/a%2fb", "ark:/12345/a%2Fb", true},
		{"ark:/12345/Ab", "ark:/12345/ab", false},
		{"ark:/12345/x5/p2", "ark:/12345/x5.p2", false},
		{"ark:/12345/x5.a.b", "ark:/12345/x5.b.a", false},
		{"ark:/12345/x5", "ark:/12346/x5", false},
	}
	for _, tt := range tests {
		if got := parse(t, tt.a).Equal(parse(t, tt.b)); got != tt.want {
			t.Errorf("%s equals %s: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestARK_Base(t *testing.T) {
	a := parse(t, "ark:/12345/x-5/p2.tiff?info")
	if got, want := a.Base().String(), "ark:/12345/x-5"; got != want {
		t.Errorf("Base()=%s, want %s", got, want)
	}
	if got := (noid.ARK{}).String(); got != "" {
		t.Errorf("zero ARK prints %q", got)
	}
}

func parse(t *testing.T, s string) noid.ARK {
	t.Helper()
	a, err := noid.ParseARK(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func FuzzParseARK(f *testing.F) {
	for _, s := range []string{"ark:/12345/x54-xz/s3/f8.05v.tiff?info", "ark:b5072/fk2", "ark:/1/%2f", "ark:/1/a//.", "ark:/é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := noid.ParseARK(s)
		if err != nil {
			var ae *noid.ARKError
			if !errors.As(err, &ae) {
				t.Fatalf("error of type %T", err)
			}
			return
		}
		again, err := noid.ParseARK(a.String())
		if err != nil || again != a {
			t.Fatalf("%q prints as %q, which reads as %+v, %v", s, a, again, err)
		}
		n := a.Normalize()
		if n.Normalize() != n || !n.Equal(a) {
			t.Fatalf("%q: normal form %q is not stable", s, n)
		}
		if m, err := noid.ParseARK(n.String()); err != nil || m != n {
			t.Fatalf("%q: normal form %q does not parse: %v", s, n, err)
		}
	})
}
