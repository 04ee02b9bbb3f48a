package access

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/wire"
)

// Pages stands for the pages in the access table.
const Pages = "pages"

// Metrics stands for the process's metrics in the access table.
const Metrics = "metrics"

// Abandon stands for the act abandon in the access table. It needs more than command-item does.
const Abandon = "abandon"

// ShareView stands for saving a view that others see in the access table.
const ShareView = "share-view"

// Roles returns the roles of each operation, by its id. Nobody may call an operation that is
// missing here, and a test fails.
func Roles() map[string][]registry.Role {
	admin := []registry.Role{registry.RoleAdmin}
	operator := []registry.Role{registry.RoleOperator, registry.RoleAdmin}
	depositor := []registry.Role{registry.RoleDepositor, registry.RoleOperator, registry.RoleAdmin}
	reader := []registry.Role{registry.RoleDepositor, registry.RoleViewer, registry.RoleOperator, registry.RoleAdmin}
	overseer := []registry.Role{registry.RoleViewer, registry.RoleOperator, registry.RoleAdmin}
	roles := map[string][]registry.Role{
		"upload":          depositor,
		"remove-upload":   depositor,
		"continue-upload": depositor,
		"upload-offset":   depositor,
		"upload-protocol": depositor,
		"list-uploads":    depositor,
		"read-upload":     depositor,
		"submit-payload":  depositor,
		"prepare-graph":   depositor,
		"seal-graph":      depositor,
		"read-graph":      reader,
		"graph-nodes":     reader,
		"item-around":     reader,
		"list-functions":  reader,
		"submit-task":     operator,

		"list-namespaces": reader,
		"list-processes":  reader,
		"read-process":    reader,
		"trace-process":   reader,
		"read-answer":     reader,
		"init-process":    operator,
		"call-process":    operator,
		"repair-process":  operator,
		"retry-process":   operator,
		"put-process":     operator,
		"remove-process":  operator,

		"check": depositor,

		"list-schedules":  overseer,
		"read-schedule":   overseer,
		"list-firings":    overseer,
		"add-schedule":    operator,
		"edit-schedule":   operator,
		"remove-schedule": operator,
		"pause-schedule":  operator,
		"resume-schedule": operator,
		"run-schedule":    operator,

		"cancel-batch":       depositor,
		"list-batches":       reader,
		"read-batch":         reader,
		"batch-progress":     reader,
		"list-batch-jobs":    reader,
		"batch-report":       reader,
		"list-batch-reports": reader,
		"batch-report-json":  reader,
		"batch-report-csv":   reader,
		"batch-report-jobs":  reader,
		"batch-receipts":     reader,

		"list-items":     reader,
		"count-items":    reader,
		"list-failures":  reader,
		"read-item":      reader,
		"item-history":   reader,
		"item-attempts":  reader,
		"item-log":       reader,
		"item-why":       reader,
		"list-reasons":   reader,
		"item-edges":     reader,
		"command-item":   operator,
		Abandon:          admin,
		"redeliver-item": operator,
		"redeliver-jobs": operator,
		"bulk":           operator,
		"preview-bulk":   operator,

		"list-views":  reader,
		"read-view":   reader,
		"add-view":    depositor,
		"edit-view":   depositor,
		"remove-view": depositor,
		ShareView:     operator,

		"queue-status":    reader,
		Metrics:           overseer,
		"read-accepting":  reader,
		"read-throughput": overseer,
		"read-holdings":   overseer,
		"set-accepting":   operator,
		"drain":           operator,
		"search-orphans":  operator,

		"list-holds":  reader,
		"add-hold":    operator,
		"remove-hold": operator,

		"list-storages":        overseer,
		"list-storage-objects": overseer,
		"change-storage":       admin,

		"list-limits":  overseer,
		"set-limit":    admin,
		"remove-limit": admin,

		"list-collections": reader,
		"read-collection":  reader,
		"put-collection":   admin,

		"list-profile-versions": reader,
		"read-profile-version":  reader,

		"list-credentials":  admin,
		"put-credential":    admin,
		"remove-credential": admin,

		"list-subscriptions":  overseer,
		"read-subscription":   overseer,
		"put-subscription":    admin,
		"remove-subscription": admin,
		"rewind-subscription": admin,
		"pause-subscription":  admin,
		"resume-subscription": admin,

		"list-subscription-credentials":  admin,
		"put-subscription-credential":    admin,
		"remove-subscription-credential": admin,

		"list-workers": overseer,

		"list-objects":   reader,
		"read-object":    reader,
		"object-files":   reader,
		"object-content": reader,
		"object-export":  reader,
		"object-folder":  reader,
		"object-changes": reader,
		"object-events":  reader,
		"object-premis":  reader,
		"object-receipt": reader,
		"receipt-keys":   reader,
		"verify-object":  operator,
		"check-object":   operator,
		"audit-object":   operator,

		"audit-checkpoints": operator,
		"accept-older":      admin,

		"restore-object":   depositor,
		"list-restores":    reader,
		"read-restore":     reader,
		"item-restore":     reader,
		"restored-content": reader,

		"list-deletions":    reader,
		"set-terms":         admin,
		"ask-deletion":      operator,
		"approve-deletion":  operator,
		"withdraw-deletion": operator,

		"list-tokens":  admin,
		"create-token": admin,
		"revoke-token": admin,

		"create-sign-in-link": reader,
		"list-sessions":       reader,
		"end-session":         reader,

		"events":     reader,
		"list-feed":  reader,
		"list-audit": operator,

		"evidence-report": operator, // it has of the audit log who read what

		Pages: reader,
	}
	worker := []registry.Role{registry.RoleWorker, registry.RoleAdmin}
	for id := range Stages() {
		roles[id] = worker
	}
	for _, id := range functionOperations {
		roles[id] = []registry.Role{registry.RoleWorker} // an admin's token would not fence
	}
	roles["own-token"] = registry.Roles()
	return roles
}

