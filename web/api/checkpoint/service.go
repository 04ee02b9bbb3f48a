// Package checkpoint compares the record of preservation events with what was signed of it: an
// object's chain with its receipts, all chains with the checkpoints that lie in the storages.
//
// A [Checkpointer] writes a signed checkpoint into each storage once a day. A record that does not
// match is reported and never covered by a newer checkpoint, until two people accept that it is
// older, as after a backup was restored. One that was rewritten is never accepted.
package checkpoint

import (
	"net/http"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

// Service answers what is asked about the record of events.
type Service struct {
	*endpoint.Server
	Registry registry.Inventory // limited to what the caller may see
	All      All
	Objects  ocfl.Roots
	Chains   Chains // sign checkpoints; nil: an older record cannot be accepted here
}

// All is what a Service must know whoever asks.
type All interface {
	registry.Inventory
	registry.Catalog
	registry.Attesting
}

// Routes adds the operations.
func (s *Service) Routes() {
	endpoint.Register(s.Server, endpoint.Operation{ID: "audit-object", Method: http.MethodPost, Path: "/objects/{id}/audit", Summary: "Follow an object's chain of events and compare it with its signed receipts"}, s.auditObject)
	endpoint.Register(s.Server, endpoint.Operation{ID: "audit-checkpoints", Method: http.MethodPost, Path: "/checkpoints/audit", Summary: "Compare the record of events with the newest signed checkpoint in each storage"}, s.auditCheckpoints)
	endpoint.Register(s.Server, endpoint.Operation{ID: "accept-older", Method: http.MethodPost, Path: "/checkpoints/acceptance", Summary: "Accept, as two people, that the record of events is older than its checkpoints, as after a backup was restored"}, s.acceptOlder)
}
