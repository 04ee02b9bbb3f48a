package noid_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/noid"
)

// TestMistyped_FindsEverySlip checks that every wrong letter and every transposition of neighbours
// in a minted name is detected, and that the intended name is among those suggested.
func TestMistyped_FindsEverySlip(t *testing.T) {
	for _, text := range []string{"99999/fk4.reeeeeeeek", "12345/x1.rddeedk", "12345/.zeek"} {
		template, err := noid.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			var meant noid.ARK
			if template.Generator == noid.Random {
				meant, err = template.Mint(bytesOf{t})
			} else {
				name := string(rapid.SliceOfN(rapid.SampledFrom([]byte(noid.Alphabet)), 2, 10).Draw(t, "name"))
				meant = noid.ARK{NAAN: "12345", Name: name + string(noid.CheckChar("12345/"+name))}
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
			got, is := template.Mistyped(noid.ARK{NAAN: meant.NAAN, Name: string(wrong)})
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

// TestMistyped_OnlyOurs checks that names made by other minters, or by people, are never reported
// as mistyped.
func TestMistyped_OnlyOurs(t *testing.T) {
	template, err := noid.ParseTemplate("99999/fk4{.reeeeeeeek}")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := noid.ParseTemplate("99999/fk4{.reeeeeeeee}")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"ark:/99999/fk4one", "ark:/99999/fk4bcdfghjkm23", "ark:/99999/fk5bcdfghjkm", "ark:/13030/fk4bcdfghjkm", "ark:/99999/owner"} {
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

// TestMistyped_LengthShoulderAndNAAN checks that a missing or additional letter and a typo in the
// shoulder or the NAAN are detected, unless the result has a valid check character: then it is a
// name of another template or another institution.
func TestMistyped_LengthShoulderAndNAAN(t *testing.T) {
	template, err := noid.ParseTemplate("99123/fk4.reeeeeeeek")
	if err != nil {
		t.Fatal(err)
	}
	const letters = "0123456789bcdfghjkmnpqrstvwxz"
	rapid.Check(t, func(t *rapid.T) {
		meant, err := template.Mint(bytesOf{t})
		if err != nil {
			t.Fatal(err)
		}
		naan, name := meant.NAAN, meant.Name
		change := func(s string, from int) string {
			i := rapid.IntRange(from, len(s)-2).Draw(t, "at")
			c := rapid.SampledFrom([]byte(letters)).Draw(t, "letter")
			switch rapid.IntRange(0, 3).Draw(t, "slip") {
			case 0:
				return s[:i] + string(c) + s[i+1:]
			case 1:
				return s[:i] + string(c) + s[i:]
			case 2:
				return s[:i] + s[i+1:]
			}
			return s[:i] + s[i+1:i+2] + s[i:i+1] + s[i+2:]
		}
		part := rapid.SampledFrom([]string{"naan", "shoulder", "name"}).Draw(t, "part")
		switch part {
		case "naan":
			naan = change(naan, 0)
		case "shoulder":
			name = change(name[:3], 0) + name[3:]
		case "name":
			name = change(name, 3)
		}
		wrong := noid.ARK{NAAN: naan, Name: name}
		if wrong == meant {
			return
		}
		last := len(name) - 1
		fits := noid.CheckChar(naan+"/"+name[:last]) == name[last]
		likely, is := template.Mistyped(wrong)
		if fits && is || !fits && (!is || !slices.Contains(likely, meant)) {
			t.Fatalf("%s for %s: fits=%t, mistyped=%t, likely %v", wrong, meant, fits, is, likely)
		}
	})
}
