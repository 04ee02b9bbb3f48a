package s3

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// tokenVersion starts every token, to distinguish later formats.
const tokenVersion = "s3v1"

// token names the bytes of a checkpoint: the pieces of the writer id of key, or the object key
// itself if that has the writer's mark.
type token struct{ key, id string }

// String returns the form in a Checkpoint. The key is encoded because JSON would change invalid
// UTF-8.
func (t token) String() string {
	return tokenVersion + "." + base64.RawURLEncoding.EncodeToString([]byte(t.key)) + "." + t.id
}

// newID returns a unique name of a writer.
func newID() string { return rand.Text() }

// errToken says that a checkpoint is not from this driver, so its bytes are not here.
var errToken = fmt.Errorf("not a checkpoint of a bucket: %w", storage.ErrNotFound)

// parseToken is the inverse of String.
func parseToken(text string) (token, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || parts[0] != tokenVersion {
		return token{}, errToken
	}
	key, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || storage.CheckKey(string(key)) != nil {
		return token{}, errToken
	}
	id := parts[2]
	if len(id) != len(newID()) || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return token{}, errToken
	}
	return token{key: string(key), id: id}, nil
}
