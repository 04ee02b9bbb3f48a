package upload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

// Path is the path of uploads.
const Path = wire.Base + "/uploads"

const (
	uploadAlgorithm = "sha256"
	copyBuffer      = 1 << 20
)

// uploadRoute adds POST /uploads. The body is the file, as a stream; for tus clients, the request
// creates an upload in parts.
func (s *Service) uploadRoute() {
	op := s.Describe(endpoint.Operation{
		ID: "upload", Method: http.MethodPost, Path: "/uploads", Status: http.StatusCreated,
		Refuses: []int{http.StatusPreconditionFailed, http.StatusInsufficientStorage, wire.StatusChecksum},
		Summary: "Upload a file, to be submitted by its id; answered when it is durable",
	})
	op.Parameters = []*huma.Param{
		{Name: "filename", In: "query", Description: "The file's name, without folders; required unless Upload-Metadata has it", Schema: &huma.Schema{Type: "string"}},
		{Name: "collection", In: "query", Description: "The collection of the file, whose quota it uses; when absent, the token's only collection", Schema: &huma.Schema{Type: "string"}},
		{Name: wire.DigestHeader, In: "header", Description: "ALGORITHM:HEX of the bytes; other bytes are refused", Schema: &huma.Schema{Type: "string"}},
		headerParam(wire.TusResumableHeader, wire.TusVersion+": creates an upload in parts, with or without its first bytes; Location of the answer is its address"),
		headerParam(wire.UploadLengthHeader, "The size of the file in bytes"),
		headerParam(wire.UploadDeferHeader, "1: the size is sent later"),
		headerParam(wire.UploadMetadataHeader, "Keys with base64 values, for an upload in parts: filename, optionally digest (ALGORITHM:HEX) and collection; others are stored"),
		headerParam(wire.UploadChecksumHeader, "Algorithm and base64 digest of the bytes of this request"),
	}
	op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"application/octet-stream": {
		Schema: &huma.Schema{Type: "string", Format: "binary"},
	}}}
	endpoint.Document[registry.Upload](s.Server, &op)
	s.HandleFunc("POST /uploads", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(wire.TusResumableHeader) != "" {
			s.tus("upload", s.beginUpload)(w, r)
			return
		}
		u, err := s.receive(w, r)
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(u) // a failure means that the client has disconnected
	})
}

func headerParam(name, description string) *huma.Param {
	return &huma.Param{Name: name, In: "header", Description: description, Schema: &huma.Schema{Type: "string"}}
}

// receive receives an upload in one body. Internally it is an upload in parts that is dropped on
// any failure.
func (s *Service) receive(w http.ResponseWriter, r *http.Request) (registry.Upload, error) {
	ctx := r.Context()
	none := registry.Upload{}
	if err := s.Permit(ctx, "upload"); err != nil {
		return none, err
	}
	as, err := announcement(r)
	if err != nil {
		return none, err
	}
	if err := s.checkAccepting(ctx); err != nil {
		return none, err
	}
	return s.Store(w, r, as)
}

// Store stores the body as an upload and records it. After an error nothing of it is left.
func (s *Service) Store(w http.ResponseWriter, r *http.Request, as registry.NewUpload) (registry.Upload, error) {
	ctx := r.Context()
	none := registry.Upload{}
	if as.SizeBytes = r.ContentLength; as.SizeBytes == 0 {
		return none, emptyUpload(as.Filename)
	}
	if err := s.checkRoom(ctx, r.ContentLength); err != nil {
		return none, err
	}
	in, err := s.begin(ctx, as)
	if err != nil {
		return none, err
	}
	f := s.newSender(w)
	done, err := s.acquire(ctx, in.ID, f)
	if err != nil {
		return none, err
	}
	defer done()
	u, err := s.receiveWhole(ctx, r, f, in)
	if err != nil {
		return none, errors.Join(err, s.giveUp(context.WithoutCancel(ctx), in.ID))
	}
	return u, nil
}

