package api

import (
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/protocol"
)

// pagesOperation stands for the pages in the access table.
const pagesOperation = "pages"

// formsOperation stands for the buttons of the pages.
const formsOperation = "forms"

// abandonOperation stands for the act abandon, which command-item alone does not allow.
const abandonOperation = "abandon"

// access is who may do what: the roles of each operation, by its id. An operation that is missing here is nobody's, and
// a test fails.
func access() map[string][]registry.Role {
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
		"check":           depositor,

		"list-batches":       reader,
		"read-batch":         reader,
		"batch-progress":     reader,
		"list-batch-jobs":    reader,
		"batch-report":       reader,
		"list-batch-reports": reader,
		"batch-report-json":  reader,
		"batch-report-csv":   reader,
		"batch-report-jobs":  reader,

		"list-items":     reader,
		"count-items":    reader,
		"list-failures":  reader,
		"read-item":      reader,
		"item-history":   reader,
		"item-attempts":  reader,
		"item-why":       reader,
		"item-edges":     reader,
		"command-item":   operator,
		abandonOperation: admin,
		"redeliver-item": operator,
		"bulk":           operator,

		"queue-status":   reader,
		"read-accepting": reader,
		"set-accepting":  operator,
		"search-orphans": operator,

		"list-holds":  reader,
		"add-hold":    operator,
		"remove-hold": operator,

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

		pagesOperation: reader,
		formsOperation: operator,
	}
	worker := []registry.Role{registry.RoleWorker, registry.RoleAdmin}
	for id := range stagesOf() {
		roles[id] = worker
	}
	roles["own-token"] = registry.Roles()
	return roles
}

// stagesOf are the operations that workers may ask, with the stages whose workers may; nil is every stage. What stands in no line is no
// worker's. A worker's token may ask what the stages that it is good for need, and writes about an item only while it is the one that has
// claimed it.
func stagesOf() map[string][]registry.Stage {
	out := map[string][]registry.Stage{}
	for name, stages := range protocol.Stages() {
		out[workerOperation(name)] = stages
	}
	return out
}

// may says whether a token may do an operation, by its role and, if it is a worker's, by its stages.
func (s *server) may(t registry.Token, operation string) bool {
	return slices.Contains(s.access[operation], t.Role) && (t.Role != registry.RoleWorker || t.Serves(s.stages[operation]))
}
