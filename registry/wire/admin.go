package wire

import (
	"encoding/json"

	"github.com/holdfast/holdfast/registry"
)

// CommandRequest asks an act of an item.
type CommandRequest struct {
	Act      string `json:"act" doc:"One of the item's allowed_acts: requeue, cancel, abort, delete, hold, release-hold, priority, update-report, purge"`
	From     string `json:"from,omitempty" doc:"requeue: the stage to start again at; where it failed when empty"`
	Priority *int   `json:"priority,omitempty" doc:"priority: the new one, lower first"`
	Reason   string `json:"reason,omitempty" doc:"Why; it is kept with the act. A hold needs one"`
	Confirm  bool   `json:"confirm,omitempty" doc:"The consequences that a confirmation-needed problem named are accepted"`
}

// BulkRequest asks an act of every item that matches a query.
type BulkRequest struct {
	Query string `json:"query" maxLength:"2000" doc:"What is meant, such as state:failed collection:demo; not empty"`
	CommandRequest
}

// HoldRequest keeps items of a scope from starting.
type HoldRequest struct {
	Scope  string `json:"scope" doc:"all, stage, collection, volume, batch, item or worker"`
	Key    string `json:"key,omitempty" doc:"Which stage, collection, volume, batch, item or worker (its id or its host); empty for all"`
	Reason string `json:"reason" doc:"Why; items show it as what they wait for"`
}

// AcceptingRequest says whether submissions are taken.
type AcceptingRequest struct {
	On     bool   `json:"on"`
	Reason string `json:"reason" doc:"Why; whoever submits is shown it"`
}

// CollectionRequest creates a collection or replaces its profile for submissions to come.
type CollectionRequest struct {
	Name            string              `json:"name,omitempty" doc:"For people; the mnemonic when empty"`
	Owner           string              `json:"owner" doc:"ARK under which local ids are unique"`
	Collections     []string            `json:"collections,omitempty" doc:"ARKs that objects become members of"`
	NOIDTemplate    string              `json:"noid_template,omitempty" doc:"For minting; the service's when empty"`
	Minting         string              `json:"minting,omitempty" doc:"Where names drawn from the template are kept: noid, here only (default), or ezid, which makes them public when their object is recorded"`
	DigestAlgorithm string              `json:"digest_algorithm,omitempty" doc:"Of OCFL inventories: sha512 or sha256"`
	Priority        *int                `json:"priority,omitempty" doc:"Of batches that name none; lower first"`
	ReleaseOneByOne bool                `json:"release_one_by_one,omitempty" doc:"Releasing a hold on the collection lets nothing go by itself: each batch and job is released on its own"`
	StopOnBadRow    bool                `json:"stop_on_bad_row,omitempty" doc:"A batch manifest is taken whole or not at all: one bad row refuses it before anything is ingested. Otherwise a bad row fails alone"`
	Scan            bool                `json:"scan,omitempty" doc:"Every file is looked at for viruses by clamd before anything is preserved"`
	ScanPartly      bool                `json:"scan_partly,omitempty" doc:"What clamd cannot see all of, mostly for its size, is preserved all the same and recorded as not scanned. Otherwise its job fails"`
	DuplicateDays   *int                `json:"duplicate_days,omitempty" doc:"For how many days after a submission another one of the same content is answered with it; 30 when not given, 0 for never"`
	Storages        []string            `json:"storages,omitempty" doc:"The storages that each version is kept in: it is written to the first, copied to the others, and counts as preserved when all have it; the one named storage when empty"`
	Callback        *registry.Callback  `json:"callback,omitempty" doc:"Who is told how each job ended, by a POST of JSON; nobody when empty"`
	Mail            *registry.MailRules `json:"mail,omitempty" doc:"Who is told of batches by mail, and of what"`
	RetentionDays   *int                `json:"retention_days,omitempty" doc:"For how many days a batch is kept after it completed; until an admin purges it when not given. Objects and events stay"`
	Description     string              `json:"description,omitempty" doc:"For people"`
	Embargo         string              `json:"embargo,omitempty" doc:"A note for people; nothing follows from it here"`
	// A document of its own: what may stand in it is the specification's to say.
	BagProfile json.RawMessage `json:"bag_profile,omitempty" doc:"A BagIt profile (BagIt Profiles 1.1 to 1.4) of at most 64 KiB that bags must meet; other payloads are not concerned"`
}

// Profile returns the profile that the request asks for.
func (r CollectionRequest) Profile() registry.Profile {
	return registry.Profile{
		Name: r.Name, Owner: r.Owner, Collections: r.Collections, NOIDTemplate: r.NOIDTemplate, Minting: r.Minting,
		DigestAlgorithm: r.DigestAlgorithm, Priority: r.Priority, ReleaseOneByOne: r.ReleaseOneByOne,
		StopOnBadRow: r.StopOnBadRow, Scan: r.Scan, ScanPartly: r.ScanPartly, DuplicateDays: r.DuplicateDays, Storages: r.Storages, Callback: r.Callback, BagProfile: r.BagProfile,
		Mail: r.Mail, RetentionDays: r.RetentionDays, Description: r.Description, Embargo: r.Embargo,
	}
}

// CollectionOf returns the request that asks for a profile.
func CollectionOf(p registry.Profile) CollectionRequest {
	return CollectionRequest{
		Name: p.Name, Owner: p.Owner, Collections: p.Collections, NOIDTemplate: p.NOIDTemplate, Minting: p.Minting,
		DigestAlgorithm: p.DigestAlgorithm, Priority: p.Priority, ReleaseOneByOne: p.ReleaseOneByOne,
		StopOnBadRow: p.StopOnBadRow, Scan: p.Scan, ScanPartly: p.ScanPartly, DuplicateDays: p.DuplicateDays, Storages: p.Storages, Callback: p.Callback, BagProfile: p.BagProfile,
		Mail: p.Mail, RetentionDays: p.RetentionDays, Description: p.Description, Embargo: p.Embargo,
	}
}
