package workers

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

// resultManifest is the name of the durable result that says where an item's manifest lies as it was first fetched and
// found sound: one that changes at its source while the item runs must not change the item.
const resultManifest = "manifest"

// manifest is a staged manifest that was found sound.
type manifest struct {
	staging.File
	Rows int64 `json:"rows"`
	// Warnings counts what is odd about it; Warned are the first of them.
	Warnings int64    `json:"warnings,omitempty"`
	Warned   []string `json:"warned,omitempty"`

	bytes *staging.Blocks // what rows reads; set when they were found to be what was judged
}

// payloads tells what files an item is made of.
type payloads struct {
	sources func(collection string) source.Fetcher
	staging storage.Store
	buffers *staging.Buffers
	unsized int64       // bytes that a file may have whose size nobody tells; 0: any number
	arks    intake.ARKs // judges supplied names
}

// member is one file that a job is made of.
type member struct {
	seq    int64
	name   string
	wanted staging.Wanted
}

// each calls fn for every file of the job in the order of the submission: the payload itself, or the rows of an object
// manifest. Memory does not grow with the number of rows.
func (p payloads) each(ctx context.Context, item *base.Item, fn func(member) error) error {
	spec := item.Spec()
	if spec.Type != registry.ObjectManifest {
		return fn(member{seq: 1, name: spec.Filename, wanted: wantedOfSpec(spec)})
	}
	found, err := p.manifest(ctx, item, spec.Type)
	if err != nil {
		return err
	}
	seq := int64(0)
	return p.rows(ctx, found, spec.Type, func(row checkm.Row, _ []checkm.Fault) error {
		seq++
		return fn(member{seq: seq, name: row.Name, wanted: wantedOf(row)})
	})
}

// manifest returns the item's manifest, which is fetched and judged as a whole once, and from then on is what the item
// goes by.
func (p payloads) manifest(ctx context.Context, item *base.Item, t registry.PayloadType) (manifest, error) {
	var m manifest
	err := item.Once(ctx, resultManifest, &m, func(ctx context.Context) (any, error) {
		f, err := p.fetchManifest(ctx, item, "manifest", wantedOfSpec(item.Spec()))
		if err != nil {
			return nil, fmt.Errorf("fetch manifest: %w", err)
		}
		report, err := p.judge(ctx, f, t, item.Spec().Profile)
		return manifest{File: f, Rows: report.Rows, Warnings: report.Warnings, Warned: warningsOf(report)}, err
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
func (p payloads) same(ctx context.Context, m *manifest) (err error) {
	algorithm := strongest(m.Digests)
	m.bytes, err = staging.Proven(ctx, p.staging, m.Key, algorithm, m.Digests[algorithm])
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
func (p payloads) manifestAgain(ctx context.Context, item *base.Item, was manifest) (manifest, error) {
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

func (p payloads) fetchManifest(ctx context.Context, item *base.Item, name string, wanted staging.Wanted) (staging.File, error) {
	wanted.Algorithms = []string{item.Spec().Profile.Digests()}
	fetch := staging.Fetch{
		Source: p.sources(item.Collection), Store: p.staging, Buffers: p.buffers, Key: staging.Key(item.Lease(), name), Wanted: wanted,
		Most:  p.manifestMost(),
		Moved: item.Progress("bytes of the manifest", "bytes").Add,
	}
	file, err := fetch.Run(ctx)
	file.Name = item.Spec().Filename
	return file, err
}

// largestManifest is how many bytes a manifest may have whose size nobody tells: some ten million rows.
const largestManifest = 4 << 30

func (p payloads) manifestMost() int64 {
	if p.unsized <= 0 {
		return largestManifest
	}
	return min(p.unsized, largestManifest)
}

func (p payloads) judge(ctx context.Context, file staging.File, t registry.PayloadType, profile registry.Profile) (intake.Report, error) {
	var report intake.Report
	algorithm := strongest(file.Digests)
	err := staging.Verified(ctx, p.staging, file.Key, algorithm, file.Digests[algorithm], func(r io.Reader) (err error) {
		report, err = intake.Manifest(r, t, intake.Options{Row: p.arks.Row(ctx, profile)})
		return err
	})
	if err != nil {
		return report, err
	}
	return report, report.RefusalFor(profile)
}

// rows calls fn for each row of a sound manifest, with what is wrong with it. Each is a row of what was judged.
func (p payloads) rows(ctx context.Context, m manifest, t registry.PayloadType, fn func(checkm.Row, []checkm.Fault) error) error {
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

// wantedOf is what a manifest's row says of its file.
func wantedOf(row checkm.Row) staging.Wanted {
	w := staging.Wanted{URL: row.URL, SizeBytes: row.Size, MIMEType: row.MIMEType, Modified: row.Modified}
	if row.Algorithm != "" {
		w.Digest = &registry.Digest{Algorithm: row.Algorithm, Value: row.Digest}
	}
	return w
}
