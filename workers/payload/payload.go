// Package payload tells which files an item is made of, and brings them into staging.
//
// A payload is one file, or the files that an object manifest names. The manifest is fetched and
// judged once; from then on the item goes by those bytes, whatever becomes of the source. Files are
// fetched several at a time, and go on inside a file where an earlier attempt stopped. All that is
// wrong with the files of a job is told at once. What was damaged in staging is had anew, and no
// depositor is blamed for it (R6).
//
// It does not look into files: that is package content's.
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
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// Unpacks reports whether payloads of this type are unpacked.
func Unpacks(t registry.PayloadType) bool {
	return t == registry.ContainerType || t == registry.BagType || t == registry.AutoType
}

// resultManifest is the name of the durable result that says where an item's manifest lies as it was first fetched and
// found sound: one that changes at its source while the item runs must not change the item.
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

// Files tells which files items are made of. Its methods may be called concurrently.
type Files struct {
	Sources     func(collection string) source.Fetcher
	Staging     storage.Store
	Buffers     *staging.Buffers
	UnknownSize int64       // bytes that a file may have whose size nobody tells; 0: any number
	ARKs        intake.ARKs // judges supplied names
}

// Member is one file that a job is made of.
type Member struct {
	Seq    int64
	Name   string
	Wanted staging.Wanted
}

// Each calls fn for every file of the job in the order of the submission: the payload itself, or the rows of an object
// manifest. Memory does not grow with the number of rows.
func (p Files) Each(ctx context.Context, item *base.Item, fn func(Member) error) error {
	spec := item.Spec()
	if spec.Type != registry.ObjectManifest {
		return fn(Member{Seq: 1, Name: spec.Filename, Wanted: wantedOfSpec(spec)})
	}
	found, err := p.Manifest(ctx, item, spec.Type)
	if err != nil {
		return err
	}
	seq := int64(0)
	return p.Rows(ctx, found, spec.Type, func(row checkm.Row, _ []checkm.Fault) error {
		seq++
		return fn(Member{Seq: seq, Name: row.Name, Wanted: WantedOf(row)})
	})
}

// Manifest returns the item's manifest, which is fetched and judged as a whole once, and from then on is what the item
// goes by.
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

// same says whether the staged copy of a manifest is what was found sound. What is then read of it is that copy.
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

// largestManifest is how many bytes a manifest may have whose size nobody tells: some ten million rows.
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

// Rows calls fn for each row of a sound manifest, with what is wrong with it. Each is a row of what was judged.
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

// wantedOfSpec is what a submission says of its payload.
func wantedOfSpec(s registry.Spec) staging.Wanted {
	return staging.Wanted{URL: s.URL, SizeBytes: s.SizeBytes, Digest: s.Digest, Modified: s.Modified}
}

// WantedOf returns what a manifest's row says of its file.
func WantedOf(row checkm.Row) staging.Wanted {
	w := staging.Wanted{URL: row.URL, SizeBytes: row.Size, MIMEType: row.MIMEType, Modified: row.Modified}
	if row.Algorithm != "" {
		w.Digest = &registry.Digest{Algorithm: row.Algorithm, Value: row.Digest}
	}
	return w
}
