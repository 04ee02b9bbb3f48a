package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Uploads looks up uploads that batches were submitted from.
type Uploads interface {
	// UploadByID returns a complete, stored upload, or ErrNotFound.
	UploadByID(ctx context.Context, id string) (Upload, error)
	// IncomingByID returns an incoming upload. ErrNotFound: it is complete, dropped or unknown.
	IncomingByID(ctx context.Context, id string) (Incoming, error)
	// BatchesOf returns the batches submitted from an upload, newest first, at most 100. An unknown
	// upload has none.
	BatchesOf(ctx context.Context, uploadID string) ([]WorkItem, error)
}

// Upload is a payload that was sent to us and stored before it was acknowledged.
type Upload struct {
	ID        string    `json:"id"`
	Filename  string    `json:"filename"`
	SizeBytes int64     `json:"size_bytes"`
	Digest    Digest    `json:"digest"`
	CreatedBy string    `json:"created_by,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// Collection is the intended collection; "" if none was given.
	Collection string `json:"collection,omitempty"`
}

// Receiving accepts uploads part by part. The Registry knows how much of an upload is durable and
// who continues it; the receiver keeps the bytes.
type Receiving interface {
	// BeginUpload records a new upload at offset 0 and returns it. A repeat with the same id
	// changes nothing and returns the upload. ErrTaken: the upload with this id is complete.
	// *QuotaError: it would exceed one of u.Limits. *NoSpaceError: its volume lacks room beside
	// reservations.
	BeginUpload(ctx context.Context, u NewUpload) (Incoming, error)
	// IncomingOf lists the incoming uploads of a person, or all for "", newest first, at most 500.
	IncomingOf(ctx context.Context, createdBy string) ([]Incoming, error)
	// TakeUpload makes the caller the one who continues an upload, if the upload is at offset: N
	// grows, and the previous receiver can save nothing more. At another offset it returns the
	// upload unchanged. ErrNotFound as for IncomingByID.
	TakeUpload(ctx context.Context, id string, offset int64) (Incoming, error)
	// SaveUpload records durable bytes and extends the expiry. ErrClaimLost: another receiver took
	// the upload, it is complete, or the offset would go back or beyond the size. ErrInvalid: the
	// size differs from the known one. *QuotaError and *NoSpaceError as for BeginUpload, if the
	// size grows.
	SaveUpload(ctx context.Context, p UploadPart) (Incoming, error)
	// FinishUpload completes an upload whose bytes are stored under its id and have this digest.
	// All bytes must have been saved, so that nobody can change them. A repeat changes nothing.
	// ErrNotFound: the upload was dropped.
	FinishUpload(ctx context.Context, u Upload) error
	// DropUpload gives an incoming upload up: nothing more can be saved, and its bytes are removed.
	// A repeat changes nothing. ErrNotFound: it is unknown or complete.
	DropUpload(ctx context.Context, id string) error
	// RetireUpload marks an upload for removal. retired is false if an unfinished batch, or a job
	// of one, was submitted from it: one that is not completed, aborted or deleted. From then on
	// Submit and Prepare treat the upload as unknown. A repeat changes nothing.
	RetireUpload(ctx context.Context, uploadID string) (retired bool, err error)
	// StoredUploads lists complete uploads of a person, or all for "", that are not marked for
	// removal, newest first, by page. The bytes of very old ones may be gone.
	StoredUploads(ctx context.Context, createdBy, after string) (Page[Upload], error)
	// UploadUse returns the use of upload quotas of one token, or for "" of the tenant, then each
	// token, then each collection, largest first. Uploads without a collection count for a
	// collection without Key.
	UploadUse(ctx context.Context, createdBy string) ([]UploadUse, error)
	// DroppedUploads drops expired uploads. It lists dropped uploads, oldest first, and uploads
	// marked for removal, at most 500 of each. The caller removes their bytes, also repeatedly.
	DroppedUploads(ctx context.Context) ([]DroppedUpload, error)
	// ForgetUpload deletes the record of a dropped upload, and records that a removed upload's
	// bytes are gone. A repeat changes nothing.
	ForgetUpload(ctx context.Context, id string) error
}

// NewUpload is an upload before its first byte.
type NewUpload struct {
	ID        string        `json:"id"`
	Filename  string        `json:"filename"`
	SizeBytes int64         `json:"size_bytes"` // -1: not known yet
	Digest    *Digest       `json:"digest,omitempty"`
	Metadata  string        `json:"metadata,omitempty"` // as the sender gave it
	CreatedBy string        `json:"created_by,omitempty"`
	Keep      time.Duration `json:"keep"` // how long it is kept if no more bytes come
	// Collection is the intended collection; "" if none was given.
	Collection string        `json:"collection,omitempty"`
	Limits     []UploadLimit `json:"limits,omitempty"` // limits that it must obey
	Room       UploadRoom    `json:"room"`
}

// Incoming is an upload with missing bytes. The bytes up to Offset are durable and never taken
// back.
type Incoming struct {
	ID        string  `json:"id"`
	Filename  string  `json:"filename"`
	SizeBytes int64   `json:"size_bytes"` // of the whole; -1: not known yet
	Offset    int64   `json:"offset"`
	Digest    *Digest `json:"digest,omitempty"` // of the whole, as announced by the sender
	Metadata  string  `json:"metadata,omitempty"`
	// State belongs to the receiver: where the bytes are, and what is known about them.
	State     json.RawMessage `json:"state,omitempty"`
	N         int64           `json:"n"` // how often it was taken: the fencing token
	CreatedBy string          `json:"created_by,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	ExpiresAt time.Time       `json:"expires_at"`
	// Collection is the intended collection; "" if none was given.
	Collection string `json:"collection,omitempty"`
}

