package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Uploads is what becomes of uploads that batches were submitted from.
type Uploads interface {
	// UploadByID returns an upload that has ended and is stored, or ErrNotFound.
	UploadByID(ctx context.Context, id string) (Upload, error)
	// IncomingByID returns an upload on its way, or ErrNotFound: it has ended, was given up, or
	// never was.
	IncomingByID(ctx context.Context, id string) (Incoming, error)
	// BatchesOf returns the batches that an upload was submitted as, the newest first, at most 100;
	// none of an unknown one.
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
	// Collection is the one that it is meant for, "" when nobody said.
	Collection string `json:"collection,omitempty"`
}

// Receiving is how the bytes of uploads come in, part by part. The Registry knows how much of an
// upload is durable and who takes it forward; the bytes themselves are the receiver's.
type Receiving interface {
	// BeginUpload records an upload that is to come and returns it, at offset 0. A repeat of the
	// same id changes nothing and returns what is there; ErrTaken when an upload of this id has
	// ended. *QuotaError when it would exceed one of u.Limits, *NoSpaceError when its volume has no
	// room for it beside what is promised already.
	BeginUpload(ctx context.Context, u NewUpload) (Incoming, error)
	// IncomingOf lists the uploads on their way that somebody began, everybody's for "", newest
	// first, at most 500.
	IncomingOf(ctx context.Context, createdBy string) ([]Incoming, error)
	// TakeUpload makes the caller the one who takes an upload forward, if it stands at offset: N
	// grows, and whoever had it before can save nothing more. If it stands elsewhere, it is
	// returned as it is and stays whose it was. ErrNotFound as for IncomingByID.
	TakeUpload(ctx context.Context, id string, offset int64) (Incoming, error)
	// SaveUpload acknowledges what has become durable, and puts the expiry off. ErrClaimLost when
	// somebody else has taken the upload, when it has ended, or when the offset would go back or
	// beyond the size; ErrInvalid for a size that differs from the one that is known. *QuotaError
	// and *NoSpaceError as for BeginUpload, when it comes to more than was known before.
	SaveUpload(ctx context.Context, p UploadPart) (Incoming, error)
	// FinishUpload makes an upload on its way one whose bytes are stored under its id and have this
	// digest. Its bytes must have been saved to the last one, so that nobody can still change them.
	// A repeat changes nothing; ErrNotFound when it was given up.
	FinishUpload(ctx context.Context, u Upload) error
	// DropUpload gives an upload on its way up: nothing can be saved any more, and its bytes are to
	// be removed. A repeat changes nothing, ErrNotFound when there never was one, or it has ended.
	DropUpload(ctx context.Context, id string) error
	// RetireUpload decides that the bytes of an upload go, unless somebody may need them: a batch
	// that was submitted from it, or a job of one, which is not completed, aborted or deleted. Then
	// retired is false. From then on Submit and Prepare answer as if there was no such upload. A
	// repeat changes nothing.
	RetireUpload(ctx context.Context, uploadID string) (retired bool, err error)
	// StoredUploads lists the uploads that have ended and that nobody has decided to remove, of
	// somebody, or everybody's for "", newest first, a page at a time. The bytes of those from
	// before this was noted may be gone.
	StoredUploads(ctx context.Context, createdBy, after string) (Page[Upload], error)
	// UploadUse counts what the uploads of one token come to, or for "" those of the tenant, of
	// each token and of each collection, in this order and those that hold most first. An upload of
	// no collection counts for a collection without a Key.
	UploadUse(ctx context.Context, createdBy string) ([]UploadUse, error)
	// DroppedUploads gives up what has expired, and lists what was given up and not forgotten,
	// longest ago first, at most 500, and as many that were retired: the bytes of each are to be
	// removed, again for those that were removed before.
	DroppedUploads(ctx context.Context) ([]DroppedUpload, error)
	// ForgetUpload removes the record of an upload that was given up, and notes of one that was
	// retired that its bytes are gone. A repeat changes nothing.
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
	Keep      time.Duration `json:"keep"` // how long it is kept when nothing more comes
	// Collection is the one that it is meant for, "" when nobody said.
	Collection string        `json:"collection,omitempty"`
	Limits     []UploadLimit `json:"limits,omitempty"` // those that it must obey
	Room       UploadRoom    `json:"room"`
}

