package lang

import (
	"regexp"
	"strings"
	"time"
)

// Words says how the parts of a text are shown that are not of the catalogue.
type Words interface {
	// Data shows what no language changes: a name, an address, a figure.
	Data(text string) string
	// English shows words that the catalogue lacks.
	English(text string) string
	// Time shows a time.
	Time(t time.Time) string
}

// Said returns words of Holdfast in the language, such as the error of a step, which is kept as a text. It
// returns false if the catalogue lacks a part of them, which stays as it is: it may be anybody's. Where
// such words are written is listed in said_test.go.
func (t Texts) Said(english string) (text string, ok bool) {
	text, how := t.SaidIn(plain{t}, english)
	return text, how == Whole
}

// Known is how much of some words the catalogue has.
type Known int

// The values of Known.
const (
	Nothing Known = iota
	Part
	Whole
)

// SaidIn is Said with the parts shown by words.
func (t Texts) SaidIn(words Words, english string) (text string, how Known) {
	s := sayer{texts: t, words: words}
	lines := strings.Split(english, "\n")
	for i, line := range lines {
		lines[i] = s.line(line)
	}
	switch {
	case s.said == 0 && !strings.ContainsAny(english, " \n") && strings.ContainsAny(english, "0123456789/:"):
		return words.Data(english), Whole // an identifier, an address, a path
	case s.said == 0:
		return words.English(english), Nothing
	case s.lacks > 0:
		return strings.Join(lines, "\n"), Part
	}
	return strings.Join(lines, "\n"), Whole
}

// plain shows all parts as they are.
type plain struct{ texts Texts }

// Data implements Words.
func (plain) Data(text string) string { return text }

// English implements Words.
func (plain) English(text string) string { return text }

// Time implements Words.
func (p plain) Time(t time.Time) string {
	return t.UTC().Format(p.texts.T("2006-01-02 15:04 MST"))
}

// sayer says one text.
type sayer struct {
	texts       Texts
	words       Words
	said, lacks int // statements that the catalogue has, and lacks
}

// separators stand between the statements of a text, each of which has a wording of its own: what was
// done, what went wrong, what to do.
var separators = []string{": ", "; ", ". "}

// statements cuts a text at its separators, except within quotation marks. between[i] stands before
// all[i+1].
func statements(text string) (all, between []string) {
	quoted, from := false, 0
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quoted:
			i++
			continue
		case text[i] == '"':
			quoted = !quoted
			continue
		case quoted:
			continue
		}
		for _, sep := range separators {
			if strings.HasPrefix(text[i:], sep) {
				all, between = append(all, text[from:i]), append(between, sep)
				from = i + len(sep)
				i = from - 1
				break
			}
		}
	}
	return append(all, text[from:]), between
}

// mostStatements bounds the statements of a text that are told apart.
const mostStatements = 100

// line says one line: as few statements as possible that the catalogue has, from its beginning on.
func (s *sayer) line(text string) string {
	if said, ok := s.whole(text); ok {
		return said
	}
	all, between := statements(text)
	if len(all) > mostStatements {
		return s.foreign(text)
	}
	var b strings.Builder
	var foreign string // not said yet, with its separator
	for i := 0; i < len(all); {
		said, n := s.longest(all[i:], between[i:])
		if n == 0 {
			said, n = s.data(all[i])
		}
		if n == 0 {
			foreign += all[i]
			if i+1 < len(all) {
				foreign += between[i]
			}
			i++
			continue
		}
		b.WriteString(s.flush(&foreign))
		b.WriteString(said)
		if i += n; i < len(all) {
			b.WriteString(between[i-1])
		}
	}
	b.WriteString(s.flush(&foreign))
	return b.String()
}

// flush says the foreign words that were found so far.
func (s *sayer) flush(foreign *string) string {
	text := *foreign
	if *foreign = ""; text == "" {
		return ""
	}
	for _, sep := range separators {
		if before, ok := strings.CutSuffix(text, sep); ok {
			return s.foreign(before) + sep
		}
	}
	return s.foreign(text)
}

// foreign says words that the catalogue lacks.
func (s *sayer) foreign(text string) string {
	if strings.TrimSpace(text) == "" {
		return text
	}
	s.lacks++
	return s.words.English(text)
}

// data says a statement that is no words, such as the name of a file; n is 0 if it is.
func (s *sayer) data(text string) (said string, n int) {
	if strings.ContainsAny(strings.TrimSpace(text), " ") {
		return "", 0
	}
	return s.value(text), 1
}

// longest says the first n statements that the catalogue has together; n is 0 if it lacks the first.
func (s *sayer) longest(all, between []string) (said string, n int) {
	text := all[0]
	texts := []string{text}
	for i := 1; i < min(len(all), longestPhrase()); i++ {
		text += between[i-1] + all[i]
		texts = append(texts, text)
	}
	for n := len(texts); n > 0; n-- {
		if said, ok := s.whole(texts[n-1]); ok {
			return said, n
		}
	}
	return "", 0
}

// whole says a text that the catalogue has as one; also with something in brackets after it.
func (s *sayer) whole(text string) (said string, ok bool) {
	if said, ok := s.exact(text); ok {
		return said, true
	}
	if said, ok := s.phrase(text); ok {
		return said, true
	}
	if said, ok := s.alike(text); ok {
		return said, true
	}
	if all := strings.Split(text, ", "); len(all) > 1 {
		if said, ok := s.list(all); ok {
			return said, true
		}
	}
	before, inside, ok := strings.Cut(text, " (")
	if inside, closed := strings.CutSuffix(inside, ")"); ok && closed {
		if first, ok := s.whole(before); ok {
			if second, n := s.data(inside); n > 0 {
				return first + " (" + second + ")", true
			} else if second, ok := s.whole(inside); ok {
				return first + " (" + second + ")", true
			}
		}
	}
	return "", false
}

// exact says a text without facts.
func (s *sayer) exact(text string) (said string, ok bool) {
	key := saidKey(text)
	if !s.texts.all.has[s.texts.Tag+" "+key] {
		return "", false
	}
	s.said++
	return s.texts.printer.Sprintf(key), true
}

// alike says a text of which an ellipsis stands for some words, since those differ in other texts of the
// same cause.
func (s *sayer) alike(text string) (said string, ok bool) {
	const fewest = 8 // bytes that it begins with, so that few texts are compared
	begins, _, cut := strings.Cut(text, "…")
	if !cut || len(begins) < fewest {
		return "", false
	}
	pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".+?") + "$")
	key := ""
	for known := range s.texts.all.raw {
		if one, ok := strings.CutPrefix(known, s.texts.Tag+" "); ok && strings.HasPrefix(one, begins) && (key == "" || one < key) && pattern.MatchString(one) {
			key = one
		}
	}
	if key == "" {
		return "", false
	}
	s.said++
	return s.texts.all.raw[s.texts.Tag+" "+key], true
}

// list says texts without facts that are listed, such as acts.
func (s *sayer) list(all []string) (said string, ok bool) {
	texts := make([]string, len(all))
	for i, one := range all {
		if texts[i], ok = s.exact(one); !ok {
			return "", false
		}
	}
	return strings.Join(texts, ", "), true
}

// saidKey is the key of a text that is not a format. It is "" for a text that would be taken for one with
// two forms.
func saidKey(text string) string {
	if strings.Contains(text, "|") {
		return ""
	}
	return strings.ReplaceAll(text, "%", "%%")
}
