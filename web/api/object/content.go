package object

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/wire"
)

// contentRoute adds GET /objects/{id}/content, which streams one file.
func (s *Service) contentRoute() {
	op := s.Describe(endpoint.Operation{
		ID: "object-content", Method: http.MethodGet, Path: "/objects/{id}/content", Summary: "Download a file, whole or by Range",
	})
	text, most := &huma.Schema{Type: "string"}, mostExportID
	op.Parameters = []*huma.Param{
		{Name: "id", In: "path", Required: true, Description: "The object's ARK, percent-encoded", Schema: text},
		{Name: wire.ExportHeader, In: "header", Description: "An id of the export that the file is a part of, for the audit log; when absent, it tells of single files", Schema: &huma.Schema{Type: "string", MaxLength: &most}},
		{Name: "path", In: "query", Required: true, Description: "The file's path, as /files lists it", Schema: text},
		{Name: "version", In: "query", Description: "The newest when absent", Schema: &huma.Schema{Type: "integer"}},
		{Name: "storage", In: "query", Description: "Read only from this storage; when absent, from the first that has the file. X-Holdfast-Storage of the answer names it", Schema: text},
	}
	s.DocumentAs(&op, "application/octet-stream", &huma.Schema{Type: "string", Format: "binary"})
	s.HandleFunc("GET /objects/{id}/content", func(w http.ResponseWriter, r *http.Request) {
		if err := s.content(w, r); err != nil {
			s.Fail(w, r, err)
		}
	})
}

// content sends a file. An error means that nothing was sent yet. A later failure aborts the
// connection, because the length was already announced.
func (s *Service) content(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if err := s.Permit(ctx, "object-content"); err != nil {
		return err
	}
	name, from, version, err := contentQuery(r)
	if err != nil {
		return err
	}
	o, err := lookup.Version(ctx, s.Registry, r.PathValue("id"), version)
	if err != nil {
		return err
	}
	if err := s.readable(ctx, o.ID); err != nil {
		return err
	}
	f, err := s.fileAt(ctx, o, name)
	if err != nil {
		return err
	}
	at, err := s.stored(ctx, o, f, from)
	if err != nil {
		return err
	}
	if err := s.noteContent(r, o, f.Path); err != nil {
		return err
	}
	in := &storedFile{size: f.SizeBytes, from: func(offset int64) (io.ReadCloser, error) { return at.Store().Open(ctx, at.key, offset, -1) }}
	w.Header().Set(wire.StorageHeader, at.Name)
	s.send(w, r, in, o.ID, f)
	return nil
}

// send streams a file of an object, or a restored file, whole or by Range. A failure aborts the
// connection.
func (s *Service) send(w http.ResponseWriter, r *http.Request, in *storedFile, objectID string, f registry.File) {
	defer in.Close() //nolint:errcheck // read only
	contentHeaders(w.Header(), f)
	http.ServeContent(w, r, "", time.Time{}, in)
	if ctx := r.Context(); in.failed != nil && ctx.Err() == nil {
		s.Log.ErrorContext(ctx, "sending content failed", "object", objectID, "file", f.Path, "request", access.Of(ctx).RequestID, "err", in.failed)
		panic(http.ErrAbortHandler)
	}
}

// storedAt is the place of a file's bytes.
type storedAt struct {
	ocfl.Named
	key string
}

// stored finds a file in the first storage that has it with its recorded size, or in the storage
// from.
func (s *Service) stored(ctx context.Context, o registry.Object, f registry.File, from string) (at storedAt, err error) {
	heads, err := s.replicasOf(ctx, o)
	if err != nil {
		return at, err
	}
	var damaged, silent []string
	for _, h := range heads {
		if h.version < o.Head || from != "" && h.storage != from {
			continue
		}
		if at.Named, err = s.Objects.Of(h.storage); err != nil {
			damaged = append(damaged, err.Error())
			continue
		}
		folder, err := at.ObjectKey(o.Stored())
		if err != nil {
			return at, fmt.Errorf("find %s: %w", o.ID, err)
		}
		at.key = folder + "/" + f.ContentPath
		info, err := at.Store().Stat(ctx, at.key)
		switch {
		case err == nil && info.Size == f.SizeBytes:
			if len(damaged) > 0 {
				s.Log.ErrorContext(ctx, "a replica is damaged", "object", o.ID, "file", f.Path, "err", strings.Join(damaged, "; "))
			}
			return at, nil
		case err == nil:
			damaged = append(damaged, fmt.Sprintf("in storage %q it has %d bytes instead of the recorded %d", h.storage, info.Size, f.SizeBytes))
		case errors.Is(err, storage.ErrNotFound):
			damaged = append(damaged, fmt.Sprintf("in storage %q it is missing", h.storage))
		default:
			silent = append(silent, strconv.Quote(h.storage))
			s.Log.ErrorContext(ctx, "a storage does not answer", "storage", h.storage, "object", o.ID, "file", f.Path, "err", err)
		}
	}
	switch {
	case len(silent) > 0: // it may be intact there
		return at, wire.NewProblem(http.StatusServiceUnavailable, wire.CodeUnavailable, fmt.Sprintf(
			"%s of %s, version %d, could not be read: storage %s does not answer; try again later", f.Path, o.ID, o.Head, strings.Join(silent, ", ")))
	case len(damaged) == 0:
		return at, endpoint.NotFound("version %d of %s is not in a storage %q; leave the storage out, or use one that the object lists", o.Head, o.ID, from)
	}
	return at, wire.NewProblem(http.StatusInternalServerError, wire.CodeDamaged, fmt.Sprintf(
		"%s of %s, version %d, is damaged in storage: %s; ask an operator to verify the object", f.Path, o.ID, o.Head, strings.Join(damaged, "; ")))
}

