package s3

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// tokenVersion begins every token, so that a later form can be told from this one.
const tokenVersion = "s3v1"

// token says whose pieces hold the bytes of a checkpoint: those of the writer id of key, or the
// object key itself when that has the writer's mark.
type token struct{ key, id string }

// String is the form that a Checkpoint carries. The key is encoded because it need not be valid
// UTF-8, and JSON would change it.
func (t token) String() string {
	return tokenVersion + "." + base64.RawURLEncoding.EncodeToString([]byte(t.key)) + "." + t.id
}

// newID is a name that no other writer has.
func newID() string { return rand.Text() }

// errToken says that a checkpoint was not given by this driver: its bytes are not here.
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
