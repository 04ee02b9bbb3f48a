package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/mail"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/reportfile"
)

// Mails sends mails about batches, and the operators' digest.
type Mails struct {
	Registry interface {
		deliveries
		registry.Mailing
		registry.ItemReader
		registry.Queue
		registry.ReportReader
		registry.Inventory
	}
	Sender    *mail.Sender // nil: there is no mail server, and every mail fails
	Templates *mail.Templates
	Link      string // the base address of the pages; "": mails have no links
}

// safeWait is how long a mail that reports a batch as safe waits for missing or damaged replicas.
const safeWait = 30 * time.Minute

// stoppedWait is how long a mail that reports a batch as ended waits for its jobs to stop.
const stoppedWait = 10 * time.Second

// maxListedJobs is how many jobs a mail lists; its attachments have the others.
const maxListedJobs = 20

// noServer is the error of a mail without a mail server.
type noServer struct{}

func (noServer) Error() string { return "there is no mail server" }

// Remedy says what to do.
func (noServer) Remedy() string {
	return "set HOLDFAST_SMTP_URL and HOLDFAST_MAIL_FROM for the worker deliver"
}

// unsent is the reason why a message will not be sent.
type unsent string

func (u unsent) Error() string { return "not sent: " + string(u) }

// SendBatch makes one try to send a mail about a batch, and records the outcome. It records a mail
// that is no longer true as not sent. An error means that the mail was not sent yet.
func (w *Mails) SendBatch(ctx context.Context, item *base.Item, batch registry.WorkItem, m registry.DeliverySpec) error {
	return w.send(ctx, item, m, func() (mail.Kind, any, []mail.Attachment, error) {
		about, spec, err := w.describe(batch)
		if err != nil {
			return "", nil, nil, err
		}
		switch m.Mail {
		case registry.MailQueued:
			if endedByAdmin(batch) {
				return "", nil, nil, unsent("the batch is " + strings.ToLower(string(batch.State)) + " and no longer waits")
			}
			return mail.KindQueued, mail.Queued{Batch: about, Payload: payloadOf(spec)}, nil, nil
		case registry.MailFailed:
			if endedByAdmin(batch) {
				return "", nil, nil, unsent("the batch is " + strings.ToLower(string(batch.State)) + " since")
			}
			if batch.Status != registry.Failed || batch.RetryCount != m.Times {
				return "", nil, nil, unsent("the batch was requeued; its new outcome will be reported")
			}
			why, err := w.Registry.Why(ctx, batch.ID) // it has the cause's code and the worker's advice
			if err != nil {
				return "", nil, nil, err
			}
			failed := mail.Failed{Batch: about, At: batch.UpdatedAt, Error: batch.Note, Fault: faultOf(batch.ErrorClass), Fix: why.Act}
			return mail.KindFailed, failed, nil, nil
		case registry.MailStopped:
			data, err := w.stopped(ctx, batch, about, m.Why)
			return mail.KindStopped, data, nil, err
		case registry.MailSafe:
			data, err := w.safe(ctx, about, m.Closing)
			return mail.KindSafe, data, nil, err
		case registry.MailReport:
			data, files, err := w.report(ctx, batch, about, m.Closing)
			return mail.KindReport, data, files, err
		case registry.MailDigest:
		}
		return "", nil, nil, base.Fatal(fmt.Errorf("unknown kind of mail %q; a newer program may have made it", m.Mail))
	})
}

// endedByAdmin reports whether an admin ended a batch: earlier mails about it are no longer true.
func endedByAdmin(batch registry.WorkItem) bool {
	return batch.Status == registry.Cancelled || batch.Status == registry.Aborted || batch.Status == registry.Deleted
}

// stopped returns the data of the mail about a batch that was ended for good. It waits until its
// jobs are stopped.
func (w *Mails) stopped(ctx context.Context, batch registry.WorkItem, about mail.Batch, why string) (data mail.Stopped, err error) {
	open, err := w.hasStoppingJobs(ctx, batch.ID)
	if err != nil {
		return data, err
	}
	if open {
		return data, base.Snooze(stoppedWait, registry.ReasonNotDue, "the batch's jobs are still being stopped")
	}
	p, err := w.Registry.BatchProgress(ctx, batch.ID)
	if err != nil {
		return data, err
	}
	data = mail.Stopped{
		Batch: about, At: batch.UpdatedAt, State: strings.ToLower(string(batch.State)), Why: why,
		Jobs: p.Jobs, Preserved: p.Completed + p.Preserved, Carried: p.Open, Left: p.Failed - p.States[registry.StateAborted],
	}
	data.Ended = data.Jobs - data.Preserved - data.Carried - data.Left
	return data, nil
}

