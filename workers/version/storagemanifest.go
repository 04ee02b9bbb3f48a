package version

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strings"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
)

// storageManifest lists every other file of the version in Merritt's form. It omits names that this
// form cannot express; the OCFL inventory has them.
func (w *Maker) storageManifest(ctx context.Context, item *base.Item, dr *draft) (staging.File, error) {
	return w.system(ctx, item, dr, "mrt-manifest.txt", func(out io.Writer) error { return w.writeManifest(ctx, item, dr, out) })
}

func (w *Maker) writeManifest(ctx context.Context, item *base.Item, dr *draft, out io.Writer) error {
	list := checkm.NewWriter(out, checkm.Add)
	// After a refused row a writer cannot be used any more, so test each row with another one.
	probe := checkm.NewWriter(io.Discard, checkm.Add)
	progress := item.Progress("files listed", "files")
	for f, err := range w.state(ctx, item, dr) {
		if err != nil {
			return err
		}
		progress.Add(1)
		row := checkm.Row{
			URL:       noid.Resolver + dr.ObjectID + "/" + strings.ReplaceAll(url.PathEscape(f.Name), "%2F", "/"),
			Algorithm: dr.Algorithm, Digest: f.Digests[dr.Algorithm], Size: f.SizeBytes, Modified: f.Modified,
			Name: f.Name, MIMEType: f.MIMEType,
		}
		if probe.Write(row) != nil {
			probe = checkm.NewWriter(io.Discard, checkm.Add)
			continue
		}
		if err := list.Write(row); err != nil {
			return fmt.Errorf("list %s: %w", f.Name, err)
		}
	}
	return list.Close()
}

// state yields the files of the future version: its own, and those kept from the previous version.
func (w *Maker) state(ctx context.Context, item *base.Item, dr *draft) iter.Seq2[staging.File, error] {
	return func(yield func(staging.File, error) bool) {
		named := dr.space.NewSorter(nil) // the paths of the submission
		for f, err := range w.files(ctx, dr) {
			if err == nil && dr.Version > 1 && !named.Add([]byte(f.Name), nil) {
				err = dr.space.Err()
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
		if item.Spec().Mode != registry.Update {
			return
		}
		next, stop := iter.Pull2(named.Sorted())
		defer stop()
		own, _, more := next()
		keeps := w.keeps(item, dr)
		for old, err := range w.before(ctx, dr) {
			for more && string(own) < old.Path {
				own, _, more = next()
			}
			if err = cmp.Or(err, dr.space.Err()); err == nil && (more && string(own) == old.Path || !keeps(old.Path)) {
				continue
			}
			f := staging.File{Name: old.Path, SizeBytes: old.SizeBytes, Digests: old.Digests, MIMEType: old.MIMEType, Modified: old.Modified}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}