// mostExportID is the longest id of an export, in bytes.
const mostExportID = 100

// contentQuery reads what a request for a file asks.
func contentQuery(r *http.Request) (name, from string, version int, err error) {
	var faults []wire.Fault
	query := r.URL.Query()
	from = query.Get("storage")
	if name = query.Get("path"); name == "" {
		faults = append(faults, wire.Fault{Location: "query.path", Message: "missing: the file's path, as /files lists it"})
	}
	if v := query.Get("version"); v != "" {
		if version, err = strconv.Atoi(strings.TrimPrefix(v, "v")); err != nil || version < 0 {
			faults = append(faults, wire.Fault{Location: "query.version", Message: "not the number of a version", Found: v})
		}
	}
	for key := range query {
		if key != "path" && key != "version" && key != "storage" {
			faults = append(faults, wire.Fault{Location: "query." + key, Message: "unknown query parameter"})
		}
	}
	if export := r.Header.Get(wire.ExportHeader); len(export) > mostExportID {
		faults = append(faults, wire.Fault{Location: "header." + wire.ExportHeader, Message: fmt.Sprintf("more than %d bytes", mostExportID)})
	}
	return name, from, version, endpoint.Invalid("the file was not sent", faults...)
}

// fileAt returns the file with exactly this path in version o.Head.
func (s *Service) fileAt(ctx context.Context, o registry.Object, name string) (registry.File, error) {
	after := before(name)
	for {
		files, err := s.Registry.Files(ctx, o.ID, o.Head, after, 1)
		if err != nil {
			return registry.File{}, err
		}
		if len(files) == 0 || files[0].Path > name {
			return registry.File{}, endpoint.NotFound("version %d of %s has no file %q; GET %s/objects/{id}/files lists its files",
				o.Head, o.ID, name, wire.Base)
		}
		if files[0].Path == name {
			return files[0], nil
		}
		after = files[0].Path
	}
}

// before returns a string that sorts just before name, which must not be empty.
func before(name string) string {
	last := len(name) - 1
	if name[last] == 0 {
		return name[:last]
	}
	return name[:last] + string([]byte{name[last] - 1}) + strings.Repeat("\xff", 8)
}

// contentHeaders describes a file. The headers prevent browsers from running a depositor's file as
// a page of this site.
func contentHeaders(h http.Header, f registry.File) {
	h.Set("Content-Type", contentType(f.MIMEType))
	h.Set("Content-Disposition", endpoint.Disposition(path.Base(f.Path)))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "private, no-cache")
	var ours, standard []string
	for _, algorithm := range slices.Sorted(maps.Keys(f.Digests)) {
		value := f.Digests[algorithm]
		ours = append(ours, algorithm+":"+value)
		names := map[string]string{"sha256": "sha-256", "sha512": "sha-512"} // RFC 9530
		if raw, err := hex.DecodeString(value); err == nil && names[algorithm] != "" {
			standard = append(standard, names[algorithm]+"=:"+base64.StdEncoding.EncodeToString(raw)+":")
		}
	}
	if len(ours) > 0 {
		h.Set(wire.DigestHeader, strings.Join(ours, ", "))
		h.Set("ETag", `"`+ours[len(ours)-1]+`"`)
	}
	if len(standard) > 0 {
		h.Set("Repr-Digest", strings.Join(standard, ", "))
	}
}

// contentType returns the type that a file is sent with: its recorded one, if that is one of data. A
// script or a style is sent as bytes, so that no page here, whatever is wrong with it, runs a
// depositor's file: browsers refuse those of another type (nosniff). HTML and SVG are bytes, too.
func contentType(recorded string) string {
	kind, _, err := mime.ParseMediaType(recorded)
	if err != nil {
		return unknownType
	}
	family, _, _ := strings.Cut(kind, "/")
	switch {
	case family == "audio", family == "video", family == "image" && !strings.HasSuffix(kind, "xml"):
		return kind
	case slices.Contains([]string{"text/plain", "text/csv", "application/pdf", "application/json", "application/zip", "application/gzip", tarType}, kind):
		return kind
	}
	return unknownType
}

const unknownType = "application/octet-stream"

// storedFile reads a file in storage for http.ServeContent. failed is the error that stopped it.
type storedFile struct {
	from   func(offset int64) (io.ReadCloser, error)
	size   int64
	at     int64
	open   io.ReadCloser
	failed error
}

// Seek implements io.Seeker.
func (f *storedFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d: %w", offset, storage.ErrRange)
	}
	if offset != f.at {
		_ = f.Close()
	}
	f.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (f *storedFile) Read(p []byte) (int, error) {
	if f.at >= f.size {
		return 0, io.EOF
	}
	if f.open == nil {
		r, err := f.from(f.at)
		if err != nil {
			f.failed = err
			return 0, err
		}
		f.open = r
	}
	n, err := f.open.Read(p[:min(int64(len(p)), f.size-f.at)])
	f.at += int64(n)
	if errors.Is(err, io.EOF) && f.at < f.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		f.failed = err
	}
	return n, err
}

// Close closes the open reader. Reading can continue afterwards.
func (f *storedFile) Close() error {
	if f.open == nil {
		return nil
	}
	err := f.open.Close()
	f.open = nil
	return err
}
