package version

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/metadata"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/workers/result"
)

// Description is what is known of an object before it has a name.
type Description struct {
	Contents result.Contents
	Metadata metadata.Metadata
	supplied string // the ARK as the deposit gives it; "" if it gives none
	dc       metadata.DublinCore
	deleted  []string      // logical paths, updates only
	deletes  *staging.File // the file that lists them
}

// Describe reads the producer's own description and merges it with the submission's.
func (w *Maker) Describe(ctx context.Context, item *base.Item, c result.Contents) (Description, error) {
	spec := item.Spec()
	d := Description{Contents: c}
	s := metadata.Sources{Form: metadata.Metadata{
		Who: valuesOf(spec.Creator), What: valuesOf(spec.Title), When: valuesOf(spec.Date),
		PrimaryID: spec.PrimaryID, LocalIDs: metadata.MergeLocalIDs(spec.LocalIDs),
	}, SuppressDublinCoreLocalID: spec.Profile.SuppressDCLocalIDs}
	for f, err := range c.All(ctx, w.Payloads.Staging) {
		if err != nil {
			return d, err
		}
		if folder := path.Dir(f.Name); folder != c.Folder && (folder != "." || c.Folder != "") {
			continue
		}
		if err := w.readMetadata(ctx, item, f, &s, &d); err != nil {
			return d, fmt.Errorf("read %s: %w", f.Name, err)
		}
	}
	var err error
	if d.Metadata, err = metadata.Merge(s); err != nil {
		return d, base.Content(err)
	}
	if d.supplied = d.Metadata.PrimaryID; d.supplied != "" {
		ark, err := noid.ParseARK(d.supplied)
		if err != nil {
			return d, base.Content(err)
		}
		if err := w.ARKs.Judge(ctx, ark, spec.Profile); err != nil {
			return d, err
		}
		d.Metadata.PrimaryID = ark.ObjectID()
	}
	if s.DublinCore != nil {
		d.dc = *s.DublinCore
	}
	return d, nil
}

// readMetadata reads f if it is one of the files that describe an object.
func (w *Maker) readMetadata(ctx context.Context, item *base.Item, f staging.File, s *metadata.Sources, d *Description) error {
	var parse func(io.Reader) error
	switch name := path.Base(f.Name); {
	case name == metadata.ERCFile:
		parse = func(r io.Reader) error { v, err := metadata.ReadERC(r); s.ERC = &v; return err }
	case name == metadata.DataCiteFile:
		parse = func(r io.Reader) error { v, err := metadata.ReadDataCite(r); s.DataCite = &v; return err }
	case name == metadata.DublinCoreFile:
		parse = func(r io.Reader) error { v, err := metadata.ReadDublinCore(r); s.DublinCore = &v; return err }
	case name == metadata.DeleteFile && item.Spec().Mode == registry.Update:
		parse = func(r io.Reader) error {
			list, err := metadata.ReadDelete(r)
			for _, del := range list {
				d.deleted = append(d.deleted, producerPath(del.Name))
			}
			d.deletes = &f
			return err
		}
	default:
		return nil
	}
	err := w.Payloads.Verified(ctx, item, f, parse)
	if metadata.Malformed(err) {
		return base.Content(err)
	}
	return err
}

// inherit completes an update's description by the object's: its other identifiers, and who, what
// and when if the update does not state them.
func (w *Maker) inherit(ctx context.Context, home ocfl.Named, d *Description, id registry.Identity) error {
	object, err := w.Registry.Object(ctx, id.ARK)
	if err != nil {
		return fmt.Errorf("look up %s: %w", id.ARK, err)
	}
	d.Metadata.LocalIDs = metadata.MergeLocalIDs(object.LocalIDs, d.Metadata.LocalIDs)
	r, err := home.OpenFile(ctx, id.Stored(), id.Head, systemPath(metadata.ERCFile))
	if errors.Is(err, ocfl.ErrNotFound) && id.Head <= id.Adopted { // others made that version
		m := &d.Metadata
		m.Who, m.What, m.When = orElse(m.Who, valuesOf(object.Creator)), orElse(m.What, valuesOf(object.Title)), orElse(m.When, valuesOf(object.Date))
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the description of %s: %w", id.ARK, err)
	}
	defer r.Close()
	old, err := metadata.ReadERC(r)
	if err != nil {
		return fmt.Errorf("read the description of %s: %w", id.ARK, err)
	}
	before, err := metadata.Merge(metadata.Sources{ERC: &old}) // this omits unassigned values
	if err != nil {
		return fmt.Errorf("read the description of %s: %w", id.ARK, err)
	}
	m := &d.Metadata
	m.Who, m.What, m.When = orElse(m.Who, before.Who), orElse(m.What, before.What), orElse(m.When, before.When)
	return nil
}

func orElse(values, otherwise []string) []string {
	if len(values) == 0 {
		return otherwise
	}
	return values
}

func valuesOf(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// producerPath and systemPath return the paths of files in an object.
func producerPath(name string) string { return registry.ProducerFolder + name }

func systemPath(name string) string { return registry.SystemFolder + name }
