// Package object serves preserved objects: lists, files and their bytes, verification, receipts,
// PREMIS documents, restores and deletions.
package object

import (
	"context"
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

// Service serves the operations on objects. All exported fields must be set.
type Service struct {
	*endpoint.Server
	Registry Registry // limited to what the caller may see
	All      All
	Objects  ocfl.Roots
	Staging  storage.Store // where restored files are

	exports  atomic.Int32 // being sent
	accesses accesses
}

// Registry is what a Service needs of the Registry.
type Registry interface {
	registry.ItemReader
	registry.Inventory
	registry.Catalog
	registry.Evidencing
	registry.Attesting
	registry.Requesting
	registry.Rechecking
	registry.Deciding
	registry.Accessing
	CopiesOf(ctx context.Context, o registry.Object) (registry.ObjectCopies, error)
}

// All is what a Service needs of the Registry, whoever the caller is. It is not shown to callers.
type All interface {
	registry.Catalog
	registry.Evidencing
	registry.EventsSigning
	registry.Inventory
	registry.ItemReader
	registry.Profiles
}

// Routes adds the operations.
func (s *Service) Routes() {
	s.objectRoutes()
	s.deletionRoutes()
	s.termsRoute()
	s.restorationRoutes()
	s.contentRoute()
	s.exportRoute()
	s.folderRoute()
	s.restoredRoute()
	s.receiptRoute()
	s.receiptsRoute()
	s.premisRoute()
}

// objectParam describes the object in a path.
func objectParam() *huma.Param {
	return &huma.Param{Name: "id", In: "path", Required: true, Description: "The object's ARK, percent-encoded", Schema: &huma.Schema{Type: "string"}}
}
