package mint

import (
	"slices"
	"strings"
)

// Mistyped says whether an ARK looks like a name of the template and is none: it has the template's NAAN, its shoulder and
// the length of its names, and a letter that no such name has, or a check character that is not that of the rest. likely are the
// names of the template that one slip of the hand makes into this one, the most likely first: two neighbours exchanged, then one
// wrong letter. It holds at most a name for each letter and one for each two neighbours.
//
// A template without a check character has no mistyped names. Hyphens, qualifier and inflection play no part.
func (t Template) Mistyped(a ARK) (likely []ARK, is bool) {
	name := a.Base().Normalize().Name
	if !t.Check || !strings.EqualFold(t.NAAN, a.Base().Normalize().NAAN) || !t.shaped(name) || t.mints(name) {
		return nil, false
	}
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
	// What is not a letter of names at all is where the slip is; one that looks like it is tried first.
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
	return likely, true
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
