package wire

import "github.com/holdfast/holdfast/registry"

// CommandRequest asks for an act on an item.
type CommandRequest struct {
	Act      string `json:"act" doc:"One of the item's allowed_acts: requeue, retry-now, cancel, abort, delete, hold, release-hold, priority, update-report, give-up, abandon, purge" example:"requeue"`
	From     string `json:"from,omitempty" doc:"requeue: the stage to restart at; when empty, the stage where it failed" example:"download"`
	Priority *int   `json:"priority,omitempty" doc:"priority: the new one, lower first"`
	Reason   string `json:"reason,omitempty" doc:"Why; kept in the history. Required for a hold" example:"the source is back"`
	Confirm  bool   `json:"confirm,omitempty" doc:"Accepts the consequences that a confirmation-needed problem listed"`
	AgreesTo string `json:"agrees_to,omitempty" doc:"abandon: the agrees_to of the confirmation-needed problem that showed another admin's request; when empty, a new request is made"`
}

// ItemCommandRequest asks for an act on one item.
type ItemCommandRequest struct {
	CommandRequest
	DryRun bool `json:"dry_run,omitempty" doc:"Change nothing: answer with the item as it would be after the act, or with the problem that the act would answer"`
}

// CancelRequest asks to cancel a batch.
type CancelRequest struct {
	Reason string `json:"reason,omitempty" doc:"Why; kept in the history" example:"sent twice"`
}

// BulkRequest asks for an act on every item that matches a query.
type BulkRequest struct {
	Query string `json:"query" id:"query" maxLength:"2000" doc:"Selects the items, such as state:failed collection:demo; must not be empty" example:"state:failed collection:maps"`
	CommandRequest

	GraceSeconds int `json:"grace_seconds,omitempty" minimum:"0" maximum:"3600" doc:"Starts no earlier than this; until then, act cancel on the answered item withdraws the whole act"`
}

// HoldRequest stops the items of a scope from starting their next step.
type HoldRequest struct {
	Scope  string `json:"scope" doc:"all, ingest, stage, collection, volume, batch, item or worker" example:"collection"`
	Key    string `json:"key,omitempty" id:"scope" doc:"Which stage, collection, volume, batch, item or worker (its id or its host); empty for all and ingest" example:"maps"`
	Reason string `json:"reason" doc:"Why; shown with the items that wait for it" example:"stock-taking"`
}

// LimitRequest limits how many items of a stage or a collection run at once.
type LimitRequest struct {
	Scope  string `json:"scope" doc:"stage or collection" example:"stage"`
	Key    string `json:"key" doc:"Which stage or collection; a function is the stage run:NAME" example:"run:link-check"`
	Most   int    `json:"most,omitempty" minimum:"0" maximum:"1000000" doc:"How many items may run at once, in all processes together; of a collection, in all stages; 0: any number" example:"4"`
	Weight int    `json:"weight,omitempty" minimum:"0" maximum:"100" doc:"How many items of the collection start in a row when it is its turn; 0: one" example:"3"`
}

// DrainRequest stops everything that runs.
type DrainRequest struct {
	Reason string `json:"reason" doc:"Why; shown with the items that wait for it" example:"the disks are replaced"`
	Stop   int    `json:"stop" minimum:"0" maximum:"86400" doc:"Seconds after which steps are taken away that did not stop at a safe point" example:"600"`
}

// AcceptingRequest says whether submissions are accepted.
type AcceptingRequest struct {
	On     bool   `json:"on"`
	Reason string `json:"reason,omitempty" doc:"Why; needed to refuse them, and shown to depositors who submit" example:"stock-taking"`
}

// Holdings is what is kept, and how full the volumes are.
type Holdings struct {
	registry.Holdings

	Volumes []Volume `json:"volumes"` // staging, then the storages
}

// Volume is how full a volume is.
type Volume struct {
	Name      string `json:"name"`
	Total     int64  `json:"total"` // bytes; 0: not known, or there is no limit
	Used      int64  `json:"used"`  // by anyone
	Unlimited bool   `json:"unlimited,omitempty"`
}
