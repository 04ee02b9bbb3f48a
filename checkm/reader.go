package checkm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Options control how a manifest is read. The zero value suits a manifest that declares its
// profile.
type Options struct {
	// Kind is the type given by the submitter, or Unknown. With a Kind, a manifest needs no
	// profile. One that declares another kind is unsound, unless both have the same columns.
	Kind Kind
	// Row returns further faults of a row. Check calls it for each row without errors. An error
	// ends the check. Row may be nil.
	Row func(*Row) ([]Fault, error)
	// MaxFaults is the most faults that Check keeps; 0 means 1000. All are counted.
	MaxFaults int
}

// keptFaults is the most faults of the manifest itself that a Reader keeps.
const keptFaults = 100

// Reader reads a manifest row by row. It is not safe for concurrent use.
type Reader struct {
	lex    lexer
	opts   Options
	head   header
	kind   Kind
	judge  *judge
	list   faultList // of the manifest itself
	whole  faultList // those that make the manifest unsound, on rows or not
	rows   int64
	eof    bool
	after  int64 // lines of data after #%eof
	first  Fault // the first line of data after #%eof
	last   int
	ending error
	kept   strings.Builder
	ahead  func() // called before a fault of the manifest itself is added
}

// NewReader returns a Reader of the manifest in r. It reads ahead by up to 128 KiB.
func NewReader(r io.Reader, opts Options) *Reader {
	return &Reader{
		lex: newLexer(r), opts: opts,
		list: newFaultList(keptFaults), whole: newFaultList(keptFaults), ahead: func() {},
	}
}

// Next returns the next row and its faults. A row that is [Refused] must not be used, only shown.
// Reading continues after it.
//
// After the last row the error is io.EOF if the manifest as a whole is sound. It is an
// [*UnsoundError] if not: do not rely on the rows that were returned. Otherwise it wraps the error
// of the underlying reader. Later calls return the same error.
func (r *Reader) Next() (row Row, faults []Fault, err error) {
	for r.ending == nil {
		ln, err := r.lex.next()
		if errors.Is(err, io.EOF) {
			r.finish()
			break
		} else if err != nil {
			r.ending = fmt.Errorf("read manifest: %w", err)
			break
		}
		r.last = ln.num
		if ln.num == 1 && !r.byteOrderMark(&ln) {
			break
		}
		if faults, ok := r.line(ln, &row); ok {
			return row, faults, nil
		}
	}
	return Row{}, nil, r.ending
}

// Kind returns the kind of the manifest. It is final once Next has returned.
func (r *Reader) Kind() Kind { return r.kind }

// Faults returns the faults of the manifest itself so far, such as a missing header: the first
// hundred, in order of lines. Next returns the faults of rows.
func (r *Reader) Faults() []Fault { return r.list.sorted() }

// line processes one line. ok is true if it is a row, which is then in row.
func (r *Reader) line(ln line, row *Row) (faults []Fault, ok bool) {
	text := trimSpace(ln.text)
	switch {
	case len(text) == 0:
		if r.eof {
			r.warn(ln.num, RuleAfterEOF, "the end of the file", "a blank line", "remove it; #%eof should be last")
		}
		return nil, false
	case text[0] == '#':
		for _, f := range encodingFaults(ln) {
			r.add(f)
		}
		r.comment(ln, string(text))
		return nil, false
	case r.eof:
		r.afterEOF(ln.num, string(text))
		return nil, false
	}
	r.begin(ln.num)
	r.rows++
	if ln.long {
		*row = Row{Line: ln.num, Size: -1}
		return []Fault{longLine(ln)}, true
	}
	bad := encodingFaults(ln)
	s := r.keep(text)
	if bad != nil {
		s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	}
	faults = r.judge.row(s, ln.num, row)
	for i := range bad {
		r.judge.place(&bad[i], ln.text[:bad[i].Offset-ln.offset])
		r.whole.add(bad[i])
	}
	if !ln.ended {
		cut := cutOff(ln.num)
		r.judge.place(&cut, ln.text)
		faults = append(faults, cut)
	}
	return append(bad, faults...), true
}

// keep returns a copy of a row's text. Several rows share one allocation, which lives as long as
// any of them.
func (r *Reader) keep(text []byte) string {
	const shared = 4 << 10
	if r.kept.Cap()-r.kept.Len() < len(text) {
		r.kept.Reset()
		r.kept.Grow(max(shared, len(text)))
	}
	at := r.kept.Len()
	r.kept.Write(text)
	return r.kept.String()[at:]
}

// comment processes a line that begins with #.
func (r *Reader) comment(ln line, text string) {
	num := ln.num
	d, ok := parseDirective(text)
	switch {
	case !ok:
		if r.eof {
			r.warn(num, RuleAfterEOF, "the end of the file", "a comment", "move it before #%eof")
		}
	case r.eof:
		r.afterEOF(num, text)
	case d.isEOF():
		r.eof = true
		if d.word != "eof" {
			r.warn(num, RuleHeader, "#%eof", "#%"+d.word, "write it in lower case")
		}
		if d.rest != "" {
			r.warn(num, RuleAfterEOF, "#%eof alone on its line", d.rest, "remove the text")
		}
		if !ln.ended {
			r.warn(num, RuleFinalLineBreak, "a line break after #%eof", "the end of the file", "add a line break: tools may take the last line for cut off")
		}
	default:
		r.header(num, d)
	}
}

