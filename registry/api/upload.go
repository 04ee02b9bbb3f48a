package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
)

const (
	uploadPath      = wire.Base + "/uploads"
	uploadAlgorithm = "sha256"
	copyBuffer      = 1 << 20
)

// uploadRoute adds POST /uploads: the body is the file, streamed.
func (s *server) uploadRoute(api huma.API, mux *http.ServeMux) {
	op := s.describe(operation{
		id: "upload", method: http.MethodPost, path: "/uploads", status: http.StatusCreated,
		summary: "Store a file, to be submitted by its id; answered when it is durable",
	})
	op.Parameters = []*huma.Param{
		{Name: "filename", In: "query", Required: true, Description: "The file's name, without folders", Schema: &huma.Schema{Type: "string"}},
		{Name: wire.DigestHeader, In: "header", Description: "ALGORITHM:HEX of the bytes; others are refused and dropped", Schema: &huma.Schema{Type: "string"}},
	}
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": {
		Schema: &huma.Schema{Type: "string", Format: "binary"},
	}}}
	document[registry.Upload](api, &op)
	mux.HandleFunc("POST "+uploadPath, func(w http.ResponseWriter, r *http.Request) {
		u, err := s.receive(w, r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(u) // the sender has gone if this fails
	})
}

// receive stores and records an upload. When it returns an error nothing of the upload is left.
func (s *server) receive(w http.ResponseWriter, r *http.Request) (registry.Upload, error) {
	ctx := r.Context()
	u := registry.Upload{CreatedBy: actor(ctx), CreatedAt: s.now().UTC()}
	if err := s.permit(ctx, "upload"); err != nil {
		return u, err
	}
	announced, err := announcement(r, &u)
	if err != nil {
		return u, err
	}
	if err := s.takesSubmissions(ctx); err != nil {
		return u, err
	}
	return s.store(w, r, u, announced)
}

// store stores the body as an upload and records it. When it returns an error nothing of it is left.
func (s *server) store(w http.ResponseWriter, r *http.Request, u registry.Upload, announced *registry.Digest) (registry.Upload, error) {
	ctx := r.Context()
	if err := s.roomFor(ctx, r.ContentLength); err != nil {
		return u, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return u, fmt.Errorf("name upload: %w", err)
	}
	u.ID = id.String()
	wanted := []string{uploadAlgorithm}
	if announced != nil {
		wanted = append(wanted, announced.Algorithm)
	}
	digests, err := fixity.NewDigester(wanted...)
	if err != nil {
		return u, fmt.Errorf("receive upload: %w", err)
	}
	out, err := s.staging.Create(ctx, source.UploadKey(u.ID))
	if err != nil {
		return u, fmt.Errorf("store upload: %w", err)
	}
	defer out.Abort() //nolint:errcheck // after Commit it does nothing, and before there is nothing to save
	if err := s.take(w, r, io.MultiWriter(out, digests)); err != nil {
		return u, err
	}
	u.SizeBytes = digests.Size()
	u.Digest = registry.Digest{Algorithm: uploadAlgorithm, Value: digests.Sums()[uploadAlgorithm]}
	if u.SizeBytes == 0 {
		return u, unprocessable(wire.CodeEmptyUpload, "the upload of %q has no bytes; check that the file is not empty and send it again", u.Filename)
	}
	if announced != nil {
		if got := digests.Sums()[announced.Algorithm]; got != announced.Value {
			p := unprocessable(wire.CodeDigestMismatch, "the %d bytes that came of %q are not the ones that were announced; they were dropped; send the file again",
				u.SizeBytes, u.Filename)
			p.Faults = []wire.Fault{{
				Location: "header." + wire.DigestHeader, Message: "the " + announced.Algorithm + " differs", Expected: announced.Value, Found: got,
			}}
			return u, p
		}
	}
	return s.keep(ctx, out, u)
}

