package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) restorationRoutes() {
	get, path := http.MethodGet, "/objects/{id}/restores"
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "restore-object", Method: http.MethodPost, Path: path, Status: http.StatusAccepted,
		Summary: "Restore a version of an object as one file to download; returns a restore of the same version that is under way or ready",
	}, s.restoreObject)
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-restores", Method: get, Path: path, Summary: "List the restores of an object, newest first"}, s.restorations)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-restore", Method: get, Path: path + "/{n}", Summary: "Show a restore of an object"}, s.restoration)
	endpoint.Register(s.Server, endpoint.Operation{ID: "item-restore", Method: get, Path: "/items/{id}/restore", Summary: "Show the restore that an item carries out"}, s.restorationOf)
}

type restoreInput struct {
	lookup.ObjectID
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"A repeat with the same key gets the first one's answer"`
	Body wire.RestoreRequest
}

func (s *Service) restoreObject(ctx context.Context, in *restoreInput) (*endpoint.Output[registry.Restoration], error) {
	faults := append(valid.Text("header.Idempotency-Key", in.Key, valid.MaxText), valid.Text("body.reason", in.Body.Reason, valid.MaxText)...)
	if err := endpoint.Invalid("nothing was restored", faults...); err != nil {
		return nil, err
	}
	if err := s.readable(ctx, in.ID); err != nil {
		return nil, err
	}
	o, err := lookup.Version(ctx, s.Registry, in.ID, in.Body.Version)
	if err != nil {
		return nil, err
	}
	it, err := s.Registry.RequestObject(ctx, registry.ObjectRequest{
		Action: registry.RestoreObject, Actor: access.Actor(ctx), IdempotencyKey: in.Key,
		Spec: registry.ObjectSpec{ObjectID: o.ID, Version: o.Head, Reason: in.Body.Reason},
	})
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "restore requested", "object", o.ID, "version", o.Head, "item", it.ID, "actor", access.Actor(ctx))
	return endpoint.Answered(s.Registry.RestorationOf(ctx, it.ID))
}

type restorationsInput struct {
	lookup.ObjectID
	endpoint.Paging
}

func (s *Service) restorations(ctx context.Context, in *restorationsInput) (*endpoint.Output[registry.Page[registry.Restoration]], error) {
	before, err := in.Before()
	if err != nil {
		return nil, err
	}
	o, err := lookup.Object(ctx, s.Registry, in.ID)
	if err != nil {
		return nil, err
	}
	rows, err := s.Registry.Restorations(ctx, o.ID, before, in.Size())
	if err != nil {
		return nil, err
	}
	return endpoint.Page(endpoint.Numbered(rows, in.Size(), func(r registry.Restoration) int { return r.N })), nil
}

// RestoreNumber names a restore in a path.
type RestoreNumber struct {
	lookup.ObjectID
	N int `path:"n" minimum:"1" doc:"The number of the restore of this object"`
}

func (s *Service) restoration(ctx context.Context, in *RestoreNumber) (*endpoint.Output[registry.Restoration], error) {
	return endpoint.Answered(s.restorationAt(ctx, in.ID, in.N))
}

func (s *Service) restorationAt(ctx context.Context, id string, n int) (registry.Restoration, error) {
	o, err := lookup.Object(ctx, s.Registry, id)
	if err != nil {
		return registry.Restoration{}, err
	}
	rows, err := s.Registry.Restorations(ctx, o.ID, n+1, 1)
	if err == nil && (len(rows) == 0 || rows[0].N != n) {
		err = endpoint.NotFound("object %s has no restore %d; list its restores", o.ID, n)
	}
	if err != nil {
		return registry.Restoration{}, err
	}
	return rows[0], nil
}

func (s *Service) restorationOf(ctx context.Context, in *lookup.ItemID) (*endpoint.Output[registry.Restoration], error) {
	return endpoint.Answered(s.Registry.RestorationOf(ctx, in.ID))
}

// restoredRoute adds GET /objects/{id}/restores/{n}/content, which streams a restored file.
func (s *Service) restoredRoute() {
	op := s.Describe(endpoint.Operation{
		ID: "restored-content", Method: http.MethodGet, Path: "/objects/{id}/restores/{n}/content", Summary: "Download a restored file, whole or by Range: a bag in a tar",
	})
	op.Parameters = []*huma.Param{
		{Name: "id", In: "path", Required: true, Description: "The object's ARK, percent-encoded", Schema: &huma.Schema{Type: "string"}},
		{Name: "n", In: "path", Required: true, Description: "The number of the restore of this object", Schema: &huma.Schema{Type: "integer"}},
	}
	s.DocumentAs(&op, tarType, &huma.Schema{Type: "string", Format: "binary"})
	s.HandleFunc("GET /objects/{id}/restores/{n}/content", func(w http.ResponseWriter, r *http.Request) {
		if err := s.restored(w, r); err != nil {
			s.Fail(w, r, err)
		}
	})
}

const tarType = "application/x-tar"

// restored sends a restored file. An error means that nothing was sent yet.
func (s *Service) restored(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if err := s.Permit(ctx, "restored-content"); err != nil {
		return err
	}
	for key := range r.URL.Query() {
		return endpoint.Invalid("the file was not sent", wire.Fault{Location: "query." + key, Message: "unknown query parameter"})
	}
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		return endpoint.Invalid("the file was not sent", wire.Fault{Location: "path.n", Message: "not the number of a restore", Found: r.PathValue("n")})
	}
	if err := s.readable(ctx, r.PathValue("id")); err != nil {
		return err
	}
	restore, err := s.restorationAt(ctx, r.PathValue("id"), n)
	if err != nil {
		return err
	}
	if err := fetchable(restore); err != nil {
		return err
	}
	if by := registry.RestoredBy(restore.Place); by == "" || restore.ItemID != "" && by != restore.ItemID { // callers who may not see the item get no id
		return wire.NewProblem(http.StatusInternalServerError, wire.CodeDamaged, fmt.Sprintf(
			"restore %d of %s is recorded with a file that is not its own; request another restore", n, restore.ObjectID))
	}
	info, err := s.Staging.Stat(ctx, restore.Place)
	if errors.Is(err, storage.ErrNotFound) || err == nil && info.Size != restore.SizeBytes {
		return wire.NewProblem(http.StatusInternalServerError, wire.CodeDamaged, fmt.Sprintf(
			"the file of restore %d of %s is missing or changed in staging; request another restore, and ask an operator to check the staging volume", n, restore.ObjectID))
	} else if err != nil {
		return err
	}
	o, err := lookup.Object(ctx, s.Registry, restore.ObjectID)
	if err != nil {
		return err
	}
	if err := s.noteRestored(r, o, restore); err != nil {
		return err
	}
	in := &storedFile{size: restore.SizeBytes, from: func(offset int64) (io.ReadCloser, error) {
		return s.Staging.Open(ctx, restore.Place, offset, -1)
	}}
	s.send(w, r, in, restore.ObjectID, registry.File{
		Path: restore.Name, SizeBytes: restore.SizeBytes, MIMEType: tarType, Digests: map[string]string{"sha256": restore.SHA256},
	})
	return nil
}

// fetchable returns the problem of a restore without a file to fetch.
func fetchable(r registry.Restoration) error {
	switch {
	case r.Status == registry.RestoreReady:
		return nil
	case r.Status == registry.RestoreRemoved:
		return wire.NewProblem(http.StatusGone, wire.CodeGone, fmt.Sprintf("restore %d of %s was removed on %s; request another restore",
			r.N, r.ObjectID, r.ExpiresAt.UTC().Format(time.DateTime)))
	case r.Status.Open():
		return wire.NewProblem(http.StatusConflict, wire.CodeConflict, fmt.Sprintf("restore %d of %s is not ready yet (%s); try again later", r.N, r.ObjectID, r.Status))
	}
	return wire.NewProblem(http.StatusConflict, wire.CodeConflict, fmt.Sprintf("restore %d of %s is %s: %s", r.N, r.ObjectID, r.Status, r.Note))
}
