// Package staging stores an item's bytes between their source and the object. It fetches them,
// computes their digests, and names files so that only one attempt ever writes a file (R3).
//
// Every key begins with the item and the attempt's number. A superseded worker writes only under
// its own keys; its successor reads only files that an attempt has recorded. Files have numbers,
// not names. Lists hold the depositors' names byte for byte, so no storage has to support them. A
// staging area is not trusted: [Blocks], [Verified] and [ReadList] detect changed bytes. The
// package does not decide when staged data can be deleted.
package staging

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// ItemPrefix returns the folder of everything that an item's attempts have staged.
func ItemPrefix(itemID string) string { return ItemsPrefix + itemID }

// ItemsPrefix begins the keys of everything that items have staged. Each item has a folder named by
// its id.
const ItemsPrefix = "items/"

// Owned reports whether a key belongs to the item. Do not follow a record that names another item's
// file.
func Owned(itemID, key string) bool { return strings.HasPrefix(key, ItemPrefix(itemID)+"/") }

// Key returns the key of a name that belongs to one attempt.
func Key(l registry.Lease, name string) string {
	return ItemPrefix(l.ItemID) + "/" + strconv.FormatInt(l.N, 10) + "." + name
}

// FileKey returns the key of an attempt's file by its number, in folders of at most a thousand
// files. The many items of few files have one folder each. No folder has the name of a file, as 100
// would be.
func FileKey(l registry.Lease, folder string, seq int64) string {
	if seq < 1000 {
		return Key(l, fmt.Sprintf("%s/%d", folder, seq))
	}
	return Key(l, fmt.Sprintf("%s/%dk/%d", folder, seq/1000, seq))
}

// File is a staged file.
type File struct {
	Seq       int64             `json:"seq"`  // position in the submission, from 1
	Name      string            `json:"name"` // the depositor's name, byte for byte; valid UTF-8
	Key       string            `json:"key"`
	SizeBytes int64             `json:"size_bytes"`
	Digests   map[string]string `json:"digests"` // lower-case hex by algorithm
	MIMEType  string            `json:"mime_type,omitempty"`
	Source    string            `json:"source,omitempty"`   // its source, without secrets
	Modified  time.Time         `json:"modified,omitzero"`  // zero: unknown
	NoZone    bool              `json:"no_zone,omitempty"`  // Modified has an unknown time zone; UTC is assumed
	Raw       []byte            `json:"raw,omitempty"`      // the original bytes of Name, if they are not UTF-8
	Encoding  string            `json:"encoding,omitempty"` // the encoding of Raw
}
