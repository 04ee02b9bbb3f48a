package wire

// CommandRequest asks an act of an item.
type CommandRequest struct {
	Act      string `json:"act" doc:"One of the item's allowed_acts: requeue, retry-now, cancel, abort, delete, hold, release-hold, priority, update-report, give-up, abandon, purge" example:"requeue"`
	From     string `json:"from,omitempty" doc:"requeue: the stage to start again at; where it failed when empty" example:"download"`
	Priority *int   `json:"priority,omitempty" doc:"priority: the new one, lower first"`
	Reason   string `json:"reason,omitempty" doc:"Why; it is kept with the act. A hold needs one" example:"the source is back"`
	Confirm  bool   `json:"confirm,omitempty" doc:"The consequences that a confirmation-needed problem named are accepted"`
	AgreesTo string `json:"agrees_to,omitempty" doc:"abandon: the agrees_to of the confirmation-needed problem that showed another admin's request; asks for it when empty"`
}

// BulkRequest asks an act of every item that matches a query.
type BulkRequest struct {
	Query string `json:"query" id:"query" maxLength:"2000" doc:"What is meant, such as state:failed collection:demo; not empty" example:"state:failed collection:maps"`
	CommandRequest
}

// HoldRequest keeps items of a scope from starting.
type HoldRequest struct {
	Scope  string `json:"scope" doc:"all, ingest, stage, collection, volume, batch, item or worker" example:"collection"`
	Key    string `json:"key,omitempty" id:"scope" doc:"Which stage, collection, volume, batch, item or worker (its id or its host); empty for all and ingest" example:"maps"`
	Reason string `json:"reason" doc:"Why; items show it as what they wait for" example:"stock-taking"`
}

// AcceptingRequest says whether submissions are taken.
type AcceptingRequest struct {
	On     bool   `json:"on"`
	Reason string `json:"reason" doc:"Why; whoever submits is shown it" example:"stock-taking"`
}
