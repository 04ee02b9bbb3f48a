package content

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/faults"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/workers/result"
)

// readAtOnce is how many files are read again concurrently for a digest that unpacking did not
// compute.
const readAtOnce = 4

// corroborate compares the files of a container with the container's own mrt-manifest.txt. All
// differences are one content fault. Without that file there is nothing to compare.
func (w *Opener) corroborate(ctx context.Context, item *base.Item, c result.Contents) error {
	listing, err := w.listing(ctx, item, c)
	if err != nil || listing == nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(readAtOnce)
	compared := item.Progress("files compared with "+intake.ListingFile, "files")
	for f, err := range c.All(gctx, w.Payloads.Staging) {
		if err != nil {
			return cmp.Or(group.Wait(), err)
		}
		group.Go(func() error {
			compared.Add(1)
			return w.compare(gctx, item, listing, f)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	wrong := listing.Finish()
	if len(wrong) == 0 {
		return item.Event(registry.EventValidation, map[string]any{"what": intake.ListingFile})
	}
	var texts []error
	for _, f := range wrong[:min(len(wrong), faults.Named)] {
		texts = append(texts, f)
	}
	return base.Content(fmt.Errorf("the container differs from its %s: %w", intake.ListingFile, faults.Join(texts, len(wrong)-len(texts))))
}

// listing reads a container's own list; nil if there is none.
func (w *Opener) listing(ctx context.Context, item *base.Item, c result.Contents) (*intake.Listing, error) {
	for f, err := range c.All(ctx, w.Payloads.Staging) {
		if err != nil {
			return nil, err
		}
		if f.Name != intake.ListingFile {
			continue
		}
		var listing *intake.Listing
		err := w.Payloads.Verified(ctx, item, f, func(r io.Reader) (err error) {
			listing, err = intake.ReadListing(r)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.Name, err)
		}
		return listing, nil
	}
	return nil, nil //nolint:nilnil // nil is an answer
}

// compare compares one file with the list. Its errors are system faults.
func (w *Opener) compare(ctx context.Context, item *base.Item, listing *intake.Listing, f staging.File) error {
	var digest string
	algorithm := listing.Wants(f.Name)
	if algorithm != "" {
		checked, err := w.Payloads.WithDigest(ctx, item, f, algorithm)
		if err != nil {
			return err
		}
		digest = checked.Digests[algorithm]
	}
	listing.Check(f.Name, f.SizeBytes, digest)
	return nil
}