// hasStoppingJobs reports whether an ended batch has jobs that are still to be stopped: open jobs
// that have announced no version.
func (w *Mails) hasStoppingJobs(ctx context.Context, batchID string) (bool, error) {
	for _, status := range []registry.Status{registry.Prepare, registry.Pending, registry.Running} {
		q := registry.ItemQuery{ParentID: batchID, Status: status, Limit: 500}
		for {
			page, err := w.Registry.Items(ctx, q)
			if err != nil {
				return false, err
			}
			if slices.ContainsFunc(page.Rows, func(it registry.WorkItem) bool { return it.Commitment == registry.Uncommitted }) {
				return true, nil
			}
			if page.Next == "" {
				break
			}
			q.After = page.Next
		}
	}
	return false, nil
}

// send makes one try to send the mail that compose returns. An unsent error is recorded, and the
// item is done.
func (w *Mails) send(ctx context.Context, item *base.Item, m registry.DeliverySpec, compose func() (mail.Kind, any, []mail.Attachment, error)) error {
	if done, err := delivered(ctx, w.Registry, m); done || err != nil {
		return err
	}
	kind, data, files, err := compose()
	if errors.As(err, new(unsent)) {
		return recordTry(ctx, w.Registry, item, m, 0, err)
	} else if err != nil {
		return err
	}
	content, err := w.Templates.Render(kind, data)
	if err != nil {
		return base.Fatal(err)
	}
	return deliver(ctx, w.Registry, item, m, func() (int, error) {
		if w.Sender == nil {
			return 0, noServer{}
		}
		err := w.Sender.Send(ctx, mail.Message{ID: m.ID(), To: m.To, At: item.CreatedAt, Content: content, Attachments: files})
		if refused := new(mail.Error); errors.As(err, &refused) && refused.Permanent {
			return 0, base.Fatal(err)
		}
		return 0, err
	})
}

// describe returns what all mails about a batch say of it.
func (w *Mails) describe(batch registry.WorkItem) (about mail.Batch, spec registry.Spec, err error) {
	if err := json.Unmarshal(batch.Spec, &spec); err != nil {
		return about, spec, fmt.Errorf("decode spec of item %s: %w", batch.ID, err)
	}
	return mail.Batch{
		ID: batch.ID, Name: batch.Name, Title: spec.Title, Collection: batch.Collection, Submitter: spec.Submitter, By: batch.CreatedBy,
		Submitted: spec.SubmittedAt, Link: w.link(batch.ID),
	}, spec, nil
}

// link returns the address of an item's page.
func (w *Mails) link(id string) string {
	if w.Link == "" {
		return ""
	}
	return strings.TrimSuffix(w.Link, "/") + "/items/" + id
}

// payloadOf returns the name or address of the submitted payload.
func payloadOf(spec registry.Spec) string {
	if _, uploaded := registry.UploadID(spec.URL); uploaded {
		return spec.Filename
	}
	return spec.URL
}

// faultOf names who is at fault.
func faultOf(c registry.ErrorClass) string {
	switch c {
	case registry.ContentFault:
		return "the deposit"
	case registry.SystemFault:
		return "the system"
	case registry.JobsFault:
	}
	return ""
}

// safe returns the data of the mail that all completed jobs of a report are safe. It asks anew each
// time: something may have been damaged since.
func (w *Mails) safe(ctx context.Context, about mail.Batch, closing int64) (data mail.Safe, err error) {
	s, err := w.Registry.BatchSafety(ctx, about.ID)
	if err != nil {
		return data, err
	}
	r, err := w.Registry.ReportOf(ctx, about.ID, closing)
	switch {
	case err != nil:
		return data, err
	case s.Gone > 0:
		return data, unsent("an object of the batch was deleted")
	case s.Objects != r.Completed: // it is unknown whether the objects of purged jobs are safe
		return data, unsent(fmt.Sprintf("report %d says that %d jobs completed, and there are %d now", r.Closing, r.Completed, s.Objects))
	case !s.Safe():
		return data, base.Snooze(safeWait, registry.ReasonNotDue, fmt.Sprintf("of %d objects, %d replicas are not verified, %d objects are damaged, and for %d a deletion is requested",
			s.Objects, s.Missing, s.Damaged, s.Leaving))
	}
	return mail.Safe{Batch: about, Objects: s.Objects, Storages: s.Storages, Verified: s.VerifiedAt}, nil
}

