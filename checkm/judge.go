package checkm

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/pathset"
)

// maxCells is the number of cells of a row that are parsed. A row with more has one fault.
const maxCells = 64

// judge checks rows. It keeps nothing from one row to the next.
type judge struct {
	kind   Kind
	layout layout
	line   int
	cells  [maxCells]string
	n      int
	plain  bool // the row has no percent sign
	faults []Fault
}

func newJudge(k Kind) *judge {
	return &judge{kind: k, layout: newLayout(k.columns())}
}

// row parses one line of data into row and returns its faults. The caller may keep them.
func (j *judge) row(text string, num int, row *Row) []Fault {
	j.line, j.faults = num, nil
	j.split(text)
	*row = Row{Line: num, Size: -1}
	var at location
	located := false
	if j.kind != InContainer {
		row.URL = j.raw(colURL)
		at, located = j.url(row.URL)
	}
	row.Algorithm, row.Digest = j.digest()
	row.Size = j.size()
	if s := j.value(colModified); s != "" {
		t, ok := parseModified(s)
		if !ok {
			j.warn(colModified, RuleModified, "a date such as 2026-11-21T06:58:27Z", s, "the date is ignored; the file is accepted all the same")
		}
		row.Modified = t
	}
	row.Name = j.name(at, located)
	row.MIMEType = j.value(colMIME)
	if m := row.MIMEType; m != "" && strings.IndexByte(m, '/') < 1 {
		j.warn(colMIME, RuleMIMEType, "type/subtype, such as image/jpeg", m, "write a pipe within a file's name as %7c")
	}
	if row.PrimaryID = j.value(colPrimary); row.PrimaryID != "" && !validARK(row.PrimaryID) {
		j.refuse(colPrimary, RulePrimaryID, "an ARK such as ark:/99999/fk4test", row.PrimaryID, "correct it, or leave it out to have one minted")
	}
	row.LocalIDs = splitLocalIDs(j.raw(colLocal))
	row.Creator, row.Title, row.Date = j.value(colCreator), j.value(colTitle), j.value(colDate)
	if j.n > j.layout.width && j.kind != Unknown {
		j.add(Fault{
			Column: j.layout.width + 1, Rule: RuleExtraColumns, Severity: Error,
			Expected: fmt.Sprintf("at most %d columns", j.layout.width), Found: strconv.Itoa(j.n),
			Fix: "remove the extra pipes; write a pipe within a value as %7c, otherwise all values after it move one column",
		})
	}
	return j.faults
}

// split splits the text at its pipes.
func (j *judge) split(text string) {
	j.n = 0
	j.plain = strings.IndexByte(text, '%') < 0
	for more := true; more; j.n++ {
		cell := text
		if at := strings.IndexByte(text, '|'); at >= 0 {
			cell, text = text[:at], text[at+1:]
		} else {
			more = false
		}
		if j.n < maxCells {
			j.cells[j.n] = trimSpace(cell)
		}
	}
}

// raw returns the text of a column without the spaces around it, or "" for a column that the row
// lacks.
func (j *judge) raw(c column) string {
	if at := j.layout.at[c]; at >= 0 && at < min(j.n, maxCells) {
		return j.cells[at]
	}
	return ""
}

// value returns the unescaped text of a column.
func (j *judge) value(c column) string {
	if j.plain {
		return j.raw(c)
	}
	return unescape(j.raw(c))
}

func (j *judge) url(raw string) (at location, ok bool) {
	at, fault := checkURL(raw)
	if fault != nil {
		j.addAt(colURL, *fault)
		return at, false
	}
	if at.fragment {
		j.warn(colURL, RuleURL, "a URL without a fragment", shownURL(raw), "the part after # is not sent to the server: write a # in a file's name as %23")
	}
	return at, true
}

