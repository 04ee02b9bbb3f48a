package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/result"
)

// bagFilesAtOnce is how many files of a bag are digested concurrently.
const bagFilesAtOnce = 4

// bag judges unpacked files as a bag, after fetching the missing files that its fetch.txt names.
// The files that describe the object are in the bag's payload.
func (w *Opener) bag(ctx context.Context, item *base.Item, room *staging.Room, container staging.File, c result.Contents) (result.Contents, error) {
	o, err := w.bagOptions(ctx, item, container)
	if err != nil {
		return c, err
	}
	c, err = w.fetchMissing(ctx, item, room, c, o)
	if err != nil {
		return c, err
	}
	report, err := w.judgeBag(ctx, item, c, o)
	if err != nil {
		return c, err
	}
	if !report.Valid {
		return c, base.Content(&bagRefusal{report})
	}
	c.Kind, c.Folder = registry.BagType, pathInBag(report, bagit.PayloadDir)
	event := map[string]any{"what": "bag", "version": report.Version, "payload_files": report.PayloadFiles}
	if report.Profile != "" {
		event["profile"] = report.Profile
	}
	return c, item.Event(registry.EventValidation, event)
}

// bagOptions returns the options with the profile that the collection required when the item was
// submitted.
func (w *Opener) bagOptions(ctx context.Context, item *base.Item, container staging.File) (bagit.Options, error) {
	profile, err := intake.BagProfile(item.Spec().Profile)
	if err != nil {
		return bagit.Options{}, base.Fatal(payload.Unfit(err))
	}
	o, err := intake.BagOptions(ctx, unpack.FromStore(w.Payloads.Staging, container.Key, container.SizeBytes), profile)
	o.TempDir = w.TempDir
	return o, err
}

// pathInBag returns the path in the container of a path in the bag.
func pathInBag(report *bagit.Report, path string) string {
	if report.Base == "" {
		return path
	}
	return report.Base + "/" + path
}

// judgeBag judges every file of a bag. It first reads the tag files, which say which digests the
// others need. It does not read files again that have those digests from unpacking.
func (w *Opener) judgeBag(ctx context.Context, item *base.Item, c result.Contents, o bagit.Options) (*bagit.Report, error) {
	v := bagit.NewValidator(o)
	defer v.Close()       //nolint:errcheck // matters only after a failure
	var tagFiles []string // at the top and one folder below: a bag's base is one of these
	for f, err := range c.All(ctx, w.Payloads.Staging) {
		if err != nil {
			return nil, err
		}
		if v.NeedsContent(f.Name) && strings.Count(f.Name, "/") <= 1 {
			tagFiles = append(tagFiles, f.Name)
		}
	}
	v.ExpectManifests(tagFiles...)
	files, bytes := item.Progress("files of the bag verified", "files"), item.Progress("bytes of the bag verified", "bytes")
	for _, tags := range []bool{true, false} {
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(bagFilesAtOnce)
		for f, err := range c.All(gctx, w.Payloads.Staging) {
			if err != nil {
				return nil, cmp.Or(group.Wait(), err)
			}
			if v.NeedsContent(f.Name) != tags {
				continue
			}
			group.Go(func() error {
				files.Add(1)
				return w.judgeFile(gctx, item, v, f, bytes)
			})
		}
		if err := group.Wait(); err != nil {
			return nil, fmt.Errorf("read the bag: %w", err)
		}
	}
	return v.Finish()
}

func (w *Opener) judgeFile(ctx context.Context, item *base.Item, v *bagit.Validator, f staging.File, bytes *base.Progress) error {
	known := func(algorithm string) bool { return f.Digests[algorithm] != "" }
	if !v.NeedsContent(f.Name) && !slices.ContainsFunc(v.Wanted(f.Name), func(a string) bool { return !known(a) }) {
		return v.AddDigested(f.Name, f.SizeBytes, f.Digests)
	}
	return w.Payloads.Verified(ctx, item, f, func(r io.Reader) error {
		return v.Add(ctx, f.Name, f.SizeBytes, bytes.Reader(r))
	})
}

// refusalEvent returns the event with a bag's faults, errors first, and as many as an event can
// hold.
func refusalEvent(report *bagit.Report) map[string]any {
	const room = 256 << 10
	used, faults := 0, []bagit.Fault{}
	for _, f := range report.Faults {
		if used += len(f.String()) + len(f.Clause) + len(f.Fix) + 128; used > room {
			break
		}
		faults = append(faults, f)
	}
	return map[string]any{
		"errors": len(report.Errors()), "warnings": len(report.Warnings()), "told": len(faults), "faults": faults,
	}
}

// NoteRefusal records in the item's history all faults of a bag that err refuses. It returns err,
// joined with its own error.
func NoteRefusal(item *base.Item, err error) error {
	var refusal *bagRefusal
	if !errors.As(err, &refusal) {
		return err
	}
	return errors.Join(err, item.Event(registry.EventBagRefused, refusalEvent(refusal.report)))
}

// bagRefusal is the error of an invalid bag.
type bagRefusal struct{ report *bagit.Report }

// Error names the first faults and counts the rest.
func (e *bagRefusal) Error() string {
	const shown = 5
	errs := e.report.Errors()
	var texts []string
	for _, f := range errs[:min(len(errs), shown)] {
		texts = append(texts, f.String())
	}
	if len(errs) > shown {
		texts = append(texts, fmt.Sprintf("and %d more, listed in the item's history", len(errs)-shown))
	}
	return fmt.Sprintf("the bag is not valid, %d errors: %s", len(errs), strings.Join(texts, "; "))
}