// report returns the data of the mail about a batch's report, and its lists.
func (w *Mails) report(ctx context.Context, batch registry.WorkItem, about mail.Batch, closing int64) (data mail.Report, files []mail.Attachment, err error) {
	r, err := w.Registry.ReportOf(ctx, batch.ID, closing)
	if err != nil {
		return data, nil, err
	}
	data = mail.Report{Batch: about, Outcome: "OK", Number: r.Closing, Made: r.CreatedAt, Jobs: r.Jobs, Completed: r.Completed, Preserved: r.Preserved, Failed: r.Failed}
	if r.Failed > 0 {
		data.Outcome = "FAILED"
	}
	if raw, ok := batch.Results[registry.ResultDuplicateOf]; ok && json.Unmarshal(raw, &data.Repeats) != nil {
		data.Repeats = ""
	}
	if r.Jobs == 0 && data.Repeats == "" {
		data.Outcome = "FAILED" // all its jobs were deleted
	}
	if data.Failures, err = w.jobs(ctx, registry.ReportQuery{BatchID: batch.ID, Closing: r.Closing, List: registry.ListFailed}); err != nil {
		return data, nil, err
	}
	data.More = r.Failed - int64(len(data.Failures))
	if r.Repeats > 0 {
		if data.Repeated, err = w.jobs(ctx, registry.ReportQuery{BatchID: batch.ID, Closing: r.Closing, Repeats: true}); err != nil {
			return data, nil, err
		}
		data.MoreRepeated = r.Repeats - int64(len(data.Repeated))
	}
	if d := r.Difference; d != nil {
		data.Outcome = "UPDATED"
		data.Changes = &mail.Changes{Since: d.Since, NowCompleted: d.NowCompleted, StillFailed: d.StillFailed, NewlyFailed: d.NewlyFailed, NowStopped: d.NowStopped}
		mended := registry.ReportQuery{BatchID: batch.ID, Closing: r.Closing, Changes: []registry.JobChange{registry.ChangeCompleted}}
		if data.Mended, err = w.jobs(ctx, mended); err != nil {
			return data, nil, err
		}
		data.MoreMended = d.NowCompleted - int64(len(data.Mended))
	}
	files, data.LeftOut, err = w.lists(ctx, r)
	for _, f := range files {
		data.Attached = append(data.Attached, f.Name)
	}
	return data, files, err
}

// jobs returns the first jobs of a report that a query selects, as a mail lists them.
func (w *Mails) jobs(ctx context.Context, q registry.ReportQuery) (out []mail.Job, err error) {
	q.Limit = maxListedJobs
	jobs, err := w.Registry.ReportJobs(ctx, q)
	for _, j := range jobs {
		repeats := ""
		if j.Repeats != nil {
			repeats = j.Repeats.String()
		}
		out = append(out, mail.Job{
			Name: j.Heading(), Place: registry.PlaceText(j.Row, j.Line), Repeats: repeats, LocalIDs: strings.Join(j.LocalIDs, "; "), ARK: j.ARK, Version: j.Version, State: string(j.State), Error: j.Error,
			Fault: faultOf(j.Class), Fix: j.Fix, Link: w.link(j.ItemID),
		})
	}
	return out, err
}

// lists returns a report's non-empty lists as JSON and CSV, failures first, as far as they can be
// attached. It reads page by page and compresses on the way.
func (w *Mails) lists(ctx context.Context, r registry.BatchReport) (files []mail.Attachment, leftOut []string, err error) {
	left := mail.MostAttached
	for _, list := range registry.ReportLists() {
		if r.Of(list) == 0 {
			continue
		}
		q := registry.ReportQuery{BatchID: r.BatchID, Closing: r.Closing, List: list}
		for _, form := range []struct {
			name, media string
			write       func(io.Writer) error
		}{
			{string(list) + ".json", "application/json", func(out io.Writer) error { return reportfile.JSON(ctx, out, w.Registry, r, q) }},
			{string(list) + ".csv", "text/csv", func(out io.Writer) error { return reportfile.CSV(out, reportfile.Jobs(ctx, w.Registry, q)) }},
		} {
			file := mail.NewList(form.name, form.media)
			if err := form.write(file); err != nil {
				return nil, nil, err
			}
			if a, ok := file.Attachment(left); ok {
				files = append(files, a)
				left -= len(a.Data)
			} else {
				leftOut = append(leftOut, form.name)
			}
		}
	}
	return files, leftOut, nil
}
