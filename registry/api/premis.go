package api

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/receipt"
	"github.com/holdfast/holdfast/registry"
)

// premisRoute adds GET /objects/{id}/premis, the object's PREMIS 3 document.
func (s *server) premisRoute(api huma.API, mux *http.ServeMux) {
	s.streamRoute(api, mux, operation{
		id: "object-premis", method: http.MethodGet, path: "/objects/{id}/premis",
		summary: "The object, its versions, files and events as a PREMIS 3 document",
	}, []*huma.Param{objectParam()}, "application/xml", func(r *http.Request) (*streamed, error) {
		ctx := r.Context()
		o, err := s.known(ctx, r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return &streamed{
			contentType: "application/xml", filename: "premis.xml",
			write: func(w io.Writer) error { return s.writePREMIS(ctx, w, o) },
		}, nil
	})
}

// writePREMIS writes the document: the object as an intellectual entity, each version as a representation of it, each file once,
// included in the versions that have it, then the events and who did them. It holds a page of rows at a time.
func (s *server) writePREMIS(ctx context.Context, w io.Writer, o registry.Object) error {
	out := premis.NewWriter(w)
	d := &premisDocument{server: s, object: o, out: out, agents: map[string]bool{}}
	if err := d.entities(); err != nil {
		return err
	}
	if err := d.files(ctx); err != nil {
		return err
	}
	if err := d.events(ctx); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(d.agents)) {
		if err := out.WriteAgent(agentOf(name)); err != nil {
			return err
		}
	}
	return out.Close()
}

type premisDocument struct {
	server *server
	object registry.Object
	out    *premis.Writer
	agents map[string]bool // by what events call them
}

const localID = "local"

func (d *premisDocument) ark() premis.Identifier {
	return premis.Identifier{Type: "ARK", Value: d.object.ARK}
}

// version names a version: the ARK, /v and its number.
func (d *premisDocument) version(n int) premis.Identifier {
	return premis.Identifier{Type: localID, Value: fmt.Sprintf("%s/v%d", d.object.ARK, n)}
}

// file names a file: the version since which it is so, and its path in the form of receipt.EscapePath.
func (d *premisDocument) file(f registry.File) premis.Identifier {
	return premis.Identifier{Type: localID, Value: d.version(f.Version).Value + "/" + receipt.EscapePath(f.Path)}
}

func (d *premisDocument) entities() error {
	entity := &premis.Object{Category: premis.IntellectualEntity, IDs: []premis.Identifier{d.ark()}, OriginalName: d.object.Title}
	for _, id := range d.object.LocalIDs {
		entity.IDs = append(entity.IDs, premis.Identifier{Type: localID, Value: receipt.EscapePath(id)})
	}
	if err := d.out.WriteObject(entity); err != nil {
		return err
	}
	for _, v := range d.object.Versions {
		o := &premis.Object{
			Category: premis.Representation, IDs: []premis.Identifier{d.version(v.Version)},
			Relationships: []premis.Relationship{premis.Represents(d.ark())},
		}
		for _, r := range v.Replicas {
			o.Storage = append(o.Storage, premis.Storage{Location: d.place(r.Storage)})
		}
		if err := d.out.WriteObject(o); err != nil {
			return err
		}
	}
	return nil
}

// place says where a storage is, or how it is called where that is not known here.
func (d *premisDocument) place(storage string) premis.Identifier {
	if root, err := d.server.objects.Of(storage); err == nil && root.Address != "" {
		return premis.Identifier{Type: "URI", Value: premis.Text(root.Address)}
	}
	return premis.Identifier{Type: localID, Value: premis.Text(storage)}
}

// files writes a row when the next one has come, which says until which version it was so.
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
		rows, err := d.server.registry.FileHistory(ctx, d.object.ID, after, pageOfLines)
		if err != nil {
			return err
		}
		for _, f := range rows {
			after = registry.FilePlace{Path: f.Path, Version: f.Version}
			if f.Version > d.object.Head {
				continue // recorded since we began
			}
			if err := end(f); err != nil {
				return err
			}
			last = f
		}
		if len(rows) < pageOfLines {
			return end(registry.File{})
		}
	}
}

func (d *premisDocument) writeFile(f registry.File, until int) error {
	c := &premis.Characteristics{Size: f.SizeBytes}
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
		Category: premis.File, IDs: []premis.Identifier{d.file(f)}, OriginalName: strings.TrimPrefix(f.Path, "producer/"), Characteristics: c,
		Storage: []premis.Storage{{Location: premis.Identifier{Type: "OCFL content path", Value: receipt.EscapePath(f.ContentPath)}}},
	}
	for v := f.Version; v <= until; v++ {
		o.Relationships = append(o.Relationships, premis.IncludedIn(d.version(v)))
	}
	return d.out.WriteObject(o)
}

// pronom is a format as PRONOM knows it. What is empty is left out: an element without a value would end the document.
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

// events writes all events, of whatever type.
func (d *premisDocument) events(ctx context.Context) error {
	for after := ""; ; {
		page, err := d.server.registry.PremisEvents(ctx, d.object.ID, after, pageOfLines)
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
	about := d.ark()
	if e.Version > 0 && e.Version <= d.object.Head {
		about = d.version(e.Version)
	}
	v := &premis.Event{
		ID: premis.Identifier{Type: premis.UUIDType, Value: e.ID}, Type: premis.EventType(premis.Text(e.Type)), Time: e.At,
		Outcome: premis.Outcome(premis.Text(e.Outcome)), Objects: []premis.Link{{ID: about}},
	}
	if text := premis.Text(e.Detail); strings.TrimSpace(text) != "" {
		v.Details = []string{text}
	}
	if name := premis.Text(e.Agent); strings.TrimSpace(name) != "" {
		d.agents[name] = true
		agent := agentOf(name)
		role := premis.Implementer
		if agent.Type == premis.Software {
			role = premis.ExecutingProgram
		}
		v.Agents = []premis.Link{{ID: agent.IDs[0], Roles: []string{role}}}
	}
	return d.out.WriteEvent(v)
}

// agentOf describes who did an event. Software is called by its name and version; all others are somebody who asked for it.
func agentOf(name string) *premis.Agent {
	a := &premis.Agent{IDs: []premis.Identifier{{Type: localID, Value: name}}, Names: []string{name}}
	for _, software := range []string{"Holdfast", "ClamAV", "siegfried"} {
		if version, ok := strings.CutPrefix(name, software+" "); ok {
			a.Type, a.Names, a.Version = premis.Software, []string{software}, version
		}
	}
	return a
}
