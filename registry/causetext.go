package registry

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of a normalised text, in bytes.
const (
	mostCauseText = 400
	mostCauseWord = 100  // a longer word is data
	mostCauseNote = 4096 // of which this much is read; workers' notes have half of it
)

// CauseText returns a failure's note without the parts that differ between items. Numbers, sizes,
// dates, identifiers, digests, quoted text, paths and file names become placeholders in angle
// brackets. Of a URL only scheme and host remain. Lines are sorted and unique, because the order of
// a job's files is accidental; the number of further lines is dropped.
//
// The result has at most 400 bytes, and CauseText leaves it unchanged. It never contains other
// parts of a URL, or a word with an at sign, and so neither passwords nor signatures.
func CauseText(note string) string {
	note = strings.ToValidUTF8(wholeWords(note), "\uFFFD")
	lines := strings.FieldsFunc(note, func(r rune) bool { return r == '\n' || r == '\r' })
	var out []string
	for _, l := range lines {
		if l = causeLine(l); l != "" && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	if rest := slices.DeleteFunc(slices.Clone(out), func(l string) bool { return strings.HasPrefix(l, "and <n> more") }); len(rest) > 0 {
		out = rest
	}
	slices.Sort(out)
	return fitting(out)
}

// wholeWords drops what is left where base truncated a note: the last line or, in a single line,
// the last word. Half a URL may end in half a password.
func wholeWords(note string) string {
	const more = "…"
	if len(note) > mostCauseNote {
		note = note[:mostCauseNote] + more
	}
	if !strings.HasSuffix(note, more) {
		return note
	}
	if at := strings.LastIndexAny(strings.TrimRight(note, more+"\r\n"), "\r\n"); at > 0 {
		return note[:at]
	}
	return note[:max(strings.LastIndexByte(note, ' '), 0)]
}

// fitting joins as many lines as fit. It truncates the first one between words.
func fitting(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	text := lines[0]
	if len(text) > mostCauseText {
		text = text[:strings.LastIndexByte(text[:mostCauseText+1], ' ')]
	}
	for _, l := range lines[1:] {
		if len(text)+1+len(l) > mostCauseText {
			break
		}
		text += "\n" + l
	}
	return text
}

// quoted matches text in double quotes, which is nearly always data: a name, a local id, the value
// of a column.
var quoted = regexp.MustCompile(`"[^"]*"`)

// causeLine normalises one line.
func causeLine(line string) string {
	// A URL or word that begins before the quote is replaced as a whole.
	line = quoted.ReplaceAllString(line, "<text>")
	for at := 0; at < len(line); at++ {
		if at > 0 && line[at-1] != ' ' && line[at-1] != '(' {
			continue
		}
		if n, code := statusAt(line[at:]); n > 0 && (at+n == len(line) || !isLetterOrDigit(rune(line[at+n]))) {
			line = line[:at] + code + line[at+n:]
		}
	}
	words := strings.Fields(strings.Map(noControl, line))
	out := words[:0]
	for i := 0; i < len(words); i++ {
		w := causeWhole(words[i])
		if head, number := cutHead(words[i]); i+1 < len(words) && isNumber(number) {
			if unit, tail := cutTail(words[i+1]); sizeUnits[unit] {
				w, i = head+"<size>"+tail, i+1
			}
		}
		if len(w) > mostCauseWord {
			w = "<text>"
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

// noControl replaces control characters, white space and the truncation mark by spaces.
func noControl(r rune) rune {
	if unicode.IsControl(r) || unicode.IsSpace(r) || r == '…' {
		return ' '
	}
	return r
}

// causeWhole normalises one word.
func causeWhole(word string) string {
	head, core := cutHead(word)
	core, tail := cutTail(core)
	if before, rest, ok := cutScheme(core); ok {
		at := strings.LastIndex(core[:len(core)-len(rest)-len("://")], before)
		return head + causePieces(core[:at]) + before + "://" + hostOf(rest) + "/<path>" + tail
	}
	switch {
	case strings.Contains(core, "@"):
		return head + "<name>" + tail // a person's, maybe with a password
	case slashed[core]:
		return word
	case len(core) >= len("ark:") && strings.EqualFold(core[:len("ark:")], "ark:"):
		return head + "<id>" + tail
	case isNumber(core):
		return head + "<n>" + tail
	case isDate(core):
		return head + "<date>" + tail
	case strings.Contains(core, "/"):
		return head + "<path>" + tail
	case isFileName(core):
		return head + "<name>" + tail
	}
	return head + causePieces(core) + tail
}

// Words with a slash that are not paths, and the ARK that messages use as an example.
var slashed = map[string]bool{"i/o": true, "input/output": true, "and/or": true, "read/write": true, "n/a": true, "sha512/256": true, "ark:/99999/fk4test": true}

var sizeUnits = map[string]bool{
	"B": true, "byte": true, "bytes": true, "KiB": true, "MiB": true, "GiB": true, "TiB": true, "PiB": true, "EiB": true,
	"kB": true, "KB": true, "MB": true, "GB": true, "TB": true,
}

// Words with digits that mean the same in every note.
var named = regexp.MustCompile(`^([EW]\d{3}|md[245]|sha1|sha224|sha256|sha384|sha512|sha-?\d{3}|sha3-\d{3}|crc32c?|adler32|blake2[bs]|blake3|xxh\d{2,3}|http-\d{3}|utf-8|UTF-8|x509|S3|IPv4|IPv6|HTTP|bzip2)$`)

// placeholders stay unchanged.
var placeholders = regexp.MustCompile(`<(?:n|id|text|path|name|size|date)>`)

// causePieces normalises the pieces of a word and keeps its punctuation.
func causePieces(word string) string {
	var b strings.Builder
	for word != "" {
		loc := placeholders.FindStringIndex(word)
		if loc == nil {
			loc = []int{len(word), len(word)}
		}
		begin := 0
		for i, r := range word[:loc[0]] {
			if !isLetterOrDigit(r) && !strings.ContainsRune("-_.+%", r) {
				b.WriteString(causePiece(word[begin:i]))
				b.WriteRune(r)
				begin = i + utf8.RuneLen(r)
			}
		}
		b.WriteString(causePiece(word[begin:loc[0]]) + word[loc[0]:loc[1]])
		word = word[loc[1]:]
	}
	return b.String()
}

func causePiece(piece string) string {
	core := strings.TrimRight(piece, ".-+_")
	tail := piece[len(core):]
	switch {
	case !strings.ContainsFunc(core, unicode.IsNumber), named.MatchString(core):
		return piece
	case isNumber(core), isDuration(core):
		return "<n>" + tail
	case isDate(core):
		return "<date>" + tail
	case isSize(core):
		return "<size>" + tail
	}
	return "<id>" + tail
}

// cutHead splits leading punctuation off a word.
func cutHead(word string) (head, core string) {
	core = strings.TrimLeft(word, "([{'`")
	return word[:len(word)-len(core)], core
}

// cutTail splits trailing punctuation off a word.
func cutTail(word string) (core, tail string) {
	core = strings.TrimRight(word, ".,;:!?)]}'`")
	return core, word[len(core):]
}

var schemed = regexp.MustCompile(`^(.*?)([A-Za-z][A-Za-z0-9+.-]*)://`)

// cutScheme splits a word that contains a URL at its scheme.
func cutScheme(word string) (scheme, rest string, ok bool) {
	m := schemed.FindStringSubmatch(word)
	if m == nil {
		return "", "", false
	}
	return m[2], word[len(m[0]):], true
}

var aHost = regexp.MustCompile(`^([a-z0-9._-]{1,60}|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?$`)

// hostOf returns the host and port of a URL without its scheme, or "" if they are not certain.
func hostOf(rest string) string {
	authority, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	} else if strings.Contains(path, "@") && strings.Contains(authority, ":") {
		return "" // host and port may be a user name and the start of a password
	}
	authority, _, _ = strings.Cut(authority, "?")
	authority, _, _ = strings.Cut(authority, "#")
	authority, _ = cutTail(strings.ToLower(authority))
	if !aHost.MatchString(authority) {
		return ""
	}
	return authority
}

var aNumber = regexp.MustCompile(`^[+-]?[0-9][0-9.,]*%?$`)

func isNumber(word string) bool { return aNumber.MatchString(word) }

func isDuration(word string) bool {
	_, err := time.ParseDuration(word)
	return err == nil
}

var aSize = regexp.MustCompile(`^[0-9][0-9.,]*([kKMGTPE]i?)?B$`)

func isSize(word string) bool { return aSize.MatchString(word) }

var aDate = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$`)

func isDate(word string) bool { return aDate.MatchString(word) }

var aFileName = regexp.MustCompile(`^[^<>]*[^<>.]\.[A-Za-z0-9]{1,10}$`)

// isFileName reports whether a word looks like a file name or host.
func isFileName(word string) bool {
	return aFileName.MatchString(word) && strings.ContainsFunc(word, unicode.IsLetter) && !isSize(word) && !isDuration(word) && utf8.RuneCountInString(word) > 3
}

func isLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
