// Package deposit has the commands that bring something into Holdfast: submit, graph and upload.
//
// An interrupted upload goes on where it ended when the same command is given again. What the
// service refuses leaves no upload behind.
//
// It does not judge what is submitted (package check does so offline), and it leaves the waiting to
// package progress.
package deposit

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/payload"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed help/*.txt
var helpTexts embed.FS

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

// SubmitCommand returns the command `holdfast submit`.
func SubmitCommand(a *cli.App) *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use:   "submit PAYLOAD...",
		Short: "Submit files, folders or addresses",
		Example: "  holdfast submit report.pdf --title 'Annual report' --wait\n" +
			"  holdfast submit https://example.org/batch.checkm --collection maps --notify ann@example.org",
		Args: cli.Needs("PAYLOAD..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.prioritySet = cmd.Flags().Changed("priority")
			s.payloadsGiven = len(args)
			return submit(cmd.Context(), a, args, s)
		},
	}
	f, r := cmd.Flags(), &s.request
	f.StringVar(&s.typ, "type", string(registry.AutoType), "the payload's `TYPE`: auto, file, container, bag, object-manifest, batch-manifest, container-batch-manifest, single-file-batch-manifest")
	f.StringVar(&r.Collection, "collection", "", "the `NAME` of the collection")
	f.StringVar(&r.ARK, "ark", "", "the `ARK` of the object to make, or to add a version to")
	f.StringArrayVar(&r.LocalIDs, "local-id", nil, "your own identifier `ID` of the object; repeatable, or separated by ;")
	f.StringVar(&r.Submitter, "submitter", "", "the submitter's name")
	f.StringVar(&r.Title, "title", "", "the object's title")
	f.StringVar(&r.Creator, "creator", "", "the object's creator")
	f.StringVar(&r.Date, "date", "", "the object's date")
	f.StringSliceVar(&r.Notify, "notify", nil, "mail the report to `ADDRESS`, which the collection or the service must allow; repeatable")
	f.BoolVar(&r.Force, "force", false, "submit even if the same content exists already")
	f.StringVar(&s.digest, "digest", "", "the payload's expected digest, `ALG:HEX`")
	f.BoolVar(&r.Update, "update", false, "change the object's files instead of replacing all of them")
	f.IntVar(&s.priority, "priority", 0, "lower goes first (default: set by the collection, or by the batch's size)")
	f.StringVar(&s.key, "idempotency-key", "", "an idempotency key; a repeat returns the first batch")
	f.StringSliceVar(&s.after, "after", nil, "start once the item `ID[:settled]` has completed (:settled: ended in any way); repeatable")
	f.BoolVar(&s.wait, "wait", false, "show progress until everything has ended; the exit code is the outcome")
	progress.Flags(a, cmd)
	return cli.WithHelp(helpTexts, a.ClientFlags(cmd))
}

// check reads the flags that have a form, and refuses those that can concern one payload only.
func (s *submission) check() error {
	typ, err := payload.ParseType(s.typ)
	if err != nil {
		return err
	}
	s.request.Type = string(typ)
	if s.request.Digest, err = payload.ParseDigest(s.digest); err != nil {
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
		return exit.Fix(exit.Usagef("%s can be said of one payload only", strings.Join(slices.Sorted(slices.Values(alone)), ", ")), "submit them one by one")
	}
	return nil
}

// localIDsOf splits lists at the ; that Merritt's depositors write between identifiers, and leaves
// each identifier once.
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

