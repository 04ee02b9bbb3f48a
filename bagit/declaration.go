package bagit

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxDeclaration bounds bagit.txt in octets.
const maxDeclaration = 1 << 16

// Declaration is the content of bagit.txt (section 2.1.1).
type Declaration struct {
	Version  Version // 0 if it could not be read
	Encoding string  // of the other tag files, as spelled; "" if it could not be read
}

const (
	versionLabel  = "BagIt-Version"
	encodingLabel = "Tag-File-Character-Encoding"
)

// ParseDeclaration reads bagit.txt and returns all its faults. An unsupported version or encoding
// is a fault of severity error. The error comes from reading only.
func ParseDeclaration(r io.Reader) (Declaration, []Fault, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxDeclaration+1))
	if err != nil {
		return Declaration{}, nil, fmt.Errorf("read %s: %w", DeclarationFile, err)
	}
	p := declarationParser{}
	p.parse(raw)
	return p.decl, p.faults, nil
}

type declarationParser struct {
	decl   Declaration
	faults []Fault
	lax    []Fault // errors since 1.0, warnings before; kept until the version is known
}

func (p *declarationParser) fail(rule Rule, expected, found string) {
	p.faults = append(p.faults, newFault(SeverityError, rule, DeclarationFile, expected, found))
}

func (p *declarationParser) warn(expected, found string) {
	p.faults = append(p.faults, newFault(SeverityWarning, RuleDeclaration, DeclarationFile, expected, found))
}

func (p *declarationParser) dependsOnVersion(expected, found string) {
	p.lax = append(p.lax, newFault(SeverityError, RuleDeclaration, DeclarationFile, expected, found))
}

func (p *declarationParser) parse(raw []byte) {
	if len(raw) > maxDeclaration {
		p.fail(RuleLimit, fmt.Sprintf("at most %d octets", maxDeclaration), "more")
		return
	}
	if rest, ok := bytes.CutPrefix(raw, []byte("\xef\xbb\xbf")); ok {
		p.fail(RuleByteOrderMark, "no byte-order mark", "a byte-order mark")
		raw = rest
	}
	if !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
		p.fail(RuleEncoding, "UTF-8", "other octets")
		return
	}
	var order []string
	lines := newLineScanner(bytes.NewReader(raw))
	for line, ok := lines.next(); ok; line, ok = lines.next() {
		order = append(order, p.line(string(line)))
	}
	if p.decl.Version == 0 && !p.has(RuleVersion) {
		p.fail(RuleDeclaration, versionLabel+": M.N", "no such line")
	}
	if p.decl.Encoding == "" {
		p.fail(RuleDeclaration, encodingLabel+": ENCODING", "no such line")
	} else if _, ok := lookupEncoding(p.decl.Encoding); !ok {
		p.fail(RuleEncoding, "a supported encoding of the IANA registry", p.decl.Encoding)
	}
	if len(order) > 1 && order[0] == encodingLabel && order[1] == versionLabel {
		p.dependsOnVersion(versionLabel+" first", encodingLabel+" first")
	}
	for _, f := range p.lax {
		f.Severity = sinceV1(p.decl.Version)
		p.faults = append(p.faults, f)
	}
}

func (p *declarationParser) has(r Rule) bool {
	for _, f := range p.faults {
		if f.Rule == r {
			return true
		}
	}
	return false
}

// line parses one line and returns its label, or "" for any other line.
func (p *declarationParser) line(line string) string {
	before, value, ok := strings.Cut(line, ":")
	name := strings.Trim(before, " \t")
	label := versionLabel
	switch {
	case !ok || !strings.EqualFold(name, versionLabel) && !strings.EqualFold(name, encodingLabel):
		p.dependsOnVersion("two lines", line)
		return ""
	case strings.EqualFold(name, encodingLabel):
		label = encodingLabel
	}
	if before != name {
		p.fail(RuleDeclaration, label+": without space before the colon", line)
	}
	if name != label {
		p.warn(label, name)
	}
	trimmed := strings.Trim(value, " \t")
	if value == trimmed || len(strings.TrimLeft(value, " \t")) != len(value)-1 {
		p.dependsOnVersion("one space after the colon", line)
	}
	if strings.TrimRight(value, " \t") != value {
		p.warn("no space at the end of the line", line)
	}
	if label == encodingLabel {
		if p.decl.Encoding != "" {
			p.fail(RuleDeclaration, "one line "+label, "more")
		}
		p.decl.Encoding = trimmed
		return label
	}
	v, ok := parseVersion(trimmed)
	switch {
	case p.decl.Version != 0:
		p.fail(RuleDeclaration, "one line "+label, "more")
	case !ok:
		p.fail(RuleVersion, "M.N", trimmed)
	case !v.Supported():
		p.fail(RuleVersion, "0.93 to 0.97 or 1.0", trimmed)
		fallthrough
	default:
		p.decl.Version = v
	}
	return label
}
