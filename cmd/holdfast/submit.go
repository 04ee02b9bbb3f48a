package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// submission is what the flags of `submit` say.
type submission struct {
	request       wire.SubmitRequest
	typ, digest   string
	after         []string
	priority      int
	prioritySet   bool
	key           string
	wait          bool
	payloadsGiven int
}

func (a *app) submitCommand() *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use:   "submit PAYLOAD...",
		Short: "Submit files, folders or addresses",
		Example: "  holdfast submit report.pdf --title 'Annual report' --wait\n" +
			"  holdfast submit https://example.org/batch.checkm --collection maps --notify ann@example.org",
		Args: needs("PAYLOAD..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.prioritySet = cmd.Flags().Changed("priority")
			s.payloadsGiven = len(args)
			return a.submit(cmd.Context(), args, s)
		},
	}
	f, r := cmd.Flags(), &s.request
	f.StringVar(&s.typ, "type", string(registry.AutoType), "the payload's `TYPE`: auto, file, container, bag, object-manifest, batch-manifest, container-batch-manifest, single-file-batch-manifest")
	f.StringVar(&r.Collection, "collection", "", "the `NAME` of the collection")
	f.StringVar(&r.ARK, "ark", "", "the `ARK` of the object to make, or to add a version to")
	f.StringArrayVar(&r.LocalIDs, "local-id", nil, "your own identifier `ID` of the object; repeatable, or several separated by ;")
	f.StringVar(&r.Submitter, "submitter", "", "the submitter's name")
	f.StringVar(&r.Title, "title", "", "the object's title")
	f.StringVar(&r.Creator, "creator", "", "the object's creator")
	f.StringVar(&r.Date, "date", "", "the object's date")
	f.StringSliceVar(&r.Notify, "notify", nil, "mail `ADDRESS` for the report, one that the collection or the service allows; repeatable")
	f.BoolVar(&r.Force, "force", false, "submit even if the same content exists already")
	f.StringVar(&s.digest, "digest", "", "the payload's expected digest, `ALG:HEX`")
	f.BoolVar(&r.Update, "update", false, "change the object's files instead of replacing all of them")
	f.IntVar(&s.priority, "priority", 0, "lower goes first (default by the collection and the batch's size)")
	f.StringVar(&s.key, "idempotency-key", "", "an idempotency key; a repeat returns the first batch")
	f.StringSliceVar(&s.after, "after", nil, "start after the item `ID[:settled]` has completed, or has ended in any way; repeatable")
	f.BoolVar(&s.wait, "wait", false, "show progress until everything has ended; the exit code tells the outcome")
	a.progressFlags(cmd)
	return a.clientFlags(cmd)
}

// progressFlags adds what commands have that show progress.
func (a *app) progressFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&a.quiet, "quiet", "q", false, "show no progress")
	cmd.Flags().BoolVar(&a.quiet, "no-progress", false, "the same as --quiet")
}

// check reads the flags that have a form, and refuses those that can concern one payload only.
func (s *submission) check() error {
	typ, err := typeOf(s.typ)
	if err != nil {
		return err
	}
	s.request.Type = string(typ)
	if s.request.Digest, err = digestOf(s.digest); err != nil {
		return err
	}
	if s.request.Requires, err = requirementsOf(s.after); err != nil {
		return err
	}
	if s.prioritySet {
		s.request.Priority = &s.priority
	}
	s.request.LocalIDs = localIDsOf(s.request.LocalIDs)
	if s.payloadsGiven < 2 {
		return nil
	}
	var alone []string
	for name, given := range map[string]bool{
		"--ark": s.request.ARK != "", "--local-id": len(s.request.LocalIDs) > 0, "--digest": s.digest != "", "--idempotency-key": s.key != "",
	} {
		if given {
			alone = append(alone, name)
		}
	}
	if len(alone) > 0 {
		return fix(usage(strings.Join(sorted(alone), ", ")+" can be said of one payload only"), "submit them one by one")
	}
	return nil
}

