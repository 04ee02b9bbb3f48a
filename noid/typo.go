package noid

import (
	"slices"
	"strings"
)

// Mistyped reports whether an ARK looks like a name of the template with a typing error. likely are
// the names that were probably meant, the most likely first. These ARKs are mistyped:
//
//   - One with the template's NAAN, its shoulder and the length of its names, but with a character
//     that no name has, or a wrong check character. Two swapped neighbors are more likely than one
//     wrong character.
//   - One that is a character longer or shorter.
//   - One that becomes a name of the template when one error in its shoulder or NAAN is corrected.
//     A different NAAN may also be another institution's: likely then has another NAAN than a, and
//     the caller decides.
//
// The last two count only if the ARK's own check character is wrong; otherwise it is a name of
// another template. A template without check character has no mistyped names. Hyphens, qualifier
// and inflection are ignored.
func (t Template) Mistyped(a ARK) (likely []ARK, is bool) {
	a = a.Base().Normalize()
	own := strings.EqualFold(t.NAAN, a.NAAN)
	switch {
	case !t.Check || a.Name == "":
		return nil, false
	case own && t.shaped(a.Name):
		if t.mints(a.Name) {
			return nil, false
		}
		return t.oneLetter(a.Name), true
	case CheckChar(a.NAAN+"/"+a.Name[:len(a.Name)-1]) == a.Name[len(a.Name)-1]:
		return nil, false
	case !own:
		if oneSlip(t.NAAN, strings.ToLower(a.NAAN)) && t.shaped(a.Name) && t.mints(a.Name) {
			return []ARK{{NAAN: t.NAAN, Name: a.Name}}, true
		}
		return nil, false
	}
	likely, is = t.otherLength(a.Name)
	for _, other := range t.otherShoulder(a.Name) {
		if !slices.Contains(likely, other) {
			likely = append(likely, other)
		}
	}
	return likely, is || len(likely) > 0
}

// otherShoulder returns the names of the template that become this name by one error in the
// shoulder.
func (t Template) otherShoulder(name string) (likely []ARK) {
	for n := len(t.Shoulder) - 1; n <= len(t.Shoulder)+1; n++ {
		if n < 1 || n >= len(name) || !oneSlip(t.Shoulder, strings.ToLower(name[:n])) {
			continue
		}
		if other := t.Shoulder + name[n:]; t.shaped(other) && t.mints(other) {
			likely = append(likely, ARK{NAAN: t.NAAN, Name: other})
		}
	}
	return likely
}

// otherLength reports whether a name is one character longer or shorter than those of the template.
// It returns false for an unbounded template, whose names have different lengths.
func (t Template) otherLength(name string) (likely []ARK, is bool) {
	more := len(name) - len(t.Shoulder) - len(t.Mask) - 1
	if t.Generator == Unbounded || more != 1 && more != -1 || !strings.HasPrefix(name, t.Shoulder) {
		return nil, false
	}
	try := func(other string) {
		if made := (ARK{NAAN: t.NAAN, Name: other}); t.mints(other) && !slices.Contains(likely, made) {
			likely = append(likely, made)
		}
	}
	for i := len(t.Shoulder); i <= len(name); i++ {
		if more > 0 && i < len(name) {
			try(name[:i] + name[i+1:])
		}
		for j := 0; more < 0 && j < len(Alphabet); j++ {
			try(name[:i] + Alphabet[j:j+1] + name[i:])
		}
	}
	return likely, true
}

// oneSlip reports whether one typing error turns meant into text: a wrong, extra or missing
// character, or two swapped ones.
func oneSlip(meant, text string) bool {
	from, last := 0, min(len(meant), len(text))
	for from < last && meant[from] == text[from] {
		from++
	}
	meant, text = meant[from:], text[from:]
	for len(meant) > 0 && len(text) > 0 && meant[len(meant)-1] == text[len(text)-1] {
		meant, text = meant[:len(meant)-1], text[:len(text)-1]
	}
	exchanged := len(meant) == 2 && len(text) == 2 && meant[0] == text[1] && meant[1] == text[0]
	return len(meant)+len(text) > 0 && (len(meant) <= 1 && len(text) <= 1 || exchanged)
}

// oneLetter returns the names of the template that become this name by swapping two neighbors or
// changing one character.
func (t Template) oneLetter(name string) (likely []ARK) {
	try := func(slip []byte) {
		other := ARK{NAAN: t.NAAN, Name: string(slip)}
		if t.mints(other.Name) && !slices.Contains(likely, other) {
			likely = append(likely, other)
		}
	}
	from := len(t.Shoulder)
	for i := from; i+1 < len(name); i++ {
		slip := []byte(name)
		slip[i], slip[i+1] = slip[i+1], slip[i]
		try(slip)
	}
	// A character that no name has must be the error. Try the one that looks like it first.
	for i := from; i < len(name); i++ {
		slip := []byte(name)
		if like := strings.IndexByte("oOiIlLaAeEsSuU", name[i]); like >= 0 {
			slip[i] = "00111144335500"[like]
			try(slip)
		}
		slip[i] = strings.ToLower(name[i : i+1])[0]
		try(slip)
	}
	for i := from; i < len(name); i++ {
		for j := range len(Alphabet) {
			slip := []byte(name)
			slip[i] = Alphabet[j]
			try(slip)
		}
	}
	return likely
}

// shaped reports whether a name has the shoulder and the length of the template's names.
func (t Template) shaped(name string) bool {
	rest, ok := strings.CutPrefix(name, t.Shoulder)
	if t.Generator == Unbounded {
		return ok && len(rest) > len(t.Mask)
	}
	return ok && len(rest) == len(t.Mask)+1
}

// mints reports whether the template makes this name, which is shaped.
func (t Template) mints(name string) bool {
	last := len(name) - 1
	generated := name[len(t.Shoulder):last]
	more := len(generated) - len(t.Mask) // for an unbounded template, whose leftmost mask character is repeated
	for i := range len(generated) {
		if v := strings.IndexByte(Alphabet, generated[i]); v < 0 || uint64(v) >= radix(t.Mask[max(0, i-more)]) {
			return false
		}
	}
	return CheckChar(t.NAAN+"/"+name[:last]) == name[last]
}