func submit(ctx context.Context, a *cli.App, args []string, s submission) error {
	if err := s.check(); err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	for i, r := range s.request.Requires {
		if s.request.Requires[i].ItemID, err = a.WholeID(ctx, "", r.ItemID); err != nil {
			return err
		}
	}
	var accepted []progress.Entry
	var codes []exit.Code
	for _, arg := range args {
		answer, err := submitOne(ctx, a, c, arg, s)
		if err != nil && ctx.Err() != nil {
			if errors.Is(err, errKept) {
				a.Note("interrupted; what was sent of %s is kept for a week. To go on: %s", arg, a.Again)
			} else {
				a.Note("interrupted; `%s` shows what was submitted. Submitting the rest, or all, again makes nothing twice", a.CommandLine("batch list"))
			}
			if len(accepted) > 0 && s.wait {
				return progress.Interrupted(a, progress.TargetsOf(accepted))
			}
			return exit.Interrupted
		}
		if err != nil {
			// One refused payload does not keep the others from being submitted. A service that
			// cannot be reached is not asked again.
			codes = append(codes, exit.Of(err))
			if err := tellRefused(a, payload.Shown(arg), err); err != nil {
				return err
			}
			if codes[len(codes)-1] == exit.Temporary {
				break
			}
			continue
		}
		e := progress.Entry{Payload: payload.Shown(arg), Target: progress.Target{ID: answer.BatchID}, Duplicate: answer.Duplicate, NoMail: answer.NoMail}
		accepted = append(accepted, e)
		if err := tellAccepted(a, e, s.wait); err != nil {
			return err
		}
	}
	if !s.wait {
		if a.JSON {
			if err := progress.Summaries(ctx, a, c, accepted); err != nil {
				return err
			}
		}
		if len(accepted) > 0 {
			codes = append(codes, exit.OK)
		}
		return exit.Together(codes).Err()
	}
	if len(accepted) == 0 {
		return exit.Together(codes).Err()
	}
	return progress.Await(ctx, a, c, accepted, codes)
}

// submitOne sends what is to be sent, and submits it.
func submitOne(ctx context.Context, a *cli.App, c *client.Client, arg string, s submission) (_ wire.SubmitResponse, err error) {
	none := wire.SubmitResponse{}
	p, err := payload.Of(arg, registry.PayloadType(s.request.Type))
	if err != nil {
		return none, err
	}
	defer func() { err = errors.Join(err, p.Release()) }()
	request := s.request
	request.Type, request.URL = string(p.Type), p.URL
	if p.URL == "" {
		if request.Digest != nil && p.Folder {
			return none, exit.Fix(exit.Usagef("--digest cannot be said of a folder"), "leave it out, or submit the folder as a file of your own")
		}
		// Asked before the bytes are sent, which may take hours.
		into := cmp.Or(request.Collection, wire.DefaultCollection)
		if _, err := c.Collection(ctx, into); errors.Is(err, registry.ErrNotFound) {
			return none, fmt.Errorf("submit %s: %w", payload.Shown(arg), err)
		}
		upload, err := send(ctx, a, c, p, into, request.Digest)
		if err != nil {
			return none, fmt.Errorf("send %s: %w", arg, err)
		}
		request.UploadID, request.Filename, request.Folder, request.Modified = upload.ID, p.Name, p.Folder, p.Modified
	}
	var answer wire.SubmitResponse
	err = judged(ctx, a, func() error { answer, err = c.Submit(ctx, request, s.key); return err })
	if err != nil {
		takeBack(ctx, a, c, request.UploadID, err)
		return none, fmt.Errorf("submit %s: %w", payload.Shown(arg), err)
	}
	return answer, nil
}

