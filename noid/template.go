package noid

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxMask is the greatest length of a mask in characters.
const MaxMask = 64

// The errors of minting.
var (
	// ErrGenerator is returned by Mint for a template that is not Random.
	ErrGenerator = errors.New("template has another generator")
	// ErrNoNAAN is returned by Mint for a template without a NAAN; see WithNAAN.
	ErrNoNAAN = errors.New("template has no NAAN")
)

// Generator says how the names of a template are chosen.
type Generator byte

// The generators of NOID. Mint supports only Random.
const (
	Random     Generator = 'r' // at random
	Sequential Generator = 's' // counting, until the mask is full
	Unbounded  Generator = 'z' // counting; the leftmost mask character is repeated as needed
)

// Template is a parsed NOID template, made by ParseTemplate. Do not change its fields. It is safe
// for concurrent use.
type Template struct {
	NAAN      string    // "" if the template has none
	Shoulder  string    // the prefix of every name
	Generator Generator // how the rest is chosen
	Mask      string    // one letter per character: d (a digit) or e (one of Alphabet)
	Check     bool      // a check character follows
}

// TemplateError says why ParseTemplate refused a string.
type TemplateError struct {
	Input  string // the parsed text, cut to 80 bytes
	Part   Part
	Reason string
}

// Error implements error.
func (e *TemplateError) Error() string {
	return fmt.Sprintf("NOID template %q: %s: %s", e.Input, e.Part, e.Reason)
}

// ParseTemplate reads a NOID template: an optional "ark:/", an optional NAAN and "/", the shoulder,
// and the mask.
//
// The mask follows a period ("fk4.reeeeeeeek") or stands in braces ("99999/fk4{.reeeeeeeek}",
// "99999/fk4{eedk}"). It consists of the generator r, s or z, one or more of d and e, and k for a
// check character. In braces without a period the generator may be missing; r is the default.
//
// Every error is a *TemplateError.
func ParseTemplate(s string) (Template, error) {
	fail := func(p Part, format string, args ...any) (Template, error) {
		return Template{}, &TemplateError{Input: cut(s, 80), Part: p, Reason: fmt.Sprintf(format, args...)}
	}
	var t Template
	rest := strings.TrimSpace(s)
	if len(rest) >= 4 && strings.EqualFold(rest[:4], "ark:") {
		rest = strings.TrimPrefix(rest[4:], "/")
	}
	if naan, after, found := strings.Cut(rest, "/"); found {
		if naan == "" || firstOutside(naan, isNAAN) >= 0 || strings.Contains(naan, "-") {
			return fail(PartNAAN, "%q is not digits and consonants", naan)
		}
		t.NAAN, rest = naan, after
	}

	at := strings.IndexAny(rest, ".{")
	if at < 0 {
		return fail(PartMask, "missing: a period or a brace must come before it")
	}
	t.Shoulder = rest[:at]
	if i := firstOutside(t.Shoulder, isAlnum); i >= 0 {
		return fail(PartShoulder, "character %q is not a letter or a digit", t.Shoulder[i])
	}
	mask, implied := rest[at:], false
	if strings.HasPrefix(mask, "{") {
		var closed bool
		if mask, closed = strings.CutSuffix(mask[1:], "}"); !closed {
			return fail(PartMask, "the brace is not closed")
		}
		implied = !strings.HasPrefix(mask, ".")
	}
	mask = strings.TrimPrefix(mask, ".")

	switch {
	case mask == "":
		return fail(PartMask, "empty")
	case strings.IndexByte("rsz", mask[0]) >= 0:
		t.Generator, mask = Generator(mask[0]), mask[1:]
	case implied:
		t.Generator = Random
	default:
		return fail(PartGenerator, "%q is not one of r, s and z", mask[0])
	}
	t.Mask, t.Check = strings.CutSuffix(mask, "k")
	if i := firstOutside(t.Mask, func(c byte) bool { return c == 'd' || c == 'e' }); i >= 0 {
		return fail(PartMask, "%q is not one of d and e, with k at the end only", t.Mask[i])
	}
	if t.Mask == "" {
		return fail(PartMask, "it needs at least one d or e")
	}
	if len(t.Mask) > MaxMask {
		return fail(PartMask, "longer than %d characters", MaxMask)
	}
	return t, nil
}

// String returns the template in NOID's form, such as "99999/fk4.reeeeeeeek". ParseTemplate reads
// it back.
func (t Template) String() string {
	var b strings.Builder
	if t.NAAN != "" {
		b.WriteString(t.NAAN + "/")
	}
	b.WriteString(t.Shoulder + "." + string(t.Generator) + t.Mask)
	if t.Check {
		b.WriteByte('k')
	}
	return b.String()
}

// Of returns the template that a collection has: its own text, which may leave the NAAN to t, or t for "".
func (t Template) Of(own string) (Template, error) {
	if own == "" {
		return t, nil
	}
	of, err := ParseTemplate(own)
	if err == nil && of.NAAN == "" {
		of, err = of.WithNAAN(t.NAAN)
	}
	return of, err
}

// WithNAAN returns the template with another NAAN. The error is a *TemplateError.
func (t Template) WithNAAN(naan string) (Template, error) {
	t.NAAN = ""
	return ParseTemplate(naan + "/" + t.String())
}

// Mint makes a name of a Random template from the bytes of rand (crypto/rand.Reader in production).
// All names are equally likely. If the name is taken, call Mint again. The ARK has the template's
// NAAN and no qualifier.
//
// Errors: ErrGenerator, ErrNoNAAN, or the wrapped error of rand.
func (t Template) Mint(rand io.Reader) (ARK, error) {
	if t.Generator != Random {
		return ARK{}, fmt.Errorf("mint from %s: %w", t, ErrGenerator)
	}
	name := make([]byte, len(t.Mask))
	for i := range name {
		c, err := draw(rand, radix(t.Mask[i]))
		if err != nil {
			return ARK{}, fmt.Errorf("mint from %s: %w", t, err)
		}
		name[i] = c
	}
	return t.finish(name)
}

// finish adds the shoulder and the check character.
func (t Template) finish(generated []byte) (ARK, error) {
	if t.NAAN == "" {
		return ARK{}, fmt.Errorf("mint from %s: %w", t, ErrNoNAAN)
	}
	name := t.Shoulder + string(generated)
	if t.Check {
		name += string(CheckChar(t.NAAN + "/" + name))
	}
	return ARK{NAAN: t.NAAN, Name: name}, nil
}

// draw returns one of the first base characters of Alphabet. It discards bytes above the largest
// multiple of base, because they would favor the first characters.
func draw(rand io.Reader, base uint64) (byte, error) {
	limit := 256 - 256%base
	var b [1]byte
	for {
		if _, err := io.ReadFull(rand, b[:]); err != nil {
			return 0, fmt.Errorf("read random bytes: %w", err)
		}
		if v := uint64(b[0]); v < limit {
			return Alphabet[v%base], nil
		}
	}
}

func radix(mask byte) uint64 {
	if mask == 'd' {
		return digits
	}
	return uint64(len(Alphabet))
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
