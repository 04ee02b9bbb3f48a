package submission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/tracing"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

type submitInput struct {
	Key       string `header:"Idempotency-Key" maxLength:"200" doc:"A repeat with the same key gets the first one's answer"`
	UserAgent string `header:"User-Agent"`
	Trace     string `header:"Traceparent" maxLength:"200" doc:"W3C Trace Context: the batch joins this trace, and callbacks carry it on"`
	DryRun    bool   `query:"dry_run" doc:"Only check the request, before its payload is sent; url and upload_id may be absent. Nothing is submitted, and batch_id is empty"`
	Body      wire.SubmitRequest
}

// submit accepts a payload. When it answers, the batch is committed.
func (s *Service) submit(ctx context.Context, in *submitInput) (*endpoint.Output[wire.SubmitResponse], error) {
	if in.DryRun && in.Body.URL == "" && in.Body.UploadID == "" {
		in.Body.UploadID = "still to be sent"
	}
	spec, faults := specOf(in.Body)
	faults = append(faults, valid.Text("header.Idempotency-Key", in.Key, valid.MaxText)...)
	required := registry.RequirementProblems(in.Body.Requires)
	at := func(string) string { return "body.requires" }
	if err := invalidGraph("nothing was submitted", required, at, faults); err != nil {
		return nil, err
	}
	if spec.Submitter == "" {
		spec.Submitter = access.Actor(ctx)
	}
	spec.UserAgent = agent(in.UserAgent)
	sub := registry.Submission{
		Collection: in.Body.Collection, Name: shownName(spec.Filename, in.Body.Folder), Spec: spec, Priority: in.Body.Priority,
		Actor: access.Actor(ctx), IdempotencyKey: in.Key, Force: in.Body.Force, Requires: in.Body.Requires, Mails: s.mailTerms(ctx),
	}
	if sub.Collection == "" {
		sub.Collection = wire.DefaultCollection
	}
	c, err := lookup.Collection(ctx, s.Registry, sub.Collection)
	if err != nil {
		return nil, err
	}
	if err = s.judgeARK(ctx, in.Body.ARK, c.Profile); err != nil {
		return nil, err
	}
	if err = s.judgeCorrection(ctx, sub, in.DryRun); err != nil {
		return nil, err
	}
	if in.DryRun {
		if a, err := s.Registry.Accepting(ctx); err != nil {
			return nil, err
		} else if !a.On {
			return nil, &registry.NotAccepting{Accepting: a}
		}
		return &endpoint.Output[wire.SubmitResponse]{Body: wire.SubmitResponse{Type: sub.Spec.Type}}, nil
	}
	ctx, span := tracing.Serve(ctx, "submit", in.Trace)
	defer func() { span.End(err) }()
	span.Set("holdfast.collection", sub.Collection)
	sub.Spec.Trace = joined(ctx, in.Trace)
	var receipt registry.Submitted
	if id := in.Body.UploadID; id != "" {
		receipt, err = s.submitUpload(ctx, id, in.Body.Folder, &sub)
	} else {
		receipt, err = s.Registry.Submit(ctx, sub)
	}
	if err != nil {
		return nil, err
	}
	return s.receipt(ctx, receipt, sub)
}

// shownName is what people know a payload by: a folder that was packed has no .tar.
func shownName(filename string, folder bool) string {
	if folder && filename != "" {
		return strings.TrimSuffix(filename, ".tar") + "/"
	}
	return filename
}

// joined returns the trace of what is submitted: that of the present span, else the caller's.
func joined(ctx context.Context, caller string) *registry.Trace {
	if parent := tracing.Parent(ctx); parent != "" {
		return &registry.Trace{Parent: parent}
	}
	if !tracing.Valid(caller) { //nolint:contextcheck // it reads a text
		return nil
	}
	return &registry.Trace{Parent: caller}
}

// receipt answers with the present state of the batch, which for a duplicate may be settled.
func (s *Service) receipt(ctx context.Context, r registry.Submitted, sub registry.Submission) (*endpoint.Output[wire.SubmitResponse], error) {
	answer := wire.SubmitResponse{BatchID: r.BatchID, Duplicate: r.Duplicate, State: registry.StatePending, Type: sub.Spec.Type, NoMail: r.NoMail}
	it, err := s.Registry.Item(ctx, r.BatchID)
	switch {
	case err == nil:
		answer.State = it.State
	case !r.Duplicate:
		// The batch is committed. An error would make the depositor submit it again.
		s.Log.WarnContext(ctx, "a committed batch could not be read", "batch", r.BatchID, "err", err)
	default:
		return nil, err
	}
	s.Log.InfoContext(ctx, "batch submitted", "batch", r.BatchID, "duplicate", r.Duplicate, "collection", sub.Collection,
		"type", string(sub.Spec.Type), "actor", sub.Actor)
	return &endpoint.Output[wire.SubmitResponse]{Body: answer}, nil
}

// agent limits a User-Agent header. An odd one must not prevent a deposit.
func agent(header string) string {
	const most = 200
	header = strings.ToValidUTF8(header, "\uFFFD")
	if len(header) > most {
		header = strings.ToValidUTF8(header[:most], "")
	}
	return header
}