// judged submits what was sent, and again for as long as the service is still judging it.
func judged(ctx context.Context, a *cli.App, submit func() error) error {
	for told := false; ; told = true {
		err := submit()
		if p, ok := errors.AsType[*wire.Problem](err); !ok || p.Code != wire.CodeJudging {
			return err
		}
		if !told {
			a.Note("what was sent is being judged, which takes a while for large files")
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

// takeBack removes what was sent for a submission that was refused, so that nothing is left behind.
// After any other error the submission may have been accepted, and the upload is its batch's.
func takeBack(ctx context.Context, a *cli.App, c *client.Client, upload string, err error) {
	var refusal *wire.Problem
	if upload == "" || !errors.As(err, &refusal) || refusal.Status >= http.StatusInternalServerError && refusal.Code != wire.CodeQuota {
		return
	}
	if err := c.RemoveUpload(ctx, upload); err != nil && !errors.Is(err, registry.ErrNotFound) {
		a.Note("the upload %s could not be removed: %v", upload, err)
	}
}

// send uploads a payload, and shows progress when that takes a while. It resumes an upload that an
// earlier command left unfinished.
func send(ctx context.Context, a *cli.App, c *client.Client, p *payload.Payload, collection string, digest *registry.Digest) (registry.Upload, error) {
	s := progress.NewSending(a, p.Name, p.Size)
	watching, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Watch(watching)
	}()
	upload, err := c.SendFile(ctx, client.File{
		Name: p.Name, Size: p.Size, Collection: collection, Digest: digest, Fingerprint: p.Fingerprint, Open: p.Open, Moved: s.Reached,
		Resumed: func(offset int64) {
			s.Reached(offset)
			a.Note("going on with the upload of %s at %s of %s", p.Name, terminal.SizeText(offset), terminal.SizeText(p.Size))
		},
		Waiting: func(err error, _ time.Duration) { s.Troubled(func() { a.Note("%s: %v; trying again", p.Name, err) }) },
	})
	stop()
	<-over
	if ctx.Err() != nil && s.Any() {
		return upload, errors.Join(err, errKept)
	}
	return upload, err
}

// errKept says that the service keeps what was sent of an interrupted upload.
var errKept = errors.New("what was sent is kept for a week")

// tellAccepted says under which id a payload is known.
func tellAccepted(a *cli.App, e progress.Entry, wait bool) error {
	if e.NoMail {
		a.Note("warning: %s: nobody is told by mail, since the service has no mail server (docs/mail.md)", e.Payload)
	}
	if a.JSON {
		return a.PrintJSON(submittedLine{MessageType: "submitted", Payload: e.Payload, BatchID: e.Target.ID, Duplicate: e.Duplicate, NoMail: e.NoMail})
	}
	what := "submitted"
	if e.Duplicate {
		what = "already submitted before, nothing new was made:"
	}
	if wait {
		a.Note("%s %s as batch %s", what, e.Payload, e.Target.ID)
		return nil
	}
	a.Note("%s %s; to follow it: %s", what, e.Payload, a.CommandLine("watch", e.Target.ID))
	_, err := fmt.Fprintln(a.Out, e.Target.ID)
	return err
}

// tellRefused says why a payload is not accepted.
func tellRefused(a *cli.App, arg string, err error) error {
	a.Complain(err)
	if !a.JSON {
		return nil
	}
	line := errorLine{MessageType: "error", Payload: arg, Error: err.Error(), ExitCode: int(exit.Of(err))}
	var p *wire.Problem
	if errors.As(err, &p) {
		line.Faults, line.FaultsTotal = p.Faults, p.Total
	}
	if err := a.PrintJSON(line); err != nil {
		return err
	}
	head := progress.SummaryHead{Payload: arg, State: stateRefused, Error: line.Error, ExitCode: line.ExitCode}
	if exit.Code(line.ExitCode) == exit.Content {
		head.ErrorClass = registry.ContentFault
	}
	return progress.WriteSummary(a.Out, head, func(func(registry.JobResult) error) error { return nil })
}

// requirementsOf reads the values of --after: ids, each with :settled when it need not succeed.
func requirementsOf(values []string) ([]registry.Requirement, error) {
	var all []registry.Requirement
	for _, v := range values {
		id, wait, _ := strings.Cut(v, ":")
		r := registry.Requirement{ItemID: strings.TrimSpace(id), WaitFor: registry.WaitFor(wait)}
		if r.ItemID == "" || wait != "" && r.WaitFor != registry.WaitSettled && r.WaitFor != registry.WaitSuccess {
			return nil, exit.Usagef("--after %s: expected the ID of an item, or ID:settled", v)
		}
		all = append(all, r)
	}
	return all, nil
}
