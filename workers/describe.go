package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/erc"
	"github.com/holdfast/holdfast/mint"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
)

// Files that a producer may put beside the content to describe it.
const (
	nameERC      = "mrt-erc.txt"
	nameDataCite = "mrt-datacite.xml"
	nameDC       = "mrt-dc.xml"
	nameDelete   = "mrt-delete.txt"
)

// description is what is known of an object before it has a name.
type description struct {
	contents contents
	metadata erc.Metadata
	dc       erc.DublinCore
	deleted  []string // logical paths, update only
	deletes  *staging.File
}

// describe reads the producer's own description and puts it together with the submission's.
func (w *Process) describe(ctx context.Context, item *base.Item, c contents) (description, error) {
	spec := item.Spec()
	d := description{contents: c}
	s := erc.Sources{Form: erc.Metadata{
		Who: given(spec.Creator), What: given(spec.Title), When: given(spec.Date),
		PrimaryID: spec.PrimaryID, LocalIDs: erc.MergeLocalIDs(spec.LocalIDs),
	}}
	for f, err := range c.all(ctx, w.Staging) {
		if err != nil {
			return d, err
		}
		// In a bag the description lies with the payload.
		if f.Name != path.Base(f.Name) && (c.kind != registry.BagType || path.Base(path.Dir(f.Name)) != "data") {
			continue
		}
		if err := w.readMetadata(ctx, item, f, &s, &d); err != nil {
			return d, fmt.Errorf("read %s: %w", f.Name, err)
		}
	}
	var err error
	if d.metadata, err = erc.Merge(s); err != nil {
		return d, base.Content(err)
	}
	if d.metadata.PrimaryID != "" {
		ark, err := mint.ParseARK(d.metadata.PrimaryID)
		if err != nil {
			return d, base.Content(err)
		}
		d.metadata.PrimaryID = ark.Base().Normalize().String()
	}
	if s.DublinCore != nil {
		d.dc = *s.DublinCore
	}
	return d, nil
}

// readMetadata reads f when it is one of the files that describe an object.
func (w *Process) readMetadata(ctx context.Context, item *base.Item, f staging.File, s *erc.Sources, d *description) error {
	read := map[string]func(io.Reader) error{
		nameERC:      func(r io.Reader) error { v, err := erc.ReadERC(r); s.ERC = &v; return err },
		nameDataCite: func(r io.Reader) error { v, err := erc.ReadDataCite(r); s.DataCite = &v; return err },
		nameDC:       func(r io.Reader) error { v, err := erc.ReadDublinCore(r); s.DublinCore = &v; return err },
	}
	if item.Spec().Mode == registry.Update {
		read[nameDelete] = func(r io.Reader) error {
			list, err := erc.ReadDelete(r)
			for _, del := range list {
				d.deleted = append(d.deleted, producerPath(del.Name))
			}
			d.deletes = &f
			return err
		}
	}
	parse, ok := read[path.Base(f.Name)]
	if !ok {
		return nil
	}
	r, err := w.Staging.Open(ctx, f.Key, 0, -1)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // read only
	var syntax *erc.SyntaxError
	err = parse(r)
	if errors.As(err, &syntax) || errors.Is(err, erc.ErrNoMetadata) || errors.Is(err, erc.ErrTooLarge) {
		return base.Content(err)
	}
	return err
}

func given(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// producerPath and systemPath are where files lie in an object.
func producerPath(name string) string { return "producer/" + name }

func systemPath(name string) string { return "system/" + name }
