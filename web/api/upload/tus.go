package upload

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// tusRoutes adds the operations of tus 1.0.0, except the POST that creates an upload.
func (s *Service) tusRoutes() {
	id := &huma.Param{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: "string"}}
	version := headerParam(wire.TusResumableHeader, wire.TusVersion)
	const one = "/uploads/{id}"
	add := func(o endpoint.Operation, serve http.HandlerFunc, params ...*huma.Param) {
		op := s.Describe(o)
		op.Parameters = params
		if o.Method == http.MethodPatch {
			op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{wire.TusMediaType: {
				Schema: &huma.Schema{Type: "string", Format: "binary"},
			}}}
		}
		s.DocumentEmpty(&op)
		s.HandleFunc(o.Method+" "+o.Path, serve)
	}
	patch := s.tus("continue-upload", s.continueUpload)
	head := s.tus("upload-offset", s.uploadOffset)
	add(endpoint.Operation{
		ID: "continue-upload", Method: http.MethodPatch, Path: "/uploads/{id}", Status: http.StatusNoContent,
		Refuses: []int{http.StatusPreconditionFailed, http.StatusLocked, http.StatusInsufficientStorage, wire.StatusChecksum},
		Summary: "Send more bytes of an upload (tus 1.0.0); bytes that the answer counts, and every 16 MiB before it, are durable",
	}, patch, id, version, headerParam(wire.UploadOffsetHeader, "The present offset of the upload"),
		headerParam(wire.UploadChecksumHeader, "Algorithm and base64 digest of the bytes of this request; bytes with another digest are dropped"),
		headerParam(wire.UploadLengthHeader, "The size of the file, if it was deferred"))
	add(endpoint.Operation{
		ID: "upload-offset", Method: http.MethodHead, Path: "/uploads/{id}", Status: http.StatusOK, Refuses: []int{http.StatusPreconditionFailed},
		Summary: "Show the offset of an upload (tus 1.0.0)",
	}, head, id, version)
	add(endpoint.Operation{
		ID: "upload-protocol", Method: http.MethodOptions, Path: "/uploads", Status: http.StatusNoContent,
		Summary: "Show the supported version and extensions of tus",
	}, s.uploadProtocol)
	s.HandleFunc("OPTIONS "+one, s.uploadProtocol)
	s.HandleFunc("POST "+one, func(w http.ResponseWriter, r *http.Request) {
		switch method := strings.ToUpper(r.Header.Get(wire.MethodOverrideHeader)); method {
		case http.MethodPatch:
			patch(w, r)
		case http.MethodHead:
			head(w, r)
		case http.MethodDelete:
			s.tus("remove-upload", s.removeByOverride)(w, r)
		default:
			w.Header().Set("Allow", "DELETE, GET, HEAD, OPTIONS, PATCH")
			s.Fail(w, r, wire.NewProblem(http.StatusMethodNotAllowed, wire.CodeMethodNotAllowed, fmt.Sprintf(
				"a POST to %s needs the header %s: PATCH, HEAD or DELETE", webserver.Path(r), wire.MethodOverrideHeader)))
		}
	})
}

// tus checks what every tus request must have, and adds the headers of every tus answer.
func (s *Service) tus(operation string, serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(wire.TusResumableHeader, wire.TusVersion)
		err := s.Permit(r.Context(), operation)
		if err == nil {
			err = tusVersion(w, r.Header.Get(wire.TusResumableHeader))
		}
		if err == nil {
			err = serve(w, r)
		}
		if err != nil {
			s.Fail(w, r, err)
		}
	}
}

// tusVersion refuses other versions of the protocol.
func tusVersion(w http.ResponseWriter, version string) error {
	if version == wire.TusVersion {
		return nil
	}
	w.Header().Set(wire.TusVersionHeader, wire.TusVersion)
	return otherVersion(version)
}

func otherVersion(version string) error {
	return wire.NewProblem(http.StatusPreconditionFailed, wire.CodeTusVersion, fmt.Sprintf(
		"the header %s is %q; only version %s is supported", wire.TusResumableHeader, version, wire.TusVersion))
}

// checksums lists the algorithms of Upload-Checksum.
func checksums() string { return "sha1,sha256,sha512,md5,crc32" }

