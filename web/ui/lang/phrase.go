package lang

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// phrases.json lists the keys by which Holdfast's own words with facts are recognised. go generate makes
// it, see said_test.go.
//
//go:embed phrases.json
var phrasesFile []byte

// A phrase is a format that some code of Holdfast writes a text by. The verbs tell what stands there: %s
// and %q data, %d a number, and %v words of Holdfast, which are said in turn.
type phrase struct {
	key     string
	pattern *regexp.Regexp
	literal string // is in each text of it
	first   string // the word that such a text begins with; "" if that is a fact
	short   bool   // it has few words of its own: its facts have few words, too
	verbs   []verb // by their places in the key
}

// verb is where a format has an argument.
type verb struct {
	text string // as it is written
	kind byte
	arg  int // from 0
}

// verbs finds the verbs of a format.
var verbs = regexp.MustCompile(`%%|%(?:\[(\d+)\])?[.\d]*([a-zA-Z])`)

// facts are the patterns of what a verb writes. Where texts of many items were made one, an ellipsis
// stands for it.
var facts = map[byte]string{
	'd': `(-?\d[\d,]*|…)`, 'q': `("(?:[^"\\]|\\.)*"|…)`, 'x': `([0-9a-f]+|…)`, 'X': `([0-9A-F]+|…)`, 'f': `(-?[\d.]+|…)`, 'g': `(-?[\d.e+]+|…)`,
	's': `(.+?)`, 'v': `(.+?)`, 'T': `(.+?)`, 'c': `(.)`,
}

// cut returns the literal parts of a format and, between each two, its verbs.
func cut(format string) (literals []string, all []verb) {
	literal, from := "", 0
	for _, at := range verbs.FindAllStringSubmatchIndex(format, -1) {
		literal += format[from:at[0]]
		from = at[1]
		if at[4] < 0 { // %%
			literal += "%"
			continue
		}
		v := verb{text: format[at[0]:at[1]], kind: format[at[4]], arg: len(all)}
		if at[2] >= 0 {
			n, _ := strconv.Atoi(format[at[2]:at[3]]) // digits
			v.arg = n - 1
		}
		literals, all, literal = append(literals, literal), append(all, v), ""
	}
	return append(literals, literal+format[from:]), all
}

// phraseOf compiles a format.
func phraseOf(key string) (phrase, error) {
	p := phrase{key: key}
	literals, all := cut(key)
	p.verbs = all
	pattern := "(?s)^"
	for i, l := range literals {
		if len(l) > len(p.literal) {
			p.literal = l
		}
		pattern += regexp.QuoteMeta(l)
		switch {
		case i == len(all):
		case i == len(all)-1 && literals[i+1] == "" && all[i].kind == 's':
			pattern += `(.*)` // which may be empty
		default:
			pattern += facts[all[i].kind]
		}
	}
	p.short = len(strings.Fields(strings.Join(literals, " "))) < fewWords
	p.first, _, _ = strings.Cut(literals[0], " ")
	if p.first == literals[0] {
		p.first = "" // the word goes on in the fact
	}
	var err error
	if p.pattern, err = regexp.Compile(pattern + "$"); err != nil {
		return p, fmt.Errorf("phrase %q: %w", key, err)
	}
	return p, nil
}

// fewWords are too few to tell a text by, where a fact may have any words. Names have fewer.
const fewWords = 4

// fits reports whether texts may be the facts of the phrase.
func (p *phrase) fits(facts []string) bool {
	for i, v := range p.verbs {
		if at, _ := statements(facts[i]); i == 0 && p.first == "" && v.kind == 's' && len(at) > 1 {
			return false // a statement of its own comes before
		}
		if at, _ := statements(facts[i]); p.short && v.kind == 's' && (len(strings.Fields(facts[i])) > fewWords || len(at) > 1) {
			return false
		}
	}
	return true
}

// phrases are all phrases.
type phrases struct {
	byWord map[string][]phrase // by the first word
	any    []phrase            // that begin with a fact
	most   int                 // statements in one of them
}

