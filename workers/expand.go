package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/workers/payload"
)

const (
	// jobsAtOnce is how many rows become jobs in one transaction: few enough that others do not
	// wait long (R25).
	jobsAtOnce = 400
	// resultType is the durable result with the payload's type.
	resultType = "type"
	// codeNoIdentifier is the error code of an update that names no object.
	codeNoIdentifier = "identifier-missing"
)

// Expand makes a batch's jobs: one for a single payload, one for each row of a batch manifest. A
// damaged manifest fails the batch. A bad row becomes a failed job, and the others continue.
type Expand struct {
	base.Worker
	Registry registry.Batching
	ARKs     intake.ARKs // judges supplied ARKs
	payloads payload.Files
}

// Stage implements base.Handler.
func (w *Expand) Stage() registry.Stage { return registry.Expand }

// Work implements base.Handler. It determines the payload's type and the manifest's bytes once, so
// that a repeat makes the same jobs even if the source has changed.
func (w *Expand) Work(ctx context.Context, item *base.Item) error {
	spec := item.Spec()
	if repeats, err := w.repeats(ctx, item); err != nil || repeats {
		return err
	}
	err := item.Once(ctx, resultType, &spec.Type, func(ctx context.Context) (any, error) { return w.resolveType(ctx, item) })
	if err != nil {
		return err
	}
	if spec.Type != registry.FileType {
		spec.Modified = time.Time{} // it is the time of the container or manifest, not of its files
	}
	if spec.Filename == "" {
		spec.Filename = lastPart(spec.URL)
	}
	jobType, batch := spec.Type.JobType()
	if spec.UpdatesNothing() {
		return base.Content(registry.ErrUpdatesNothing)
	}
	if !batch {
		job := registry.NewJob{Line: 1, Row: 1, Name: item.Name, Priority: item.Priority, Spec: spec}
		_, err := w.Registry.AddJobs(ctx, item.Lease(), []registry.NewJob{job})
		return err
	}
	found, err := w.payloads.Manifest(ctx, item, spec.Type)
	if err != nil {
		return errors.Join(err, payload.NoteRefusal(item, registry.EventManifestRefused, err))
	}
	repeated, err := w.expand(ctx, item, found, expansion{spec: spec, jobType: jobType, rows: found.Rows})
	if err != nil {
		return err
	}
	if err := repeated.recordEvent(item); err != nil {
		return err
	}
	return payload.Warn(item)
}

// repeats reports whether the batch repeats an earlier submission, by its address and the source's
// validator. Such a batch has no jobs. If the source has no validator, only the content can tell.
func (w *Expand) repeats(ctx context.Context, item *base.Item) (bool, error) {
	spec := item.Spec()
	if _, upload := registry.UploadID(spec.URL); upload {
		return false, nil // its bytes were compared when it was submitted
	}
	info, err := w.payloads.Sources(item.Collection).Head(ctx, spec.URL)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil || info.Validator == "" {
		return false, nil //nolint:nilerr // the error shows again when the source is read
	}
	first, err := w.Registry.FirstOf(ctx, item.Lease(), info.Validator)
	return first != "", err
}

// resolveType replaces an automatic type by the type of the payload's first bytes.
func (w *Expand) resolveType(ctx context.Context, item *base.Item) (registry.PayloadType, error) {
	spec := item.Spec()
	if spec.Type != registry.AutoType {
		return spec.Type, nil
	}
	body, err := w.payloads.Sources(item.Collection).Open(ctx, spec.URL, source.Point{})
	if err != nil {
		return "", err
	}
	defer body.Close()
	head, err := io.ReadAll(io.LimitReader(body, intake.HeadLen))
	if err != nil {
		return "", err
	}
	return intake.Resolve(spec.Type, head)
}

// expansion is what all rows of a batch have in common.
type expansion struct {
	spec    registry.Spec
	jobType registry.PayloadType
	rows    int64
}

