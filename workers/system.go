package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/erc"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
)

// Merritt's kinds of object, as every job makes them.
const (
	momType = "MRT-curatorial"
	momRole = "MRT-content"
)

// resolver makes an ARK actionable wherever an object's manifest is read.
const resolver = "https://n2t.net/"

// systemFiles writes and stages Merritt's system files, in the order of its documentation. The storage manifest comes
// last and lists all others.
func (w *Process) systemFiles(ctx context.Context, item *base.Item, d description, p plan) ([]staging.File, error) {
	spec := item.Spec()
	writers := []struct {
		name  string
		write func(io.Writer) error
	}{
		{"mrt-ingest.txt", func(out io.Writer) error { return erc.WriteIngest(out, w.ingest(item, d, p)) }},
		{"mrt-mom.txt", func(out io.Writer) error {
			return erc.WriteMOM(out, erc.MOM{PrimaryID: p.ObjectID, Type: momType, Role: momRole, LocalIDs: p.LocalIDs})
		}},
		{"mrt-owner.txt", func(out io.Writer) error { return erc.WriteOwner(out, erc.Owner{ARK: spec.Profile.Owner}) }},
		{"mrt-membership.txt", func(out io.Writer) error {
			return erc.WriteMembership(out, erc.Membership{Collections: spec.Profile.Collections})
		}},
		{"mrt-erc.txt", func(out io.Writer) error { return erc.WriteERC(out, d.metadata.ERC()) }},
		{"mrt-dc.xml", func(out io.Writer) error { return erc.WriteDublinCore(out, w.dublinCore(d, p)) }},
	}
	var files []staging.File
	for _, s := range writers {
		var text bytes.Buffer
		err := s.write(&text)
		var field *erc.FieldError
		if errors.As(err, &field) {
			return nil, base.Content(err) // a value that no file can carry came with the deposit
		} else if err != nil {
			return nil, err
		}
		f, err := w.stageSystem(ctx, item, s.name, text.Bytes())
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	kept, err := w.kept(item, d)
	if err != nil {
		return nil, err
	}
	files = append(files, kept...)
	manifest, err := w.storageManifest(ctx, item, d, files, p)
	if err != nil {
		return nil, err
	}
	return append(files, manifest), nil
}

// kept are files of the submission that are kept beside ours: the object manifest as given, and the delete list.
func (w *Process) kept(item *base.Item, d description) ([]staging.File, error) {
	var files []staging.File
	var manifest staging.File
	ok, err := item.Result(resultManifest, &manifest)
	if err != nil {
		return nil, err
	}
	if ok && item.Spec().Type == registry.ObjectManifest {
		manifest.Name = systemPath("mrt-submission-manifest.txt")
		files = append(files, manifest)
	}
	if d.deletes != nil {
		deletes := *d.deletes
		deletes.Name = systemPath(nameDelete)
		files = append(files, deletes)
	}
	return files, nil
}

func (w *Process) ingest(item *base.Item, d description, p plan) erc.Ingest {
	spec := item.Spec()
	in := erc.Ingest{
		Service: "Holdfast " + w.Version, SubmissionDate: spec.SubmittedAt, Batch: item.ParentID, Job: item.ID,
		UserAgent: spec.Submitter, File: spec.Filename, Type: string(d.contents.kind), Profile: item.Collection,
		Collections: spec.Profile.Collections, StorageService: "Holdfast", StorageNode: w.Storage, Notification: spec.Notify,
		SuppliedIdentifier: spec.PrimaryID, Creator: spec.Creator, Title: spec.Title, Date: spec.Date, LocalIDs: spec.LocalIDs,
		PackageIntegrity: "valid",
	}
	if spec.Digest != nil {
		in.DigestType, in.DigestValue = spec.Digest.Algorithm, spec.Digest.Value
	}
	switch d.contents.kind {
	case registry.ContainerType, registry.BagType:
		in.ContainerValidity = "valid"
	case registry.ObjectManifest:
		in.ManifestValidity, in.ManifestIntegrity = "valid", "valid"
	default:
	}
	switch {
	case p.Minted:
		in.AssignedIdentifier = p.ObjectID
	case spec.PrimaryID == "":
		in.RetrievedIdentifier = p.ObjectID
	}
	route, _ := registry.RouteOf(item.Action)
	for _, step := range route.UpTo(registry.Process) {
		in.Handlers = append(in.Handlers, string(step))
	}
	return in
}

// dublinCore is the producer's own, completed by what else is known.
func (w *Process) dublinCore(d description, p plan) erc.DublinCore {
	dc := d.dc
	if len(dc.Title) == 0 {
		dc.Title = d.metadata.What
	}
	if len(dc.Creator) == 0 {
		dc.Creator = d.metadata.Who
	}
	if len(dc.Date) == 0 {
		dc.Date = d.metadata.When
	}
	dc.Identifier = append([]string{p.ObjectID}, p.LocalIDs...)
	return dc
}

// storageManifest lists every other file of the version in Merritt's form. A name that this form cannot express stands
// in the OCFL inventory only.
func (w *Process) storageManifest(ctx context.Context, item *base.Item, d description, system []staging.File, p plan) (staging.File, error) {
	const name = "mrt-manifest.txt"
	algorithm := item.Spec().Profile.Digests()
	key := staging.Key(item.Lease(), "system/"+name)
	out, err := newDigested(ctx, w.Staging, key, algorithm)
	if err != nil {
		return staging.File{}, err
	}
	defer out.Close() //nolint:errcheck // nothing depends on a writer that is given up
	m := checkm.NewWriter(out, checkm.Add)
	for f, err := range w.files(ctx, d, system) {
		if err != nil {
			return staging.File{}, err
		}
		row := checkm.Row{
			URL:       resolver + p.ObjectID + "/" + strings.ReplaceAll(url.PathEscape(f.Name), "%2F", "/"),
			Algorithm: algorithm, Digest: f.Digests[algorithm], Size: f.SizeBytes, Modified: f.Modified,
			Name: f.Name, MIMEType: f.MIMEType,
		}
		if expressible(row) {
			if err := m.Write(row); err != nil {
				return staging.File{}, fmt.Errorf("list %s: %w", f.Name, err)
			}
		}
	}
	if err := m.Close(); err != nil {
		return staging.File{}, err
	}
	file, err := out.Commit(ctx)
	file.Name = systemPath(name)
	return file, err
}

// expressible says whether Merritt's manifest has a way to write the row.
func expressible(row checkm.Row) bool {
	return checkm.NewWriter(io.Discard, checkm.Add).Write(row) == nil
}
