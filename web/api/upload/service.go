// Package upload receives files before they are submitted: in one request, or in parts by tus
// 1.0.0, which survive broken connections.
//
// The bytes that an answer counts are durable. One request at a time writes the bytes of an upload
// ([Service.Take]); a successor resumes at the last saved offset. When the last byte is saved, the
// upload is read back and recorded with the digest of what was read. Limits bound the room of
// uploads. Submitting an upload is the task of web/api/submission.
package upload

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

// Options configure a Service. All fields but the last three must be set.
type Options struct {
	Server   *endpoint.Server
	Registry Registry // limited to what the caller may see
	All      All
	Staging  storage.Store

	Idle   time.Duration // after so long without a byte a request counts as broken off; 0: 2 minutes
	Keep   time.Duration // how long an incoming upload is kept without further bytes; 0: 7 days
	Limits Limits
}

// Registry is what a Service needs of the Registry.
type Registry interface {
	registry.Receiving
	registry.Uploads
	registry.Profiles
	registry.Submitting
	// Item is as in registry.ItemReader.
	Item(ctx context.Context, id string) (registry.WorkItem, error)
}

// All is what a Service needs of the Registry, whoever the caller is. It is not shown to callers.
type All interface {
	registry.Receiving
	registry.Uploads
	registry.Profiles
	// Tokens is as in registry.TokenKeeper.
	Tokens(ctx context.Context) ([]registry.Token, error)
}

// Service receives uploads. Its only state are the incoming uploads of this process.
type Service struct {
	*endpoint.Server
	Options
	locks     *locks
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
	return &Service{Server: o.Server, Options: o, locks: newLocks(), receivers: newReceivers()}
}

// Routes adds the operations.
func (s *Service) Routes() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "remove-upload", Method: http.MethodDelete, Path: "/uploads/{id}", Refuses: []int{http.StatusPreconditionFailed, http.StatusLocked},
		Summary: "Remove an upload that was never submitted, or stop an incoming one",
	}, s.dropUpload)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "list-uploads", Method: http.MethodGet, Path: "/uploads",
		Summary: "List your incoming uploads; with all=true also complete ones that use room; an admin sees those of all users",
	}, s.listUploads)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "read-upload", Method: http.MethodGet, Path: "/uploads/{id}", Summary: "Show an upload and its progress",
	}, s.readUpload)
	s.uploadRoute()
	s.tusRoutes()
}

// Take locks an upload within this process; done unlocks it. It waits until ctx ends.
func (s *Service) Take(ctx context.Context, id string) (done func(), err error) {
	return s.locks.take(ctx, id)
}

// CollectionLimit returns the limit of a collection's uploads.
func (s *Service) CollectionLimit(c registry.Collection) registry.UploadLimit {
	return s.Limits.Collection(c)
}
