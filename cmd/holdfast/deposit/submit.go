// Package deposit has the commands submit, graph and upload.
//
// The same command resumes an interrupted upload. A refused payload leaves no upload behind.
//
// The service judges payloads (package check does so offline), and package progress waits for them.
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

// submission has the flags of `submit`.
type submission struct {
	request       wire.SubmitRequest
	typ, digest   string
	terms         string // file
	embargo       string // day
	after         []string
	corrects      []string
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
			if s.terms != "" {
				var err error
				if s.request.Terms, err = payload.ReadTerms(s.terms, a.In); err != nil {
					return err
				}
			}
			s.request.Terms.EmbargoUntil = cmp.Or(s.embargo, s.request.Terms.EmbargoUntil)
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
	f.StringVar(&s.terms, "terms", "", "rights, preservation level and embargo, from a `FILE` in YAML or JSON (-: standard input)")
	f.StringVar(&s.embargo, "embargo-until", "", "only admins may read the files before this `DAY` (YYYY-MM-DD, UTC)")
	f.StringSliceVar(&r.Notify, "notify", nil, "mail the report to `ADDRESS`, which the collection or the service must allow; repeatable")
	f.BoolVar(&r.Force, "force", false, "submit even if the same content exists already")
	f.StringVar(&s.digest, "digest", "", "the payload's expected digest, `ALG:HEX`")
	f.BoolVar(&r.Update, "update", false, "change the object's files instead of replacing all of them")
	f.IntVar(&s.priority, "priority", 0, "lower goes first (default: set by the collection, or by the batch's size)")
	f.StringVar(&s.key, "idempotency-key", "", "an idempotency key; a repeat returns the first batch")
	f.StringSliceVar(&s.after, "after", nil, "start once the item `ID[:settled]` has completed (:settled: ended in any way); repeatable")
	f.StringArrayVar(&s.corrects, "corrects", nil, "this corrects what failed of `ID`: a batch, lines of its manifest (ID:7-9,12), or a failed job; repeatable")
	f.BoolVar(&s.wait, "wait", false, "show progress until everything has ended; the exit code is the outcome")
	progress.Flags(a, cmd)
	return cli.WithHelp(helpTexts, a.ClientFlags(cmd))
}

// check parses the flags, and refuses those that fit a single payload only if there are several.
func (s *submission) check() error {
	typ, err := payload.ParseType(s.typ)
	if err != nil {
		return err
	}
	s.request.Type = string(typ)
	if s.request.Digest, err = payload.ParseDigest(s.digest); err != nil {
		return err
	}
	if s.request.Requires, err = cli.Requirements("--after", s.after); err != nil {
		return err
	}
	if s.prioritySet {
		s.request.Priority = &s.priority
	}
	s.request.LocalIDs = localIDsOf(s.request.LocalIDs)
	if s.payloadsGiven < 2 {
		return nil
	}
	var single []string
	for name, given := range map[string]bool{
		"--ark": s.request.ARK != "", "--local-id": len(s.request.LocalIDs) > 0, "--digest": s.digest != "", "--idempotency-key": s.key != "", "--corrects": len(s.corrects) > 0,
	} {
		if given {
			single = append(single, name)
		}
	}
	if len(single) > 0 {
		return exit.Fix(exit.Usagef("%s cannot be used with several payloads", strings.Join(slices.Sorted(slices.Values(single)), ", ")), "submit them one by one")
	}
	return nil
}

