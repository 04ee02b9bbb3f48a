package wire

// OrphanRequest asks for a search for what belongs to nobody.
type OrphanRequest struct {
	OlderHours *int   `json:"older_hours,omitempty" minimum:"1" maximum:"876000" doc:"For how many hours nobody must have written to it, nor had a right to it; 168, a week, when not given"`
	Storages   bool   `json:"storages,omitempty" doc:"Look through the preservation storages, too, for objects that no record leads to. They are never removed"`
	Remove     bool   `json:"remove,omitempty" doc:"Remove what is found in the staging volume and among interim data"`
	Reason     string `json:"reason,omitempty" maxLength:"2000" doc:"Why; it is kept with the act"`
}

// RedeliverRequest asks that it be told again how a job ended.
type RedeliverRequest struct {
	Reason string `json:"reason,omitempty" doc:"Why; it is kept with the act"`
}