// localIDsOf takes lists apart, which Merritt's depositors write with ; between identifiers, and leaves each once.
func localIDsOf(given []string) []string {
	var ids []string
	for _, list := range given {
		for id := range strings.SplitSeq(list, ";") {
			if id = strings.TrimSpace(id); id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (a *app) submit(ctx context.Context, args []string, s submission) error {
	if err := s.check(); err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	for i, r := range s.request.Requires {
		if s.request.Requires[i].ItemID, err = a.wholeID(ctx, "", r.ItemID); err != nil {
			return err
		}
	}
	var accepted []entry
	var codes []outcome
	for _, arg := range args {
		answer, err := a.submitOne(ctx, c, arg, s)
		if err != nil && ctx.Err() != nil {
			if errors.Is(err, errKept) {
				a.note("interrupted; what was sent of %s is kept for a week. To go on: %s", arg, a.again)
			} else {
				a.note("interrupted; `%s` shows what was submitted. Submitting the rest, or all, again makes nothing twice", a.commandLine("batch list"))
			}
			if len(accepted) > 0 && s.wait {
				return a.interrupted(targetsOf(accepted))
			}
			return exitInterrupted
		}
		if err != nil {
			// One refused payload does not keep the others from being submitted, but what cannot be reached is not asked again.
			codes = append(codes, outcome(codeOf(err)))
			if err := a.refused(shown(arg), err); err != nil {
				return err
			}
			if codes[len(codes)-1] == exitTemporary {
				break
			}
			continue
		}
		e := entry{payload: shown(arg), target: target{id: answer.BatchID}, duplicate: answer.Duplicate, noMail: answer.NoMail}
		accepted = append(accepted, e)
		if err := a.accepted(e, s.wait); err != nil {
			return err
		}
	}
	if !s.wait {
		if a.json {
			if err := a.summaries(ctx, c, accepted); err != nil {
				return err
			}
		}
		if len(accepted) > 0 {
			codes = append(codes, exitOK)
		}
		return asError(together(codes))
	}
	if len(accepted) == 0 {
		return asError(together(codes))
	}
	return a.await(ctx, c, accepted, codes)
}

// asError ends a command with a code when everything has been said.
func asError(code outcome) error {
	if code == exitOK {
		return nil
	}
	return code
}

// submitOne sends what is to be sent, and submits it.
func (a *app) submitOne(ctx context.Context, c *client.Client, arg string, s submission) (_ wire.SubmitResponse, err error) {
	none := wire.SubmitResponse{}
	p, err := payloadOf(arg, registry.PayloadType(s.request.Type))
	if err != nil {
		return none, err
	}
	defer func() { err = errors.Join(err, p.release()) }()
	request := s.request
	request.Type, request.URL = string(p.typ), p.url
	if p.url == "" {
		if request.Digest != nil && p.folder {
			return none, fix(usage("--digest cannot be said of a folder"), "leave it out, or submit the folder as a file of your own")
		}
		// Asked before the bytes are sent, which may take hours.
		into := cmp.Or(request.Collection, wire.DefaultCollection)
		if _, err := c.Collection(ctx, into); errors.Is(err, registry.ErrNotFound) {
			return none, fmt.Errorf("submit %s: %w", shown(arg), err)
		}
		upload, err := a.send(ctx, c, p, into, request.Digest)
		if err != nil {
			return none, fmt.Errorf("send %s: %w", arg, err)
		}
		request.UploadID, request.Filename, request.Folder, request.Modified = upload.ID, p.name, p.folder, p.modified
	}
	var answer wire.SubmitResponse
	err = a.judged(ctx, func() error { answer, err = c.Submit(ctx, request, s.key); return err })
	if err != nil {
		a.takeBack(ctx, c, request.UploadID, err)
		return none, fmt.Errorf("submit %s: %w", shown(arg), err)
	}
	return answer, nil
}

// judged submits what was sent, and again for as long as the service is still judging it.
func (a *app) judged(ctx context.Context, submit func() error) error {
	for told := false; ; told = true {
		err := submit()
		if !code(wire.CodeJudging)(err) {
			return err
		}
		if !told {
			a.note("what was sent is being judged, which takes a while for large files")
		}
		select {
		case <-time.After(judgePause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// judgePause is the time before the service is asked again for a verdict.
const judgePause = time.Second

// takeBack removes what was sent for a submission that was refused, so that nothing is left behind. After any other error
// the submission may have been accepted, and the upload is its batch's.
func (a *app) takeBack(ctx context.Context, c *client.Client, upload string, err error) {
	var refusal *wire.Problem
	if upload == "" || !errors.As(err, &refusal) || refusal.Status >= http.StatusInternalServerError && refusal.Code != wire.CodeQuota {
		return
	}
	if err := c.RemoveUpload(ctx, upload); err != nil && !errors.Is(err, registry.ErrNotFound) {
		a.note("the upload %s could not be removed: %v", upload, err)
	}
}

// send uploads a payload, showing how far it is when that takes a while. What an earlier command has left unfinished is gone
// on with.
func (a *app) send(ctx context.Context, c *client.Client, p *payload, collection string, digest *registry.Digest) (registry.Upload, error) {
	s := &sending{name: p.name, size: p.size, begun: time.Now(), screen: a.display()}
	watching, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.watch(watching)
	}()
	upload, err := c.SendFile(ctx, client.File{
		Name: p.name, Size: p.size, Collection: collection, Digest: digest, Fingerprint: p.print, Open: p.open, Moved: s.sent.Store,
		Resumed: func(offset int64) {
			s.sent.Store(offset)
			a.note("going on with the upload of %s at %s of %s", p.name, sizeText(offset), sizeText(p.size))
		},
		Waiting: func(err error, _ time.Duration) { s.troubled(func() { a.note("%s: %v; trying again", p.name, err) }) },
	})
	stop()
	<-over
	if ctx.Err() != nil && s.sent.Load() > 0 {
		return upload, errors.Join(err, errKept)
	}
	return upload, err
}

// errKept says that an upload was interrupted, and not for nothing.
var errKept = errors.New("what was sent is kept for a week")

// accepted says under which id a payload is known.
func (a *app) accepted(e entry, wait bool) error {
	if e.noMail {
		a.note("warning: %s: nobody is told by mail, since the service has no mail server (docs/mail.md)", e.payload)
	}
	if a.json {
		return a.printJSON(submittedLine{MessageType: "submitted", Payload: e.payload, BatchID: e.target.id, Duplicate: e.duplicate, NoMail: e.noMail})
	}
	what := "submitted"
	if e.duplicate {
		what = "already submitted before, nothing new was made:"
	}
	if wait {
		a.note("%s %s as batch %s", what, e.payload, e.target.id)
		return nil
	}
	a.note("%s %s; to follow it: %s", what, e.payload, a.commandLine("watch", e.target.id))
	_, err := fmt.Fprintln(a.out, e.target.id)
	return err
}

// refused says why a payload is not accepted.
func (a *app) refused(arg string, err error) error {
	a.complain(err)
	if !a.json {
		return nil
	}
	line := errorLine{MessageType: "error", Payload: arg, Error: err.Error(), ExitCode: codeOf(err)}
	var p *wire.Problem
	if errors.As(err, &p) {
		line.Faults, line.FaultsTotal = p.Faults, p.Total
	}
	if err := a.printJSON(line); err != nil {
		return err
	}
	head := summaryHead{Payload: arg, State: stateRefused, Error: line.Error, ExitCode: line.ExitCode}
	if outcome(line.ExitCode) == exitContent {
		head.ErrorClass = registry.ContentFault
	}
	return writeSummary(a.out, head, func(func(registry.JobResult) error) error { return nil })
}
