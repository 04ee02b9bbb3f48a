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
	"github.com/holdfast/holdfast/workers/result"
)

// Examine reads back what was downloaded. It returns nil when all is as it came. What is damaged it
// removes; the error then sends the item back to Download, which fetches just that again.
func (p Files) Examine(ctx context.Context, item *base.Item, got result.Downloaded) error {
	var bad troubles
	for f, err := range got.Contents("").All(ctx, p.Staging) {
		if err != nil {
			return Gone(err)
		}
		err := p.Verified(ctx, item, f, func(io.Reader) error { return nil })
		switch {
		case err == nil:
			continue
		case !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, staging.ErrDamaged):
			return err
		}
		if err := p.Staging.Delete(ctx, f.Key); err != nil {
			return fmt.Errorf("drop damaged %s: %w", f.Key, err)
		}
		bad.damaged(f)
	}
	return base.Back(registry.Download, bad.err(nil))
}

// Verified has fn read a staged file, whose bytes must be those that it was noted with: see
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

// Gone makes of an error that the list of what was downloaded is missing or damaged one that sends
// the item back to Download. It returns any other error as it is.
func Gone(err error) error {
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, staging.ErrDamaged) {
		return base.Back(registry.Download, fmt.Errorf("what was downloaded is gone from staging, or damaged there, and is fetched again: %w", err))
	}
	return err
}

// WithDigest returns a staged file with its digest by one more algorithm, for which it is read back
// when it has none.
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

// digestOf reads a staged file back for its digest of another algorithm than it was noted with.
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
