package secret_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/secret"
)

const (
	newText = "a new text of a key that has 32 characters and more"
	oldText = "an old text of a key that has 32 characters and more"
)

func parse(t *testing.T, texts string) *secret.Keys {
	t.Helper()
	k, err := secret.Parse(texts)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sealed(t *testing.T, k *secret.Keys, secret string, about ...string) string {
	t.Helper()
	text, err := k.Seal(secret, about...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSeal(t *testing.T) {
	t.Parallel()
	k := parse(t, newText)
	const secret = "geheim ☃"
	one, two := sealed(t, k, secret, "demo", "https://h:443"), sealed(t, k, secret, "demo", "https://h:443")
	if one == two {
		t.Error("the same text twice: who sees them knows that the secrets are equal")
	}
	for _, text := range []string{one, two} {
		if strings.Contains(text, "geheim") || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("sealed as %q", text)
		}
		if got, err := k.Open(text, "demo", "https://h:443"); got != secret || err != nil {
			t.Errorf("opened as %q, %v", got, err)
		}
	}
	if got, err := k.Open(sealed(t, k, "")); got != "" || err != nil {
		t.Errorf("nothing, sealed about nothing, is opened as %q, %v", got, err)
	}
}

// TestOpen_Moved checks that a sealed value opens only in the context it was sealed for, and that
// no changed byte of it opens at all.
func TestOpen_Moved(t *testing.T) {
	t.Parallel()
	k := parse(t, newText)
	text := sealed(t, k, "geheim", "ab", "c")
	for _, about := range [][]string{{"ab"}, {"a", "bc"}, {"abc"}, {"c", "ab"}, {"ab", "c", ""}, {}, {"AB", "c"}} {
		if got, err := k.Open(text, about...); !errors.Is(err, secret.ErrBroken) || got != "" {
			t.Errorf("about %q: %q, %v; want ErrBroken", about, got, err)
		}
	}
	for i := range text {
		changed := []byte(text)
		changed[i] ^= 1
		if got, err := k.Open(string(changed), "ab", "c"); err == nil || got != "" {
			t.Errorf("with byte %d changed it opens: %q", i, got)
		}
	}
	for _, other := range []string{"", ".", "..", "hf1..", "geheim", text + "A", text[:len(text)-4], text + ".", "hf2" + text[3:]} {
		if got, err := k.Open(other, "ab", "c"); err == nil || got != "" {
			t.Errorf("%q opens: %q", other, got)
		}
	}
}

// TestRotation checks that a new key is used before the old one, and that the old one still opens
// what it sealed until it is removed.
func TestRotation(t *testing.T) {
	t.Parallel()
	before, both, after := parse(t, oldText), parse(t, " "+newText+" ,, "+oldText), parse(t, newText)
	old := sealed(t, before, "geheim", "x")
	if got, err := both.Open(old, "x"); got != "geheim" || err != nil {
		t.Errorf("with both keys: %q, %v", got, err)
	}
	again := sealed(t, both, "geheim", "x")
	if got, err := after.Open(again, "x"); got != "geheim" || err != nil {
		t.Errorf("sealed anew: %q, %v", got, err)
	}
	var unknown *secret.UnknownKeyError
	if _, err := after.Open(old, "x"); !errors.As(err, &unknown) || unknown.ID != secret.KeyID(old) || secret.KeyID(old) == "" {
		t.Errorf("without the old key: %v, want one that names %s", err, secret.KeyID(old))
	}
	if secret.KeyID(old) == secret.KeyID(again) || secret.KeyID("geheim") != "" {
		t.Errorf("keys %q and %q", secret.KeyID(old), secret.KeyID(again))
	}
}

func TestNoKey(t *testing.T) {
	t.Parallel()
	for _, texts := range []string{"", " , ,"} {
		none := parse(t, texts)
		if _, err := none.Seal("geheim"); !errors.Is(err, secret.ErrNoKey) {
			t.Errorf("Seal: %v, want ErrNoKey", err)
		}
		if _, err := none.Open(sealed(t, parse(t, newText), "geheim")); !errors.Is(err, secret.ErrNoKey) {
			t.Errorf("Open: %v, want ErrNoKey", err)
		}
	}
}

func TestParse_Faults(t *testing.T) {
	t.Parallel()
	for texts, want := range map[string]string{
		"too short": "key 1 has 9 characters", newText + ",short-secret": "key 2 has 12", newText + "," + newText: "key 2 is given twice",
	} {
		_, err := secret.Parse(texts)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		} else if strings.Contains(err.Error(), "short-secret") || strings.Contains(err.Error(), newText) {
			t.Errorf("error %q repeats a secret", err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	k, err := secret.Parse(newText)
	if err != nil {
		f.Fatal(err)
	}
	good, err := k.Seal("geheim", "x")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, "x")
	f.Add("hf1.00.AAAA", "")
	f.Fuzz(func(t *testing.T, text, about string) {
		if got, err := k.Open(text, about); err == nil && (got != "geheim" || about != "x") {
			t.Errorf("%q about %q opens as %q: nobody sealed it", text, about, got)
		}
		again, err := k.Seal(text, about)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := k.Open(again, about); err != nil || got != text {
			t.Errorf("sealed and opened %q: %q, %v", text, got, err)
		}
	})
}
