package s3

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdfast/holdfast/storage"
)

// Below the prefix, everything but these two folders is objects under their own keys. They lie
// under "extensions" because that is the one folder of an OCFL storage root which may hold
// something other than objects (OCFL 1.1, 4.1).
const (
	// oddFolder has the objects whose keys S3 or its XML cannot carry, under the keys' bytes in
	// hexadecimal. That keeps their order and their prefixes, so a listing is a merge of two.
	oddFolder = "extensions/holdfast-names/"
	// scratchFolder has what uncommitted writers keep: KEY/WRITER/PIECE.
	scratchFolder = "extensions/holdfast-scratch/"
)

// maxName is how many bytes S3 allows a key to have.
const maxName = 1024

// odd says that S3 does not take key as it is: it is not valid UTF-8, or has characters that XML
// 1.0, and so a listing, cannot express.
func odd(key string) bool {
	if !utf8.ValidString(key) {
		return true
	}
	for _, r := range key {
		if r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return true
		}
	}
	return false
}

// hexLine is after how many digits a slash comes, for services that keep keys as file names.
const hexLine = 240

// hexName is key in hexadecimal, cut into lines of equal length. A name is a prefix of another, or
// before it, exactly when that is so of the keys.
func hexName(key string) string {
	digits := hex.EncodeToString([]byte(key))
	var b strings.Builder
	for len(digits) > hexLine {
		b.WriteString(digits[:hexLine])
		b.WriteByte('/')
		digits = digits[hexLine:]
	}
	b.WriteString(digits)
	return b.String()
}

// oddKey is the inverse of hexName, and false for a name that it never made.
func oddKey(name string) (string, bool) {
	key, err := hex.DecodeString(strings.ReplaceAll(name, "/", ""))
	if err != nil || hexName(string(key)) != name {
		return "", false
	}
	return string(key), true
}

// name is the S3 key of the object key.
func (s *Store) name(key string) string {
	if odd(key) && !s.asFound {
		return s.at.prefix + oddFolder + hexName(key)
	}
	return s.at.prefix + key
}

// scratch is the folder of the pieces of all writers of key, with the slash at its end. Keys keep
// their parts there, so that the scratch of a folder's objects is a folder.
func (s *Store) scratch(key string) string {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		if odd(part) || strings.HasPrefix(part, hexMark) {
			parts[i] = hexMark + hexName(part)
		}
	}
	return s.at.prefix + scratchFolder + strings.Join(parts, "/") + "/"
}

// hexMark begins a part of a scratch name that stands in hexadecimal.
const hexMark = "hex="

// check refuses keys that are malformed, that lie in, or around, the store's own folders, or that
// S3 finds too long.
func (s *Store) check(key string) error {
	if err := storage.CheckKey(key); err != nil {
		return err
	}
	if s.asFound {
		return checkLength(key, s.name(key))
	}
	for _, own := range []string{oddFolder, scratchFolder} {
		if strings.HasPrefix(key+"/", own) || strings.HasPrefix(own, key+"/") {
			return &storage.KeyError{Key: key, Reason: "reserved by the store"}
		}
	}
	return checkLength(key, s.name(key))
}

// checkLength refuses a key that needs a name which S3 does not allow.
func checkLength(key, name string) error {
	if len(name) > maxName {
		return &storage.KeyError{Key: key, Reason: fmt.Sprintf("needs a name of %d bytes in the bucket, of at most %d", len(name), maxName)}
	}
	return nil
}
