package wire

import (
	"encoding/json"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// MostTogether is how many claims, or settlements, one request may bring.
const MostTogether = 100

// ClaimsRequest brings claims that came together. Each stands for itself.
type ClaimsRequest struct {
	Claims []registry.ClaimRequest `json:"claims" maxItems:"100"`
}

// SettlementsRequest brings settlements that came together. Each stands for itself.
type SettlementsRequest struct {
	Settlements []registry.Settlement `json:"settlements" maxItems:"100"`
}

// Answer is what became of one of the calls that came together: Value, or Problem.
type Answer[T any] struct {
	Value   *T       `json:"value,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// Answers are those to the calls of one request, in their order.
type Answers[T any] struct {
	Answers []Answer[T] `json:"answers"`
}

// Withdrawals are attempts that admins have taken away.
type Withdrawals struct {
	Taken []registry.Lease `json:"taken"`
	Next  int64            `json:"next" doc:"Where to go on"`
}

// Result is a durable result of an item by its name.
type Result struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// JobsRequest brings rows of a batch.
type JobsRequest struct {
	Jobs []registry.NewJob `json:"jobs" doc:"At most 500"`
}

// Validator is what a batch's address says of its content.
type Validator struct {
	Validator string `json:"validator" doc:"A strong ETag, or an S3 version"`
}

// FirstBatch is the batch that another one repeats.
type FirstBatch struct {
	BatchID string `json:"batch_id" doc:"Empty when it repeats none"`
}

// Added is how many rows were new.
type Added struct {
	Added int `json:"added"`
}

// FilesRecord brings inventory rows of a version.
type FilesRecord struct {
	ObjectID string    `json:"object_id"`
	Version  int       `json:"version"`
	Files    []FileRow `json:"files" doc:"At most 1,000"`
}

// FileRow is a registry.File whose paths travel as bytes: a file name need not be UTF-8, and must come through unchanged.
type FileRow struct {
	Path        []byte            `json:"path" doc:"Logical path; base64, as it may be no UTF-8"`
	Version     int               `json:"version"`
	ContentPath []byte            `json:"content_path" doc:"In the OCFL object; base64"`
	SizeBytes   int64             `json:"size_bytes"`
	Digests     map[string]string `json:"digests"`
	MIMEType    string            `json:"mime_type,omitempty"`
	Format      *registry.Format  `json:"format,omitempty"`
	Deleted     bool              `json:"deleted,omitempty"`
	Modified    time.Time         `json:"modified,omitzero"`
}

// FilesOf returns rows as they travel.
func FilesOf(files []registry.File) []FileRow {
	out := make([]FileRow, len(files))
	for i, f := range files {
		out[i] = FileRow{
			Path: []byte(f.Path), Version: f.Version, ContentPath: []byte(f.ContentPath), SizeBytes: f.SizeBytes,
			Digests: f.Digests, MIMEType: f.MIMEType, Format: f.Format, Deleted: f.Deleted, Modified: f.Modified,
		}
	}
	return out
}

// FilesIn returns the rows that have travelled.
func FilesIn(files []FileRow) []registry.File {
	out := make([]registry.File, len(files))
	for i, f := range files {
		out[i] = registry.File{
			Path: string(f.Path), Version: f.Version, ContentPath: string(f.ContentPath), SizeBytes: f.SizeBytes,
			Digests: f.Digests, MIMEType: f.MIMEType, Format: f.Format, Deleted: f.Deleted, Modified: f.Modified,
		}
	}
	return out
}

// ObjectMark marks an object as being deleted.
type ObjectMark struct {
	ObjectID string           `json:"object_id"`
	Last     registry.Remains `json:"last"`
}

// ObjectRemoval says that no byte of an object is left.
type ObjectRemoval struct {
	ObjectID string            `json:"object_id"`
	Events   []registry.Premis `json:"events"`
}

// ObjectHead is the newest recorded version of an object.
type ObjectHead struct {
	Head int `json:"head"`
}

// CheckAsked asks for a check of an object's files.
type CheckAsked struct {
	ObjectID string `json:"object_id"`
	Reason   string `json:"reason"`
	Actor    string `json:"actor"`
}

// RestorationsRequest asks for the restores of an object.
type RestorationsRequest struct {
	ObjectID string `json:"object_id"`
	Before   int    `json:"before"`
	Limit    int    `json:"limit"`
}

// Wakes are items whose message is due.
type Wakes struct {
	Wakes []registry.Wake `json:"wakes"`
}

// SweepRequest says how long a lease is.
type SweepRequest struct {
	Lease time.Duration `json:"lease" doc:"In nanoseconds"`
}

// Lost are the attempts that a sweep took away.
type Lost struct {
	Lost []registry.Lease `json:"lost"`
}

// Retirement asks that the bytes of an upload go.
type Retirement struct {
	UploadID string `json:"upload_id"`
	Itself   string `json:"itself,omitempty"` // the batch that asks, which needs them no more
}

// Purged says how much was purged that had been kept for its time.
type Purged struct {
	Batches int `json:"batches"`
}

// Rung says whether there was news while a long poll waited.
type Rung struct {
	Rung bool `json:"rung"`
}

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
