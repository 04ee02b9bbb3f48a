package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/export"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/replica"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/wire"
)

const (
	// mostExports is how many exports one process sends at a time.
	mostExports = 16
	// exportAhead is the largest file of an export that is compared before its first byte is sent. If
	// it is damaged in one storage, it is read from another. A larger one ends the export.
	exportAhead = 4 << 20
)

// exportTypes are the content types of exports, by format.
var exportTypes = map[string]string{"zip": "application/zip", "tar": tarType}

// exportRoute adds GET /objects/{id}/export, which streams a version.
func (s *Service) exportRoute() {
	text, yes := &huma.Schema{Type: "string"}, &huma.Schema{Type: "boolean"}
	s.Stream(endpoint.Operation{
		ID: "object-export", Method: http.MethodGet, Path: "/objects/{id}/export",
		Summary: "Download all files of a version as a zip or a tar; the connection is aborted if a file is damaged",
	}, []*huma.Param{
		objectParam(),
		{Name: "version", In: "query", Description: "The newest when absent", Schema: &huma.Schema{Type: "integer"}},
		{Name: "format", In: "query", Description: "zip (the default) or tar", Schema: text},
		{Name: "bag", In: "query", Description: "true: a BagIt 1.0 bag, whose bag-info.txt has the object's terms; otherwise the files under the producer's names, and the terms, if there are any, in holdfast-terms.txt", Schema: yes},
		{Name: "system", In: "query", Description: "true: also Holdfast's own files", Schema: yes},
	}, "application/zip", s.openExport)
}

// openExport lays out the export that a request asks for. It finds all reasons to refuse it but
// damage, which is found while it is sent.
func (s *Service) openExport(r *http.Request) (*endpoint.Streamed, error) {
	ctx := r.Context()
	format, version, opts, err := exportQuery(r)
	if err != nil {
		return nil, err
	}
	o, err := lookup.Version(ctx, s.Registry, r.PathValue("id"), version)
	if err != nil {
		return nil, err
	}
	if err := s.readable(ctx, o.ID); err != nil {
		return nil, err
	}
	source, err := s.exportSource(ctx, o)
	if err != nil {
		return nil, err
	}
	reader := &replica.Reader{Source: source, Ahead: exportAhead, Elsewhere: func(path, storage string, because error) {
		s.Log.ErrorContext(ctx, "a replica is damaged", "object", o.ID, "file", path, "read_from", storage, "err", because)
	}}
	opts.At, opts.Agent = s.Now().UTC(), "Holdfast"
	p, err := export.New(ctx, o, o.Head, source.files, reader, opts)
	if err != nil {
		return nil, unexportable(err)
	}
	out := &endpoint.Streamed{ContentType: exportTypes[format], Filename: p.Base() + "." + format}
	write := p.WriteZip
	if format == "tar" {
		out.Size, err = p.TarSize(ctx)
		write = func(ctx context.Context, w io.Writer) error { return p.WriteTar(ctx, w, 0, nil) }
	} else {
		err = p.CheckZip(ctx)
	}
	if err != nil {
		return nil, unexportable(err)
	}
	if s.exports.Add(1) > mostExports {
		s.exports.Add(-1)
		return nil, wire.NewProblem(http.StatusServiceUnavailable, wire.CodeUnavailable, fmt.Sprintf("%d exports are being sent; try again later", mostExports))
	}
	form := format
	if opts.Bag {
		form = "bag in " + format
	}
	if err := s.noteExport(r, o, form); err != nil {
		s.exports.Add(-1)
		return nil, err
	}
	out.Write = func(w io.Writer) error {
		defer s.exports.Add(-1)
		return write(ctx, w)
	}
	return out, nil
}

// exportQuery reads the query of an export.
func exportQuery(r *http.Request) (format string, version int, opts export.Options, err error) {
	var faults []wire.Fault
	fault := func(name, message string) {
		faults = append(faults, wire.Fault{Location: "query." + name, Message: message, Found: r.URL.Query().Get(name)})
	}
	query := r.URL.Query()
	if format = query.Get("format"); format == "" {
		format = "zip"
	} else if exportTypes[format] == "" {
		fault("format", "not zip or tar")
	}
	if v := query.Get("version"); v != "" {
		if version, err = strconv.Atoi(v); err != nil || version < 0 {
			fault("version", "not the number of a version")
		}
	}
	for name, to := range map[string]*bool{"bag": &opts.Bag, "system": &opts.System} {
		if v := query.Get(name); v != "" {
			if *to, err = strconv.ParseBool(v); err != nil {
				fault(name, "not true or false")
			}
		}
	}
	return format, version, opts, endpoint.Invalid("nothing was exported", faults...)
}

// unexportable returns the problem of a version that this form of export cannot hold.
func unexportable(err error) error {
	switch {
	case errors.Is(err, export.ErrTooMany):
		return endpoint.Unprocessable(wire.CodeInvalid, "%v; use format=tar", err)
	case errors.Is(err, export.ErrName), errors.Is(err, export.ErrTwice):
		return endpoint.Unprocessable(wire.CodeInvalid, "%v; use format=tar without bag, or download its files one by one", err)
	}
	return err
}

// exportSource reads the files of an object's version from its storages.
type exportSource struct {
	service *Service
	object  registry.Object // Head is the version
	roots   []ocfl.Named
	folders []string // of the object in each root
}

// exportSource finds the storages that have a version, and that this process knows.
func (s *Service) exportSource(ctx context.Context, o registry.Object) (*exportSource, error) {
	heads, err := s.replicasOf(ctx, o)
	if err != nil {
		return nil, err
	}
	e := &exportSource{service: s, object: o}
	for _, h := range heads {
		root, err := s.Objects.Of(h.storage)
		if err != nil || h.version < o.Head {
			continue
		}
		folder, err := root.ObjectKey(o.Stored())
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", o.ID, err)
		}
		e.roots, e.folders = append(e.roots, root), append(e.folders, folder)
	}
	if len(e.roots) == 0 {
		return nil, wire.NewProblem(http.StatusInternalServerError, wire.CodeDamaged, fmt.Sprintf(
			"version %d of %s is in no storage that this Registry knows; ask an operator to name its storage in HOLDFAST_STORAGE_URL", o.Head, o.ID))
	}
	return e, nil
}

// files is the version's export.List.
func (e *exportSource) files(ctx context.Context, after string) ([]registry.File, error) {
	return e.service.Registry.Files(ctx, e.object.ID, e.object.Head, after, endpoint.StreamRows)
}

// Open implements replica.Source.
func (e *exportSource) Open(ctx context.Context, f registry.File, offset int64, not []string) (io.ReadCloser, string, error) {
	at := slices.IndexFunc(e.roots, func(n ocfl.Named) bool { return !slices.Contains(not, n.Name) })
	if at < 0 {
		return nil, "", replica.ErrNowhere
	}
	root := e.roots[at]
	body, err := root.Store().Open(ctx, e.folders[at]+"/"+f.ContentPath, offset, -1)
	if errors.Is(err, storage.ErrNotFound) && root.Present(ctx) == nil || errors.Is(err, storage.ErrRange) {
		err = fmt.Errorf("%w: %w", replica.ErrDamaged, err)
	}
	return body, root.Name, err
}
