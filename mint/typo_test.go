package mint_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/mint"
)

// Every wrong letter and every two neighbours exchanged, in a name of the template, are found out, and the name that was meant is among
// those that are told.
func TestMistyped_FindsEverySlip(t *testing.T) {
	for _, text := range []string{"99999/fk4.reeeeeeeek", "12345/x1.rddeedk", "12345/.zeek"} {
		template, err := mint.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			var meant mint.ARK
			if template.Generator == mint.Random {
				meant, err = template.Mint(bytesOf{t})
			} else {
				meant, err = template.MintN(rapid.Uint64Range(0, 1<<40).Draw(t, "n"))
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, is := template.Mistyped(meant); is {
				t.Fatalf("%s is no mistyped name", meant)
			}
			i := rapid.IntRange(len(template.Shoulder), len(meant.Name)-2).Draw(t, "at")
			wrong := []byte(meant.Name)
			if rapid.Bool().Draw(t, "swap") {
				wrong[i], wrong[i+1] = wrong[i+1], wrong[i]
			} else {
				wrong[i+1] = rapid.SampledFrom([]byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")).Draw(t, "letter")
			}
			if string(wrong) == meant.Name {
				return
			}
			got, is := template.Mistyped(mint.ARK{NAAN: meant.NAAN, Name: string(wrong)})
			if !is || !slices.Contains(got, meant) {
				t.Fatalf("%s for %s: mistyped=%t, likely %v", wrong, meant, is, got)
			}
		})
	}
}

// bytesOf reads what rapid draws.
type bytesOf struct{ t *rapid.T }

func (b bytesOf) Read(p []byte) (int, error) {
	return copy(p, rapid.SliceOfN(rapid.Byte(), len(p), len(p)).Draw(b.t, "random")), nil
}

// What other minters, or people, have named is no mistyped name of ours.
func TestMistyped_OnlyOurs(t *testing.T) {
	template, err := mint.ParseTemplate("99999/fk4{.reeeeeeeek}")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := mint.ParseTemplate("99999/fk4{.reeeeeeeee}")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"ark:/99999/fk4one", "ark:/99999/fk4bcdfghjkm2", "ark:/99999/fk5bcdfghjkm", "ark:/13030/fk4bcdfghjkm", "ark:/99999/owner"} {
		if likely, is := template.Mistyped(parse(t, text)); is {
			t.Errorf("%s: mistyped, likely %v", text, likely)
		}
	}
	ours := parse(t, "ark:/99999/fk4bcdfghjkm")
	if _, is := plain.Mistyped(ours); is {
		t.Error("a template without a check character has mistyped names")
	}
	ours.Qualifier, ours.Name = "/page/2", "fk4-bcdf-ghjkm"
	if _, is := template.Mistyped(ours); !is {
		t.Error("hyphens and a qualifier hide a wrong check character")
	}
}