func (j *judge) digest() (algorithm, digest string) {
	name, value := j.value(colAlgorithm), j.value(colDigest)
	if name == "" {
		if value != "" {
			j.refuse(colAlgorithm, RuleAlgorithm, "the algorithm of the digest", "nothing", "name it, or leave out the digest")
		}
		return "", ""
	}
	canonical, hexLen, ok := Algorithm(name)
	if !ok {
		j.refuse(colAlgorithm, RuleAlgorithm, "adler32, crc32, md2, md5, sha1, sha256, sha384, sha512 or sha512/256", name, "use one of these; leave a column without a value empty")
		return "", ""
	}
	lower, hex := lowerHex(value)
	if len(value) == hexLen && hex {
		return canonical, lower
	}
	want := fmt.Sprintf("%d hex digits for %s", hexLen, canonical)
	switch {
	case value == "":
		j.refuse(colDigest, RuleDigest, want, "nothing", "give the digest, or leave out the algorithm")
	case !hex:
		j.refuse(colDigest, RuleDigest, want, value, "write the digest in hex")
	default:
		j.refuse(colDigest, RuleDigest, want, fmt.Sprintf("%d digits: %s", len(value), value), "check the algorithm; leading zeros count")
	}
	return "", ""
}

func (j *judge) size() int64 {
	s := j.value(colSize)
	if s == "" {
		return -1
	}
	if size, err := strconv.ParseUint(s, 10, 63); err == nil {
		return int64(size)
	}
	j.refuse(colSize, RuleSize, "a number of bytes from 0 to 2^63-1, in digits only", s, "correct it, or leave it out")
	return -1
}

func (j *judge) name(at location, located bool) string {
	raw := j.raw(colName)
	name := j.value(colName)
	if name == "" {
		if located {
			name = at.base
		} else if j.kind != InContainer {
			return "" // reported as a fault of the URL
		}
		if name == "" {
			j.refuse(colName, RuleNameMissing, "a file name", "nothing", "give one: the URL does not end in one")
			return ""
		}
	} else if j.namePipe(at, name) {
		return name
	}
	if j.plain {
		raw = "" // it has no escapes
	}
	if escape := falseEscape(raw); escape != "" {
		j.warn(colName, RuleEscape, "%20 for a space and %7c for a pipe, the only escapes in a name", escape, "it is kept as part of the name; correct it if it was meant as an escape")
	}
	if problem := nameProblem(name); problem != "" {
		j.refuse(colName, RuleName, "a relative path without empty, . or .. segments and control characters", problem+": "+name, "rename the file")
	} else if j.kind.Batch() && strings.IndexByte(name, '/') >= 0 {
		j.warn(colName, RuleName, "a file name without folders", name, "Merritt refuses folders in the names of a batch")
	}
	if long := pathset.LongPart(name); long != "" {
		j.warn(colName, RuleNameLong, fmt.Sprintf("parts of at most %d bytes between slashes", pathset.MaxPart), fmt.Sprintf("%d bytes: %s", len(long), long),
			"the name is kept, but the file cannot be exported to most disks: shorten the name")
	}
	if j.kind == ContainerBatch && !containerName(name) {
		j.refuse(colName, RuleContainerName, "a name with the extension of a container, or without extension", name,
			"correct the name ("+strings.Join(containerExtensions, ", ")+"), or list files that are no containers in a single-file batch")
	}
	return name
}

// namePipe refuses a name that an unescaped pipe cut in two. Otherwise the file would be kept under
// half its name.
func (j *judge) namePipe(at location, name string) bool {
	if strings.IndexByte(at.base, '|') < 0 {
		return false
	}
	next := j.layout.at[colName] + 1
	if next >= min(j.n, maxCells) || !cutAtPipe(at.base, name, unescape(j.cells[next])) {
		return false
	}
	j.refuse(colName, RuleNamePipe, at.base, name, "write the pipe as %7c")
	return true
}

// place sets the column of a fault from the text before it on its line.
func (j *judge) place(f *Fault, before []byte) {
	at := bytes.Count(before, []byte("|"))
	f.Column = at + 1
	for c := range numColumns {
		if j.layout.at[c] == at {
			f.Field = c.field()
		}
	}
}

func (j *judge) refuse(c column, rule Rule, expected, found, fix string) {
	j.addAt(c, Fault{Rule: rule, Severity: Error, Expected: expected, Found: shown(found), Fix: fix})
}

func (j *judge) warn(c column, rule Rule, expected, found, fix string) {
	j.addAt(c, Fault{Rule: rule, Severity: Warning, Expected: expected, Found: shown(found), Fix: fix})
}

// addAt adds a fault to a column.
func (j *judge) addAt(c column, f Fault) {
	f.Column, f.Field = j.layout.at[c]+1, c.field()
	j.add(f)
}

func (j *judge) add(f Fault) {
	f.Line = j.line
	j.faults = append(j.faults, f)
}
