package noid

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// MaxMask is the longest mask that ParseTemplate takes, in characters.
const MaxMask = 64

// The errors of minting.
var (
	// ErrExhausted is returned by MintN when a bounded sequential template has no more names.
	ErrExhausted = errors.New("template exhausted")
	// ErrGenerator is returned by Mint for a sequential template and by MintN for a random one.
	ErrGenerator = errors.New("template has another generator")
	// ErrNoNAAN is returned when a template without a NAAN is to mint: give it one by WithNAAN.
	ErrNoNAAN = errors.New("template has no NAAN")
)

// Generator is how a template chooses the next name.
type Generator byte

// The generators of NOID.
const (
	Random     Generator = 'r' // in no order
	Sequential Generator = 's' // counting, until the mask is full
	Unbounded  Generator = 'z' // counting; the leftmost mask character is repeated as often as needed
)

// Template is a parsed NOID template: where names live and what they look like. Its fields are
// read-only by convention; a Template may be used by many goroutines at once. Make one by
// ParseTemplate.
type Template struct {
	NAAN      string    // "" when the template had none
	Shoulder  string    // what every name begins with
	Generator Generator // how the rest is chosen
	Mask      string    // d (a digit) and e (one of Alphabet), one per character
	Check     bool      // whether a check character follows
}

// TemplateError says why ParseTemplate refused a string.
type TemplateError struct {
	Input  string // what was to be parsed
	Part   Part   // the piece that is wrong
	Reason string // what is wrong with it
}

// Error implements error.
func (e *TemplateError) Error() string {
	return fmt.Sprintf("NOID template %q: %s: %s", e.Input, e.Part, e.Reason)
}

// ParseTemplate reads a NOID template: an optional "ark:/", an optional NAAN and "/", the shoulder,
// and the mask. The mask is set apart by a period ("fk4.reeeeeeeek") or braces
// ("99999/fk4{.reeeeeeeek}", "99999/fk4{eedk}"). It begins with its generator, r, s or z, which
// only the form with braces and no period may leave out (r is meant); then one or more of d and e;
// then, if there is to be a check character, k.
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

// String returns the template in NOID's own form, "99999/fk4.reeeeeeeek"; ParseTemplate reads it
// back as the same.
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

// WithNAAN returns the template with that NAAN in place of its own. The error is a *TemplateError.
func (t Template) WithNAAN(naan string) (Template, error) {
	t.NAAN = ""
	return ParseTemplate(naan + "/" + t.String())
}

// Size returns how many names the template has: math.MaxUint64 when there are more than that can
// say, or no end.
func (t Template) Size() uint64 {
	if t.Generator == Unbounded {
		return math.MaxUint64
	}
	size := uint64(1)
	for i := range len(t.Mask) {
		base := radix(t.Mask[i])
		if size > math.MaxUint64/base {
			return math.MaxUint64
		}
		size *= base
	}
	return size
}

// Mint makes a name of a random template from the bytes of rand (crypto/rand.Reader in production),
// every name as likely as any other. It keeps no record: a caller whose name is taken calls again.
// The ARK has the template's NAAN and no qualifier.
//
// Errors: ErrGenerator, ErrNoNAAN, or what rand returned, wrapped.
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

// MintN makes the name number n, counted from 0, of a sequential template. Different n give
// different names; the caller owns the counter.
//
// Errors: ErrGenerator for a random template, ErrExhausted when n is not below Size, ErrNoNAAN.
func (t Template) MintN(n uint64) (ARK, error) {
	if t.Generator != Sequential && t.Generator != Unbounded {
		return ARK{}, fmt.Errorf("mint number %d from %s: %w", n, t, ErrGenerator)
	}
	name := make([]byte, len(t.Mask))
	left := n
	for i := len(t.Mask) - 1; i >= 0; i-- {
		base := radix(t.Mask[i])
		name[i] = Alphabet[left%base]
		left /= base
	}
	if left > 0 && t.Generator == Sequential {
		return ARK{}, fmt.Errorf("mint number %d from %s: %w", n, t, ErrExhausted)
	}
	for base := radix(t.Mask[0]); left > 0; left /= base {
		name = append([]byte{Alphabet[left%base]}, name...)
	}
	return t.finish(name)
}

// finish puts shoulder and check character around what was generated.
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

// draw returns one of the first base characters of Alphabet. Bytes above the largest multiple of
// base are thrown away, since taking them would favour the first characters.
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