func (s *Service) uploadProtocol(w http.ResponseWriter, r *http.Request) {
	if err := s.Permit(r.Context(), "upload-protocol"); err != nil {
		s.Fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set(wire.TusResumableHeader, wire.TusVersion)
	h.Set(wire.TusVersionHeader, wire.TusVersion)
	h.Set(wire.TusExtensionHeader, wire.TusExtensions)
	h.Set(wire.TusChecksumsHeader, checksums())
	w.WriteHeader(http.StatusNoContent)
}

// beginUpload creates an upload in parts (tus extension creation), with its first bytes if the
// request has any (creation-with-upload).
func (s *Service) beginUpload(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	u, err := creation(r)
	if err != nil {
		return err
	}
	if err := s.checkAccepting(ctx); err != nil {
		return err
	}
	if err := s.checkRoom(ctx, u.SizeBytes); err != nil {
		return err
	}
	withBytes := r.ContentLength != 0
	if withBytes {
		if err := offsetMedia(r); err != nil {
			return err
		}
	}
	in, err := s.begin(ctx, u)
	if err != nil {
		return err
	}
	w.Header().Set("Location", Path+"/"+in.ID)
	if withBytes {
		if in, err = s.receiveBytes(w, r, in); err != nil {
			return err
		}
	}
	setOffset(w.Header(), in)
	w.WriteHeader(http.StatusCreated)
	return nil
}

// creation reads the description of a new upload from the headers.
func creation(r *http.Request) (registry.NewUpload, error) {
	u := registry.NewUpload{SizeBytes: -1, Metadata: strings.Join(r.Header.Values(wire.UploadMetadataHeader), ",")}
	length, deferred := r.Header.Get(wire.UploadLengthHeader), r.Header.Get(wire.UploadDeferHeader)
	switch {
	case length == "" && deferred == "1":
	case length == "" || deferred != "":
		return u, badRequest("give either %s, the size of the file, or %s: 1", wire.UploadLengthHeader, wire.UploadDeferHeader)
	default:
		var err error
		if u.SizeBytes, err = count(wire.UploadLengthHeader, length); err != nil {
			return u, err
		}
	}
	where := "header." + wire.UploadMetadataHeader
	faults := valid.Text(where, u.Metadata, valid.MaxText)
	values, err := wire.DecodeMetadata(u.Metadata)
	if err != nil {
		faults = append(faults, wire.Fault{Location: where, Message: err.Error()})
		return u, endpoint.Invalid("the upload was not created", faults...)
	}
	if u.Filename = values[wire.MetadataFilename]; u.Filename == "" {
		faults = append(faults, wire.Fault{Location: where, Message: "missing: filename, the name of the file"})
	} else {
		faults = append(faults, valid.Name(where+" filename", u.Filename)...)
	}
	u.Collection = values[wire.MetadataCollection]
	var f []wire.Fault
	u.Digest, f = announcedDigest(where+" digest", values[wire.MetadataDigest])
	if err := endpoint.Invalid("the upload was not created", append(faults, f...)...); err != nil {
		return u, err
	}
	if u.SizeBytes == 0 {
		return u, emptyUpload(u.Filename)
	}
	return u, nil
}

func badRequest(format string, args ...any) error {
	return wire.NewProblem(http.StatusBadRequest, wire.CodeBadRequest, fmt.Sprintf(format, args...))
}

// count parses a header with a number of bytes.
func count(name, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strings.HasPrefix(text, "+") {
		return 0, badRequest("the header %s must be a number of bytes, not %q", name, text)
	}
	return n, nil
}

// offsetMedia refuses bodies without the content type of tus.
func offsetMedia(r *http.Request) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == wire.TusMediaType {
		return nil
	}
	return wire.NewProblem(http.StatusUnsupportedMediaType, wire.CodeUnsupportedMedia, fmt.Sprintf(
		"the bytes of an upload must have the content type %s, not %q", wire.TusMediaType, r.Header.Get("Content-Type")))
}

// setOffset writes the offset of an upload into the headers.
func setOffset(h http.Header, in registry.Incoming) {
	h.Set(wire.UploadOffsetHeader, strconv.FormatInt(in.Offset, 10))
	if !in.Whole() {
		h.Set(wire.UploadExpiresHeader, in.ExpiresAt.UTC().Format(http.TimeFormat))
	}
}

// uploadOffset answers the offset of an upload. It finishes a complete upload before it says that
// all bytes have come.
func (s *Service) uploadOffset(w http.ResponseWriter, r *http.Request) error {
	ctx, id := r.Context(), r.PathValue("id")
	in, ended, err := s.uploadAt(ctx, id)
	if err != nil {
		return err
	}
	if in.Whole() && !ended {
		if _, err := s.complete(ctx, id); err != nil {
			return s.uploadMissing(err, id)
		}
	}
	h := w.Header()
	setOffset(h, in)
	if in.SizeBytes >= 0 {
		h.Set(wire.UploadLengthHeader, strconv.FormatInt(in.SizeBytes, 10))
	} else {
		h.Set(wire.UploadDeferHeader, "1")
	}
	if in.Metadata != "" {
		h.Set(wire.UploadMetadataHeader, in.Metadata)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// uploadAt returns an upload, incoming or complete.
func (s *Service) uploadAt(ctx context.Context, id string) (in registry.Incoming, ended bool, err error) {
	in, err = s.Registry.IncomingByID(ctx, id)
	if !errors.Is(err, registry.ErrNotFound) {
		return in, false, err
	}
	u, err := s.Registry.UploadByID(ctx, id)
	if err != nil {
		return in, false, s.uploadMissing(err, id)
	}
	if _, err := s.Staging.Stat(ctx, source.UploadKey(id)); errors.Is(err, storage.ErrNotFound) { // removed, or used by its batch
		return in, false, s.uploadMissing(registry.ErrNotFound, id)
	}
	return whole(u), true, nil
}

// whole returns a complete upload in the form of an incoming one.
func whole(u registry.Upload) registry.Incoming {
	return registry.Incoming{
		ID: u.ID, Filename: u.Filename, SizeBytes: u.SizeBytes, Offset: u.SizeBytes, Collection: u.Collection, CreatedBy: u.CreatedBy, CreatedAt: u.CreatedAt,
		Metadata: wire.EncodeMetadata(map[string]string{wire.MetadataFilename: u.Filename}),
	}
}

// uploadMissing returns the problem of a missing upload.
func (s *Service) uploadMissing(err error, id string) error {
	if errors.Is(err, registry.ErrNotFound) {
		return endpoint.NotFound("upload %q was not found: it was removed, has expired, or belongs to another token; send the file again", id)
	}
	return err
}

// removeByOverride removes an upload, for clients without DELETE.
func (s *Service) removeByOverride(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.dropUpload(r.Context(), &Removal{PathID: PathID{r.PathValue("id")}}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
