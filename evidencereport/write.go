// Package evidencereport writes and checks evidence reports: what an archive kept, checked, mended,
// deleted and gave out in a period, for those who certify it.
//
// A report is a folder of plain files, or a zip of them: README.txt, a CSV file for each subject, a
// manifest of SHA-256 digests that sha256sum reads, and a signature of that manifest, signed as receipts
// are. docs/preservation.md says which requirement each file answers. Two reports of the same period that
// has ended are the same, byte for byte, as long as the record of it is.
package evidencereport

import (
	"archive/zip"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/survey"
	"github.com/holdfast/holdfast/reportfile"
)

// Names of a report's own files.
const (
	ReadmeFile    = "README.txt"
	ManifestFile  = "manifest-sha256.txt"
	SignatureFile = "signature.jsonl"
)

// Options say what a report covers.
type Options struct {
	survey.Query
	Source   survey.Reader
	Storages []Storage // that this service knows
	Copies   []registry.CollectionCopies
	Open     bool // the period has not ended
}

// Storage is a place of objects.
type Storage struct {
	registry.Storage

	Address string // "": this service does not know it
}

// Filename returns the name of a report as a zip.
func Filename(q survey.Query) string {
	name := "evidence-" + q.From.UTC().Format(time.DateOnly) + "-to-" + lastDay(q)
	if q.Collection != "" {
		name += "-" + q.Collection
	}
	return name + ".zip"
}

// lastDay is the last day of the period.
func lastDay(q survey.Query) string { return q.To.UTC().Add(-1).Format(time.DateOnly) }

// WriteZip writes a report as a zip, while it reads the record: it needs little memory. A zip without its
// last file was not finished.
func WriteZip(ctx context.Context, w io.Writer, o Options) error {
	counts, err := o.Source.CountPeriod(ctx, o.Query)
	if err != nil {
		return err
	}
	r := &writer{Options: o, zip: zip.NewWriter(w), counts: counts}
	for _, t := range tables() {
		if err := r.table(ctx, t); err != nil {
			return fmt.Errorf("write %s: %w", t.name, err)
		}
	}
	if err := r.file(ReadmeFile, r.readme); err != nil {
		return err
	}
	manifest := strings.Join(r.manifest, "")
	sum := sha256.Sum256([]byte(manifest))
	signature, err := o.Source.SignReport(ctx, receipt.Report{From: o.From, To: o.To, Collection: o.Collection, Manifest: hex.EncodeToString(sum[:])})
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{ManifestFile, []byte(manifest)}, {SignatureFile, signature}} {
		if err := r.file(f.name, func(w io.Writer) error { _, err := w.Write(f.text); return err }); err != nil {
			return err
		}
	}
	return r.zip.Close()
}

// writer writes one report.
type writer struct {
	Options
	zip       *zip.Writer
	counts    survey.Counts
	manifest  []string // its lines
	incidents int64
	deletions map[registry.DeletionStatus]int64
	accesses  map[string]int64 // by kind
	backups   int64
	newest    time.Time     // backup so far
	longest   time.Duration // from one backup to the next
}

// file writes one file and notes its digest. All files have the time of the period's end, so that the
// same report has the same bytes.
func (r *writer) file(name string, write func(io.Writer) error) error {
	w, err := r.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: r.To.UTC()})
	if err != nil {
		return err
	}
	sum := sha256.New()
	if err := write(io.MultiWriter(w, sum)); err != nil {
		return err
	}
	r.manifest = append(r.manifest, hex.EncodeToString(sum.Sum(nil))+"  "+name+"\n")
	return nil
}

// table is a CSV file of a report.
type table struct {
	name    string
	about   string // one line for README.txt
	columns []string
	rows    func(ctx context.Context, r *writer, row func(...any) error) error
}

// table writes a CSV file.
func (r *writer) table(ctx context.Context, t table) error {
	return r.file(t.name, func(w io.Writer) error {
		out := csv.NewWriter(w)
		if err := out.Write(t.columns); err != nil {
			return err
		}
		err := t.rows(ctx, r, func(values ...any) error {
			cells := make([]string, len(values))
			for i, v := range values {
				cells[i] = reportfile.Cell(cellOf(v))
			}
			return out.Write(cells)
		})
		out.Flush()
		return cmp.Or(err, out.Error())
	})
}

// cellOf returns a value as a cell.
func cellOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case int:
		return strconv.Itoa(v)
	case time.Time:
		return timeText(v)
	case *time.Time:
		if v != nil {
			return timeText(*v)
		}
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return fmt.Sprint(v)
	}
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// percent returns a share of an amount, or "" of nothing.
func percent(part, all int64) any {
	if all == 0 {
		return ""
	}
	return 100 * float64(part) / float64(all)
}
