package noid_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/noid"
)

func TestParseTemplate(t *testing.T) {
	tests := []struct {
		in        string
		want      noid.Template
		canonical string
	}{
		{
			"99999/fk4{.reeeeeeeek}",
			noid.Template{NAAN: "99999", Shoulder: "fk4", Generator: noid.Random, Mask: "eeeeeeee", Check: true},
			"99999/fk4.reeeeeeeek",
		},
		{"fk4.reedk", noid.Template{Shoulder: "fk4", Generator: noid.Random, Mask: "eed", Check: true}, "fk4.reedk"},
		{"ark:/12345/x1{eedk}", noid.Template{NAAN: "12345", Shoulder: "x1", Generator: noid.Random, Mask: "eed", Check: true}, "12345/x1.reedk"},
		{"13030/{zd}", noid.Template{NAAN: "13030", Generator: noid.Unbounded, Mask: "d"}, "13030/.zd"},
		{".sdd", noid.Template{Generator: noid.Sequential, Mask: "dd"}, ".sdd"},
		{
			"1/a." + "r" + strings.Repeat("e", 64),
			noid.Template{NAAN: "1", Shoulder: "a", Generator: noid.Random, Mask: strings.Repeat("e", 64)},
			"1/a.r" + strings.Repeat("e", 64),
		},
	}
	for _, tt := range tests {
		got, err := noid.ParseTemplate(tt.in)
		if err != nil {
			t.Errorf("ParseTemplate(%q): %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("ParseTemplate(%q) (-want +got):\n%s", tt.in, diff)
		}
		if got.String() != tt.canonical {
			t.Errorf("%q: String()=%q, want %q", tt.in, got, tt.canonical)
		}
	}
}

func TestParseTemplate_Errors(t *testing.T) {
	tests := []struct {
		in   string
		part noid.Part
	}{
		{"", noid.PartMask},
		{"fk4", noid.PartMask},
		{"fk4.", noid.PartMask},
		{"fk4.r", noid.PartMask},
		{"fk4.rk", noid.PartMask},
		{"fk4.reke", noid.PartMask},
		{"fk4.rexk", noid.PartMask},
		{"fk4{.reek", noid.PartMask},
		{"fk4{}", noid.PartMask},
		{"fk4.eek", noid.PartGenerator},
		{"fk-4.reek", noid.PartShoulder},
		{"fk 4.reek", noid.PartShoulder},
		{"a/b/c.reek", noid.PartNAAN},
		{"/fk4.reek", noid.PartNAAN},
		{"9 9/fk4.reek", noid.PartNAAN},
		{"1/a.r" + strings.Repeat("e", noid.MaxMask+1), noid.PartMask},
	}
	for _, tt := range tests {
		_, err := noid.ParseTemplate(tt.in)
		var te *noid.TemplateError
		if !errors.As(err, &te) || te.Part != tt.part {
			t.Errorf("ParseTemplate(%q): %v, want a *TemplateError about the %s", tt.in, err, tt.part)
		}
	}
}

func TestTemplate_Mint(t *testing.T) {
	tmpl := template(t, "99999/fk4{.reeeeeeeek}")
	seen := make(map[string]bool)
	src := rand.NewChaCha8([32]byte{1})
	for range 2000 {
		a, err := tmpl.Mint(src)
		if err != nil {
			t.Fatal(err)
		}
		if a.NAAN != "99999" || !strings.HasPrefix(a.Name, "fk4") || len(a.Name) != len("fk4")+9 {
			t.Fatalf("%s does not fit %s", a, tmpl)
		}
		if !checked(a) {
			t.Fatalf("%s: wrong check character", a)
		}
		if again := parse(t, a.String()); again != a {
			t.Fatalf("%s reads back as %s", a, again)
		}
		seen[a.Name] = true
	}
	if len(seen) != 2000 {
		t.Errorf("%d different names of 2000", len(seen))
	}
}

func TestTemplate_Mint_Deterministic(t *testing.T) {
	tmpl := template(t, "99999/fk4.reedk")
	// 232 and above would favour the first extended digits, 250 and above the first digits: they
	// are passed over.
	a, err := tmpl.Mint(bytes.NewReader([]byte{255, 232, 231, 29, 250, 249}))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.Name[:len(a.Name)-1], "fk4z09"; got != want {
		t.Errorf("name=%s, want %s and a check character", a.Name, want)
	}
}

func TestTemplate_Mint_EveryNameAsLikely(t *testing.T) {
	tmpl := template(t, "1/.re")
	counts := make(map[string]int)
	src := rand.NewChaCha8([32]byte{2})
	for range 29_000 {
		a, err := tmpl.Mint(src)
		if err != nil {
			t.Fatal(err)
		}
		counts[a.Name]++
	}
	for _, c := range noid.Alphabet {
		if n := counts[string(c)]; n < 800 || n > 1200 {
			t.Errorf("%c came %d times of 29000, want about 1000", c, n)
		}
	}
}

func TestTemplate_Errors(t *testing.T) {
	tests := []struct {
		name string
		do   func() (noid.ARK, error)
		want error
	}{
		{"draw from a sequential template", func() (noid.ARK, error) { return template(t, "1/a.sdd").Mint(bytes.NewReader(make([]byte, 9))) }, noid.ErrGenerator},
		{"no NAAN", func() (noid.ARK, error) { return template(t, "a.rdd").Mint(bytes.NewReader(make([]byte, 9))) }, noid.ErrNoNAAN},
		{"no random bytes", func() (noid.ARK, error) { return template(t, "1/a.rdd").Mint(bytes.NewReader([]byte{7})) }, io.EOF},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := tt.do()
			if !errors.Is(err, tt.want) || !a.IsZero() {
				t.Errorf("got %s, %v, want %v", a, err, tt.want)
			}
		})
	}
}

func TestTemplate_WithNAAN(t *testing.T) {
	for _, s := range []string{"fk4.reek", "12345/fk4.reek"} {
		got, err := template(t, s).WithNAAN("99999")
		if err != nil || got.String() != "99999/fk4.reek" {
			t.Errorf("%s with NAAN 99999: %s, %v", s, got, err)
		}
	}
	var te *noid.TemplateError
	if _, err := template(t, "fk4.reek").WithNAAN("no"); !errors.As(err, &te) || te.Part != noid.PartNAAN {
		t.Errorf("NAAN no: %v, want a *TemplateError about it", err)
	}
}

func template(t *testing.T, s string) noid.Template {
	t.Helper()
	tmpl, err := noid.ParseTemplate(s)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func FuzzParseTemplate(f *testing.F) {
	for _, s := range []string{"99999/fk4{.reeeeeeeek}", "fk4.zdk", "ark:/1/a{eek}", "{}", ".s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tmpl, err := noid.ParseTemplate(s)
		if err != nil {
			return
		}
		again, err := noid.ParseTemplate(tmpl.String())
		if err != nil || again != tmpl {
			t.Fatalf("%q prints as %q, which reads as %+v, %v", s, tmpl, again, err)
		}
		if tmpl, err = tmpl.WithNAAN("12345"); err != nil {
			t.Fatal(err)
		}
		a, err := tmpl.Mint(rand.NewChaCha8([32]byte{}))
		if tmpl.Generator != noid.Random && errors.Is(err, noid.ErrGenerator) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := noid.ParseARK(a.String()); err != nil {
			t.Fatalf("%q minted what is no ARK: %v", s, err)
		}
	})
}
