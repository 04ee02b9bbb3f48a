// Package payload determines the files of an item and fetches them into staging.
//
// A payload is one file, or the files that an object manifest names. The manifest is fetched and
// judged once; from then on those bytes count, whatever happens to the source. Files are fetched
// concurrently, and continue inside a file where an earlier attempt stopped. One error names
// everything that is wrong with a job's files. Damaged staged files are fetched again, and the
// depositor is not blamed (R6).
//
// The package does not look into files: package content does.
package payload

import (
	"context"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/result"
)

// Unpacks reports whether payloads of this type are unpacked.
func Unpacks(t registry.PayloadType) bool {
	return t == registry.ContainerType || t == registry.BagType || t == registry.AutoType
}

// Files determines the files of items. Its methods may be called concurrently.
type Files struct {
	Sources     func(collection string) source.Fetcher
	Staging     storage.Store
	Buffers     *staging.Buffers
	UnknownSize int64       // limit of a file of unknown size, in bytes; 0: no limit
	ARKs        intake.ARKs // judges supplied ARKs
}

// Member is one file of a job.
type Member struct {
	Seq    int64
	Name   string
	Wanted staging.Wanted
	// InPlace says that it is the item's upload, which is read where it is.
	InPlace bool
	Only    bool // the job has no other file
}

// Each calls fn for every file of the job in the order of the submission: the payload itself, or
// the rows of an object manifest. Memory does not grow with the number of rows.
func (p Files) Each(ctx context.Context, item *base.Item, fn func(Member) error) error {
	spec := item.Spec()
	if spec.Type != registry.ObjectManifest {
		return fn(Member{Seq: 1, Name: spec.Filename, Only: true, Wanted: wantedOfSpec(spec), InPlace: result.UploadKey(item) != ""})
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

// wantedOfSpec returns a submission's statements about its payload.
func wantedOfSpec(s registry.Spec) staging.Wanted {
	return staging.Wanted{URL: s.URL, SizeBytes: s.SizeBytes, Digest: s.Digest, Received: s.Received, Modified: s.Modified}
}

// WantedOf returns a manifest row's statements about its file.
func WantedOf(row checkm.Row) staging.Wanted {
	w := staging.Wanted{URL: row.URL, SizeBytes: row.Size, MIMEType: row.MIMEType, Modified: row.Modified}
	if row.Algorithm != "" {
		w.Digest = &registry.Digest{Algorithm: row.Algorithm, Value: row.Digest}
	}
	return w
}
