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
	"github.com/holdfast/holdfast/workers/result"
)

// resultManifest is the durable result that describes an item's manifest as it was first fetched
// and accepted. Changes at its source must not change the item.
const resultManifest = "manifest"

// Manifest is a staged manifest that was accepted.
type Manifest struct {
	staging.File
	Rows int64 `json:"rows"`
	// Warnings is the number of warnings; Warned has the first of them.
	Warnings int64    `json:"warnings,omitempty"`
	Warned   []string `json:"warned,omitempty"`

	bytes *staging.Blocks // what Rows reads; set after comparing it with the accepted bytes
}

// Manifest returns the item's manifest. It is fetched and judged once as a whole; from then on
// those bytes count.
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
	if err := p.proveStaged(ctx, &m); !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, staging.ErrDamaged) {
		return m, err
	}
	return p.refetchManifest(ctx, item, m)
}

// proveStaged compares the staged copy of a manifest with the accepted one. Rows then reads that
// copy.
func (p Files) proveStaged(ctx context.Context, m *Manifest) (err error) {
	algorithm := strongest(m.Digests)
	m.bytes, err = staging.Proven(ctx, p.Staging, m.Key, algorithm, m.Digests[algorithm])
	return err
}

// strongest returns the stronger algorithm among the digests. Every collection uses one of the two.
func strongest(digests map[string]string) string {
	if digests["sha512"] != "" {
		return "sha512"
	}
	return "sha256"
}

// refetchManifest fetches a manifest again, unchanged, after its staged copy was lost.
func (p Files) refetchManifest(ctx context.Context, item *base.Item, was Manifest) (Manifest, error) {
	const name = "manifest-again"
	algorithm := item.Spec().Profile.Digests()
	now := was
	now.Key = staging.Key(item.Lease(), name)
	if err := p.proveStaged(ctx, &now); !errors.Is(err, storage.ErrNotFound) {
		return now, err
	}
	wanted := wantedOfSpec(item.Spec())
	wanted.SizeBytes, wanted.Digest = was.SizeBytes, &registry.Digest{Algorithm: algorithm, Value: was.Digests[algorithm]}
	file, err := p.fetchManifest(ctx, item, name, wanted)
	var changed *staging.MismatchError
	if errors.As(err, &changed) {
		return now, base.Fatal(changedManifest{fmt.Errorf("the staged copy of the manifest is lost, and the manifest at its address has changed since (%s, first %s)",
			changed.Found, changed.Expected)})
	} else if err != nil {
		return now, fmt.Errorf("fetch manifest again: %w", err)
	}
	now.Key = file.Key
	return now, p.proveStaged(ctx, &now)
}

func (p Files) fetchManifest(ctx context.Context, item *base.Item, name string, wanted staging.Wanted) (staging.File, error) {
	wanted.Algorithms = []string{item.Spec().Profile.Digests()}
	fetch := staging.Fetch{
		Source: p.Sources(item.Collection), Store: p.Staging, Buffers: p.Buffers, Key: staging.Key(item.Lease(), name), Wanted: wanted,
		Most:  p.manifestLimit(),
		Moved: item.Progress("bytes of the manifest", "bytes").Add,
	}
	if key := result.UploadKey(item); key != "" {
		fetch.Key, fetch.InPlace = key, true
	}
	file, err := fetch.Run(ctx)
	file.Name = item.Spec().Filename
	return file, err
}

// largestManifest limits the bytes of a manifest of unknown size: some ten million rows.
const largestManifest = 4 << 30

func (p Files) manifestLimit() int64 {
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

// Rows calls fn for each row of an accepted manifest, with the row's faults. It reads only the
// bytes that were judged.
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

// changedManifest says that a manifest's staged copy is lost and that the manifest at its address
// is another one now.
type changedManifest struct{ error }

// Remedy says how the item can continue.
func (changedManifest) Remedy() string { return "put the original manifest back at its address" }
