package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/wire"
)

const checkPath = wire.Base + "/check"

// checkRoute adds POST /check: the body is the payload, streamed, unless an upload is named.
func (s *server) checkRoute(api huma.API, mux *http.ServeMux) {
	op := s.describe(operation{
		id: "check", method: http.MethodPost, path: "/check",
		summary: "Judge a payload as a submission would, and keep nothing of it",
	})
	text := &huma.Schema{Type: "string"}
	op.Parameters = []*huma.Param{
		{Name: "type", In: "query", Description: "What it is to be judged as; auto when not given", Schema: text},
		{Name: "collection", In: "query", Description: "The collection whose wishes it is to meet; none when not given", Schema: text},
		{Name: "upload_id", In: "query", Description: "An upload to judge, which stays; the body is judged when none is named", Schema: text},
	}
	op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"application/octet-stream": {
		Schema: &huma.Schema{Type: "string", Format: "binary"},
	}}}
	document[intake.Report](api, &op)
	mux.HandleFunc("POST "+checkPath, func(w http.ResponseWriter, r *http.Request) {
		v, err := s.check(w, r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the asker has gone if this fails
	})
}

// check judges an upload, or the body.
func (s *server) check(w http.ResponseWriter, r *http.Request) (intake.Report, error) {
	ctx := r.Context()
	if err := s.permit(ctx, "check"); err != nil {
		return intake.Report{}, err
	}
	query := r.URL.Query()
	t, faults := payloadType("query.type", query.Get("type"))
	for name := range query {
		if name != "type" && name != "upload_id" && name != "collection" {
			faults = append(faults, wire.Fault{Location: "query." + name, Message: "unknown query parameter"})
		}
	}
	if err := invalid("nothing was judged", faults...); err != nil {
		return intake.Report{}, err
	}
	var c registry.Collection
	if name := query.Get("collection"); name != "" {
		var err error
		if c, err = s.collectionOf(ctx, name); err != nil {
			return intake.Report{}, err
		}
	}
	id := query.Get("upload_id")
	if id == "" {
		return s.checkBody(w, r, t, c)
	}
	u, err := s.registry.UploadByID(ctx, id)
	if errors.Is(err, registry.ErrNotFound) {
		return intake.Report{}, notFound("there is no upload %q; send the file to POST %s and give the id it answers, or send it as the body", id, uploadPath)
	} else if err != nil {
		return intake.Report{}, err
	}
	if _, err := s.staging.Stat(ctx, source.UploadKey(u.ID)); errors.Is(err, storage.ErrNotFound) {
		return intake.Report{}, notFound("upload %s (%s) is not here any more; send the file again", u.ID, u.Filename)
	}
	v, err := s.verdict(ctx, u, t, c)
	return v.For(c.Profile), err
}

// checkBody stores a body as an upload, since a container cannot be judged from a stream that cannot be read twice, and
// removes it when it is judged. After a kill it is an upload that nobody submits.
func (s *server) checkBody(w http.ResponseWriter, r *http.Request, t registry.PayloadType, c registry.Collection) (intake.Report, error) {
	ctx := r.Context()
	u, err := s.store(w, r, registry.NewUpload{Filename: "to-be-judged"})
	if err != nil {
		return intake.Report{}, err
	}
	defer s.removeUpload(ctx, u)
	v, err := s.judgeNow(ctx, u, t, c)
	return v.For(c.Profile), err
}
