package checkm

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/holdfast/holdfast/pathset"
)

// Report is the result of [Check].
type Report struct {
	// Kind is the manifest's kind, or Unknown.
	Kind Kind `json:"kind"`
	// Sound says that the manifest as a whole can be trusted: complete, of a known kind, in UTF-8.
	// Refused rows do not make it unsound.
	Sound bool `json:"sound"`
	// Rows counts the rows before #%eof. Refused counts those with an error.
	Rows    int64 `json:"rows"`
	Refused int64 `json:"refused"`
	// Bytes is the sum of the sizes of usable rows, at most 2^63-1. Unsized counts usable rows
	// without a size.
	Bytes   int64 `json:"bytes"`
	Unsized int64 `json:"unsized"`
	// Errors and Warnings count all faults, kept or not.
	Errors   int64 `json:"errors"`
	Warnings int64 `json:"warnings"`
	// Faults holds the first faults, in order of lines. When there are too many, errors are kept
	// before warnings, and those of the manifest before those of rows.
	Faults []Fault `json:"faults"`
}

// Check reads a whole manifest and reports all its faults in one pass. Beyond the checks of
// [Reader] it compares the names of rows that make one object: it refuses a second row of the same
// name, and one whose name is both a file and a folder. It warns of names that differ only in case
// or normal form.
//
// It returns an error only if r cannot be read to its end, or if opts.Row returns one. The report
// then covers the manifest up to there.
func Check(r io.Reader, opts Options) (Report, error) {
	reader := NewReader(r, opts)
	reader.list = newFaultList(opts.MaxFaults)
	c := checker{reader: reader}
	reader.ahead = c.catchUp
	for {
		row, faults, err := reader.Next()
		if err != nil {
			c.catchUp()
			c.rep.finish(reader)
			var unsound *UnsoundError
			if c.rep.Sound = errors.Is(err, io.EOF); c.rep.Sound || errors.As(err, &unsound) {
				return c.rep, nil
			}
			return c.rep, err
		}
		if opts.Row != nil && !Refused(faults) {
			more, err := opts.Row(&row)
			if err != nil {
				return c.rep, err
			}
			faults = append(faults, more...)
		}
		c.take(&row, faults)
	}
}

// checker checks rows against each other. It compares names in portions, which is faster. Faults
// found after the rows of a portion wait until the portion is checked, so that faults stay in
// order.
type checker struct {
	reader *Reader
	rep    Report
	index  *pathset.Set // nil if rows may have the same name
	files  []pathset.File
	faults [][]Fault // of the row of each file
	sizes  []int64
}

// take adds the next row.
func (c *checker) take(row *Row, faults []Fault) {
	const portion = 64
	if !c.reader.Kind().Listing() || !named(row, faults) {
		if len(faults) > 0 {
			c.catchUp()
		}
		c.settle(row.Size, faults)
		return
	}
	if c.index == nil {
		c.index = pathset.NewSet()
	}
	c.files = append(c.files, pathset.File{Name: row.Name, At: row.Line})
	c.faults = append(c.faults, faults)
	c.sizes = append(c.sizes, row.Size)
	if len(c.files) == portion {
		c.catchUp()
	}
}

// catchUp checks the names of the rows that wait.
func (c *checker) catchUp() {
	if len(c.files) == 0 {
		return
	}
	c.index.AddAll(c.files)
	for i, file := range c.files {
		faults := c.faults[i]
		if f, ok := beside(file, c.reader); ok {
			faults = append(faults, f)
		}
		c.settle(c.sizes[i], faults)
	}
	c.files, c.faults, c.sizes = c.files[:0], c.faults[:0], c.sizes[:0]
}

// settle counts a row and its final faults.
func (c *checker) settle(size int64, faults []Fault) {
	c.rep.count(size, faults)
	for _, f := range faults {
		c.reader.list.add(f)
	}
}

func (r *Report) count(size int64, faults []Fault) {
	r.Rows++
	switch {
	case Refused(faults):
		r.Refused++
	case size < 0:
		r.Unsized++
	case r.Bytes > math.MaxInt64-size:
		r.Bytes = math.MaxInt64
	default:
		r.Bytes += size
	}
}

func (r *Report) finish(reader *Reader) {
	l := &reader.list
	r.Kind = reader.Kind()
	r.Errors, r.Warnings = l.nWhole+l.nErr, l.nWarning
	r.Faults = l.sorted()
}

// named reports whether the name of a row can be compared. A garbled name must not make a good row
// look like its duplicate.
func named(row *Row, faults []Fault) bool {
	for i := range faults {
		f := &faults[i]
		if f.Severity == Error && (f.Field == colName.field() || f.Rule == RuleEncoding || f.Rule == RuleTruncated) {
			return false
		}
	}
	return row.Name != ""
}

// beside returns the fault of a row whose name clashes with an earlier one.
func beside(file pathset.File, r *Reader) (Fault, bool) {
	c := file.Clash
	if c.Kind == pathset.Fine {
		return Fault{}, false
	}
	f := Fault{
		Line: file.At, Column: r.judge.layout.at[colName] + 1, Field: colName.field(), Found: shown(file.Name),
		Severity: Error,
	}
	switch c.Kind {
	case pathset.Same:
		f.Rule, f.Expected = RuleNameDuplicate, "each name once"
		f.Fix = "rename one of the two files, or put them into folders"
	case pathset.FileFolder:
		f.Rule, f.Expected = RuleFileAndFolder, "a file or a folder of this name, not both"
		f.Fix = "rename the file or the folder"
		if c.Folder != "" {
			f.Found += ", whose folder " + shown(c.Folder) + " is also a file"
		} else {
			f.Found += ", which is also a folder"
		}
	case pathset.Variant:
		f.Rule, f.Severity, f.Expected = RuleNameCase, Warning, "names that differ in more than case or Unicode normal form"
		f.Fix = "both files are kept; on systems that ignore case one would replace the other"
	case pathset.TooMany:
		f.Rule, f.Expected = RuleFolders, fmt.Sprintf("at most %d files, %d folders and 1,000 names that differ by case only in one object", pathset.MaxFiles, pathset.MaxFolders)
		f.Fix = "make several objects of it, or pack it into a container"
		return f, true
	}
	f.Expected += "; the other one is on line " + strconv.Itoa(c.At)
	return f, true
}
