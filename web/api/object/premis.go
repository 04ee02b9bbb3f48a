package object

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
)

// premisRoute adds GET /objects/{id}/premis, the object's PREMIS 3 document.
func (s *Service) premisRoute() {
	s.Stream(endpoint.Operation{
		ID: "object-premis", Method: http.MethodGet, Path: "/objects/{id}/premis",
		Summary: "Download an object with its versions, files and events as a PREMIS 3 document",
	}, []*huma.Param{objectParam()}, "application/xml", func(r *http.Request) (*endpoint.Streamed, error) {
		ctx := r.Context()
		o, err := lookup.Object(ctx, s.Registry, r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return &endpoint.Streamed{
			ContentType: "application/xml", Filename: "premis.xml",
			Write: func(w io.Writer) error { return s.writePREMIS(ctx, w, o) },
		}, nil
	})
}

// writePREMIS writes the document: the object as an intellectual entity, each version as a
// representation, each file once, with the versions that include it, then the events, their
// agents, and the rights. It holds one page of rows in memory.
func (s *Service) writePREMIS(ctx context.Context, w io.Writer, o registry.Object) error {
	out := premis.NewWriter(w)
	d := &premisDocument{service: s, object: o, out: out, agents: map[premis.Identifier]*premis.Agent{}}
	if o.Gone == registry.DeletionDeleted && o.Deletion != nil {
		d.deleted = []premis.Identifier{premis.EventID(o.Deletion.ItemID, string(premis.Deletion), "")}
	}
	if err := d.entities(); err != nil {
		return err
	}
	if err := d.files(ctx); err != nil {
		return err
	}
	if err := d.events(ctx); err != nil {
		return err
	}
	for _, id := range slices.SortedFunc(maps.Keys(d.agents), func(a, b premis.Identifier) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Value, b.Value))
	}) {
		if err := out.WriteAgent(d.agents[id]); err != nil {
			return err
		}
	}
	if r := d.rights(); r != nil {
		if err := out.WriteRights(r); err != nil {
			return err
		}
	}
	return out.Close()
}

// rights returns the statement of an object's rights and its embargo; nil if it has neither. An embargo
// without rights is the institution's own restriction.
func (d *premisDocument) rights() *premis.Rights {
	terms := d.object.Terms
	if terms.Rights == nil && terms.EmbargoUntil == "" {
		return nil
	}
	r := &premis.Rights{ID: d.rightsID(), Objects: []premis.Identifier{d.ark()}, Basis: string(registry.OtherRights), Note: "institutional policy"}
	if given := terms.Rights; given != nil {
		r.Basis, r.Status, r.Jurisdiction, r.Note, r.Document = string(given.Basis), given.Status, given.Jurisdiction, given.Statement, given.URI
	}
	if terms.EmbargoUntil != "" {
		restriction := "embargo until " + terms.EmbargoUntil
		if terms.EmbargoReason != "" {
			restriction += ": " + terms.EmbargoReason
		}
		r.Granted = []premis.Granted{{Act: "disseminate", Restriction: restriction, From: d.object.CreatedAt.UTC().Format(time.DateOnly), Until: terms.EmbargoUntil}}
	}
	return r
}

// rightsID identifies the rights statement of the object.
func (d *premisDocument) rightsID() premis.Identifier {
	return premis.Identifier{Type: localID, Value: d.object.ARK + "/rights"}
}

type premisDocument struct {
	service *Service
	object  registry.Object
	out     *premis.Writer
	agents  map[premis.Identifier]*premis.Agent
	// deleted links the event that deleted the object; it is empty for an object that exists.
	deleted []premis.Identifier
}

// Holdfast's own types of identifiers.
const (
	localID   = "local"
	accountID = "account" // of people
)

func (d *premisDocument) ark() premis.Identifier {
	return premis.Identifier{Type: "ARK", Value: d.object.ARK}
}

