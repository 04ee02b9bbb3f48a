package wire

import (
	"time"

	"github.com/holdfast/holdfast/registry"
)

// DefaultCollection is where a submission goes that names no collection.
const DefaultCollection = "default"

// SubmitRequest describes a payload on its way in. Exactly one of URL and UploadID is given.
type SubmitRequest struct {
	URL      string `json:"url,omitempty" doc:"Where the payload is: http, https or s3://BUCKET/KEY; no name or password in it" example:"https://example.org/maps/atlas.zip"`
	UploadID string `json:"upload_id,omitempty" id:"uploads" doc:"The id of an upload that has ended"`
	// Type is a registry.PayloadType; empty stands for auto, which is settled by content.
	Type       string `json:"type,omitempty" doc:"auto, file, container, bag, object-manifest, batch-manifest, container-batch-manifest or single-file-batch-manifest" example:"container"`
	Collection string `json:"collection,omitempty" doc:"Mnemonic of the collection; default when empty" example:"maps"`
	Filename   string `json:"filename,omitempty" doc:"The payload's name; that of the upload or the URL when empty" example:"atlas.zip"`
	// Folder says what the upload is for people; type says what it is.
	Folder    bool             `json:"folder,omitempty" doc:"The upload is a folder, packed to be sent: it is shown as NAME/, without the name's .tar"`
	ARK       string           `json:"ark,omitempty" doc:"The object to make or to add a version to"`
	LocalIDs  []string         `json:"local_ids,omitempty" doc:"The owner's own identifiers of the object"`
	Submitter string           `json:"submitter,omitempty" doc:"Who submits; the token's name when empty" example:"ann"`
	Title     string           `json:"title,omitempty" example:"Atlas of the Elbe"`
	Creator   string           `json:"creator,omitempty" example:"Ann Archivist"`
	Date      string           `json:"date,omitempty" example:"1897"`
	Notify    []string         `json:"notify,omitempty" doc:"Mail addresses that get the report"`
	Digest    *registry.Digest `json:"digest,omitempty" doc:"Of the payload, as the depositor knows it"`
	Modified  *time.Time       `json:"modified,omitempty" doc:"When the payload, a single file, was last changed; its source is asked when not given. Containers and manifests say it of each file themselves"`
	Update    bool             `json:"update,omitempty" doc:"Change the object's files instead of replacing all of them"`
	Force     bool             `json:"force,omitempty" doc:"Make a new batch although the same content is here already"`
	Priority  *int             `json:"priority,omitempty" doc:"Lower first; from the collection and the batch's size when not given"`
	// Requires keeps it from starting at all.
	Requires []registry.Requirement `json:"requires,omitempty" doc:"Items that must have completed (or settled) before this one starts; in a graph also its nodes, by key"`
}

// SubmitResponse answers a submission. The work goes on after it; /batches/{id}/progress tells how
// far it is.
type SubmitResponse struct {
	BatchID   string               `json:"batch_id" example:"01a20657-1c6a-76ac-9dea-0158e8b9162f"`
	Duplicate bool                 `json:"duplicate" doc:"batch_id is an earlier submission of the same content or the same key"`
	NoMail    bool                 `json:"no_mail,omitempty" doc:"The addresses in notify are told nothing: the service has no mail server"`
	State     registry.State       `json:"state"`
	Type      registry.PayloadType `json:"type" doc:"As it was recognised, when that is possible already"`
}
