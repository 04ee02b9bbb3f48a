package object

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) objectRoutes() {
	get := http.MethodGet
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-objects", Method: get, Path: "/objects", Summary: "List objects, newest first"}, s.listObjects)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-object", Method: get, Path: "/objects/{id}", Summary: "Show an object and its versions"}, s.object)
	endpoint.Register(s.Server, endpoint.Operation{ID: "object-files", Method: get, Path: "/objects/{id}/files", Summary: "List the files of an object's version, by path"}, s.files)
	endpoint.Register(s.Server, endpoint.Operation{ID: "object-changes", Method: get, Path: "/objects/{id}/changes", Summary: "List the files that differ between two versions of an object, by path"}, s.changes)
	endpoint.Register(s.Server, endpoint.Operation{ID: "object-events", Method: get, Path: "/objects/{id}/events", Summary: "List the preservation events of an object"}, s.premis)
	endpoint.Register(s.Server, endpoint.Operation{ID: "receipt-keys", Method: get, Path: "/receipt-keys", Summary: "List the public keys of all receipts"}, s.receiptKeys)
	endpoint.Register(s.Server, endpoint.Operation{ID: "verify-object", Method: http.MethodPost, Path: "/objects/{id}/verify", Summary: "Read and compare every byte of an object"}, s.verify)
	endpoint.Register(s.Server, endpoint.Operation{ID: "check-object", Method: http.MethodPost, Path: "/objects/{id}/fixity", Summary: "Enqueue a fixity check of every stored file of an object, in every storage", Status: http.StatusAccepted}, s.checkObject)
}

type objectsInput struct {
	endpoint.Paging
	Before     string `query:"before" maxLength:"4096" doc:"prev of a page, for the page before it; not with after"`
	Collection string `query:"collection" maxLength:"200"`
	LocalID    string `query:"local_id" maxLength:"2000"`
	Text       string `query:"text" maxLength:"500" doc:"Part of the ARK, the title or the creator"`
}

func (s *Service) listObjects(ctx context.Context, in *objectsInput) (*endpoint.Output[registry.Page[registry.Object]], error) {
	if in.After != "" && in.Before != "" {
		return nil, endpoint.Invalid("the list was not read", wire.Fault{Location: "query.before", Message: "a page is after one object or before one; give one of after and before"})
	}
	rows, err := s.Registry.Objects(ctx, registry.ObjectQuery{
		Collection: in.Collection, LocalID: in.LocalID, Text: in.Text, After: in.After, Before: in.Before, Limit: in.Size(),
	})
	if in.Before != "" && errors.Is(err, registry.ErrNotFound) {
		err = endpoint.NoPage("before")
	}
	if err != nil {
		return nil, in.BadCursor(err)
	}
	return endpoint.Page(rows), nil
}

func (s *Service) object(ctx context.Context, in *lookup.ObjectID) (*endpoint.Output[registry.Object], error) {
	o, err := lookup.Object(ctx, s.Registry, in.ID)
	if err != nil {
		return nil, err
	}
	if o.Gone == "" {
		copies, err := s.Registry.CopiesOf(ctx, o)
		if err != nil {
			return nil, err
		}
		o.Copies = &copies
	}
	return &endpoint.Output[registry.Object]{Body: o}, nil
}

type filesInput struct {
	lookup.ObjectID
	endpoint.Paging
	Version int    `query:"version" minimum:"0" doc:"The newest when absent"`
	Path    string `query:"path" maxLength:"4096" doc:"Only the file with this path; 404 if there is none"`
}

func (s *Service) files(ctx context.Context, in *filesInput) (*endpoint.Output[registry.Page[registry.File]], error) {
	o, err := lookup.Version(ctx, s.Registry, in.ID, in.Version)
	if err != nil {
		return nil, err
	}
	if in.Path != "" {
		f, err := s.fileAt(ctx, o, in.Path)
		if err != nil {
			return nil, err
		}
		return endpoint.Page(registry.Page[registry.File]{Rows: []registry.File{f}}), nil
	}
	limit := in.Size()
	files, err := s.Registry.Files(ctx, o.ID, o.Head, in.After, limit)
	if err != nil {
		return nil, err
	}
	p := registry.Page[registry.File]{Rows: files}
	if len(files) == limit {
		p.Next = files[limit-1].Path
	}
	return endpoint.Page(p), nil
}

type changesInput struct {
	lookup.ObjectID
	endpoint.Paging
	Version int    `query:"version" minimum:"0" doc:"The newest when absent"`
	Since   int    `query:"since" minimum:"-1" default:"-1" doc:"The version to compare with; the one before when absent, and 0 for none"`
	Folder  string `query:"folder" maxLength:"4096" doc:"Only files below this folder, with a slash at its end, such as producer/"`
}