// version identifies a version: the ARK, /v and the number.
func (d *premisDocument) version(n int) premis.Identifier {
	return premis.Identifier{Type: localID, Value: fmt.Sprintf("%s/v%d", d.object.ARK, n)}
}

// file identifies a file: the version that introduced it, and its path in the form of
// receipt.EscapePath.
func (d *premisDocument) file(f registry.File) premis.Identifier {
	return premis.Identifier{Type: localID, Value: d.version(f.Version).Value + "/" + receipt.EscapePath(f.Path)}
}

func (d *premisDocument) entities() error {
	entity := &premis.Object{Category: premis.IntellectualEntity, IDs: []premis.Identifier{d.ark()}, OriginalName: d.object.Title}
	for _, id := range d.object.LocalIDs {
		entity.IDs = append(entity.IDs, premis.Identifier{Type: localID, Value: receipt.EscapePath(id)})
	}
	entity.PreservationLevel = d.object.Terms.PreservationLevel
	if d.rights() != nil {
		entity.Rights = []premis.Identifier{d.rightsID()}
	}
	if err := d.out.WriteObject(entity); err != nil {
		return err
	}
	for _, v := range d.object.Versions {
		o := &premis.Object{
			Category: premis.Representation, IDs: []premis.Identifier{d.version(v.Version)},
			Relationships: []premis.Relationship{premis.Represents(d.ark())}, Events: d.deleted,
		}
		if d.deleted == nil {
			for _, r := range v.Replicas {
				o.Storage = append(o.Storage, premis.Storage{Location: d.place(r.Storage)})
			}
		}
		if err := d.out.WriteObject(o); err != nil {
			return err
		}
	}
	return nil
}

// place returns the address of a storage, or its name if this process does not know the address.
func (d *premisDocument) place(storage string) premis.Identifier {
	if root, err := d.service.Objects.Of(storage); err == nil && root.Address != "" {
		return premis.Identifier{Type: "URI", Value: premis.Text(root.Address)}
	}
	return premis.Identifier{Type: localID, Value: premis.Text(storage)}
}

// files writes a row once it has read the next one, which shows the last version with the row.
func (d *premisDocument) files(ctx context.Context) error {
	var last registry.File
	end := func(next registry.File) error {
		if last.Version == 0 || last.Deleted {
			return nil
		}
		until := d.object.Head
		if next.Path == last.Path && next.Version > 0 {
			until = next.Version - 1
		}
		return d.writeFile(last, until)
	}
	for after := (registry.FilePlace{}); ; {
		rows, err := d.service.Registry.FileHistory(ctx, d.object.ID, after, endpoint.StreamRows)
		if err != nil {
			return err
		}
		for _, f := range rows {
			after = registry.FilePlace{Path: f.Path, Version: f.Version}
			if f.Version > d.object.Head {
				continue // recorded after the document was started
			}
			if err := end(f); err != nil {
				return err
			}
			last = f
		}
		if len(rows) < endpoint.StreamRows {
			return end(registry.File{})
		}
	}
}

func (d *premisDocument) writeFile(f registry.File, until int) error {
	c := &premis.Characteristics{Size: f.SizeBytes, Modified: f.Modified}
	for _, algorithm := range slices.Sorted(maps.Keys(f.Digests)) {
		c.Fixity = append(c.Fixity, premis.Fixity{Algorithm: algorithm, Digest: f.Digests[algorithm], Originator: "Holdfast"})
	}
	if f.MIMEType != "" {
		c.Formats = append(c.Formats, premis.Format{Name: premis.Text(f.MIMEType)})
	}
	if f.Format != nil && f.Format.PUID != "" {
		c.Formats = append(c.Formats, pronom(*f.Format))
	}
	o := &premis.Object{
		Category: premis.File, IDs: []premis.Identifier{d.file(f)}, OriginalName: strings.TrimPrefix(f.Path, registry.ProducerFolder), Characteristics: c,
		Events: d.deleted,
	}
	if d.deleted == nil {
		o.Storage = []premis.Storage{{Location: premis.Identifier{Type: "OCFL content path", Value: receipt.EscapePath(f.ContentPath)}}}
	}
	for v := f.Version; v <= until; v++ {
		o.Relationships = append(o.Relationships, premis.IncludedIn(d.version(v)))
	}
	return d.out.WriteObject(o)
}

