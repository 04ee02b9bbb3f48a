// Package checkpoint compares the record of preservation events with signed copies: each object's
// chain with its receipts, and all chains with the checkpoints in the storages.
//
// A [Checkpointer] writes a signed checkpoint into each storage once a day. If the record does not
// match the newest checkpoint, it reports that and writes no newer one. Two people can accept a
// record that is older, as after a backup was restored. A rewritten record is never accepted.
package checkpoint

import (
	"net/http"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

// Service serves the operations on the record of events.
type Service struct {
	*endpoint.Server
	Registry registry.Inventory // limited to what the caller may see
	All      All
	Objects  ocfl.Roots
	Chains   Chains // signs checkpoints; nil: this process cannot accept an older record
}

// All is what a Service needs of the Registry, whoever the caller is.
type All interface {
	registry.Inventory
	registry.Catalog
	registry.Evidencing
	registry.Attesting
}

// Routes adds the operations.
func (s *Service) Routes() {
	endpoint.Register(s.Server, endpoint.Operation{ID: "audit-object", Method: http.MethodPost, Path: "/objects/{id}/audit", Summary: "Verify an object's chain of events and compare it with its signed receipts"}, s.auditObject)
	endpoint.Register(s.Server, endpoint.Operation{ID: "audit-checkpoints", Method: http.MethodPost, Path: "/checkpoints/audit", Summary: "Compare the record of events with the newest signed checkpoint in each storage"}, s.auditCheckpoints)
	endpoint.Register(s.Server, endpoint.Operation{ID: "accept-older", Method: http.MethodPost, Path: "/checkpoints/acceptance", Summary: "Accept, as two people, that the record of events is older than its checkpoints, as after a backup was restored"}, s.acceptOlder)
}