func (r *Reader) afterEOF(num int, text string) {
	if r.after++; r.after == 1 {
		r.first = Fault{Line: num, Found: shown(text)}
	}
}

// finish checks the manifest as a whole.
func (r *Reader) finish() {
	if r.last == 0 {
		r.condemn(1, RuleEmpty, "a manifest", "an empty file", "check that the upload was complete")
	} else {
		r.begin(r.last)
		if r.after > 0 {
			r.condemn(r.first.Line, RuleAfterEOF, "nothing after #%eof", plural(r.after, "line")+", the first: "+r.first.Found,
				"are these two manifests in one file? Put #%eof at the end or split the file")
		}
		if !r.eof {
			r.condemn(r.last, RuleTruncated, "#%eof as the last line", "the end of the file", "the manifest was cut off: create it again and send it again")
		}
		if r.rows == 0 {
			r.condemn(r.last, RuleNoEntries, "at least one row", "none", "manifest has no entries: list the files")
		}
	}
	if r.whole.nWhole > 0 {
		r.ending = &UnsoundError{Faults: r.whole.sorted(), Total: r.whole.nWhole}
		return
	}
	r.ending = io.EOF
}

// byteOrderMark reports and drops a byte order mark on the first line. It returns false for UTF-16,
// which cannot be read.
func (r *Reader) byteOrderMark(ln *line) bool {
	if rest, ok := bytes.CutPrefix(ln.text, []byte("\xEF\xBB\xBF")); ok {
		ln.text = rest
		ln.offset += 3
		r.condemn(1, RuleBOM, "UTF-8 without a byte order mark", "bytes EF BB BF at the beginning", "save the file as UTF-8 without BOM")
		return true
	}
	if !bytes.HasPrefix(ln.text, []byte{0xFE, 0xFF}) && !bytes.HasPrefix(ln.text, []byte{0xFF, 0xFE}) {
		return true
	}
	r.condemn(1, RuleBOM, "UTF-8", "a byte order mark of UTF-16", "save the file as UTF-8")
	r.ending = &UnsoundError{Faults: r.whole.sorted(), Total: r.whole.nWhole}
	return false
}

// add keeps a fault of the manifest.
func (r *Reader) add(f Fault) {
	r.ahead()
	r.list.add(f)
	if f.Manifest {
		r.whole.add(f)
	}
}

func (r *Reader) condemn(num int, rule Rule, expected, found, fix string) {
	r.add(Fault{Line: num, Rule: rule, Severity: Error, Manifest: true, Expected: expected, Found: shown(found), Fix: fix})
}

func (r *Reader) warn(num int, rule Rule, expected, found, fix string) {
	r.add(Fault{Line: num, Rule: rule, Severity: Warning, Expected: expected, Found: shown(found), Fix: fix})
}

// encodingFaults reports the first NUL and the first byte that is not UTF-8.
func encodingFaults(ln line) []Fault {
	var faults []Fault
	report := func(at int, found, fix string) {
		offset := ln.offset + int64(at)
		faults = append(faults, Fault{
			Line: ln.num, Offset: offset, Rule: RuleEncoding, Severity: Error, Manifest: true,
			Expected: "UTF-8 text", Found: fmt.Sprintf("%s at byte %d of the file", found, offset), Fix: fix,
		})
	}
	if at := bytes.IndexByte(ln.text, 0); at >= 0 {
		report(at, "a NUL byte", "save the file as plain UTF-8 text")
	}
	if ln.long || utf8.Valid(ln.text) {
		return faults
	}
	for at := 0; at < len(ln.text); {
		c, size := utf8.DecodeRune(ln.text[at:])
		if c == utf8.RuneError && size == 1 {
			report(at, fmt.Sprintf("byte 0x%02X", ln.text[at]), "save the file as UTF-8; it looks like another encoding, such as Latin-1")
			break
		}
		at += size
	}
	return faults
}

func longLine(ln line) Fault {
	return Fault{
		Line: ln.num, Rule: RuleLineLength, Severity: Error, Expected: fmt.Sprintf("at most %d bytes", MaxLine),
		Found: shown(string(ln.text)), Fix: "write each row on a line of its own",
	}
}

// cutOff returns the fault of a last line without a line break. It may be cut off, and a shortened
// URL or name could still look right.
func cutOff(num int) Fault {
	return Fault{
		Line: num, Rule: RuleTruncated, Severity: Error, Expected: "a line break after the row, and #%eof",
		Found: "the end of the file", Fix: "the manifest was cut off: create it again and send it again",
	}
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(n, 10) + " " + noun + "s"
}
