package wire

import (
	"time"

	"github.com/holdfast/holdfast/registry"
)

// DefaultCollection is the collection of submissions that name none.
const DefaultCollection = "default"

// DepositForm is the path of the page's form that submits a payload, and may bring it.
const DepositForm = "/deposit"

// SubmitRequest describes a payload to submit. Exactly one of URL and UploadID is set.
type SubmitRequest struct {
	URL      string `json:"url,omitempty" doc:"Where the payload is: http, https or s3://BUCKET/KEY; no name or password in it" example:"https://example.org/maps/atlas.zip"`
	UploadID string `json:"upload_id,omitempty" id:"uploads" doc:"The id of a complete upload"`
	// Type is a registry.PayloadType. Empty means auto: the content decides.
	Type       string `json:"type,omitempty" doc:"auto, file, container, bag, object-manifest, batch-manifest, container-batch-manifest or single-file-batch-manifest" example:"container"`
	Collection string `json:"collection,omitempty" doc:"Mnemonic of the collection; default when empty" example:"maps"`
	Filename   string `json:"filename,omitempty" doc:"The payload's name; when empty, that of the upload or the URL" example:"atlas.zip"`
	// Folder is for display only; Type decides how the upload is read.
	Folder    bool               `json:"folder,omitempty" doc:"The upload is a folder, packed for transfer: shown as NAME/ without .tar"`
	ARK       string             `json:"ark,omitempty" doc:"The object to create or to add a version to"`
	LocalIDs  []string           `json:"local_ids,omitempty" doc:"The owner's identifiers of the object"`
	Submitter string             `json:"submitter,omitempty" doc:"Who submits; the token's name when empty" example:"ann"`
	Title     string             `json:"title,omitempty" example:"Atlas of the Elbe"`
	Creator   string             `json:"creator,omitempty" example:"Ann Archivist"`
	Date      string             `json:"date,omitempty" example:"1897"`
	Terms     registry.Terms     `json:"terms,omitzero" doc:"Rights, preservation level and embargo; what it leaves open is the collection's. An embargo ends on the later day of the two"`
	Notify    []string           `json:"notify,omitempty" doc:"Mail addresses that get the report"`
	Digest    *registry.Digest   `json:"digest,omitempty" doc:"The depositor's digest of the payload"`
	Modified  *time.Time         `json:"modified,omitempty" doc:"When the payload, a single file, was last changed; taken from its source when absent. Containers and manifests have a time for each file"`
	Update    bool               `json:"update,omitempty" doc:"Change the object's files instead of replacing all of them"`
	Force     bool               `json:"force,omitempty" doc:"Create a new batch even if the same content was submitted before"`
	Priority  *int               `json:"priority,omitempty" doc:"Lower first; when absent, derived from the collection and the batch's size"`
	Corrects  *registry.Corrects `json:"corrects,omitempty" doc:"The failed batch that this submission corrects"`
	// Requires delays the start of the batch.
	Requires []registry.Requirement `json:"requires,omitempty" doc:"Items that must complete (or settle) before this batch starts; in a graph also nodes, by key"`
}

// SubmitResponse answers a submission. Processing goes on afterwards; /batches/{id}/progress shows
// it.
type SubmitResponse struct {
	BatchID   string               `json:"batch_id" example:"01a20657-1c6a-76ac-9dea-0158e8b9162f"`
	Duplicate bool                 `json:"duplicate" doc:"batch_id is an earlier submission of the same content or the same key"`
	NoMail    bool                 `json:"no_mail,omitempty" doc:"No mail is sent to the addresses in notify: the service has no mail server"`
	State     registry.State       `json:"state"`
	Type      registry.PayloadType `json:"type" doc:"The recognised type, if already known"`
}