// expand makes jobs of the rows in portions. A repeat continues after the last row that is a job
// (R22). Reading the earlier rows again costs little; sending them again would cost as much as the
// first time.
func (w *Expand) expand(ctx context.Context, item *base.Item, m payload.Manifest, e expansion) (*repeatedRows, error) {
	var begun int64
	if _, err := item.Result(registry.ResultExpanded, &begun); err != nil {
		return nil, err
	}
	repeated, err := w.findRepeats(ctx, item, m, e)
	if err != nil {
		return nil, err
	}
	progress := item.Progress("rows expanded", "rows").Kept()
	progress.SetEnd(e.rows)
	jobs := make([]registry.NewJob, 0, min(e.rows, jobsAtOnce))
	flush := func() error {
		_, err := w.Registry.AddJobs(ctx, item.Lease(), jobs)
		progress.Add(int64(len(jobs)))
		jobs = jobs[:0]
		return err
	}
	var n int64
	err = w.payloads.Rows(ctx, m, e.spec.Type, func(row checkm.Row, faults []checkm.Fault) error {
		n++
		j := e.job(item, n, row, faults)
		repeated.mark(&j)
		if j.Line <= begun {
			progress.Add(1)
			return nil
		}
		if err := w.judgeARK(ctx, row, &j); err != nil {
			return err
		}
		jobs = append(jobs, j)
		if len(jobs) < jobsAtOnce {
			return nil
		}
		return flush()
	})
	if err != nil || len(jobs) == 0 {
		return repeated, err
	}
	return repeated, flush()
}

// job returns row n as a job: the row's own values, and the batch's common ones. Identifiers come
// only from the row.
func (e expansion) job(item *base.Item, n int64, row checkm.Row, faults []checkm.Fault) registry.NewJob {
	s := e.spec
	wanted := payload.WantedOf(row)
	s.Type, s.URL, s.Filename, s.SizeBytes, s.Digest = e.jobType, row.URL, row.Name, wanted.SizeBytes, wanted.Digest
	s.Modified = wanted.Modified // only the row's: the batch's would be that of the manifest
	s.PrimaryID, s.LocalIDs = normalARK(row.PrimaryID), row.LocalIDs
	s.TitleShared = row.Title == "" && s.Title != ""
	s.Title, s.Creator, s.Date = cmp.Or(row.Title, s.Title), cmp.Or(row.Creator, s.Creator), cmp.Or(row.Date, s.Date)
	j := registry.NewJob{Line: int64(row.Line), Row: n, Name: row.Name, Priority: e.priority(item), Spec: s}
	if checkm.Refused(faults) {
		j.Class, j.Fault, j.Code = registry.ContentFault, describeFaults(faults), firstRule(faults)
		if u, err := url.Parse(row.URL); err != nil || u.User != nil {
			j.Spec.URL = source.Redact(row.URL) // never store a password
		}
	} else if s.UpdatesNothing() {
		j.Class, j.Fault, j.Code = registry.ContentFault, fmt.Sprintf("line %d: %v", row.Line, registry.ErrUpdatesNothing), codeNoIdentifier
	}
	if j.Name == "" {
		j.Name = fmt.Sprintf("line %d", row.Line)
	}
	return j
}

// ruleMistyped is the rule that a row with a mistyped ARK breaks.
const ruleMistyped = "primary-identifier"

// judgeARK makes the job a failed one if its row has a mistyped ARK.
func (w *Expand) judgeARK(ctx context.Context, row checkm.Row, j *registry.NewJob) error {
	ark, err := noid.ParseARK(j.Spec.PrimaryID)
	if err != nil || j.Fault != "" {
		return nil //nolint:nilerr // without an ARK, or with an invalid one, which is already a fault of the row
	}
	err = w.ARKs.Judge(ctx, ark, j.Spec.Profile)
	if wrong := (*intake.MistypedError)(nil); errors.As(err, &wrong) {
		j.Class, j.Code, j.Fault = registry.ContentFault, ruleMistyped, fmt.Sprintf("line %d: %s; fix: %s", row.Line, wrong.Error(), wrong.Remedy())
		return nil
	}
	return err
}

// priority returns Merritt's priority: the larger the batch, the later its jobs. A priority set by
// the submission, its profile or an operator has precedence.
func (e expansion) priority(item *base.Item) int {
	const growth, last = 10, 99
	if e.spec.Priority != nil || item.Priority != registry.DefaultPriority {
		return item.Priority
	}
	return min(last, registry.DefaultPriority+int(growth*math.Log(float64(max(e.rows, 1)))))
}

// normalARK returns an ARK in the form that is compared and locked. It leaves other text for
// Process to refuse.
func normalARK(id string) string {
	ark, err := noid.ParseARK(id)
	if err != nil {
		return id
	}
	return ark.ObjectID()
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

// firstRule returns the first rule that a row breaks.
func firstRule(faults []checkm.Fault) string {
	for _, f := range faults {
		if f.Severity == checkm.Error {
			return string(f.Rule)
		}
	}
	return ""
}

// lastPart returns the last part of an address's path.
func lastPart(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Path == "" || strings.HasSuffix(u.Path, "/") {
		return "payload"
	}
	return path.Base(u.Path)
}