// Whole reports whether all bytes are durable.
func (in Incoming) Whole() bool { return in.Offset == in.SizeBytes }

// UploadPart reports the receiver's progress with an upload.
type UploadPart struct {
	ID        string          `json:"id"`
	N         int64           `json:"n"`
	Offset    int64           `json:"offset"`
	SizeBytes int64           `json:"size_bytes"` // of the whole; -1: not known yet
	State     json.RawMessage `json:"state,omitempty"`
	Keep      time.Duration   `json:"keep"` // how long it is kept if no more bytes come
	Limits    []UploadLimit   `json:"limits,omitempty"`
	Room      UploadRoom      `json:"room"`
}

// DroppedUpload is an upload that was given up before it was complete.
type DroppedUpload struct {
	ID string `json:"id"`
	// Over reports that the upload was dropped so long ago that nobody still writes its bytes.
	// Removing them once more is final.
	Over bool `json:"over"`
}

// UploadScope says which uploads a limit counts together.
type UploadScope string

// The scopes.
const (
	UploadsOfToken      UploadScope = "token"
	UploadsOfCollection UploadScope = "collection"
	UploadsOfTenant     UploadScope = "tenant"
)

// UploadLimit limits the uploads of a scope. An upload counts from its beginning until its bytes
// are removed: with its announced size, or with what has arrived while that is unknown.
type UploadLimit struct {
	Scope UploadScope `json:"scope"`
	Key   string      `json:"key,omitempty"`   // token's name or collection's mnemonic; "" for the tenant
	Bytes int64       `json:"bytes,omitempty"` // of incoming and complete uploads; 0: no limit
	Open  int64       `json:"open,omitempty"`  // incoming uploads; 0: no limit
}

// UploadUse is the use of a scope's quotas.
type UploadUse struct {
	UploadLimit // Scope and Key; the API adds the limits

	Uploads int64 `json:"uploads"` // incoming
	Stored  int64 `json:"stored"`  // complete, with their bytes in staging
	Held    int64 `json:"held"`    // bytes that count for the limit
}

// UploadRoom is the room of a volume for uploads. Announced bytes of other uploads, and
// reservations of items, count as used.
type UploadRoom struct {
	Volume    string  `json:"volume"`
	Used      int64   `json:"used"`      // bytes
	Total     int64   `json:"total"`     // bytes; 0: no limit
	Threshold float64 `json:"threshold"` // share of Total that may be used and reserved
}

// QuotaError says that an upload would exceed a limit.
type QuotaError struct {
	UploadLimit

	Uploads int64 `json:"uploads"` // incoming already
	Held    int64 `json:"held"`    // bytes that count already
	Need    int64 `json:"need"`    // bytes more
}

// TooMany reports that the number of uploads is exceeded, not their bytes.
func (e *QuotaError) TooMany() bool { return e.Open > 0 && e.Uploads >= e.Open }

// Never reports that the upload alone exceeds the limit, so that waiting does not help.
func (e *QuotaError) Never() bool { return !e.TooMany() && e.Need > e.Bytes }

// uploadOwners name what has a quota.
var uploadOwners = map[UploadScope]string{
	UploadsOfToken: "token %s", UploadsOfCollection: "collection %s", UploadsOfTenant: "this service",
}

// Error says which quota it is, how much of it is used, and what to do.
func (e *QuotaError) Error() string {
	whose := uploadOwners[e.Scope]
	if e.Scope != UploadsOfTenant {
		whose = fmt.Sprintf(whose, e.Key)
	}
	switch {
	case e.TooMany():
		return fmt.Sprintf("%v has %d unfinished uploads; the limit is %d; finish or remove some (holdfast upload list)", whose, e.Uploads, e.Open)
	case e.Never():
		need, most := sizeTexts(e.Need, e.Bytes)
		return fmt.Sprintf("the upload has %s, and all uploads of %v together may have %s; send less, or have an admin raise the quota", need, whose, most)
	}
	held, most := sizeTexts(e.Held, e.Bytes)
	return fmt.Sprintf("the upload needs %s, and the uploads of %v have %s of the %s that they may have; submit or remove some (holdfast upload list), "+
		"and wait until their batches are completed", SizeText(e.Need), whose, held, most)
}
