package intake

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/faults"
	"github.com/holdfast/holdfast/fixity"
)

// ListingFile is the file, at the top of a container, in which it may list what is in it (profile
// mrt-object-manifest).
const ListingFile = "mrt-manifest.txt"

// Listing holds the files of a container against what its own mrt-manifest.txt says, both ways:
// every file that it lists is there, every other one that is there is listed, and sizes and digests
// are as stated. It may be used by several goroutines.
type Listing struct {
	mu       sync.Mutex
	promised map[string]promise // of files that were not met yet
	wrong    *faults.List[Fault]
}

// mostListed bounds the bytes of names and digests that a Listing keeps, with 64 for each row: some
// 150,000 rows.
const mostListed = 24 << 20

// promise is what is said of one file.
type promise struct {
	line      int
	size      int64  // -1 when nothing is said
	algorithm string // "" when nothing is said
	digest    string
}

// ReadListing reads an mrt-manifest.txt to its end. The error is a *Refusal that has all its
// faults, or that of r.
func ReadListing(r io.Reader) (*Listing, error) {
	l := &Listing{
		promised: map[string]promise{},
		wrong:    faults.New(faults.Most, func(a, b Fault) int { return strings.Compare(a.File, b.File) }),
	}
	v := newReport(string(checkm.InContainer))
	kept, own := 0, 0 // the line of its own row
	reader := checkm.NewReader(r, checkm.Options{Kind: checkm.InContainer})
	for {
		row, wrong, err := reader.Next()
		var unsound *checkm.UnsoundError
		if errors.Is(err, io.EOF) || errors.As(err, &unsound) {
			break
		} else if err != nil {
			return nil, err
		}
		for _, f := range wrong {
			v.add(listingFault(f))
		}
		before := l.promised[row.Name].line
		if row.Name == ListingFile {
			before = own
		}
		if before > 0 && !checkm.Refused(wrong) {
			v.add(Fault{
				Severity: Error, Rule: string(checkm.RuleNameDuplicate), Source: lineOf(row.Line), Found: row.Name,
				Expected: fmt.Sprintf("each name once; the other one stands on line %d", before), Fix: "list each file once",
			})
		}
		if row.Name == ListingFile { // a file cannot state its own digest
			own = row.Line
			continue
		}
		if before == 0 {
			kept += len(row.Name) + len(row.Digest) + 64
		}
		if kept > mostListed {
			v.add(Fault{
				Severity: Error, Rule: "listing-limit", Source: lineOf(row.Line), Message: "it lists more files than can be compared with the container",
				Fix: "make several objects of it, or leave " + ListingFile + " out",
			})
			return nil, v.settled()
		}
		l.promised[strings.Clone(row.Name)] = promise{line: row.Line, size: row.Size, algorithm: row.Algorithm, digest: strings.Clone(row.Digest)}
	}
	for _, f := range reader.Faults() {
		v.add(listingFault(f))
	}
	return l, v.settled()
}

// settled is the refusal that the faults come to, or nil.
func (v *Report) settled() error { return v.settle().Refusal() }

// listingFault is a fault of the listing as one of the container that it lies in.
func listingFault(f checkm.Fault) Fault {
	fault := manifestFault(f)
	fault.Line, fault.Column, fault.Source = 0, 0, lineOf(f.Line)
	return fault
}

func lineOf(line int) string {
	if line == 0 {
		return ListingFile
	}
	return fmt.Sprintf("%s:%d", ListingFile, line)
}

// Wants returns the algorithm of the digest that is stated for a file, "" for none.
func (l *Listing) Wants(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.promised[name].algorithm
}

// Check holds a file against what is stated of it. digest is by the algorithm that Wants names, in
// lower-case hex. What is wrong is kept for Finish; ok says that nothing is.
func (l *Listing) Check(name string, size int64, digest string) (ok bool) {
	if name == ListingFile {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p, listed := l.promised[name]
	delete(l.promised, name)
	f := Fault{Severity: Error, File: name, Source: lineOf(p.line)}
	switch {
	case !listed:
		f.Rule, f.Source, f.Message = "listing-extra", ListingFile, "it is there, and not listed"
		f.Fix = "list it, or leave it out"
	case p.size >= 0 && p.size != size:
		f.Rule, f.Expected, f.Found = "listing-size", fmt.Sprintf("%d bytes", p.size), fmt.Sprintf("%d bytes", size)
		f.Fix = "find out which of the two is right, and pack it again"
	case p.digest != digest && p.algorithm != "":
		f.Rule, f.Expected, f.Found = "listing-digest", p.algorithm+" "+p.digest, digest
		f.Fix = "find out which of the two is right, and pack it again"
	default:
		return true
	}
	l.wrong.Add(f)
	return false
}

// meet holds a file against what is stated of it, taking the digest that is asked for. The error is
// that of r.
func (l *Listing) meet(name string, size int64, r io.Reader) error {
	algorithm, digest := l.Wants(name), ""
	if algorithm != "" {
		d, err := fixity.NewDigester(algorithm)
		if err != nil {
			return err
		}
		if _, err := io.Copy(d, r); err != nil {
			return err
		}
		digest = d.Sums()[algorithm]
	}
	l.Check(name, size, digest)
	return nil
}

// Finish returns what is wrong, in the order of names, once all files were checked: the first
// 1,000. Wrong counts all.
func (l *Listing) Finish() []Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.promised)) {
		l.wrong.Add(Fault{
			Severity: Error, Rule: "listing-absent", File: name, Source: lineOf(l.promised[name].line),
			Message: "it is listed, and not there", Fix: "pack it, too, or take it off the list",
		})
	}
	clear(l.promised)
	return l.wrong.Kept()
}

// Wrong is how many faults there are, once Finish was called.
func (l *Listing) Wrong() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrong.Total()
}