// Stages returns the operations of workers, each with the stages whose workers may call it; nil
// means all stages. Workers may call no other operation, except own-token. A worker may write about
// an item only while it has claimed it.
func Stages() map[string][]registry.Stage {
	out := map[string][]registry.Stage{}
	for name, stages := range protocol.Stages() {
		out[Worker(name)] = stages
	}
	for _, id := range functionOperations {
		out[id] = registry.Families()
	}
	return out
}

// functionOperations are the operations of programs that serve functions, in any language. Besides
// them and the workers' protocol, workers may call nothing but own-token.
var functionOperations = []string{"announce-functions", "claim-task", "renew-task", "settle-task", "keep-value"}

// Worker returns the operation of a method of the workers' protocol.
func Worker(method string) string { return strings.TrimPrefix(protocol.Path, "/") + method }

// Table is the access table. It does not change.
type Table struct {
	Roles  map[string][]registry.Role
	Stages map[string][]registry.Stage // whose workers may call an operation
}

// NewTable returns the table of all operations.
func NewTable() *Table { return &Table{Roles: Roles(), Stages: Stages()} }

// May reports whether a token may call an operation: by its role and, for a worker's token, by its
// stages.
func (a *Table) May(t registry.Token, operation string) bool {
	return slices.Contains(a.Roles[operation], t.Role) && (t.Role != registry.RoleWorker || t.Serves(a.Stages[operation]))
}

// Permit returns a problem unless the caller may call the operation.
func (a *Table) Permit(ctx context.Context, operation string) error {
	return a.PermitToken(Of(ctx).Token, operation)
}

// PermitToken returns a problem unless a token may call the operation.
func (a *Table) PermitToken(t registry.Token, operation string) error {
	if a.May(t, operation) {
		return nil
	}
	if t.Role == registry.RoleWorker && slices.Contains(a.Roles[operation], t.Role) {
		return forbidden("token %q is valid for the stages %v, which may not call %s; use a worker's token for %v",
			t.Name, registry.AllOf(t.Stages), operation, registry.OneOf(a.Stages[operation]))
	}
	return forbidden("token %q has the role %v, which may not call %s; use a token with the role %v",
		t.Name, t.Role, operation, registry.OneOf(a.Roles[operation]))
}

func forbidden(format string, args ...any) *wire.Problem {
	return wire.NewProblem(http.StatusForbidden, wire.CodeForbidden, fmt.Sprintf(format, args...))
}
