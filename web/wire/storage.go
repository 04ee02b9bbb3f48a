package wire

import "github.com/holdfast/holdfast/registry"

// StorageReport is the state of all storages, and where collections do not have the copies that their
// profiles ask for.
type StorageReport struct {
	registry.StorageReport

	// Addresses are those of the storages that the answering process knows, by name.
	Addresses map[string]string `json:"addresses" doc:"Addresses of the storages that the answering process knows, by name"`
}

// StorageRequest asks for an act on a storage.
type StorageRequest struct {
	Act         string   `json:"act" enum:"add,retire,keep,place" doc:"add: collections get it, and what they have is copied to it. retire: no new objects; it is retired when all objects have their copies elsewhere. keep: it is not retired after all. place: only set offsite" example:"add"`
	Collections []string `json:"collections,omitempty" maxItems:"1000" doc:"add: the collections that get it; when empty, all" example:"[\"maps\"]"`
	To          string   `json:"to,omitempty" maxLength:"63" doc:"retire: the storage that takes its place in every profile and is filled" example:"second"`
	Offsite     *bool    `json:"offsite,omitempty" doc:"Whether it is off-site, or, with to, whether that one is; when empty, as before"`
	Reason      string   `json:"reason,omitempty" doc:"Why; kept in the history" example:"the old disks go"`
	DryRun      bool     `json:"dry_run,omitempty" doc:"Change nothing, and answer what the act would do"`
}