func (s *Service) changes(ctx context.Context, in *changesInput) (*endpoint.Output[registry.Page[registry.FileChange]], error) {
	if in.Folder != "" && !strings.HasSuffix(in.Folder, "/") {
		return nil, endpoint.Invalid("nothing was listed", wire.Fault{Location: "query.folder", Message: "a folder's path ends in a slash, such as producer/", Found: in.Folder})
	}
	o, err := lookup.Version(ctx, s.Registry, in.ID, in.Version)
	if err != nil {
		return nil, err
	}
	if in.Since < 0 {
		in.Since = o.Head - 1
	}
	page, err := s.Registry.FileChanges(ctx, registry.FileChangesQuery{ObjectID: o.ID, Version: o.Head, Since: in.Since, Folder: in.Folder, After: in.After, Limit: in.Size()})
	if err != nil {
		return nil, err
	}
	return endpoint.Page(page), nil
}

type premisInput struct {
	lookup.ObjectID
	endpoint.Paging
}

func (s *Service) premis(ctx context.Context, in *premisInput) (*endpoint.Output[registry.Page[registry.Premis]], error) {
	o, err := lookup.Object(ctx, s.Registry, in.ID)
	if err != nil {
		return nil, err
	}
	events, err := s.Registry.PremisEvents(ctx, o.ID, in.After, in.Size())
	if err != nil {
		return nil, in.BadCursor(err)
	}
	return endpoint.Page(events), nil
}

// verify reads every byte of every replica of an object, one after the other, and compares it with
// the recorded digests, versions and events. If the record cannot be read, it compares the bytes with the
// inventory beside them only, and says so.
func (s *Service) verify(ctx context.Context, in *lookup.ObjectID) (*endpoint.Output[wire.VerifyReport], error) {
	o, err := lookup.Readable(ctx, s.Registry, in.ID)
	if err != nil {
		return nil, err
	}
	heads, err := s.replicasOf(ctx, o)
	if err != nil {
		return nil, err
	}
	v := wire.VerifyReport{ObjectID: o.ID, Recorded: o.Head, Valid: len(heads) > 0, Against: wire.AgainstRecord, Replicas: []wire.VerifyReplica{}, Faults: []wire.VerifyFault{}}
	judge := &evidence.Judge{From: recordSource{s.All}}
	for i, h := range heads {
		r, faults, err := s.verifyReplica(ctx, o, h, judge)
		if err != nil {
			return nil, err
		}
		if i == 0 || r.Version < v.Version {
			v.Version = r.Version
		}
		v.Valid = v.Valid && r.Valid
		if r.Against != wire.AgainstRecord {
			v.Against = r.Against
		}
		v.Files, v.Bytes = v.Files+r.Files, v.Bytes+r.Bytes
		v.Replicas, v.Faults = append(v.Replicas, r), append(v.Faults, faults...)
	}
	v.At = s.Now().UTC()
	s.Log.InfoContext(ctx, "object verified", "object", o.ID, "valid", v.Valid, "replicas", len(heads), "files", v.Files, "actor", access.Actor(ctx))
	return &endpoint.Output[wire.VerifyReport]{Body: v}, nil
}

// versionNumber returns the number in the name of an OCFL version.
func versionNumber(name string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "v"))
	return n, err == nil
}

type checkObjectInput struct {
	lookup.ObjectID
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"A repeat with the same key asks for nothing more"`
	Body wire.CheckObjectRequest
}

// checkObject enqueues a fixity check of every file of an object, and returns the object.
func (s *Service) checkObject(ctx context.Context, in *checkObjectInput) (*endpoint.Output[registry.Object], error) {
	faults := append(valid.Text("header.Idempotency-Key", in.Key, valid.MaxText), valid.Text("body.reason", in.Body.Reason, valid.MaxText)...)
	if err := endpoint.Invalid("no check was enqueued", faults...); err != nil {
		return nil, err
	}
	o, err := lookup.Object(ctx, s.Registry, in.ID)
	if err != nil {
		return nil, err
	}
	ask := registry.CheckRequest{ObjectID: o.ID, Reason: in.Body.Reason, Actor: access.Actor(ctx), IdempotencyKey: in.Key}
	if err := s.Registry.AskForCheck(ctx, ask); err != nil {
		return nil, err
	}
	return endpoint.Answered(s.Registry.Object(ctx, o.ID))
}