// announcement reads what a request says about the file that follows. The digest is nil when there is none.
func announcement(r *http.Request, u *registry.Upload) (*registry.Digest, error) {
	var faults []wire.Fault
	query := r.URL.Query()
	u.Filename = query.Get("filename")
	if u.Filename == "" {
		faults = append(faults, wire.Fault{Location: "query.filename", Message: "missing: the file's name, as in ?filename=report.pdf"})
	} else {
		faults = append(faults, nameFault("query.filename", u.Filename)...)
	}
	for name := range query {
		if name != "filename" {
			faults = append(faults, wire.Fault{Location: "query." + name, Message: "unknown query parameter"})
		}
	}
	var announced *registry.Digest
	if header := r.Header.Get(wire.DigestHeader); header != "" {
		algorithm, value, _ := strings.Cut(header, ":")
		var f []wire.Fault
		announced, f = digestOf("header."+wire.DigestHeader, &registry.Digest{Algorithm: algorithm, Value: value})
		faults = append(faults, f...)
	}
	return announced, invalid("nothing was uploaded", faults...)
}

// roomFor refuses what cannot fit before it is sent. size is -1 when it is not known.
func (s *server) roomFor(ctx context.Context, size int64) error {
	space, err := s.staging.Space(ctx)
	switch {
	case errors.Is(err, storage.ErrUnlimited) || size <= 0:
		return nil
	case err != nil:
		return fmt.Errorf("measure staging: %w", err)
	case size > space.Total-space.Used:
		return wire.NewProblem(http.StatusInsufficientStorage, wire.CodeNoSpace, fmt.Sprintf(
			"the upload has %d bytes and staging has %d left; free space on the volume, or try again later; nothing was kept",
			size, space.Total-space.Used))
	}
	return nil
}

// take copies the body. An error of the sender is told from one of ours.
func (s *server) take(w http.ResponseWriter, r *http.Request, to io.Writer) error {
	control := http.NewResponseController(w)
	// A deadline that cannot be set is the server's own choice.
	defer control.SetReadDeadline(time.Time{}) //nolint:errcheck // as above; and the body is over
	buf := make([]byte, copyBuffer)
	var got int64
	for {
		_ = control.SetReadDeadline(time.Now().Add(s.idle))
		n, err := r.Body.Read(buf)
		got += int64(n)
		if _, failed := to.Write(buf[:n]); failed != nil {
			return fmt.Errorf("store upload: %w", failed)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			of := "of an unknown number"
			if r.ContentLength >= 0 {
				of = "of " + strconv.FormatInt(r.ContentLength, 10)
			}
			return wire.NewProblem(http.StatusBadRequest, wire.CodeBrokenOff, fmt.Sprintf(
				"the upload broke off after %d %s bytes (%v); nothing was kept; send the file again", got, of, err))
		}
	}
}

// keep makes an upload durable and then known. Between the two, whoever sent it may go; what is stored is then removed.
func (s *server) keep(ctx context.Context, out storage.Writer, u registry.Upload) (registry.Upload, error) {
	if _, err := out.Commit(ctx); err != nil {
		return u, errors.Join(fmt.Errorf("store upload: %w", err), s.discard(ctx, u))
	}
	err := context.Cause(ctx)
	if err == nil {
		// From here on the sender's patience no longer decides whether bytes and record agree.
		recorded, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		if err = s.registry.AddUpload(recorded, u); err == nil {
			s.log.InfoContext(ctx, "upload stored", "upload", u.ID, "size_bytes", u.SizeBytes, "actor", u.CreatedBy)
			return u, nil
		}
	}
	return u, errors.Join(err, s.discard(ctx, u))
}

// discard removes the bytes of an upload that is not to be acknowledged, unless its record is there after all.
func (s *server) discard(ctx context.Context, u registry.Upload) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if _, err := s.registry.UploadByID(ctx, u.ID); !errors.Is(err, registry.ErrNotFound) {
		return err // there, or nobody knows
	}
	if err := s.staging.Delete(ctx, source.UploadKey(u.ID)); err != nil {
		return fmt.Errorf("remove upload %s: %w", u.ID, err)
	}
	return nil
}