func (s *Service) receiveWhole(ctx context.Context, r *http.Request, f *sender, in registry.Incoming) (registry.Upload, error) {
	none := registry.Upload{}
	rc, err := s.newReceiver(ctx, in)
	if err != nil {
		return none, err
	}
	flow := &transfer{body: r.Body, from: f, to: rc, left: r.ContentLength}
	if r.ContentLength < 0 { // so that a quota can stop it
		flow.save = func() error { return s.save(ctx, rc, -1) }
	}
	if err := flow.run(); err != nil {
		rc.release()
		var cut *cutError
		if !errors.As(err, &cut) {
			return none, err
		}
		return none, wire.NewProblem(http.StatusBadRequest, wire.CodeBrokenOff, fmt.Sprintf(
			"the upload broke off after %d of %s bytes (%v); nothing was stored; send the file again", rc.size, numberOr(r.ContentLength), cut.err))
	}
	if rc.size == 0 {
		rc.release()
		return none, emptyUpload(in.Filename)
	}
	if err := s.save(ctx, rc, rc.size); err != nil {
		rc.release()
		return none, err
	}
	return s.finish(ctx, rc.in, rc)
}

func numberOr(n int64) string {
	if n < 0 {
		return "an unknown number of"
	}
	return fmt.Sprint(n)
}

func emptyUpload(name string) error {
	return endpoint.Unprocessable(wire.CodeEmptyUpload, "the upload of %q has no bytes; check that the file is not empty and send it again", name)
}

// begin records a new upload of the caller.
func (s *Service) begin(ctx context.Context, u registry.NewUpload) (registry.Incoming, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return registry.Incoming{}, fmt.Errorf("name upload: %w", err)
	}
	u.ID, u.CreatedBy, u.Keep = id.String(), access.Actor(ctx), s.Keep
	if u.Collection, err = s.uploadCollection(ctx, u.Collection); err != nil {
		return registry.Incoming{}, err
	}
	u.Limits, u.Room, err = s.limitsOf(ctx, registry.Incoming{CreatedBy: u.CreatedBy, Collection: u.Collection})
	if err != nil {
		return registry.Incoming{}, err
	}
	return s.Registry.BeginUpload(ctx, u)
}

// announcement reads the description of the file from the request.
func announcement(r *http.Request) (u registry.NewUpload, err error) {
	var faults []wire.Fault
	query := r.URL.Query()
	u.Collection = query.Get("collection")
	if u.Filename = query.Get("filename"); u.Filename == "" {
		faults = append(faults, wire.Fault{Location: "query.filename", Message: "missing: the file's name, as in ?filename=report.pdf"})
	} else {
		faults = append(faults, valid.Name("query.filename", u.Filename)...)
	}
	for key := range query {
		if key != "filename" && key != "collection" {
			faults = append(faults, wire.Fault{Location: "query." + key, Message: "unknown query parameter"})
		}
	}
	digest, f := announcedDigest("header."+wire.DigestHeader, r.Header.Get(wire.DigestHeader))
	u.Digest = digest
	return u, endpoint.Invalid("the file was not uploaded", append(faults, f...)...)
}

// announcedDigest parses ALGORITHM:HEX; "" means none.
func announcedDigest(location, text string) (*registry.Digest, []wire.Fault) {
	if text == "" {
		return nil, nil
	}
	algorithm, value, _ := strings.Cut(text, ":")
	return valid.Digest(location, &registry.Digest{Algorithm: algorithm, Value: value})
}

// giveUp drops an incoming upload: no more bytes can be saved, and its bytes are removed. A
// complete upload stays. The sweep removes what giveUp could not. The caller holds the upload
// (acquire).
func (s *Service) giveUp(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTime)
	defer cancel()
	if err := s.Registry.DropUpload(ctx, id); errors.Is(err, registry.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	s.receivers.drop(id)
	return s.removeBytes(ctx, id)
}

// removeRetired removes a complete upload, unless a batch needs it. It retires the upload first, so
// that nobody can submit it, and so that the sweep removes the rest after a kill.
func (s *Service) removeRetired(ctx context.Context, id string) error {
	if retired, err := s.All.RetireUpload(ctx, id); err != nil || !retired {
		return err
	}
	if err := s.removeBytes(ctx, id); err != nil {
		return err
	}
	return s.All.ForgetUpload(ctx, id)
}

// removeBytes removes all bytes of an upload, also those that other writers left.
func (s *Service) removeBytes(ctx context.Context, id string) error {
	if err := s.Staging.DeletePrefix(ctx, source.UploadKey(id)); err != nil {
		return fmt.Errorf("remove upload %s: %w", id, err)
	}
	return nil
}

// checkAccepting refuses uploads before their bytes are read while submissions are not accepted.
func (s *Service) checkAccepting(ctx context.Context) error {
	a, err := s.Registry.Accepting(ctx)
	if err == nil && !a.On {
		return &registry.NotAccepting{Accepting: a}
	}
	return err
}