// Incoming is an upload that is on its way. What has come of it up to Offset is durable and never
// taken back.
type Incoming struct {
	ID        string  `json:"id"`
	Filename  string  `json:"filename"`
	SizeBytes int64   `json:"size_bytes"` // of the whole; -1: not known yet
	Offset    int64   `json:"offset"`
	Digest    *Digest `json:"digest,omitempty"` // of the whole, as the sender has announced it
	Metadata  string  `json:"metadata,omitempty"`
	// State is the receiver's own: where the bytes are, and what is known of them.
	State     json.RawMessage `json:"state,omitempty"`
	N         int64           `json:"n"` // how often it was taken: the fencing token of who takes it forward
	CreatedBy string          `json:"created_by,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	ExpiresAt time.Time       `json:"expires_at"`
	// Collection is the one that it is meant for, "" when nobody said.
	Collection string `json:"collection,omitempty"`
}

// Whole says whether all bytes are durable.
func (in Incoming) Whole() bool { return in.Offset == in.SizeBytes }

// UploadPart says how far an upload has come, by who takes it forward.
type UploadPart struct {
	ID        string          `json:"id"`
	N         int64           `json:"n"`
	Offset    int64           `json:"offset"`
	SizeBytes int64           `json:"size_bytes"` // of the whole; -1: not known yet
	State     json.RawMessage `json:"state,omitempty"`
	Keep      time.Duration   `json:"keep"` // how long it is kept when nothing more comes
	Limits    []UploadLimit   `json:"limits,omitempty"`
	Room      UploadRoom      `json:"room"`
}

// DroppedUpload is an upload that was given up before it had ended.
type DroppedUpload struct {
	ID string `json:"id"`
	// Over says that this was so long ago that nobody writes its bytes any more: removed once more,
	// they are gone for good.
	Over bool `json:"over"`
}

// UploadScope says whose uploads a limit counts together.
type UploadScope string

// The scopes.
const (
	UploadsOfToken      UploadScope = "token"
	UploadsOfCollection UploadScope = "collection"
	UploadsOfTenant     UploadScope = "tenant"
)

// UploadLimit bounds what the uploads of a scope come to. An upload counts from its beginning on
// with the size that was announced, or with what has come while that is not known, until its bytes
// go.
type UploadLimit struct {
	Scope UploadScope `json:"scope"`
	Key   string      `json:"key,omitempty"`   // the token's name, the collection's mnemonic; "" for the tenant
	Bytes int64       `json:"bytes,omitempty"` // of uploads on their way and ended ones; 0: any number
	Open  int64       `json:"open,omitempty"`  // uploads on their way; 0: any number
}

// UploadUse is what the uploads of a scope come to.
type UploadUse struct {
	UploadLimit // Scope and Key; the API fills in what the uploads may come to

	Uploads int64 `json:"uploads"` // on their way
	Stored  int64 `json:"stored"`  // ended, with their bytes in staging
	Held    int64 `json:"held"`    // bytes that count for the limit
}

// UploadRoom is what a volume has for uploads. What other uploads on their way have announced, and
// what is promised to items, is counted as used.
type UploadRoom struct {
	Volume    string  `json:"volume"`
	Used      int64   `json:"used"`      // bytes
	Total     int64   `json:"total"`     // bytes; 0: there is no limit
	Threshold float64 `json:"threshold"` // the share of Total that may be used and promised
}

// QuotaError says that an upload would exceed a limit.
type QuotaError struct {
	UploadLimit

	Uploads int64 `json:"uploads"` // on their way already
	Held    int64 `json:"held"`    // bytes that count already
	Need    int64 `json:"need"`    // bytes more
}

// TooMany says whether it is the number of uploads that is exceeded, and not their bytes.
func (e *QuotaError) TooMany() bool { return e.Open > 0 && e.Uploads >= e.Open }

// Never says that the upload alone is larger than the limit, so that waiting does not help.
func (e *QuotaError) Never() bool { return !e.TooMany() && e.Need > e.Bytes }

// Error says which quota it is, how much of it is used, and what to do.
func (e *QuotaError) Error() string {
	whose := map[UploadScope]string{
		UploadsOfToken: "token " + e.Key, UploadsOfCollection: "collection " + e.Key, UploadsOfTenant: "this service",
	}[e.Scope]
	switch {
	case e.TooMany():
		return fmt.Sprintf("%s has %d uploads on their way, and may have %d; finish or remove some (holdfast upload list)", whose, e.Uploads, e.Open)
	case e.Never():
		need, most := sizeTexts(e.Need, e.Bytes)
		return fmt.Sprintf("the upload has %s, and all uploads of %s together may have %s; send less, or have an admin raise the quota", need, whose, most)
	}
	held, most := sizeTexts(e.Held, e.Bytes)
	return fmt.Sprintf("the upload needs %s, and the uploads of %s have %s of the %s that they may have; submit or remove some (holdfast upload list), "+
		"and wait until their batches are completed", SizeText(e.Need), whose, held, most)
}