// localIDsOf splits lists at ";", as Merritt's depositors write them, and drops repeats.
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
	if s.request.Corrects, err = correctsOf(ctx, a, c, s.corrects); err != nil {
		return err
	}
	var accepted []progress.Entry
	var codes []exit.Code
	for _, arg := range args {
		answer, err := submitOne(ctx, a, c, arg, s)
		if err != nil && ctx.Err() != nil {
			if errors.Is(err, errKept) {
				a.Note("interrupted; the sent part of %s is kept for a week. To resume: %s", arg, a.Again)
			} else {
				a.Note("interrupted; `%s` lists the submitted batches. It is safe to submit the rest, or all, again", a.CommandLine("batch list"))
			}
			if len(accepted) > 0 && s.wait {
				return progress.Interrupted(a, progress.TargetsOf(accepted))
			}
			return exit.Interrupted
		}
		if err != nil {
			// A refused payload does not stop the others. An unreachable service does.
			codes = append(codes, exit.Of(err))
			if err := printRefused(a, payload.Shown(arg), err); err != nil {
				return err
			}
			if codes[len(codes)-1] == exit.Temporary {
				break
			}
			continue
		}
		e := progress.Entry{Payload: payload.Shown(arg), Target: progress.Target{ID: answer.BatchID}, Duplicate: answer.Duplicate, NoMail: answer.NoMail}
		accepted = append(accepted, e)
		if err := printAccepted(a, e, s.wait); err != nil {
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

// submitOne sends a payload, if it is not an address, and submits it.
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
			return none, exit.Fix(exit.Usagef("--digest cannot be used with a folder"), "leave it out, or pack the folder into a file yourself")
		}
		// Check access first: sending may take hours.
		into := cmp.Or(request.Collection, wire.DefaultCollection)
		if _, err := c.Collection(ctx, into); errors.Is(err, registry.ErrNotFound) {
			return none, fmt.Errorf("submit %s: %w", payload.Shown(arg), err)
		}
		// A repeat of a call with a key gets the first one's answer, also if the batch is corrected by now.
		if request.Corrects != nil && s.key == "" {
			if err := c.CheckSubmission(ctx, request); err != nil {
				return none, fmt.Errorf("submit %s: %w", payload.Shown(arg), err)
			}
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

// judged calls submit again until the service has finished judging.
func judged(ctx context.Context, a *cli.App, submit func() error) error {
	for noted := false; ; noted = true {
		err := submit()
		if p, ok := errors.AsType[*wire.Problem](err); !ok || p.Code != wire.CodeJudging {
			return err
		}
		if !noted {
			a.Note("the service is judging the payload; this takes a while for large files")
		}
		select {
		case <-time.After(judgePause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// judgePause is the time between two calls.
const judgePause = time.Second

// takeBack removes the upload of a refused submission. After any other error the submission may
// have been accepted, and the upload belongs to its batch.
func takeBack(ctx context.Context, a *cli.App, c *client.Client, upload string, err error) {
	var refusal *wire.Problem
	if upload == "" || !errors.As(err, &refusal) || refusal.Status >= http.StatusInternalServerError && refusal.Code != wire.CodeQuota {
		return
	}
	if err := c.RemoveUpload(ctx, upload); err != nil && !errors.Is(err, registry.ErrNotFound) {
		a.Note("upload %s could not be removed: %v", upload, err)
	}
}

// send uploads a payload, and shows progress if that takes long. It resumes an unfinished upload of
// an earlier command.
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
			a.Note("resuming the upload of %s at %s of %s", p.Name, terminal.SizeText(offset), terminal.SizeText(p.Size))
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

// errKept: the service keeps the sent part of an interrupted upload.
var errKept = errors.New("the sent part is kept for a week")

// printAccepted prints the batch of a payload.
func printAccepted(a *cli.App, e progress.Entry, wait bool) error {
	if e.NoMail {
		a.Note("warning: %s: no mail will be sent, because the service has no mail server (docs/mail.md)", e.Payload)
	}
	if a.JSON {
		return a.PrintJSON(submittedLine{MessageType: "submitted", Payload: e.Payload, BatchID: e.Target.ID, Duplicate: e.Duplicate, NoMail: e.NoMail})
	}
	what := "submitted"
	if e.Duplicate {
		what = "already submitted, no new batch was made:"
	}
	if wait {
		a.Note("%s %s as batch %s", what, e.Payload, e.Target.ID)
		return nil
	}
	a.Note("%s %s; to follow it: %s", what, e.Payload, a.CommandLine("watch", e.Target.ID))
	_, err := fmt.Fprintln(a.Out, e.Target.ID)
	return err
}

// printRefused prints why a payload was refused.
func printRefused(a *cli.App, arg string, err error) error {
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
