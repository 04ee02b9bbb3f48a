package receipt

import "github.com/holdfast/holdfast/registry"

// FileOf returns a file of the inventory as receipts of a format have it.
func FileOf(f registry.File, format int) File {
	out := File{Path: f.Path, Size: f.SizeBytes, Digests: f.Digests, Content: f.ContentPath}
	if format > 1 {
		out.Modified = f.Modified
	}
	if format > 2 {
		out.MIMEType, out.Since = f.MIMEType, f.Version
		if f.Format != nil {
			out.Format = &FileFormat{PUID: f.Format.PUID, Name: f.Format.Name, Version: f.Format.Version, Registry: f.Format.Registry, Warning: f.Format.Warning}
		}
	}
	return out
}

// EventOf returns a PREMIS event as the chain has it, without the work item, which is internal.
func EventOf(e registry.Premis) Event {
	return Event{
		Seq: e.Seq, Object: e.ObjectID, ID: e.ID, Version: e.Version, Type: e.Type, At: e.At, Agent: e.Agent, Outcome: e.Outcome,
		Detail: e.Detail,
	}
}

// TermsOf converts the terms of an object.
func TermsOf(t registry.Terms) Terms {
	out := Terms{PreservationLevel: t.PreservationLevel, EmbargoUntil: t.EmbargoUntil, EmbargoReason: t.EmbargoReason}
	if r := t.Rights; r != nil {
		out.Basis, out.Status, out.Jurisdiction, out.Statement, out.URI = string(r.Basis), r.Status, r.Jurisdiction, r.Statement, r.URI
	}
	return out
}