// pronom returns a format as PRONOM describes it. It omits empty values: an element without a value
// would end the document.
func pronom(f registry.Format) premis.Format {
	out := premis.Format{Registry: "PRONOM", Key: premis.Text(f.PUID)}
	if out.Name = premis.Text(f.Name); out.Name != "" {
		out.Version = premis.Text(f.Version)
	}
	for _, note := range []string{f.Registry, f.Warning} {
		if strings.TrimSpace(note) != "" {
			out.Notes = append(out.Notes, premis.Text(note))
		}
	}
	return out
}

// events writes all events of all types.
func (d *premisDocument) events(ctx context.Context) error {
	for after := ""; ; {
		page, err := d.service.Registry.PremisEvents(ctx, d.object.ID, after, endpoint.StreamRows)
		if err != nil {
			return err
		}
		for _, e := range page.Rows {
			if err := d.event(e); err != nil {
				return err
			}
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

func (d *premisDocument) event(e registry.Premis) error {
	v := &premis.Event{
		ID: premis.Identifier{Type: premis.UUIDType, Value: e.ID}, Type: premis.EventType(premis.Text(e.Type)), Time: e.At,
		Outcome: premis.Outcome(premis.Text(e.Outcome)), Objects: d.about(e),
	}
	if text := premis.Text(e.Detail); strings.TrimSpace(text) != "" {
		v.Details = []string{text}
	}
	if name := premis.Text(e.Agent); strings.TrimSpace(name) != "" {
		v.Agents = []premis.Link{d.link(softwareOf(name), premis.ExecutingProgram)}
	}
	if slices.Contains(d.deleted, v.ID) {
		for role, name := range map[string]string{premis.Implementer: d.object.Deletion.AskedBy, premis.Authorizer: d.object.Deletion.ApprovedBy} {
			if name = premis.Text(name); strings.TrimSpace(name) != "" {
				v.Agents = append(v.Agents, d.link(personOf(name), role))
			}
		}
		slices.SortFunc(v.Agents, func(a, b premis.Link) int { return strings.Compare(a.Roles[0], b.Roles[0]) })
	}
	return d.out.WriteEvent(v)
}

// about links what an event concerns: a version or the object; for a deletion, the object and all
// its versions.
func (d *premisDocument) about(e registry.Premis) []premis.Link {
	if premis.EventType(e.Type) == premis.Deletion {
		links := []premis.Link{{ID: d.ark()}}
		for _, v := range d.object.Versions {
			links = append(links, premis.Link{ID: d.version(v.Version)})
		}
		return links
	}
	if e.Version > 0 && e.Version <= d.object.Head {
		return []premis.Link{{ID: d.version(e.Version)}}
	}
	return []premis.Link{{ID: d.ark()}}
}

// link links an agent and adds it to the document.
func (d *premisDocument) link(a *premis.Agent, role string) premis.Link {
	d.agents[a.IDs[0]] = a
	return premis.Link{ID: a.IDs[0], Roles: []string{role}}
}

// softwareOf describes the agent of an event: a program, with name and version. An event's agent is
// never a person.
func softwareOf(name string) *premis.Agent {
	a := &premis.Agent{IDs: []premis.Identifier{{Type: localID, Value: name}}, Names: []string{name}, Type: premis.Software}
	if program, version, ok := strings.Cut(name, " "); ok && program != "" && strings.ContainsAny(version, "0123456789") {
		a.Names, a.Version = []string{program}, version
	}
	return a
}

// personOf describes a person who made a decision, by account name.
func personOf(name string) *premis.Agent {
	return &premis.Agent{IDs: []premis.Identifier{{Type: accountID, Value: name}}, Names: []string{name}, Type: premis.Person}
}
