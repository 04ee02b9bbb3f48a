package version

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/metadata"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/workers/payload"
)

// Merritt's kinds of object, as every job makes them.
const (
	momType = "MRT-curatorial"
	momRole = "MRT-content"
)

// systemFiles makes Merritt's system files, in the order of its documentation. The
// storage manifest comes last and lists all others.
func (w *Maker) systemFiles(ctx context.Context, item *base.Item, home ocfl.Named, dr *draft) ([]staging.File, error) {
	spec := item.Spec()
	if spec.Profile.Owner == "" || len(spec.Profile.Collections) == 0 {
		return nil, base.Fatal(payload.Unfit(fmt.Errorf("the profile of collection %s had no owner or no collection ARK when this was submitted", item.Collection)))
	}
	var files []staging.File
	for _, s := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"mrt-ingest.txt", func(out io.Writer) error { return metadata.WriteIngest(out, ingest(item, dr, home.Address)) }},
		{"mrt-mom.txt", func(out io.Writer) error {
			return metadata.WriteMOM(out, metadata.MOM{PrimaryID: dr.ObjectID, Type: momType, Role: momRole, LocalIDs: dr.LocalIDs})
		}},
		{"mrt-owner.txt", func(out io.Writer) error { return metadata.WriteOwner(out, metadata.Owner{ARK: spec.Profile.Owner}) }},
		{"mrt-membership.txt", func(out io.Writer) error {
			return metadata.WriteMembership(out, metadata.Membership{Collections: spec.Profile.Collections})
		}},
		{metadata.ERCFile, func(out io.Writer) error { return metadata.WriteERC(out, dr.Metadata.ERC()) }},
		{metadata.DublinCoreFile, func(out io.Writer) error { return metadata.WriteDublinCore(out, dublinCore(dr)) }},
	} {
		f, err := w.system(ctx, item, dr, s.name, s.write)
		var field *metadata.FieldError
		if errors.As(err, &field) {
			return nil, base.Content(err) // a value that no file can carry came with the deposit
		} else if err != nil {
			return nil, err
		}
		f.Modified = dr.Created
		files = append(files, f)
	}
	kept, err := w.keptFiles(ctx, item, dr)
	if err != nil {
		return nil, err
	}
	dr.system = append(files, kept...)
	manifest, err := w.storageManifest(ctx, item, dr)
	if err != nil {
		return nil, err
	}
	manifest.Modified = dr.Created
	return append(dr.system, manifest), nil
}

// system makes one system file. The list of changes carries the bytes of a small one; a large one
// is staged.
func (w *Maker) system(ctx context.Context, item *base.Item, dr *draft, name string, write func(io.Writer) error) (staging.File, error) {
	path := systemPath(name)
	out := &smallFile{create: func() (*staging.Writer, error) {
		return staging.Create(ctx, w.Payloads.Staging, staging.Key(item.Lease(), path), dr.Algorithm)
	}}
	defer out.close()
	if err := write(out); err != nil {
		return staging.File{}, err
	}
	if out.staged != nil {
		return out.staged.Commit(ctx, path)
	}
	d, err := fixity.NewDigester(dr.Algorithm)
	if err != nil {
		return staging.File{}, err
	}
	data := out.data.Bytes()
	d.Write(data) //nolint:errcheck // it never fails
	if dr.small == nil {
		dr.small = map[string][]byte{}
	}
	dr.small[path] = data
	return staging.File{Name: path, SizeBytes: d.Size(), Digests: d.Sums(), MIMEType: format.MIME(data, path, "")}, nil
}

// keptFiles returns the files of the submission that are kept among the system files: the original
// object manifest, and the delete list.
func (w *Maker) keptFiles(ctx context.Context, item *base.Item, dr *draft) ([]staging.File, error) {
	var files []staging.File
	if item.Spec().Type == registry.ObjectManifest {
		m, err := w.Payloads.Manifest(ctx, item, registry.ObjectManifest)
		if err != nil {
			return nil, err
		}
		m.Name = systemPath("mrt-submission-manifest.txt")
		files = append(files, m.File)
	}
	if dr.deletes != nil {
		deletes := *dr.deletes
		deletes.Name = systemPath(metadata.DeleteFile)
		files = append(files, deletes)
	}
	for i := range files {
		var err error
		if files[i], err = w.Payloads.WithDigest(ctx, item, files[i], dr.Algorithm); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// ingest returns the record of the submission and its outcome.
func ingest(item *base.Item, dr *draft, node string) metadata.Ingest {
	spec := item.Spec()
	in := metadata.Ingest{
		Service: dr.Software, SubmissionDate: spec.SubmittedAt, Batch: item.ParentID, Job: item.ID,
		UserAgent: spec.Submitter, File: spec.Filename, Type: string(dr.Contents.Kind), Profile: item.Collection,
		Collections: spec.Profile.Collections, StorageService: "Holdfast", StorageNode: node, Notification: spec.Notify,
		SuppliedIdentifier: dr.supplied, Creator: spec.Creator, Title: spec.Title, Date: spec.Date, LocalIDs: spec.LocalIDs,
	}
	if spec.Digest != nil {
		in.DigestType, in.DigestValue, in.PackageIntegrity = spec.Digest.Algorithm, spec.Digest.Value, "valid"
	}
	switch dr.Contents.Kind {
	case registry.ContainerType, registry.BagType:
		in.ContainerValidity = "valid"
	case registry.ObjectManifest:
		in.ManifestValidity, in.ManifestIntegrity = "valid", "valid"
	default:
	}
	switch {
	case dr.Minted:
		in.AssignedIdentifier = dr.ObjectID
	case dr.supplied == "":
		in.RetrievedIdentifier = dr.ObjectID
	}
	route, _ := item.Route()
	for _, step := range route.UpTo(registry.Process) {
		in.Handlers = append(in.Handlers, string(step))
	}
	return in
}

// dublinCore returns the producer's Dublin Core, completed by other known values.
func dublinCore(dr *draft) metadata.DublinCore {
	dc := dr.dc
	dc.Title, dc.Creator, dc.Date = orElse(dc.Title, dr.Metadata.What), orElse(dc.Creator, dr.Metadata.Who), orElse(dc.Date, dr.Metadata.When)
	dc.Identifier = nil
	for _, id := range append([]string{dr.ObjectID}, dr.LocalIDs...) {
		dc.Identifier = append(dc.Identifier, metadata.JoinLocalIDs([]string{id})) // one element each, also if it contains ";"
	}
	return dc
}
