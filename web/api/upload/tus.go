package upload

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// tusRoutes add what is spoken in tus 1.0.0 beside the POST that begins an upload.
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
	move := s.tus("continue-upload", s.continueUpload)
	tell := s.tus("upload-offset", s.uploadOffset)
	add(endpoint.Operation{
		ID: "continue-upload", Method: http.MethodPatch, Path: "/uploads/{id}", Status: http.StatusNoContent,
		Refuses: []int{http.StatusPreconditionFailed, http.StatusLocked, http.StatusInsufficientStorage, wire.StatusChecksum},
		Summary: "Bring more bytes of an upload (tus 1.0.0); what the answer counts, and every 16 MiB before it, is durable",
	}, move, id, version, headerParam(wire.UploadOffsetHeader, "Where the upload stands"),
		headerParam(wire.UploadChecksumHeader, "Algorithm and base64 of the bytes of this request, which count only when they agree"),
		headerParam(wire.UploadLengthHeader, "The file's bytes, when that was left open"))
	add(endpoint.Operation{
		ID: "upload-offset", Method: http.MethodHead, Path: "/uploads/{id}", Status: http.StatusOK, Refuses: []int{http.StatusPreconditionFailed},
		Summary: "Where an upload stands (tus 1.0.0)",
	}, tell, id, version)
	add(endpoint.Operation{
		ID: "upload-protocol", Method: http.MethodOptions, Path: "/uploads", Status: http.StatusNoContent,
		Summary: "What is spoken of tus",
	}, s.uploadProtocol)
	s.HandleFunc("OPTIONS "+one, s.uploadProtocol)
	s.HandleFunc("POST "+one, func(w http.ResponseWriter, r *http.Request) {
		switch method := strings.ToUpper(r.Header.Get(wire.MethodOverrideHeader)); method {
		case http.MethodPatch:
			move(w, r)
		case http.MethodHead:
			tell(w, r)
		case http.MethodDelete:
			s.tus("remove-upload", s.removeByOverride)(w, r)
		default:
			w.Header().Set("Allow", "DELETE, GET, HEAD, OPTIONS, PATCH")
			s.Fail(w, r, wire.NewProblem(http.StatusMethodNotAllowed, wire.CodeMethodNotAllowed, fmt.Sprintf(
				"a POST to %s needs the header %s: PATCH, HEAD or DELETE", webserver.Path(r), wire.MethodOverrideHeader)))
		}
	})
}

// tus checks what every request of the protocol must have, and adds what every answer has.
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
		"the header %s is %q; only %s is spoken here", wire.TusResumableHeader, version, wire.TusVersion))
}

// checksums are the algorithms that Upload-Checksum may name.
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

// beginUpload begins an upload in parts (creation), with its first bytes if they come along
// (creation-with-upload).
func (s *Service) beginUpload(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	u, err := creation(r)
	if err != nil {
		return err
	}
	if err := s.takesSubmissions(ctx); err != nil {
		return err
	}
	if err := s.roomFor(ctx, u.SizeBytes); err != nil {
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
		if in, err = s.bring(w, r, in); err != nil {
			return err
		}
	}
	stands(w.Header(), in)
	w.WriteHeader(http.StatusCreated)
	return nil
}

