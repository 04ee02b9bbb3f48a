package workers

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/staging"
)

// bagFilesAtOnce is how many files of a bag are digested at a time.
const bagFilesAtOnce = 4

// judgeBag validates an unpacked bag, every file of it. Tag files go first, so that only the digests that the bag's
// manifests name are taken of its payload.
func (w *Process) judgeBag(ctx context.Context, item *base.Item, c contents) error {
	v := bagit.NewValidator(bagit.Options{FindBase: true})
	progress := item.Progress("files of the bag verified", "files")
	for _, payload := range []bool{false, true} {
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(bagFilesAtOnce)
		for f, err := range c.all(ctx, w.Staging) {
			if err != nil {
				return err
			}
			if strings.Contains("/"+f.Name, "/data/") != payload {
				continue
			}
			group.Go(func() error {
				progress.Add(1)
				return w.judgeFile(gctx, v, f)
			})
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("read the bag: %w", err)
		}
	}
	report := v.Finish()
	if !report.Valid {
		return base.Content(&bagRefusal{report})
	}
	return item.Event("validation", map[string]any{"what": "bag", "version": report.Version, "payload_files": report.PayloadFiles})
}

func (w *Process) judgeFile(ctx context.Context, v *bagit.Validator, f staging.File) error {
	r, err := w.Staging.Open(ctx, f.Key, 0, -1)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // read only
	return v.Add(ctx, f.Name, f.SizeBytes, r)
}

// bagRefusal says what is wrong with a bag.
type bagRefusal struct{ report *bagit.Report }

// Error names the first faults and counts the rest.
func (e *bagRefusal) Error() string {
	const shown = 5
	var texts []string
	errs := 0
	for _, f := range e.report.Faults {
		if f.Severity != bagit.SeverityError {
			continue
		}
		if errs++; errs <= shown {
			texts = append(texts, faultText(f))
		}
	}
	if errs > shown {
		texts = append(texts, fmt.Sprintf("and %d more", errs-shown))
	}
	return fmt.Sprintf("the bag is not valid, %d errors: %s", errs, strings.Join(texts, "; "))
}

func faultText(f bagit.Fault) string {
	text := f.File + ": " + string(f.Rule)
	if f.Expected != "" || f.Found != "" {
		text += fmt.Sprintf(" (expected %s, found %s)", f.Expected, f.Found)
	}
	if f.Source != "" {
		text += ", by " + f.Source
	}
	return text
}
