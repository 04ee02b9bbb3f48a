package payload

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/tracing"
	"github.com/holdfast/holdfast/workers/result"
)

// Examine reads back the downloaded files, and returns nil if all are undamaged. It removes damaged
// files, but no upload; the error then sends the item back to Download, which fetches just those
// again.
func (p Files) Examine(ctx context.Context, item *base.Item, got result.Downloaded) (err error) {
	ctx, span := tracing.Start(ctx, "read back")
	defer func() { span.End(err) }()
	var bad fileFaults
	for f, err := range got.Contents("").All(ctx, p.Staging) {
		if err != nil {
			return BackIfGone(err)
		}
		err := p.Verified(ctx, item, f, func(io.Reader) error { return nil })
		switch {
		case err == nil:
			continue
		case !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, staging.ErrDamaged):
			return err
		}
		if staging.Owned(item.ID, f.Key) {
			if err := p.Staging.Delete(ctx, f.Key); err != nil {
				return fmt.Errorf("drop damaged %s: %w", f.Key, err)
			}
		}
		bad.addDamaged(f)
	}
	return base.Back(registry.Download, bad.result(nil))
}

// Verified calls fn with a staged file, whose bytes must match the recorded digest: see
// [staging.Verified].
func (p Files) Verified(ctx context.Context, item *base.Item, f staging.File, fn func(io.Reader) error) error {
	algorithm := item.Spec().Profile.Digests()
	read := item.Progress("bytes read back", "bytes")
	return staging.Verified(ctx, p.Staging, f.Key, algorithm, f.Digests[algorithm], func(r io.Reader) error {
		counts := read.Reader(r)
		if err := fn(counts); err != nil {
			return err
		}
		_, err := p.Buffers.Copy(io.Discard, counts)
		return err
	})
}

// BackIfGone sends the item back to Download if err means that the list of downloaded files is
// missing or damaged. It returns any other error unchanged.
func BackIfGone(err error) error {
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, staging.ErrDamaged) {
		return base.Back(registry.Download, fmt.Errorf("the downloaded files are missing or damaged in staging, and will be fetched again: %w", err))
	}
	return err
}

// WithDigest returns a staged file with its digest by one more algorithm. It reads the file back if
// that digest is not recorded.
func (p Files) WithDigest(ctx context.Context, item *base.Item, f staging.File, algorithm string) (staging.File, error) {
	if f.Digests[algorithm] != "" {
		return f, nil
	}
	sum, err := p.digestOf(ctx, item, f, algorithm)
	if err != nil {
		return f, err
	}
	all := map[string]string{algorithm: sum}
	for a, s := range f.Digests {
		all[a] = s
	}
	f.Digests = all
	return f, nil
}

// digestOf reads a staged file back and returns its digest by an algorithm that is not recorded.
func (p Files) digestOf(ctx context.Context, item *base.Item, f staging.File, algorithm string) (string, error) {
	d, err := fixity.NewDigester(algorithm)
	if err != nil {
		return "", err
	}
	err = p.Verified(ctx, item, f, func(r io.Reader) error {
		_, err := p.Buffers.Copy(d, r)
		return err
	})
	return d.Sums()[algorithm], err
}
