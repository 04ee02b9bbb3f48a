package payload

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// resultManifest is the name of the durable result that says where an item's manifest lies as it
// was first fetched and found sound: one that changes at its source while the item runs must not
// change the item.
const resultManifest = "manifest"

// Manifest is a staged manifest that was found sound.
type Manifest struct {
	staging.File
	Rows int64 `json:"rows"`
	// Warnings counts what is odd about it; Warned are the first of them.
	Warnings int64    `json:"warnings,omitempty"`
	Warned   []string `json:"warned,omitempty"`

	bytes *staging.Blocks // what rows reads; set when they were found to be what was judged
}

// Manifest returns the item's manifest, which is fetched and judged as a whole once, and from then
// on is what the item goes by.
func (p Files) Manifest(ctx context.Context, item *base.Item, t registry.PayloadType) (Manifest, error) {
	var m Manifest
	err := item.Once(ctx, resultManifest, &m, func(ctx context.Context) (any, error) {
		f, err := p.fetchManifest(ctx, item, "manifest", wantedOfSpec(item.Spec()))
		if err != nil {
			return nil, fmt.Errorf("fetch manifest: %w", err)
		}
		report, err := p.judge(ctx, f, t, item.Spec().Profile)
		return Manifest{File: f, Rows: report.Rows, Warnings: report.Warnings, Warned: warningsOf(report)}, err
	})
	if err != nil {
		return m, err
	}
	if err := p.same(ctx, &m); !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, staging.ErrDamaged) {
		return m, err
	}
	return p.manifestAgain(ctx, item, m)
}

// same says whether the staged copy of a manifest is what was found sound. What is then read of it
// is that copy.
func (p Files) same(ctx context.Context, m *Manifest) (err error) {
	algorithm := strongest(m.Digests)
	m.bytes, err = staging.Proven(ctx, p.Staging, m.Key, algorithm, m.Digests[algorithm])
	return err
}

// strongest is the algorithm of the digests that is relied on. Every collection's is one of these.
func strongest(digests map[string]string) string {
	if digests["sha512"] != "" {
		return "sha512"
	}
	return "sha256"
}

// manifestAgain brings back a manifest whose staged copy is gone, as it was.
func (p Files) manifestAgain(ctx context.Context, item *base.Item, was Manifest) (Manifest, error) {
	const name = "manifest-again"
	algorithm := item.Spec().Profile.Digests()
	now := was
	now.Key = staging.Key(item.Lease(), name)
	if err := p.same(ctx, &now); !errors.Is(err, storage.ErrNotFound) {
		return now, err
	}
	wanted := wantedOfSpec(item.Spec())
	wanted.SizeBytes, wanted.Digest = was.SizeBytes, &registry.Digest{Algorithm: algorithm, Value: was.Digests[algorithm]}
	_, err := p.fetchManifest(ctx, item, name, wanted)
	var changed *staging.MismatchError
	if errors.As(err, &changed) {
		return now, base.Fatal(changedManifest{fmt.Errorf("our copy of the manifest is gone, and it was changed at its address since (%s, first %s)",
			changed.Found, changed.Expected)})
	} else if err != nil {
		return now, fmt.Errorf("fetch manifest again: %w", err)
	}
	return now, p.same(ctx, &now)
}

func (p Files) fetchManifest(ctx context.Context, item *base.Item, name string, wanted staging.Wanted) (staging.File, error) {
	wanted.Algorithms = []string{item.Spec().Profile.Digests()}
	fetch := staging.Fetch{
		Source: p.Sources(item.Collection), Store: p.Staging, Buffers: p.Buffers, Key: staging.Key(item.Lease(), name), Wanted: wanted,
		Most:  p.manifestMost(),
		Moved: item.Progress("bytes of the manifest", "bytes").Add,
	}
	file, err := fetch.Run(ctx)
	file.Name = item.Spec().Filename
	return file, err
}

// largestManifest is how many bytes a manifest of unknown size may have: some ten million rows.
const largestManifest = 4 << 30

func (p Files) manifestMost() int64 {
	if p.UnknownSize <= 0 {
		return largestManifest
	}
	return min(p.UnknownSize, largestManifest)
}

func (p Files) judge(ctx context.Context, file staging.File, t registry.PayloadType, profile registry.Profile) (intake.Report, error) {
	var report intake.Report
	algorithm := strongest(file.Digests)
	err := staging.Verified(ctx, p.Staging, file.Key, algorithm, file.Digests[algorithm], func(r io.Reader) (err error) {
		report, err = intake.Manifest(r, t, intake.Options{Row: p.ARKs.Row(ctx, profile)})
		return err
	})
	if err != nil {
		return report, err
	}
	return report, report.RefusalFor(profile)
}

// Rows calls fn for each row of a sound manifest, with what is wrong with it. Each is a row of what
// was judged.
func (p Files) Rows(ctx context.Context, m Manifest, t registry.PayloadType, fn func(checkm.Row, []checkm.Fault) error) error {
	r, err := m.bytes.Open(ctx, 0, -1)
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	defer r.Close()
	reader := checkm.NewReader(r, checkm.Options{Kind: checkm.Kind(t)})
	for {
		row, faults, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		if err := fn(row, faults); err != nil {
			return err
		}
	}
}

// changedManifest says that a manifest whose staged copy is gone is another one at its address by
// now.
type changedManifest struct{ error }

// Remedy says how the item can go on as it began.
func (changedManifest) Remedy() string { return "have the manifest put back as it was at its address" }
