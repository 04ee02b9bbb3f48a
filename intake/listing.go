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

// ListingFile is a file at the top of a container that lists the container's files (profile
// mrt-object-manifest).
const ListingFile = "mrt-manifest.txt"

// Listing compares the files of a container with its mrt-manifest.txt: all listed files exist, all
// other files are listed, and sizes and digests match. It is safe for concurrent use.
type Listing struct {
	mu       sync.Mutex
	promised map[string]promise // of files that were not checked yet
	wrong    *faults.List[Fault]
}

// mostListed bounds the bytes of names and digests that a Listing keeps, with 64 more for each row:
// about 150,000 rows.
const mostListed = 24 << 20

// promise is the row of one file.
type promise struct {
	line      int
	size      int64  // -1 if not given
	algorithm string // "" if not given
	digest    string
}

// ReadListing reads an mrt-manifest.txt to its end. The error is a *Refusal with all its faults, or
// comes from r.
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
				Expected: fmt.Sprintf("each name once; the other one is on line %d", before), Fix: "list each file once",
			})
		}
		if row.Name == ListingFile { // a file cannot contain its own digest
			own = row.Line
			continue
		}
		if before == 0 {
			kept += len(row.Name) + len(row.Digest) + 64
		}
		if kept > mostListed {
			v.add(Fault{
				Severity: Error, Rule: "listing-limit", Source: lineOf(row.Line), Message: "it lists too many files to compare them with the container",
				Fix: "split it into several objects, or leave " + ListingFile + " out",
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

// settled returns the refusal for the faults, or nil.
func (v *Report) settled() error { return v.settle().Refusal() }

// listingFault converts a fault of the list to one of the container.
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

// Wants returns the algorithm of a file's digest in the list, or "".
func (l *Listing) Wants(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.promised[name].algorithm
}

// Check compares a file with its row. digest is of the algorithm that Wants returns, in lower-case
// hex. It returns false and records a fault if they differ; Finish returns the faults.
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
		f.Rule, f.Source, f.Message = "listing-extra", ListingFile, "the file exists but is not listed"
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

// checkFile compares a file with its row. It computes the digest that the row needs. The error
// comes from r.
func (l *Listing) checkFile(name string, size int64, r io.Reader) error {
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

// Finish returns the first 1,000 faults, sorted by name, after all files were checked. Wrong counts
// all.
func (l *Listing) Finish() []Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.promised)) {
		l.wrong.Add(Fault{
			Severity: Error, Rule: "listing-absent", File: name, Source: lineOf(l.promised[name].line),
			Message: "the file is listed but does not exist", Fix: "pack it too, or remove it from the list",
		})
	}
	clear(l.promised)
	return l.wrong.Kept()
}

// Wrong returns the number of faults, after Finish.
func (l *Listing) Wrong() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrong.Total()
}
