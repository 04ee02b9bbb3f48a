// Package staging keeps an item's bytes between their source and the object: fetched, digested, and
// named so that only the attempt that made a file ever writes it (R3).
//
// Every key begins with the item and the attempt's number. A superseded worker writes only under
// its own keys; its successor follows only what an attempt has recorded. Files have numbers, not
// names: depositors' names are kept in lists, byte for byte, so no storage has to express them.
package staging

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// ItemPrefix is the folder of everything that an item's attempts have staged.
func ItemPrefix(itemID string) string { return ItemsPrefix + itemID }

// ItemsPrefix begins the keys of everything that items have staged, each in a folder that is named
// by its id.
const ItemsPrefix = "items/"

// Owned says whether a key is one of the item's own: a record that names another item's file is not
// followed.
func Owned(itemID, key string) bool { return strings.HasPrefix(key, ItemPrefix(itemID)+"/") }

// Key is a key of one attempt's own.
func Key(l registry.Lease, name string) string {
	return ItemPrefix(l.ItemID) + "/" + strconv.FormatInt(l.N, 10) + "/" + name
}

// FileKey is the key of an attempt's file by number, in folders of at most a thousand.
func FileKey(l registry.Lease, folder string, seq int64) string {
	return Key(l, fmt.Sprintf("%s/%03d/%d", folder, seq/1000, seq))
}

// File is a staged file.
type File struct {
	Seq       int64             `json:"seq"`  // its place in what was submitted, from 1
	Name      string            `json:"name"` // the depositor's, byte for byte; valid UTF-8
	Key       string            `json:"key"`
	SizeBytes int64             `json:"size_bytes"`
	Digests   map[string]string `json:"digests"` // lower-case hex by algorithm
	MIMEType  string            `json:"mime_type,omitempty"`
	Source    string            `json:"source,omitempty"`   // where it came from, without secrets
	Modified  time.Time         `json:"modified,omitzero"`  // zero: nobody knows
	NoZone    bool              `json:"no_zone,omitempty"`  // Modified is of an unknown zone, taken for UTC
	Raw       []byte            `json:"raw,omitempty"`      // the bytes that Name was read from, where these are not UTF-8
	Encoding  string            `json:"encoding,omitempty"` // by which they were
}
