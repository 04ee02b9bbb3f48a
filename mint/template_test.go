package mint_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/mint"
)

func TestParseTemplate(t *testing.T) {
	tests := []struct {
		in        string
		want      mint.Template
		canonical string
		size      uint64
	}{
		{
			"99999/fk4{.reeeeeeeek}",
			mint.Template{NAAN: "99999", Shoulder: "fk4", Generator: mint.Random, Mask: "eeeeeeee", Check: true},
			"99999/fk4.reeeeeeeek", 500246412961,
		},
		{"fk4.reedk", mint.Template{Shoulder: "fk4", Generator: mint.Random, Mask: "eed", Check: true}, "fk4.reedk", 8410},
		{"ark:/12345/x1{eedk}", mint.Template{NAAN: "12345", Shoulder: "x1", Generator: mint.Random, Mask: "eed", Check: true}, "12345/x1.reedk", 8410},
		{"13030/{zd}", mint.Template{NAAN: "13030", Generator: mint.Unbounded, Mask: "d"}, "13030/.zd", math.MaxUint64},
		{".sdd", mint.Template{Generator: mint.Sequential, Mask: "dd"}, ".sdd", 100},
		{
			"1/a." + "r" + strings.Repeat("e", 64),
			mint.Template{NAAN: "1", Shoulder: "a", Generator: mint.Random, Mask: strings.Repeat("e", 64)},
			"1/a.r" + strings.Repeat("e", 64), math.MaxUint64,
		},
	}
	for _, tt := range tests {
		got, err := mint.ParseTemplate(tt.in)
		if err != nil {
			t.Errorf("ParseTemplate(%q): %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("ParseTemplate(%q) (-want +got):\n%s", tt.in, diff)
		}
		if got.String() != tt.canonical || got.Size() != tt.size {
			t.Errorf("%q: String()=%q Size()=%d, want %q %d", tt.in, got, got.Size(), tt.canonical, tt.size)
		}
	}
}

func TestParseTemplate_Errors(t *testing.T) {
	tests := []struct {
		in   string
		part mint.Part
	}{
		{"", mint.PartMask},
		{"fk4", mint.PartMask},
		{"fk4.", mint.PartMask},
		{"fk4.r", mint.PartMask},
		{"fk4.rk", mint.PartMask},
		{"fk4.reke", mint.PartMask},
		{"fk4.rexk", mint.PartMask},
		{"fk4{.reek", mint.PartMask},
		{"fk4{}", mint.PartMask},
		{"fk4.eek", mint.PartGenerator},
		{"fk-4.reek", mint.PartShoulder},
		{"fk 4.reek", mint.PartShoulder},
		{"a/b/c.reek", mint.PartNAAN},
		{"/fk4.reek", mint.PartNAAN},
		{"9 9/fk4.reek", mint.PartNAAN},
		{"1/a.r" + strings.Repeat("e", mint.MaxMask+1), mint.PartMask},
	}
	for _, tt := range tests {
		_, err := mint.ParseTemplate(tt.in)
		var te *mint.TemplateError
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
		if mint.CheckARK(a) != mint.CheckOK {
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
	for _, c := range mint.Alphabet {
		if n := counts[string(c)]; n < 800 || n > 1200 {
			t.Errorf("%c came %d times of 29000, want about 1000", c, n)
		}
	}
}

func TestTemplate_MintN(t *testing.T) {
	tests := []struct {
		template string
		n        uint64
		want     string
	}{
		{"1/a.sdd", 0, "a00"},
		{"1/a.sdd", 99, "a99"},
		{"1/a.sed", 10, "a10"},
		{"1/a.sed", 289, "az9"},
		{"1/a.zd", 9, "a9"},
		{"1/a.zd", 10, "a10"},
		{"1/a.zed", 290, "a100"},
		{"1/a.zde", 290, "a100"},
		{"13030/xf9.sdee", 0, "xf9000"},
	}
	for _, tt := range tests {
		a, err := template(t, tt.template).MintN(tt.n)
		if err != nil || a.Name != tt.want {
			t.Errorf("%s number %d: %s, %v, want %s", tt.template, tt.n, a, err, tt.want)
		}
	}
}

func TestTemplate_MintN_Unique(t *testing.T) {
	for _, s := range []string{"1/a.sddk", "1/a.sdek", "1/a.sede", "1/a.zdk", "1/a.zee"} {
		tmpl := template(t, s)
		seen := make(map[string]uint64)
		for n := range min(tmpl.Size(), 3000) {
			a, err := tmpl.MintN(n)
			if err != nil {
				t.Fatalf("%s number %d: %v", s, n, err)
			}
			if before, twice := seen[a.Name]; twice {
				t.Fatalf("%s: %s is number %d and %d", s, a.Name, before, n)
			}
			seen[a.Name] = n
		}
	}
	if _, err := template(t, "1/a.zee").MintN(math.MaxUint64); err != nil {
		t.Errorf("unbounded template: %v", err)
	}
}

func TestTemplate_Errors(t *testing.T) {
	var none mint.Template
	tests := []struct {
		name string
		do   func() (mint.ARK, error)
		want error
	}{
		{"exhausted", func() (mint.ARK, error) { return template(t, "1/a.sdd").MintN(100) }, mint.ErrExhausted},
		{"count a random template", func() (mint.ARK, error) { return template(t, "1/a.rdd").MintN(1) }, mint.ErrGenerator},
		{"count the zero template", func() (mint.ARK, error) { return none.MintN(1) }, mint.ErrGenerator},
		{"draw from a sequential template", func() (mint.ARK, error) { return template(t, "1/a.sdd").Mint(bytes.NewReader(make([]byte, 9))) }, mint.ErrGenerator},
		{"no NAAN", func() (mint.ARK, error) { return template(t, "a.rdd").Mint(bytes.NewReader(make([]byte, 9))) }, mint.ErrNoNAAN},
		{"no NAAN, counting", func() (mint.ARK, error) { return template(t, "a.sdd").MintN(1) }, mint.ErrNoNAAN},
		{"no random bytes", func() (mint.ARK, error) { return template(t, "1/a.rdd").Mint(bytes.NewReader([]byte{7})) }, io.EOF},
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
	var te *mint.TemplateError
	if _, err := template(t, "fk4.reek").WithNAAN("no"); !errors.As(err, &te) || te.Part != mint.PartNAAN {
		t.Errorf("NAAN no: %v, want a *TemplateError about it", err)
	}
}

func template(t *testing.T, s string) mint.Template {
	t.Helper()
	tmpl, err := mint.ParseTemplate(s)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func FuzzParseTemplate(f *testing.F) {
	for _, s := range []string{"99999/fk4{.reeeeeeeek}", "fk4.zdk", "ark:/1/a{eek}", "{}", ".s"} {
		f.Add(s, uint64(0))
	}
	f.Fuzz(func(t *testing.T, s string, n uint64) {
		tmpl, err := mint.ParseTemplate(s)
		if err != nil {
			return
		}
		again, err := mint.ParseTemplate(tmpl.String())
		if err != nil || again != tmpl {
			t.Fatalf("%q prints as %q, which reads as %+v, %v", s, tmpl, again, err)
		}
		if tmpl, err = tmpl.WithNAAN("12345"); err != nil {
			t.Fatal(err)
		}
		a, err := tmpl.MintN(n)
		if tmpl.Generator == mint.Random {
			a, err = tmpl.Mint(rand.NewChaCha8([32]byte{}))
		}
		if errors.Is(err, mint.ErrExhausted) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mint.ParseARK(a.String()); err != nil {
			t.Fatalf("%q minted what is no ARK: %v", s, err)
		}
	})
}
