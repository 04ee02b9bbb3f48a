package result

import (
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
)

// Plan is a version as announced, the durable result [registry.ResultPlan]. With the staged files
// that it names, a repeat can write the same bytes, including times (R2).
type Plan struct {
	ObjectID string `json:"object_id"`
	registry.Place
	Version   int    `json:"version"`
	Inventory string `json:"inventory"` // key of the planned OCFL inventory
	Digest    string `json:"digest"`    // of that inventory, by the object's algorithm
	Algorithm string `json:"algorithm"`
	List      string `json:"list"`  // key of the list of the version's changes, each a Planned
	Files     int64  `json:"files"` // in the version's state
	Bytes     int64  `json:"bytes"`
	// Small says that inventory and list stand in the announcement, instead of in staging, and that
	// the list's files are in the Registry's inventory.
	Small bool `json:"small,omitempty"`
	// ListDigest is the digest of the list; "" if an earlier program planned the version.
	ListDigest string `json:"list_digest,omitempty"`

	LocalIDs []string `json:"local_ids"`
	Title    string   `json:"title"`
	Creator  string   `json:"creator"`
	Date     string   `json:"date"`
	Minted   bool     `json:"minted"`
	Bag      bool     `json:"bag"`               // the content was validated as a bag
	Software string   `json:"software"`          // that made the plan
	NoZone   int64    `json:"no_zone,omitempty"` // files whose time has an unknown zone; UTC is assumed

	// EZID is the description that EZID gets when the version is recorded; nil if EZID does not
	// have the name from Holdfast.
	EZID    *ezid.Name  `json:"ezid,omitempty"`
	Scan    *Scanned    `json:"scan,omitempty"`    // nil: the item needs no scan
	Formats *Identified `json:"formats,omitempty"` // nil: planned before formats were identified

	Created time.Time `json:"created"`
}

// Stored returns the object's identifier in its storages.
func (p Plan) Stored() string { return p.Place.Stored(p.ObjectID) }

// Changes names the list of the version's changes.
func (p Plan) Changes() staging.List { return staging.List{Key: p.List, Digest: p.ListDigest} }

// PlanOf returns the plan of an item's stored version.
func PlanOf(item *base.Item) (Plan, error) {
	return Of[Plan](item, registry.ResultPlan, "nothing was stored for this item; requeue it at process")
}

// Row returns the change as a row of the Registry's inventory.
func (e Planned) Row(version int) registry.File {
	return registry.File{
		Path: e.Path, Version: version, ContentPath: e.Content, SizeBytes: e.Size, Digests: e.Digests,
		MIMEType: e.MIME, Format: e.Format, Deleted: e.Deleted, Modified: e.Modified,
	}
}

// Planned is one change of a version: a file's new state, or its removal.
type Planned struct {
	Path    string            `json:"path"`
	Content string            `json:"content"` // path in the OCFL object; of an earlier version if that has the bytes
	Staged  string            `json:"staged,omitempty"`
	Data    []byte            `json:"data,omitempty"` // the bytes of a new small file of ours, instead of Staged
	Size    int64             `json:"size"`
	Digests map[string]string `json:"digests,omitempty"`
	MIME    string            `json:"mime,omitempty"`
	Format  *registry.Format  `json:"format,omitempty"`
	Deleted bool              `json:"deleted,omitempty"`

	Modified time.Time `json:"modified,omitzero"`
	Raw      []byte    `json:"raw,omitempty"`      // the original bytes of the name, if they are not UTF-8
	Encoding string    `json:"encoding,omitempty"` // the encoding of Raw
}
