package noid

import (
	"slices"
	"strings"
)

// Mistyped says whether an ARK looks like a name of the template and is none. likely are the names
// of the template that one slip of the hand makes into this one, the most likely first. These are
// mistyped:
//
//   - What has the template's NAAN, its shoulder and the length of its names, and a letter that no such name has, or a check
//     character that is not that of the rest. Two neighbours exchanged are more likely than one wrong letter.
//   - What is a letter longer or shorter than that.
//   - What becomes a name of the template when one slip in its shoulder, or in its NAAN, is put right. The NAAN may be right all the same,
//     and another institution's: likely is then of another NAAN than a, and the caller decides.
//
// Of the last two only what has no right check character as it stands, since that is another
// template's name. A template without a check character has no mistyped names. Hyphens, qualifier
// and inflection play no part.
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

// otherShoulder returns the names of the template that a slip in the shoulder makes into a name.
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

// otherLength says whether a name is a letter longer or shorter than those of the template. An
// unbounded one has them of any length.
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

// oneSlip says whether text is what one slip of the hand makes of meant: a wrong letter, one too
// many or too few, two exchanged.
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

// oneLetter returns the names of the template that two neighbours exchanged, or one wrong letter,
// make into a name of its shape.
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
	// What is not a letter of names at all is where the slip is; one that looks like it is tried
	// first.
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

// shaped says whether a name has the shoulder and the length of the template's names.
func (t Template) shaped(name string) bool {
	rest, ok := strings.CutPrefix(name, t.Shoulder)
	if t.Generator == Unbounded {
		return ok && len(rest) > len(t.Mask)
	}
	return ok && len(rest) == len(t.Mask)+1
}

// mints says whether a name of the template's shape is one that it makes.
func (t Template) mints(name string) bool {
	last := len(name) - 1
	generated := name[len(t.Shoulder):last]
	more := len(generated) - len(t.Mask) // of an unbounded template, whose leftmost mask character is repeated
	for i := range len(generated) {
		if v := strings.IndexByte(Alphabet, generated[i]); v < 0 || uint64(v) >= radix(t.Mask[max(0, i-more)]) {
			return false
		}
	}
	return CheckChar(t.NAAN+"/"+name[:last]) == name[last]
}
