// Package upload takes files in before they are submitted: in one request, or in parts by tus
// 1.0.0, which survive a broken line.
//
// What an answer counts is durable. The bytes of one upload are written by one request at a time
// ([Service.Take]); a successor goes on where they were saved. When the last byte is saved the
// upload is read back, and recorded with the digest of what was read. Limits bound what uploads
// fill. What becomes of an upload afterwards is for web/api/submission.
package upload

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

// Options say where uploads go. All but the last three must be set.
type Options struct {
	Server   *endpoint.Server
	Registry Registry // limited to what the caller may see
	All      All
	Staging  storage.Store

	Idle   time.Duration // how long an upload may bring nothing before it counts as broken off; 0: 2 minutes
	Keep   time.Duration // how long an upload that has not ended is kept when nothing more comes of it; 0: 7 days
	Limits Limits
}

// Registry is what a Service asks.
type Registry interface {
	registry.Receiving
	registry.Uploads
	registry.Profiles
	registry.Submitting
	// Item is as in registry.ItemReader.
	Item(ctx context.Context, id string) (registry.WorkItem, error)
}

// All is what a Service must know whoever asks; nothing of it is shown.
type All interface {
	registry.Receiving
	registry.Uploads
	registry.Profiles
	// Tokens is as in registry.TokenKeeper.
	Tokens(ctx context.Context) ([]registry.Token, error)
}

// Service receives uploads. Its only state is the uploads under way in this process.
type Service struct {
	*endpoint.Server
	Options
	inUse     *inUse
	receivers *receivers
}

// New returns a Service.
func New(o Options) *Service {
	if o.Idle <= 0 {
		o.Idle = 2 * time.Minute
	}
	if o.Keep <= 0 {
		o.Keep = 7 * 24 * time.Hour
	}
	return &Service{Server: o.Server, Options: o, inUse: newInUse(), receivers: newReceivers()}
}

// Routes adds the operations.
func (s *Service) Routes() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "remove-upload", Method: http.MethodDelete, Path: "/uploads/{id}", Refuses: []int{http.StatusPreconditionFailed, http.StatusLocked},
		Summary: "Remove an upload that was never submitted, or give up one on its way",
	}, s.dropUpload)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "list-uploads", Method: http.MethodGet, Path: "/uploads",
		Summary: "List your uploads that are on their way, or with all=true also those that have ended and take room; everybody's for an admin",
	}, s.listUploads)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "read-upload", Method: http.MethodGet, Path: "/uploads/{id}", Summary: "Show how far an upload is",
	}, s.readUpload)
	s.uploadRoute()
	s.tusRoutes()
}

// Take waits until nobody else in this process decides about an upload; done gives it back. It ends
// with ctx.
func (s *Service) Take(ctx context.Context, id string) (done func(), err error) {
	return s.inUse.take(ctx, id)
}

// CollectionLimit is what the uploads for a collection may come to.
func (s *Service) CollectionLimit(c registry.Collection) registry.UploadLimit {
	return s.Limits.Collection(c)
}