// creation reads what is said of an upload before its first byte.
func creation(r *http.Request) (registry.NewUpload, error) {
	u := registry.NewUpload{SizeBytes: -1, Metadata: strings.Join(r.Header.Values(wire.UploadMetadataHeader), ",")}
	length, deferred := r.Header.Get(wire.UploadLengthHeader), r.Header.Get(wire.UploadDeferHeader)
	switch {
	case length == "" && deferred == "1":
	case length == "" || deferred != "":
		return u, badRequest("give either %s, the file's bytes, or %s: 1", wire.UploadLengthHeader, wire.UploadDeferHeader)
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
		return u, endpoint.Invalid("no upload was begun", faults...)
	}
	if u.Filename = values[wire.MetadataFilename]; u.Filename == "" {
		faults = append(faults, wire.Fault{Location: where, Message: "missing: filename, the file's name"})
	} else {
		faults = append(faults, valid.Name(where+" filename", u.Filename)...)
	}
	u.Collection = values[wire.MetadataCollection]
	var f []wire.Fault
	u.Digest, f = announcedDigest(where+" digest", values[wire.MetadataDigest])
	if err := endpoint.Invalid("no upload was begun", append(faults, f...)...); err != nil {
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

// count reads a header that is a number of bytes.
func count(name, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strings.HasPrefix(text, "+") {
		return 0, badRequest("the header %s must be a number of bytes, not %q", name, text)
	}
	return n, nil
}

// offsetMedia refuses bodies that do not say that they are bytes of an upload.
func offsetMedia(r *http.Request) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == wire.TusMediaType {
		return nil
	}
	return wire.NewProblem(http.StatusUnsupportedMediaType, wire.CodeUnsupportedMedia, fmt.Sprintf(
		"bytes of an upload have the content type %s, not %q", wire.TusMediaType, r.Header.Get("Content-Type")))
}

// stands tells where an upload stands.
func stands(h http.Header, in registry.Incoming) {
	h.Set(wire.UploadOffsetHeader, strconv.FormatInt(in.Offset, 10))
	if !in.Whole() {
		h.Set(wire.UploadExpiresHeader, in.ExpiresAt.UTC().Format(http.TimeFormat))
	}
}

// uploadOffset tells where an upload stands. That all of it is here is never said before it is
// finished.
func (s *Service) uploadOffset(w http.ResponseWriter, r *http.Request) error {
	ctx, id := r.Context(), r.PathValue("id")
	in, ended, err := s.uploadAt(ctx, id)
	if err != nil {
		return err
	}
	if in.Whole() && !ended {
		if _, err := s.complete(ctx, id); err != nil {
			return s.noUpload(err, id)
		}
	}
	h := w.Header()
	stands(h, in)
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

// uploadAt finds an upload, on its way or ended.
func (s *Service) uploadAt(ctx context.Context, id string) (in registry.Incoming, ended bool, err error) {
	in, err = s.Registry.IncomingByID(ctx, id)
	if !errors.Is(err, registry.ErrNotFound) {
		return in, false, err
	}
	u, err := s.Registry.UploadByID(ctx, id)
	if err != nil {
		return in, false, s.noUpload(err, id)
	}
	if _, err := s.Staging.Stat(ctx, source.UploadKey(id)); errors.Is(err, storage.ErrNotFound) { // removed, or used up by its batch
		return in, false, s.noUpload(registry.ErrNotFound, id)
	}
	return whole(u), true, nil
}

// whole is an upload that has ended, as one on its way that has come to its end.
func whole(u registry.Upload) registry.Incoming {
	return registry.Incoming{
		ID: u.ID, Filename: u.Filename, SizeBytes: u.SizeBytes, Offset: u.SizeBytes, Collection: u.Collection, CreatedBy: u.CreatedBy, CreatedAt: u.CreatedAt,
		Metadata: wire.EncodeMetadata(map[string]string{wire.MetadataFilename: u.Filename}),
	}
}

// noUpload says what to do about an upload that is not there.
func (s *Service) noUpload(err error, id string) error {
	if errors.Is(err, registry.ErrNotFound) {
		return endpoint.NotFound("there is no upload %q: it was removed, has expired, or is another token's; send the file again", id)
	}
	return err
}

// continueUpload takes an upload forward.
func (s *Service) continueUpload(w http.ResponseWriter, r *http.Request) error {
	ctx, id := r.Context(), r.PathValue("id")
	if err := offsetMedia(r); err != nil {
		return err
	}
	offset, err := count(wire.UploadOffsetHeader, r.Header.Get(wire.UploadOffsetHeader))
	if err != nil {
		return err
	}
	in, ended, err := s.uploadAt(ctx, id)
	if err != nil {
		return err
	}
	if in.Offset != offset {
		return elsewhere(w, in)
	}
	if length := r.Header.Get(wire.UploadLengthHeader); length != "" {
		size, err := count(wire.UploadLengthHeader, length)
		if err != nil {
			return err
		}
		if in.SizeBytes >= 0 && in.SizeBytes != size || size < in.Offset {
			return badRequest("upload %s cannot have %d bytes: %d have come, of %s", id, size, in.Offset, numberOr(in.SizeBytes))
		}
		if in.SizeBytes = size; size == 0 {
			return errors.Join(emptyUpload(in.Filename), s.giveUp(ctx, id))
		}
	}
	if !ended || r.ContentLength != 0 {
		if in, err = s.bring(w, r, in); err != nil {
			return err
		}
	}
	stands(w.Header(), in)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// elsewhere refuses bytes that do not belong where the upload stands.
func elsewhere(w http.ResponseWriter, in registry.Incoming) error {
	stands(w.Header(), in)
	return wire.NewProblem(http.StatusConflict, wire.CodeOffset, fmt.Sprintf(
		"upload %s stands at %d; nothing of this request was kept; ask by HEAD where to go on", in.ID, in.Offset))
}

// checksumOf reads Upload-Checksum; a nil hash when there is none.
func checksumOf(r *http.Request) (hash.Hash, []byte, error) {
	header := r.Header.Get(wire.UploadChecksumHeader)
	if header == "" {
		return nil, nil, nil
	}
	algorithm, encoded, _ := strings.Cut(header, " ")
	want, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err == nil && strings.Contains(","+checksums()+",", ","+algorithm+",") {
		if h, err := fixity.New(algorithm); err == nil && len(want) == h.Size() {
			return h, want, nil
		}
	}
	return nil, nil, badRequest("the header %s must be an algorithm (%s) and its base64, not %q", wire.UploadChecksumHeader, checksums(), header)
}

// bring takes the body of a request into an upload that stands where in says, and finishes it when
// that was all. in.SizeBytes may have become known with this request.
func (s *Service) bring(w http.ResponseWriter, r *http.Request, in registry.Incoming) (registry.Incoming, error) {
	ctx, id, size := r.Context(), in.ID, in.SizeBytes
	sum, want, err := checksumOf(r)
	if err != nil {
		return in, err
	}
	left := int64(-1)
	if size >= 0 {
		left = size - in.Offset
	}
	if r.ContentLength > left && left >= 0 {
		return in, wire.NewProblem(http.StatusRequestEntityTooLarge, wire.CodeTooLarge, fmt.Sprintf(
			"%d bytes are to come and %d of upload %s are missing; nothing of this request was kept", r.ContentLength, left, id))
	}
	if err := s.roomFor(ctx, max(r.ContentLength, left)); err != nil {
		return in, err
	}
	f := s.newSender(w)
	done, err := s.turn(ctx, id, f)
	if err != nil {
		return in, err
	}
	defer done()
	offset := in.Offset
	if in, err = s.Registry.TakeUpload(ctx, id, offset); err != nil {
		if now, ended, gone := s.uploadAt(ctx, id); gone == nil && ended { // whoever had the turn before has finished it
			return now, elsewhere(w, now)
		}
		return in, s.noUpload(err, id)
	}
	if in.Offset != offset {
		return in, elsewhere(w, in)
	}
	rc := s.receivers.unpark(in)
	if rc == nil {
		if rc, err = s.resumeReceiver(ctx, in); errors.Is(err, errBytesGone) {
			return in, errors.Join(err, s.giveUp(context.WithoutCancel(ctx), id))
		} else if err != nil {
			return in, err
		}
	}
	flow := &inflow{body: r.Body, from: f, to: rc, left: left, sum: sum}
	if sum == nil {
		flow.save = func() error { return s.save(ctx, rc, size) }
	}
	err = flow.run()
	if err == nil && sum != nil && subtle.ConstantTimeCompare(sum.Sum(nil), want) == 0 {
		err = wire.NewProblem(wire.StatusChecksum, wire.CodeChecksum, fmt.Sprintf(
			"the bytes of this request are not those that its checksum was taken of; upload %s stands at %d as before; send them again", id, rc.in.Offset))
	}
	return s.brought(ctx, w, rc, size, sum != nil, err)
}

// brought acknowledges what a request has brought, unless err says that it does not count. A sender
// that breaks off has brought what came, but for what only a checksum could vouch for.
func (s *Service) brought(ctx context.Context, w http.ResponseWriter, rc *receiver, size int64, checked bool, err error) (registry.Incoming, error) {
	var cut *cutError
	broken := errors.As(err, &cut)
	if err != nil && !broken || broken && checked && rc.size > rc.in.Offset {
		rc.letGo()
		stands(w.Header(), rc.in)
		return rc.in, s.lost(w, rc.in, brokenOff(rc, cut, err))
	}
	if rc.size > rc.in.Offset || size != rc.in.SizeBytes {
		if failed := s.save(ctx, rc, size); failed != nil {
			rc.letGo()
			return rc.in, s.lost(w, rc.in, failed)
		}
	}
	if rc.in.Whole() {
		_, err := s.finish(ctx, rc.in, rc)
		return rc.in, err
	}
	s.receivers.park(rc)
	if broken {
		stands(w.Header(), rc.in)
		return rc.in, brokenOff(rc, cut, err)
	}
	return rc.in, nil
}

// brokenOff is what a sender that broke off is told, if it can still hear it; another error is
// returned as it is.
func brokenOff(rc *receiver, cut *cutError, err error) error {
	if cut == nil {
		return err
	}
	return wire.NewProblem(http.StatusBadRequest, wire.CodeBrokenOff, fmt.Sprintf(
		"the request broke off (%v); upload %s stands at %d; go on there", cut.err, rc.in.ID, rc.in.Offset))
}

// lost tells who has lost the upload to somebody else that it stands elsewhere now.
func (s *Service) lost(w http.ResponseWriter, in registry.Incoming, err error) error {
	if !errors.Is(err, registry.ErrClaimLost) {
		return err
	}
	w.Header().Del(wire.UploadOffsetHeader)
	return wire.NewProblem(http.StatusConflict, wire.CodeOffset, fmt.Sprintf(
		"somebody else has taken upload %s forward, or it was removed; ask by HEAD where to go on", in.ID))
}

// removeByOverride is the removal of an upload, from where there is no DELETE.
func (s *Service) removeByOverride(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.dropUpload(r.Context(), &Removal{PathID: PathID{r.PathValue("id")}}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
