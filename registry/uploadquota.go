package registry

import "fmt"

// UploadScope says whose uploads a limit counts together.
type UploadScope string

// The scopes.
const (
	UploadsOfToken      UploadScope = "token"
	UploadsOfCollection UploadScope = "collection"
	UploadsOfTenant     UploadScope = "tenant"
)

// UploadLimit bounds what the uploads of a scope come to. An upload counts from its beginning on with the size that was announced, or with
// what has come while that is not known, until its bytes go.
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

// UploadRoom is what a volume has for uploads. What other uploads on their way have announced, and what is promised to items, is
// counted as used.
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
