package wire

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// What uploads in parts are spoken in: tus 1.0.0 (https://tus.io/protocols/resumable-upload), its
// core and the extensions that TusExtensions names.
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

	// MethodOverrideHeader is the method that a POST stands for, from where there is no PATCH or
	// DELETE.
	MethodOverrideHeader = "X-HTTP-Method-Override"

	// StatusChecksum says that the bytes of a request are not those that its checksum was taken of.
	StatusChecksum = 460
)

// Keys of Upload-Metadata that mean something here. Others are kept and given back.
const (
	MetadataFilename = "filename" // the file's name, without folders; needed
	MetadataDigest   = "digest"   // ALGORITHM:HEX of the whole file: another one is refused
	// MetadataCollection is the collection that the file is meant for, whose quota it counts for.
	MetadataCollection = "collection"
)

// EncodeMetadata writes Upload-Metadata: keys with their values in base64, sorted.
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

// DecodeMetadata reads Upload-Metadata. The error says what is wrong with which part of it.
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

// UploadStatus is how far an upload is.
type UploadStatus struct {
	ID        string            `json:"id"`
	Filename  string            `json:"filename"`
	SizeBytes int64             `json:"size_bytes" doc:"Of the whole file; -1: not known yet"`
	Offset    int64             `json:"offset" doc:"How many bytes are durable"`
	Complete  bool              `json:"complete" doc:"All bytes are stored and read back; it can be submitted"`
	Digest    *registry.Digest  `json:"digest,omitempty" doc:"Of what is stored, when it is complete"`
	Metadata  map[string]string `json:"metadata,omitempty" doc:"As the sender gave it, while it is not complete"`
	CreatedBy string            `json:"created_by"`
	// Collection and BatchID say what it is for.
	Collection string     `json:"collection,omitempty" doc:"The collection that it is meant for, if that is known"`
	BatchID    string     `json:"batch_id,omitempty" doc:"The newest batch that it was submitted as"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty" doc:"When it is removed if nothing more comes"`
}
