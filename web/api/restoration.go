package api

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
	"github.com/holdfast/holdfast/web/wire"
)

func (s *server) restorationRoutes(api huma.API) {
	get, path := http.MethodGet, "/objects/{id}/restores"
	register(s, api, operation{
		id: "restore-object", method: http.MethodPost, path: path, status: http.StatusAccepted,
		summary: "Have a version of an object made into one file that can be fetched; while that is under way, or lies ready, it is what is answered",
	}, s.restoreObject)
	register(s, api, operation{id: "list-restores", method: get, path: path, summary: "List the restores of an object, newest first"}, s.restorations)
	register(s, api, operation{id: "read-restore", method: get, path: path + "/{n}", summary: "Show a restore of an object"}, s.restoration)
	register(s, api, operation{id: "item-restore", method: get, path: "/items/{id}/restore", summary: "Show the restore that an item carries out"}, s.restorationOf)
}

type restoreInput struct {
	ObjectID
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"A repeat with the same key answers what the first one did"`
	Body wire.RestoreRequest
}

func (s *server) restoreObject(ctx context.Context, in *restoreInput) (*output[registry.Restoration], error) {
	faults := append(textFault("header.Idempotency-Key", in.Key, maxText), textFault("body.reason", in.Body.Reason, maxText)...)
	if err := invalid("nothing is restored", faults...); err != nil {
		return nil, err
	}
	if _, err := s.readable(ctx, in.ID); err != nil {
		return nil, err
	}
	o, err := s.versionOf(ctx, in.ID, in.Body.Version)
	if err != nil {
		return nil, err
	}
	it, err := s.registry.RequestObject(ctx, registry.ObjectRequest{
		Action: registry.RestoreObject, Actor: actor(ctx), IdempotencyKey: in.Key,
		Spec: registry.ObjectSpec{ObjectID: o.ID, Version: o.Head, Reason: in.Body.Reason},
	})
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "restore asked for", "object", o.ID, "version", o.Head, "item", it.ID, "actor", actor(ctx))
	return answered(s.registry.RestorationOf(ctx, it.ID))
}

type restorationsInput struct {
	ObjectID
	Paging
}

func (s *server) restorations(ctx context.Context, in *restorationsInput) (*output[registry.Page[registry.Restoration]], error) {
	before, err := in.before()
	if err != nil {
		return nil, err
	}
	o, err := s.known(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	rows, err := s.registry.Restorations(ctx, o.ID, before, in.size())
	if err != nil {
		return nil, err
	}
	return page(numbered(rows, in.size(), func(r registry.Restoration) int { return r.N })), nil
}

// RestoreNumber names a restore in a path.
type RestoreNumber struct {
	ObjectID
	N int `path:"n" minimum:"1" doc:"The restore's number among the object's"`
}

func (s *server) restoration(ctx context.Context, in *RestoreNumber) (*output[registry.Restoration], error) {
	return answered(s.restorationAt(ctx, in.ID, in.N))
}

func (s *server) restorationAt(ctx context.Context, id string, n int) (registry.Restoration, error) {
	o, err := s.known(ctx, id)
	if err != nil {
		return registry.Restoration{}, err
	}
	rows, err := s.registry.Restorations(ctx, o.ID, n+1, 1)
	if err == nil && (len(rows) == 0 || rows[0].N != n) {
		err = notFound("object %s has no restore %d; list its restores", o.ID, n)
	}
	if err != nil {
		return registry.Restoration{}, err
	}
	return rows[0], nil
}

func (s *server) restorationOf(ctx context.Context, in *ItemID) (*output[registry.Restoration], error) {
	return answered(s.registry.RestorationOf(ctx, in.ID))
}

// restoredRoute adds GET /objects/{id}/restores/{n}/content, which streams what was restored.
func (s *server) restoredRoute(api huma.API, mux *http.ServeMux) {
	op := s.describe(operation{
		id: "restored-content", method: http.MethodGet, path: "/objects/{id}/restores/{n}/content", summary: "The file that a restore came to, whole or by Range: a bag in a tar",
	})
	op.Parameters = []*huma.Param{
		{Name: "id", In: "path", Required: true, Description: "The object's ARK, percent-encoded", Schema: &huma.Schema{Type: "string"}},
		{Name: "n", In: "path", Required: true, Description: "The restore's number among the object's", Schema: &huma.Schema{Type: "integer"}},
	}
	documentAs(api, &op, tarType, &huma.Schema{Type: "string", Format: "binary"})
	mux.HandleFunc("GET "+wire.Base+"/objects/{id}/restores/{n}/content", func(w http.ResponseWriter, r *http.Request) {
		if err := s.restored(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

const tarType = "application/x-tar"

// restored sends what was restored. An error means that nothing was sent yet.
func (s *server) restored(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if err := s.permit(ctx, "restored-content"); err != nil {
		return err
	}
	for key := range r.URL.Query() {
		return invalid("no file was sent", wire.Fault{Location: "query." + key, Message: "unknown query parameter"})
	}
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		return invalid("no file was sent", wire.Fault{Location: "path.n", Message: "it is no restore's number", Found: r.PathValue("n")})
	}
	if _, err := s.readable(ctx, r.PathValue("id")); err != nil {
		return err
	}
	restore, err := s.restorationAt(ctx, r.PathValue("id"), n)
	if err != nil {
		return err
	}
	if err := fetchable(restore); err != nil {
		return err
	}
	if by := registry.RestoredBy(restore.Place); by == "" || restore.ItemID != "" && by != restore.ItemID { // whose id some may not see
		return wire.NewProblem(http.StatusInternalServerError, wire.CodeDamaged, fmt.Sprintf(
			"restore %d of %s is recorded at a place that is not its own; ask for another one", n, restore.ObjectID))
	}
	info, err := s.staging.Stat(ctx, restore.Place)
	if errors.Is(err, storage.ErrNotFound) || err == nil && info.Size != restore.SizeBytes {
		return wire.NewProblem(http.StatusInternalServerError, wire.CodeDamaged, fmt.Sprintf(
			"what restore %d of %s came to is not in staging any more as it was written; have an operator look at the staging volume, and ask for another one", n, restore.ObjectID))
	} else if err != nil {
		return err
	}
	in := &storedFile{size: restore.SizeBytes, from: func(offset int64) (io.ReadCloser, error) {
		return s.staging.Open(ctx, restore.Place, offset, -1)
	}}
	s.send(w, r, in, restore.ObjectID, registry.File{
		Path: restore.Name, SizeBytes: restore.SizeBytes, MIMEType: tarType, Digests: map[string]string{"sha256": restore.SHA256},
	})
	return nil
}

// fetchable returns the problem of a restore that nothing can be fetched of.
func fetchable(r registry.Restoration) error {
	switch {
	case r.Status == registry.RestoreReady:
		return nil
	case r.Status == registry.RestoreRemoved:
		return wire.NewProblem(http.StatusGone, wire.CodeGone, fmt.Sprintf("restore %d of %s was removed on %s; ask for another one",
			r.N, r.ObjectID, r.ExpiresAt.UTC().Format(time.DateTime)))
	case r.Status.Open():
		return wire.NewProblem(http.StatusConflict, wire.CodeConflict, fmt.Sprintf("restore %d of %s is not ready yet (%s); ask again later", r.N, r.ObjectID, r.Status))
	}
	return wire.NewProblem(http.StatusConflict, wire.CodeConflict, fmt.Sprintf("restore %d of %s is %s: %s", r.N, r.ObjectID, r.Status, r.Note))
}