var allPhrases = sync.OnceValue(func() phrases {
	var keys []string
	if err := json.Unmarshal(phrasesFile, &keys); err != nil {
		panic(fmt.Errorf("read phrases.json: %w", err)) // it is a part of the program
	}
	all := phrases{byWord: map[string][]phrase{}, most: 1}
	for _, key := range keys {
		p, err := phraseOf(key)
		if err != nil {
			panic(err)
		}
		if p.first == "" {
			all.any = append(all.any, p)
		} else {
			all.byWord[p.first] = append(all.byWord[p.first], p)
		}
		parts, _ := statements(key)
		all.most = max(all.most, len(parts))
	}
	return all
})

// longestPhrase is how many statements a phrase may have.
func longestPhrase() int { return max(allPhrases().most, mostInText) }

// mostInText is how many statements a text without facts may have that is recognised within another.
const mostInText = 4

// phrase says a text that some phrase of the catalogue writes; of several, the one that says most itself.
func (s *sayer) phrase(text string) (said string, ok bool) {
	all := allPhrases()
	word, _, _ := strings.Cut(text, " ")
	var best *phrase
	var args []string
	for _, some := range [][]phrase{all.byWord[word], all.any} {
		for i := range some {
			p := &some[i]
			if best != nil && len(best.key) >= len(p.key) || !strings.Contains(text, p.literal) || !s.texts.all.has[s.texts.Tag+" "+p.key] {
				continue
			}
			if found := p.pattern.FindStringSubmatch(text); found != nil && p.fits(found[1:]) {
				best, args = p, found[1:]
			}
		}
	}
	if best == nil {
		return "", false
	}
	s.said++
	return s.render(best, args), true
}

// render says a phrase with its facts, in the order of the language.
func (s *sayer) render(p *phrase, found []string) string {
	args := map[int]string{}
	for i, v := range p.verbs {
		args[v.arg] = s.fact(v.kind, found[i])
	}
	literals, all := cut(s.texts.all.raw[s.texts.Tag+" "+p.key])
	var b strings.Builder
	for i, l := range literals {
		b.WriteString(l)
		if i < len(all) {
			b.WriteString(args[all[i].arg])
		}
	}
	return b.String()
}

// fact says what stands for a verb.
func (s *sayer) fact(kind byte, text string) string {
	switch kind {
	case 'v':
		if found := listed.FindStringSubmatch(text); found != nil {
			return s.listed(found[1], found[2], found[3])
		}
		return s.line(text)
	case 'q':
		if name, err := strconv.Unquote(text); err == nil {
			return s.texts.T("\"%s\"", s.words.Data(name))
		}
	}
	return s.value(text)
}

// listed are words as registry.OneOf and registry.AllOf list them: those before the last, "or" or "and", and the last.
var listed = regexp.MustCompile(`^([^\s,]+(?:, [^\s,]+)*) (or|and) ([^\s,]+)$`)

// listed says listed words.
func (s *sayer) listed(before, word, last string) string {
	all := append(strings.Split(before, ", "), last)
	for i, one := range all {
		if said, ok := s.exact(one); ok {
			all[i] = said
		} else {
			all[i] = s.words.Data(one)
		}
	}
	before, last = strings.Join(all[:len(all)-1], ", "), all[len(all)-1]
	if word == "or" {
		return s.texts.T("%s or %s", before, last)
	}
	return s.texts.T("%s and %s", before, last)
}

// size is a number of bytes, as registry.SizeText writes it.
var size = regexp.MustCompile(`^([\d,]+)(\.\d)? (byte|bytes|KiB|MiB|GiB|TiB|PiB|EiB)$`)

// value says a fact: a number, a size and a time as the language writes them, all else as it is.
func (s *sayer) value(text string) string {
	if n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64); err == nil && (strings.Contains(text, ",") || len(text) <= 3) {
		return s.texts.T("%d", n)
	}
	if found := size.FindStringSubmatch(text); found != nil {
		n, err := strconv.ParseFloat(strings.ReplaceAll(found[1], ",", "")+found[2], 64)
		switch {
		case err != nil:
		case strings.HasPrefix(found[3], "byte"):
			return s.texts.T("%d byte|%d bytes", int64(n))
		case found[2] == "":
			return s.texts.T("%d", int64(n)) + " " + found[3]
		default:
			return s.texts.T("%.1f", n) + " " + found[3]
		}
	}
	for _, form := range []string{time.RFC3339, time.DateTime} {
		if at, err := time.Parse(form, text); err == nil { // without a zone it is in UTC
			return s.words.Time(at)
		}
	}
	return s.words.Data(text)
}
