package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"path"
	"strings"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// jobsAtOnce is how many rows become jobs in one transaction (R25).
const jobsAtOnce = 500

// Expand makes a batch's jobs: one for a single payload, one for each row of a batch manifest. A corrupt manifest fails
// the batch; a bad row is born as a failed job of its own, and the others go on.
type Expand struct {
	base.Worker
	Registry registry.Working
	Source   source.Fetcher
	Staging  storage.Store
}

// Stage implements base.Handler.
func (w *Expand) Stage() registry.Stage { return registry.Expand }

// Work implements base.Handler.
func (w *Expand) Work(ctx context.Context, item *base.Item) error {
	spec := item.Spec()
	if spec.Type == registry.AutoType {
		head, err := w.head(ctx, spec.URL)
		if err != nil {
			return fmt.Errorf("look at the payload: %w", err)
		}
		spec.Type = intake.Resolve(spec.Type, head)
	}
	if spec.Filename == "" {
		spec.Filename = lastPart(spec.URL)
	}
	if err := item.SetResult("type", spec.Type); err != nil {
		return err
	}
	jobType, batch := spec.Type.JobType()
	if !batch {
		_, err := w.Registry.AddJobs(ctx, item.Lease(), []registry.NewJob{
			{Row: 1, Name: item.Name, Priority: item.Priority, Spec: spec},
		})
		return err
	}
	manifest, rows, err := w.fetch(ctx, item, spec)
	if err != nil {
		return err
	}
	return w.expand(ctx, item, manifest, expansion{spec: spec, jobType: jobType, rows: rows})
}

// head returns the payload's first bytes.
func (w *Expand) head(ctx context.Context, rawURL string) ([]byte, error) {
	body, err := w.Source.Open(ctx, rawURL, source.Point{})
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // read only
	head, err := io.ReadAll(io.LimitReader(body, intake.HeadLen))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", source.Redact(rawURL), err)
	}
	return head, nil
}

// fetch stages the batch manifest and judges it whole, before the first job is made of it.
func (w *Expand) fetch(ctx context.Context, item *base.Item, spec registry.Spec) (key string, rows int64, err error) {
	f := staging.Fetch{
		Source: w.Source, Store: w.Staging, Key: staging.Key(item.Lease(), "manifest"),
		Wanted: staging.Wanted{
			URL: spec.URL, SizeBytes: spec.SizeBytes, Digest: spec.Digest, Algorithms: []string{spec.Profile.Digests()},
		},
	}
	file, err := f.Run(ctx)
	if err != nil {
		return "", 0, fmt.Errorf("fetch manifest: %w", err)
	}
	r, err := w.Staging.Open(ctx, file.Key, 0, -1)
	if err != nil {
		return "", 0, fmt.Errorf("open manifest: %w", err)
	}
	defer r.Close() //nolint:errcheck // read only
	report, err := intake.Judge(r, spec.Type)
	return file.Key, report.Rows, err
}

// expansion is what a batch's rows have in common.
type expansion struct {
	spec    registry.Spec
	jobType registry.PayloadType
	rows    int64
}

// expand makes jobs of the rows in portions. A repeat leaves the rows that are jobs already as they are (R22).
func (w *Expand) expand(ctx context.Context, item *base.Item, key string, e expansion) error {
	r, err := w.Staging.Open(ctx, key, 0, -1)
	if err != nil {
		return fmt.Errorf("open manifest: %w", err)
	}
	defer r.Close() //nolint:errcheck // read only
	progress := item.Progress("rows expanded", "rows")
	progress.SetEnd(e.rows)
	reader := checkm.NewReader(r, checkm.Options{Kind: checkm.Kind(e.spec.Type)})
	jobs := make([]registry.NewJob, 0, jobsAtOnce)
	for {
		row, faults, err := reader.Next()
		if err == nil {
			jobs = append(jobs, e.job(item, row, faults))
		} else if !errors.Is(err, io.EOF) {
			return fmt.Errorf("read manifest: %w", err)
		}
		if len(jobs) == jobsAtOnce || err != nil && len(jobs) > 0 {
			if _, err := w.Registry.AddJobs(ctx, item.Lease(), jobs); err != nil {
				return err
			}
			progress.Add(int64(len(jobs)))
			jobs = jobs[:0]
		}
		if err != nil {
			return nil
		}
	}
}

// job is a row as a job: the row's own values, and what the batch says of all.
func (e expansion) job(item *base.Item, row checkm.Row, faults []checkm.Fault) registry.NewJob {
	s := e.spec
	wanted := wantedOf(row)
	s.Type, s.URL, s.Filename, s.SizeBytes, s.Digest = e.jobType, row.URL, row.Name, wanted.SizeBytes, wanted.Digest
	s.PrimaryID, s.LocalIDs = row.PrimaryID, row.LocalIDs
	s.Title, s.Creator, s.Date = row.Title, row.Creator, row.Date
	j := registry.NewJob{Row: int64(row.Line), Name: row.Name, Priority: e.priority(item), Spec: s}
	switch {
	case checkm.Refused(faults):
		j.Class, j.Fault = registry.ContentFault, describeFaults(faults)
	case isUpload(row.URL):
		j.Class = registry.ContentFault
		j.Fault = fmt.Sprintf("line %d names %s; a manifest can only name web addresses", row.Line, row.URL)
	}
	if j.Name == "" {
		j.Name = fmt.Sprintf("line %d", row.Line)
	}
	return j
}

// priority is Merritt's: the larger the batch, the later its jobs. A priority that somebody set stays.
func (e expansion) priority(item *base.Item) int {
	const single, growth, last = 5, 10, 99
	if item.Priority != single {
		return item.Priority
	}
	return min(last, single+int(growth*math.Log(float64(max(e.rows, 1)))))
}

func describeFaults(faults []checkm.Fault) string {
	var texts []string
	for _, f := range faults {
		if f.Severity == checkm.Error {
			texts = append(texts, f.Error())
		}
	}
	return strings.Join(texts, "; ")
}

// isUpload says whether an address names an upload, which only its submitter may do, never a manifest.
func isUpload(rawURL string) bool {
	return strings.HasPrefix(strings.ToLower(rawURL), source.UploadScheme+":")
}

// lastPart is the name that an address ends with.
func lastPart(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Path == "" || strings.HasSuffix(u.Path, "/") {
		return "payload"
	}
	return path.Base(u.Path)
}
