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

// resultManifest is the name of the durable result that says where a job's object manifest lies as it was first
// fetched: a manifest that changes at its source while a job runs must not change the job.
const resultManifest = "manifest"

// payloads tells what files a job is made of.
type payloads struct {
	source  source.Fetcher
	staging storage.Store
}

// member is one file that a job is made of.
type member struct {
	seq    int64
	name   string
	wanted staging.Wanted
	mime   string
}

// each calls fn for every file of the job in the order of the submission: the payload itself, or the rows of an object
// manifest, which is judged as a whole first. Memory does not grow with the number of rows.
func (p payloads) each(ctx context.Context, item *base.Item, fn func(member) error) error {
	spec := item.Spec()
	if spec.Type != registry.ObjectManifest {
		return fn(member{seq: 1, name: spec.Filename, wanted: staging.Wanted{
			URL: spec.URL, SizeBytes: spec.SizeBytes, Digest: spec.Digest,
		}})
	}
	manifest, err := p.manifest(ctx, item)
	if err != nil {
		return err
	}
	if err := p.judge(ctx, manifest); err != nil {
		return err
	}
	return p.rows(ctx, manifest, fn)
}

// manifest returns the job's manifest, fetched once.
func (p payloads) manifest(ctx context.Context, item *base.Item) (staging.File, error) {
	var file staging.File
	ok, err := item.Result(resultManifest, &file)
	if err != nil {
		return file, err
	}
	if ok {
		if _, err := p.staging.Stat(ctx, file.Key); err == nil || !errors.Is(err, storage.ErrNotFound) {
			return file, err
		}
	}
	spec := item.Spec()
	fetch := staging.Fetch{
		Source: p.source, Store: p.staging, Key: staging.Key(item.Lease(), "manifest"),
		Wanted: staging.Wanted{
			URL: spec.URL, SizeBytes: spec.SizeBytes, Digest: spec.Digest, Algorithms: []string{spec.Profile.Digests()},
		},
	}
	file, err = fetch.Run(ctx)
	if err != nil {
		return file, fmt.Errorf("fetch manifest: %w", err)
	}
	file.Name = spec.Filename
	return file, item.SetResult(resultManifest, file)
}

func (p payloads) judge(ctx context.Context, manifest staging.File) error {
	r, err := p.staging.Open(ctx, manifest.Key, 0, -1)
	if err != nil {
		return fmt.Errorf("open manifest: %w", err)
	}
	defer r.Close() //nolint:errcheck // read only
	_, err = intake.Judge(r, registry.ObjectManifest)
	return err
}

func (p payloads) rows(ctx context.Context, manifest staging.File, fn func(member) error) error {
	r, err := p.staging.Open(ctx, manifest.Key, 0, -1)
	if err != nil {
		return fmt.Errorf("open manifest: %w", err)
	}
	defer r.Close() //nolint:errcheck // read only
	reader := checkm.NewReader(r, checkm.Options{Kind: checkm.Object})
	for seq := int64(1); ; seq++ {
		row, _, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		if isUpload(row.URL) {
			return base.Content(fmt.Errorf("line %d of the manifest names %s; a manifest can only name web addresses", row.Line, row.URL))
		}
		err = fn(member{seq: seq, name: row.Name, mime: row.MIMEType, wanted: wantedOf(row)})
		if err != nil {
			return err
		}
	}
}

// wantedOf is what a manifest's row says of its file.
func wantedOf(row checkm.Row) staging.Wanted {
	w := staging.Wanted{URL: row.URL, SizeBytes: row.Size}
	if row.Algorithm != "" {
		w.Digest = &registry.Digest{Algorithm: row.Algorithm, Value: row.Digest}
	}
	return w
}