// specOf converts a request to a spec, with all faults of the request.
func specOf(r wire.SubmitRequest) (registry.Spec, []wire.Fault) {
	spec := registry.Spec{
		Mode: registry.Add, URL: r.URL, Filename: r.Filename, SizeBytes: -1, Submitter: r.Submitter,
		Title: r.Title, Creator: r.Creator, Date: r.Date, Notify: r.Notify, LocalIDs: r.LocalIDs, Corrects: r.Corrects, Terms: r.Terms,
	}
	if r.Modified != nil {
		spec.Modified = r.Modified.UTC().Truncate(time.Microsecond)
	}
	if r.Update {
		spec.Mode = registry.Update
	}
	var faults []wire.Fault
	add := func(more []wire.Fault) { faults = append(faults, more...) }
	var f []wire.Fault
	spec.Type, f = payloadType("body.type", r.Type)
	add(f)
	switch {
	case r.URL == "" && r.UploadID == "":
		add([]wire.Fault{{Location: "body.url", Message: "missing: give url, or upload_id of an upload to POST  " + upload.Path}})
	case r.URL != "" && r.UploadID != "":
		add([]wire.Fault{{Location: "body.upload_id", Message: "give either url or upload_id, not both"}})
	case r.UploadID != "":
		spec.URL = registry.UploadURL(r.UploadID)
		add(valid.Text("body.upload_id", r.UploadID, 200))
	default:
		f, name := urlFault("body.url", r.URL)
		add(f)
		if spec.Filename == "" {
			spec.Filename = name
		}
	}
	if r.Folder && r.UploadID == "" {
		add([]wire.Fault{{Location: "body.folder", Message: "only an upload can be a packed folder; leave it out"}})
	}
	if r.Filename != "" {
		add(valid.Name("body.filename", r.Filename))
	}
	if r.Corrects != nil {
		add(valid.Text("body.corrects.batch_id", r.Corrects.BatchID, 200))
		var wrong *registry.FieldError
		if errors.As(r.Corrects.Check(), &wrong) {
			add([]wire.Fault{{Location: "body." + wrong.Field, Message: strings.TrimPrefix(wrong.Error(), registry.ErrInvalid.Error()+": ")}})
		}
	}
	spec.PrimaryID, f = objectARK("body.ark", r.ARK)
	add(f)
	spec.Digest, f = valid.Digest("body.digest", r.Digest)
	add(f)
	for _, t := range []struct{ location, text string }{
		{"body.submitter", r.Submitter}, {"body.title", r.Title}, {"body.creator", r.Creator}, {"body.date", r.Date},
	} {
		add(valid.Text(t.location, t.text, valid.MaxText))
	}
	add(valid.Terms("body.terms", r.Terms))
	add(localIDFaults(r.LocalIDs))
	add(updateFaults(spec))
	add(valid.Mails("body.notify", r.Notify))
	add(valid.Priority("body.priority", r.Priority))
	return spec, faults
}

// updateFaults refuses an update that can never find its object.
func updateFaults(spec registry.Spec) []wire.Fault {
	if !spec.UpdatesNothing() {
		return nil
	}
	return []wire.Fault{updatesNothing()}
}

func updatesNothing() wire.Fault {
	return wire.Fault{Location: "body.update", Message: registry.ErrUpdatesNothing.Error()}
}

func localIDFaults(ids []string) (faults []wire.Fault) {
	const most = 100
	if len(ids) > most {
		return []wire.Fault{valid.Fault("body.local_ids", registry.Statement{Says: registry.SaysTooManyIDs, N: int64(len(ids)), Of: most})}
	}
	for i, id := range ids {
		at := fmt.Sprintf("body.local_ids[%d]", i)
		switch {
		case strings.TrimSpace(id) == "":
			faults = append(faults, wire.Fault{Location: at, Message: "empty"})
		case slices.Contains(ids[:i], id):
			faults = append(faults, valid.Found(at, id, registry.Statement{Says: registry.SaysTwice, Name: id}))
		default:
			faults = append(faults, valid.Text(at, id, valid.MaxText)...)
		}
	}
	return faults
}

// judgeCorrection refuses a correction that the caller may not submit. Of a submission that is only checked
// it also refuses what the Registry would: it does that itself for others, of which a repeat gets the first
// one's answer.
func (s *Service) judgeCorrection(ctx context.Context, sub registry.Submission, only bool) error {
	if err := s.mayCorrect(ctx, sub.Spec.Corrects); err != nil || sub.Spec.Corrects == nil || !only {
		return err
	}
	return s.Registry.JudgeCorrection(ctx, sub.Collection, *sub.Spec.Corrects)
}

// mayCorrect refuses the correction of what another depositor submitted. c may be nil.
func (s *Service) mayCorrect(ctx context.Context, c *registry.Corrects) error {
	if c == nil {
		return nil
	}
	old, err := s.Registry.Item(ctx, c.BatchID)
	if errors.Is(err, registry.ErrNotFound) { // the Registry says so
		return nil
	}
	if err == nil && !access.Owns(ctx, old) {
		err = wire.NewProblem(http.StatusForbidden, wire.CodeForbidden,
			fmt.Sprintf("batch %s was submitted by another depositor; ask that one, or an operator, to correct it", old.ID))
	}
	return err
}

// judgeARK refuses a supplied ARK that is mistyped.
func (s *Service) judgeARK(ctx context.Context, text string, p registry.Profile) error {
	ark, err := noid.ParseARK(text)
	if err != nil {
		return nil //nolint:nilerr // none is given: an invalid one was refused earlier
	}
	err = s.ARKs.Judge(ctx, ark, p)
	if wrong := (*intake.MistypedError)(nil); errors.As(err, &wrong) {
		return endpoint.Invalid("nothing was submitted, because the ARK is mistyped", wire.Fault{Location: "body.ark", Message: wrong.Error() + "; " + wrong.Remedy(), Found: text})
	}
	return err
}
