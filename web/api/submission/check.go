package submission

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/web/wire"
)

// CheckPath is the path to which payloads are sent for a check without a submission.
const CheckPath = wire.Base + "/check"

// checkRoute adds POST /check. The body is the payload, as a stream, unless the query names an
// upload.
func (s *Service) checkRoute() {
	op := s.Describe(endpoint.Operation{
		ID: "check", Method: http.MethodPost, Path: "/check",
		Summary: "Check a payload as a submission would, without storing it",
	})
	text := &huma.Schema{Type: "string"}
	op.Parameters = []*huma.Param{
		{Name: "type", In: "query", Description: "The type to check it as; auto when absent", Schema: text},
		{Name: "collection", In: "query", Description: "The collection whose profile applies; none when absent", Schema: text},
		{Name: "upload_id", In: "query", Description: "An upload to check, which is kept; when absent, the body is checked", Schema: text},
	}
	op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"application/octet-stream": {
		Schema: &huma.Schema{Type: "string", Format: "binary"},
	}}}
	endpoint.Document[intake.Report](s.Server, &op)
	s.HandleFunc("POST /check", func(w http.ResponseWriter, r *http.Request) {
		v, err := s.check(w, r)
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // a failure means that the client has disconnected
	})
}

// check judges an upload or the body.
func (s *Service) check(w http.ResponseWriter, r *http.Request) (intake.Report, error) {
	ctx := r.Context()
	if err := s.Permit(ctx, "check"); err != nil {
		return intake.Report{}, err
	}
	query := r.URL.Query()
	t, faults := payloadType("query.type", query.Get("type"))
	for name := range query {
		if name != "type" && name != "upload_id" && name != "collection" {
			faults = append(faults, wire.Fault{Location: "query." + name, Message: "unknown query parameter"})
		}
	}
	if err := endpoint.Invalid("nothing was checked", faults...); err != nil {
		return intake.Report{}, err
	}
	var c registry.Collection
	if name := query.Get("collection"); name != "" {
		var err error
		if c, err = lookup.Collection(ctx, s.Registry, name); err != nil {
			return intake.Report{}, err
		}
	}
	id := query.Get("upload_id")
	if id == "" {
		return s.checkBody(w, r, t, c)
	}
	u, err := s.Registry.UploadByID(ctx, id)
	if errors.Is(err, registry.ErrNotFound) {
		return intake.Report{}, endpoint.NotFound("upload %q was not found; send the file to POST %s and use the id of its answer, or send the file as the body", id, upload.Path)
	} else if err != nil {
		return intake.Report{}, err
	}
	if _, err := s.Staging.Stat(ctx, source.UploadKey(u.ID)); errors.Is(err, storage.ErrNotFound) {
		return intake.Report{}, endpoint.NotFound("upload %s (%s) is no longer stored; send the file again", u.ID, u.Filename)
	}
	v, err := s.verdict(ctx, u, t, c)
	return v.For(c.Profile), err
}

// checkBody stores a body as an upload, judges it and removes it. A container cannot be judged from
// a stream, because it must be read twice. If the process dies meanwhile, an unsubmitted upload
// remains, which expires.
func (s *Service) checkBody(w http.ResponseWriter, r *http.Request, t registry.PayloadType, c registry.Collection) (intake.Report, error) {
	ctx := r.Context()
	u, err := s.Uploads.Store(w, r, registry.NewUpload{Filename: "to-be-judged"})
	if err != nil {
		return intake.Report{}, err
	}
	defer s.Uploads.Remove(ctx, u)
	v, err := s.judgeNow(ctx, u, t, c)
	return v.For(c.Profile), err
}
