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

// Mails tells people by mail what became of batches, and operators what waits for them.
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
	Link      string // the address of the pages, for people; "": mails have no links
}

// How long a mail that says that a batch is safe waits for what is missing, or damaged.
const safeWait = 30 * time.Minute

// stoppedWait is how long a mail that says that a batch was ended waits for its jobs to be stopped.
const stoppedWait = 10 * time.Second

// mostTold is how many jobs a mail lists; the others are in its attachments.
const mostTold = 20

// noServer is the error of a mail that this process cannot send.
type noServer struct{}

func (noServer) Error() string { return "there is no mail server" }

// Remedy says what to do.
func (noServer) Remedy() string {
	return "set HOLDFAST_SMTP_URL and HOLDFAST_MAIL_FROM for the worker deliver"
}

// unsent is why a message is not sent at all any more.
type unsent string

func (u unsent) Error() string { return "not sent: " + string(u) }

// Tell makes one try to send a mail about a batch, and notes what it came to. A mail that is not
// true any more it notes as not sent. An error says that the mail was not sent yet.
func (w *Mails) Tell(ctx context.Context, item *base.Item, batch registry.WorkItem, m registry.DeliverySpec) error {
	return w.send(ctx, item, m, func() (mail.Kind, any, []mail.Attachment, error) {
		about, spec, err := w.about(batch)
		if err != nil {
			return "", nil, nil, err
		}
		switch m.Mail {
		case registry.MailQueued:
			if givenUp(batch) {
				return "", nil, nil, unsent("the batch is " + strings.ToLower(string(batch.State)) + ", and waits no more")
			}
			return mail.KindQueued, mail.Queued{Batch: about, Payload: payloadOf(spec)}, nil, nil
		case registry.MailFailed:
			if givenUp(batch) {
				return "", nil, nil, unsent("the batch is " + strings.ToLower(string(batch.State)) + " since")
			}
			if batch.Status != registry.Failed || batch.RetryCount != m.Times {
				return "", nil, nil, unsent("the batch was sent back since, and what comes of that is told then")
			}
			why, err := w.Registry.Why(ctx, batch.ID) // which knows the cause's code and the worker's advice
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
		return "", nil, nil, base.Fatal(fmt.Errorf("no mail tells %q; a newer program may have made it", m.Mail))
	})
}

// givenUp says that an admin ended a batch: what a mail told of it before is not so any more.
func givenUp(batch registry.WorkItem) bool {
	return batch.Status == registry.Cancelled || batch.Status == registry.Aborted || batch.Status == registry.Deleted
}

// stopped says what became of the jobs of a batch that was ended for good. It waits until all are
// stopped that will be.
func (w *Mails) stopped(ctx context.Context, batch registry.WorkItem, about mail.Batch, why string) (data mail.Stopped, err error) {
	open, err := w.stopping(ctx, batch.ID)
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

// stopping says whether a batch that was ended has jobs that are yet to be stopped: what is open
// and has announced no version.
func (w *Mails) stopping(ctx context.Context, batchID string) (bool, error) {
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

// send makes one try to send a mail that compose makes. An unsent ends the matter: it is noted, and
// the item is done.
func (w *Mails) send(ctx context.Context, item *base.Item, m registry.DeliverySpec, compose func() (mail.Kind, any, []mail.Attachment, error)) error {
	if done, err := delivered(ctx, w.Registry, m); done || err != nil {
		return err
	}
	kind, data, files, err := compose()
	if errors.As(err, new(unsent)) {
		return note(ctx, w.Registry, item, m, 0, err)
	} else if err != nil {
		return err
	}
	content, err := w.Templates.Render(kind, data)
	if err != nil {
		return base.Fatal(err)
	}
	return tellNow(ctx, w.Registry, item, m, func() (int, error) {
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

// about is what all mails about a batch say of it.
func (w *Mails) about(batch registry.WorkItem) (about mail.Batch, spec registry.Spec, err error) {
	if err := json.Unmarshal(batch.Spec, &spec); err != nil {
		return about, spec, fmt.Errorf("decode spec of item %s: %w", batch.ID, err)
	}
	return mail.Batch{
		ID: batch.ID, Name: batch.Name, Title: spec.Title, Collection: batch.Collection, Submitter: spec.Submitter, By: batch.CreatedBy,
		Submitted: spec.SubmittedAt, Link: w.link(batch.ID),
	}, spec, nil
}

// link is the address of an item's page.
func (w *Mails) link(id string) string {
	if w.Link == "" {
		return ""
	}
	return strings.TrimSuffix(w.Link, "/") + "/items/" + id
}

// payloadOf names what was submitted.
func payloadOf(spec registry.Spec) string {
	if _, uploaded := registry.UploadID(spec.URL); uploaded {
		return spec.Filename
	}
	return spec.URL
}

// faultOf says whose fault a failure is.
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

// safe says that all that a report of a batch calls completed is safe, when it is: it asks anew
// each time, since what was right may have been damaged since.
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
	case s.Objects != r.Completed: // of purged jobs it is not known whether what they stored is right
		return data, unsent(fmt.Sprintf("report %d says that %d jobs completed, and there are %d now", r.Closing, r.Completed, s.Objects))
	case !s.Safe():
		return data, base.Snooze(safeWait, registry.ReasonNotDue, fmt.Sprintf("of %d objects, %d replicas were not verified, %d objects are damaged, and of %d the deletion was asked for",
			s.Objects, s.Missing, s.Damaged, s.Leaving))
	}
	return mail.Safe{Batch: about, Objects: s.Objects, Storages: s.Storages, Verified: s.VerifiedAt}, nil
}

// report says what a batch's report of one closing says, with its lists.
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

// jobs are the first jobs of a report that a query selects, as a mail lists them.
func (w *Mails) jobs(ctx context.Context, q registry.ReportQuery) (out []mail.Job, err error) {
	q.Limit = mostTold
	jobs, err := w.Registry.ReportJobs(ctx, q)
	for _, j := range jobs {
		repeats := ""
		if j.Repeats != nil {
			repeats = j.Repeats.String()
		}
		out = append(out, mail.Job{
			Name: j.Name, Place: registry.PlaceText(j.Row, j.Line), Repeats: repeats, LocalIDs: strings.Join(j.LocalIDs, "; "), ARK: j.ARK, Version: j.Version, State: string(j.State), Error: j.Error,
			Fault: faultOf(j.Class), Fix: j.Fix, Link: w.link(j.ItemID),
		})
	}
	return out, err
}

// lists are a report's lists, those that are not empty, each as JSON and as CSV, as far as they can
// be attached; what failed comes first. A list is read page by page and packed on the way.
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
