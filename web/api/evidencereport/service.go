// Package evidencereport serves evidence reports: what the archive did in a period, for certifiers.
package evidencereport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/evidencereport"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/survey"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// mostReports is how many reports one process makes at a time: each reads the whole record.
const mostReports = 2

// Service serves the operation. All exported fields must be set.
type Service struct {
	*endpoint.Server
	Registry Registry
	Objects  ocfl.Roots

	making atomic.Int32
}

// Registry is what a Service needs of the Registry. Its callers see everything.
type Registry interface {
	survey.Reader
	// Collection is as in registry.Profiles.
	Collection(ctx context.Context, mnemonic string) (registry.Collection, error)
	// Storages is as in registry.Storing.
	Storages(ctx context.Context, names []string) (registry.StorageReport, error)
}

// Routes adds the operation.
func (s *Service) Routes() {
	day := &huma.Schema{Type: "string", Format: "date"}
	s.Stream(endpoint.Operation{
		ID: "evidence-report", Method: http.MethodGet, Path: "/evidence-report",
		Refuses: []int{http.StatusNotFound},
		Summary: "Download what the archive did in a period, for certifiers, as a zip of tables; the connection is aborted if it cannot be finished",
	}, []*huma.Param{
		{Name: "from", In: "query", Required: true, Description: "The first day of the period (UTC)", Schema: day},
		{Name: "to", In: "query", Required: true, Description: "The last day of the period (UTC)", Schema: day},
		{Name: "collection", In: "query", Description: "Only of this collection; all when absent", Schema: &huma.Schema{Type: "string"}},
	}, "application/zip", s.open)
}

// open reads which report a request asks for.
func (s *Service) open(r *http.Request) (*endpoint.Streamed, error) {
	ctx := r.Context()
	o, err := s.query(r)
	if err != nil {
		return nil, err
	}
	if o.Collection != "" {
		if _, err := s.Registry.Collection(ctx, o.Collection); err != nil {
			return nil, err
		}
	}
	if err := s.addStorages(ctx, &o); err != nil {
		return nil, err
	}
	if s.making.Add(1) > mostReports {
		s.making.Add(-1)
		return nil, wire.NewProblem(http.StatusServiceUnavailable, wire.CodeUnavailable, fmt.Sprintf("%d evidence reports are being made; try again later", mostReports))
	}
	s.Log.InfoContext(ctx, "evidence report requested", "from", o.From, "to", o.To, "collection", o.Collection, "actor", access.Actor(ctx))
	return &endpoint.Streamed{ContentType: "application/zip", Filename: evidencereport.Filename(o.Query), Write: func(w io.Writer) error {
		defer s.making.Add(-1)
		return evidencereport.WriteZip(ctx, w, o)
	}}, nil
}

// query reads the query of a report.
func (s *Service) query(r *http.Request) (o evidencereport.Options, err error) {
	o.Source, o.Collection = s.Registry, r.URL.Query().Get("collection")
	now := s.Now().UTC()
	first, last, faults := wire.EvidencePeriod(r.URL.Query(), now)
	o.From, o.To = first, last.AddDate(0, 0, 1)
	o.Open = o.To.After(now)
	return o, endpoint.Invalid("no evidence report was made", faults...)
}

// addStorages adds the storages, and how many objects have the copies that they should have.
func (s *Service) addStorages(ctx context.Context, o *evidencereport.Options) error {
	report, err := s.Registry.Storages(ctx, s.Objects.Names())
	if err != nil {
		return err
	}
	for _, storage := range report.Storages {
		of := evidencereport.Storage{Storage: storage}
		if root, err := s.Objects.Of(storage.Name); err == nil {
			of.Address = root.Address
		}
		o.Storages = append(o.Storages, of)
	}
	for _, c := range report.Collections {
		if o.Collection == "" || o.Collection == c.Collection {
			o.Copies = append(o.Copies, c)
		}
	}
	return nil
}
