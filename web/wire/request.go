package wire

// OrphanRequest requests a search for orphaned data.
type OrphanRequest struct {
	OlderHours *int   `json:"older_hours,omitempty" minimum:"1" maximum:"876000" doc:"Minimum age in hours: how long nothing has written to the data or owned them; 168 (a week) when absent"`
	Storages   bool   `json:"storages,omitempty" doc:"Search the storages too, for objects without a record. These are never removed"`
	Remove     bool   `json:"remove,omitempty" doc:"Remove orphaned data from staging and interim data"`
	Reason     string `json:"reason,omitempty" maxLength:"2000" doc:"Why; kept in the history"`
}

// RedeliverJobsRequest requests another delivery of the outcomes of a batch's jobs.
type RedeliverJobsRequest struct {
	Reason string `json:"reason,omitempty" doc:"Why; kept in the history"`
	After  string `json:"after,omitempty" maxLength:"4096" doc:"next of the call before"`
}

// RedeliverRequest requests another delivery of a job's outcome.
type RedeliverRequest struct {
	Reason string `json:"reason,omitempty" doc:"Why; kept in the history"`
}
