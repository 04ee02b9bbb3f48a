package wire

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Names of tus 1.0.0 (https://tus.io/protocols/resumable-upload), its core and the extensions in
// TusExtensions, for resumable uploads.
const (
	TusVersion    = "1.0.0"
	TusExtensions = "creation,creation-with-upload,creation-defer-length,checksum,expiration,termination"
	TusMediaType  = "application/offset+octet-stream"

	TusResumableHeader = "Tus-Resumable"
	TusVersionHeader   = "Tus-Version"
	TusExtensionHeader = "Tus-Extension"
	TusChecksumsHeader = "Tus-Checksum-Algorithm"

	UploadOffsetHeader   = "Upload-Offset"
	UploadLengthHeader   = "Upload-Length"
	UploadDeferHeader    = "Upload-Defer-Length"
	UploadMetadataHeader = "Upload-Metadata"
	UploadChecksumHeader = "Upload-Checksum"
	UploadExpiresHeader  = "Upload-Expires"

	// MethodOverrideHeader names the method that a POST stands for, for clients without PATCH or
	// DELETE.
	MethodOverrideHeader = "X-HTTP-Method-Override"

	// StatusChecksum says that the bytes of a request do not match its checksum.
	StatusChecksum = 460
)

// Keys of Upload-Metadata with a meaning. Others are stored and returned.
const (
	MetadataFilename = "filename" // the file's name, without folders; required
	MetadataDigest   = "digest"   // ALGORITHM:HEX of the whole file; other bytes are refused
	// MetadataCollection is the collection of the file; the file counts for its quota.
	MetadataCollection = "collection"
)

// EncodeMetadata returns Upload-Metadata: sorted keys with base64 values.
func EncodeMetadata(values map[string]string) string {
	pairs := make([]string, 0, len(values))
	for key, value := range values {
		pair := key
		if value != "" {
			pair += " " + base64.StdEncoding.EncodeToString([]byte(value))
		}
		pairs = append(pairs, pair)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// DecodeMetadata parses Upload-Metadata. The error names the faulty part.
func DecodeMetadata(text string) (map[string]string, error) {
	values := map[string]string{}
	if strings.TrimSpace(text) == "" {
		return values, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		key, encoded, _ := strings.Cut(strings.TrimSpace(pair), " ")
		if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fmt.Errorf("%q has no key of printable ASCII", pair)
		}
		value, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if err != nil {
			return nil, fmt.Errorf("the value of %s is not base64", key)
		}
		if _, twice := values[key]; twice {
			return nil, fmt.Errorf("%s is given twice", key)
		}
		values[key] = string(value)
	}
	return values, nil
}

// UploadStatus is the progress of an upload.
type UploadStatus struct {
	ID        string            `json:"id"`
	Filename  string            `json:"filename"`
	SizeBytes int64             `json:"size_bytes" doc:"Size of the whole file; -1: not known yet"`
	Offset    int64             `json:"offset" doc:"Number of durable bytes"`
	Complete  bool              `json:"complete" doc:"All bytes are stored and verified; it can be submitted"`
	Digest    *registry.Digest  `json:"digest,omitempty" doc:"Digest of the stored bytes, when complete"`
	Metadata  map[string]string `json:"metadata,omitempty" doc:"As the sender gave it, while incomplete"`
	CreatedBy string            `json:"created_by"`
	// Collection and BatchID say what the upload is for.
	Collection string     `json:"collection,omitempty" doc:"Its collection, if known"`
	BatchID    string     `json:"batch_id,omitempty" doc:"The newest batch of this upload"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty" doc:"When it is removed if no more bytes come"`
}
