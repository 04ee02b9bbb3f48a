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
	// wait long behind them (R25).
	jobsAtOnce = 400
	// resultType is the name of the durable result that says what the payload was found to be.
	resultType = "type"
	// codeNoIdentifier is the code of a row that is an update of nothing that it names.
	codeNoIdentifier = "identifier-missing"
)

// Expand makes a batch's jobs: one for a single payload, one for each row of a batch manifest. A
// corrupt manifest fails the batch; a bad row is born as a failed job of its own, and the others go
// on.
type Expand struct {
	base.Worker
	Registry registry.Batching
	ARKs     intake.ARKs // judges supplied names
	payloads payload.Files
}

// Stage implements base.Handler.
func (w *Expand) Stage() registry.Stage { return registry.Expand }

// Work implements base.Handler. What the payload is, and the manifest's bytes, are settled once, so
// that a repeat makes the same jobs even if the source has changed.
func (w *Expand) Work(ctx context.Context, item *base.Item) error {
	spec := item.Spec()
	if repeats, err := w.repeats(ctx, item); err != nil || repeats {
		return err
	}
	err := item.Once(ctx, resultType, &spec.Type, func(ctx context.Context) (any, error) { return w.recognise(ctx, item) })
	if err != nil {
		return err
	}
	if spec.Type != registry.FileType {
		spec.Modified = time.Time{} // of the container or manifest, not of what is in it
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
		return errors.Join(err, payload.NoteRefusal(item, "manifest-refused", err))
	}
	said, err := w.expand(ctx, item, found, expansion{spec: spec, jobType: jobType, rows: found.Rows})
	if err != nil {
		return err
	}
	if err := said.tell(item); err != nil {
		return err
	}
	return payload.Warn(item)
}

// repeats says whether the batch is one of what is here already, by its address and what the source
// says of it. It then has no jobs. A source that does not say is asked for the content.
func (w *Expand) repeats(ctx context.Context, item *base.Item) (bool, error) {
	spec := item.Spec()
	if _, upload := registry.UploadID(spec.URL); upload {
		return false, nil // whose bytes were compared when it was submitted
	}
	info, err := w.payloads.Sources(item.Collection).Head(ctx, spec.URL)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil || info.Validator == "" {
		return false, nil //nolint:nilerr // what is wrong with the source shows when it is read
	}
	first, err := w.Registry.FirstOf(ctx, item.Lease(), info.Validator)
	return first != "", err
}

// recognise settles an automatic type by the payload's first bytes.
func (w *Expand) recognise(ctx context.Context, item *base.Item) (registry.PayloadType, error) {
	spec := item.Spec()
	if spec.Type != registry.AutoType {
		return spec.Type, nil
	}
	body, err := w.payloads.Sources(item.Collection).Open(ctx, spec.URL, source.Point{})
	if err != nil {
		return "", fmt.Errorf("look at the payload: %w", err)
	}
	defer body.Close()
	head, err := io.ReadAll(io.LimitReader(body, intake.HeadLen))
	if err != nil {
		return "", fmt.Errorf("look at the payload: %w", err)
	}
	return intake.Resolve(spec.Type, head)
}

// expansion is what a batch's rows have in common.
type expansion struct {
	spec    registry.Spec
	jobType registry.PayloadType
	rows    int64
}

// expand makes jobs of the rows in portions. A repeat goes on behind the last row that is a job
// (R22): to read the rows before it again costs little, to send them to the Registry would cost as
// much as the first time.
func (w *Expand) expand(ctx context.Context, item *base.Item, m payload.Manifest, e expansion) (*said, error) {
	var begun int64
	if _, err := item.Result(registry.ResultExpanded, &begun); err != nil {
		return nil, err
	}
	said, err := w.survey(ctx, item, m, e)
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
		said.look(&j)
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
		return said, err
	}
	return said, flush()
}

// job is row n as a job: the row's own values, and what the batch says of all. Identifiers are a
// row's own only.
func (e expansion) job(item *base.Item, n int64, row checkm.Row, faults []checkm.Fault) registry.NewJob {
	s := e.spec
	wanted := payload.WantedOf(row)
	s.Type, s.URL, s.Filename, s.SizeBytes, s.Digest = e.jobType, row.URL, row.Name, wanted.SizeBytes, wanted.Digest
	s.Modified = wanted.Modified // the row's alone: the batch's own would be the manifest's
	s.PrimaryID, s.LocalIDs = normalARK(row.PrimaryID), row.LocalIDs
	s.Title, s.Creator, s.Date = cmp.Or(row.Title, s.Title), cmp.Or(row.Creator, s.Creator), cmp.Or(row.Date, s.Date)
	j := registry.NewJob{Line: int64(row.Line), Row: n, Name: row.Name, Priority: e.priority(item), Spec: s}
	if checkm.Refused(faults) {
		j.Class, j.Fault, j.Code = registry.ContentFault, describeFaults(faults), firstRule(faults)
		if u, err := url.Parse(row.URL); err != nil || u.User != nil {
			j.Spec.URL = source.Redact(row.URL) // a password must not be kept
		}
	} else if s.UpdatesNothing() {
		j.Class, j.Fault, j.Code = registry.ContentFault, fmt.Sprintf("line %d: %v", row.Line, registry.ErrUpdatesNothing), codeNoIdentifier
	}
	if j.Name == "" {
		j.Name = fmt.Sprintf("line %d", row.Line)
	}
	return j
}

// ruleMistyped is the rule that a row breaks whose ARK is mistyped.
const ruleMistyped = "primary-identifier"

// judgeARK makes a job whose row has a mistyped ARK one that failed.
func (w *Expand) judgeARK(ctx context.Context, row checkm.Row, j *registry.NewJob) error {
	ark, err := noid.ParseARK(j.Spec.PrimaryID)
	if err != nil || j.Fault != "" {
		return nil //nolint:nilerr // it has none, or a wrong one, which is a fault of its row already
	}
	err = w.ARKs.Judge(ctx, ark, j.Spec.Profile)
	if wrong := (*intake.MistypedError)(nil); errors.As(err, &wrong) {
		j.Class, j.Code, j.Fault = registry.ContentFault, ruleMistyped, fmt.Sprintf("line %d: %s; fix: %s", row.Line, wrong.Error(), wrong.Remedy())
		return nil
	}
	return err
}

// priority is Merritt's: the larger the batch, the later its jobs. What the submission or its
// collection's profile asked for stays, and so does what an operator has set since.
func (e expansion) priority(item *base.Item) int {
	const growth, last = 10, 99
	if e.spec.Priority != nil || item.Priority != registry.DefaultPriority {
		return item.Priority
	}
	return min(last, registry.DefaultPriority+int(growth*math.Log(float64(max(e.rows, 1)))))
}

// normalARK is an ARK in the form in which it is compared and locked; what is none stays for
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

// firstRule is the first rule that a row breaks.
func firstRule(faults []checkm.Fault) string {
	for _, f := range faults {
		if f.Severity == checkm.Error {
			return string(f.Rule)
		}
	}
	return ""
}

// lastPart is the name that an address ends with.
func lastPart(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Path == "" || strings.HasSuffix(u.Path, "/") {
		return "payload"
	}
	return path.Base(u.Path)
}
