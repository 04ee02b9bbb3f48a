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

// Files tells which files items are made of. Its methods may be called concurrently.
type Files struct {
	Sources     func(collection string) source.Fetcher
	Staging     storage.Store
	Buffers     *staging.Buffers
	UnknownSize int64       // bytes that a file of unknown size may have; 0: any number
	ARKs        intake.ARKs // judges supplied names
}

// Member is one file that a job is made of.
type Member struct {
	Seq    int64
	Name   string
	Wanted staging.Wanted
}

// Each calls fn for every file of the job in the order of the submission: the payload itself, or
// the rows of an object manifest. Memory does not grow with the number of rows.
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
