package s3

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdfast/holdfast/storage"
)

// Below the prefix, everything except these two folders is objects under their own keys. They are
// below "extensions", the one folder of an OCFL storage root that may contain something other than
// objects (OCFL 1.1, 4.1).
const (
	// hexFolder has the objects whose keys S3 or its XML cannot express, under the keys' bytes in
	// hexadecimal. Hexadecimal preserves order and prefixes, so a listing merges two.
	hexFolder = "extensions/holdfast-names/"
	// scratchFolder has the pieces of uncommitted writers: KEY/WRITER/PIECE.
	scratchFolder = "extensions/holdfast-scratch/"
)

// maxName is the longest key that S3 allows, in bytes.
const maxName = 1024

// needsHex reports whether S3 cannot have key as it is: it is not valid UTF-8, or has characters
// that XML 1.0, and so a listing, cannot express.
func needsHex(key string) bool {
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

// hexLine is the number of digits between two slashes, for services that store keys as file names.
const hexLine = 240

// hexName returns key in hexadecimal, in lines of equal length. Names have the same order, and are
// prefixes of each other, exactly as the keys.
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

// hexKey is the inverse of hexName. It returns false for a name that hexName never makes.
func hexKey(name string) (string, bool) {
	key, err := hex.DecodeString(strings.ReplaceAll(name, "/", ""))
	if err != nil || hexName(string(key)) != name {
		return "", false
	}
	return string(key), true
}

// name returns the S3 key of the object key.
func (s *Store) name(key string) string {
	if needsHex(key) && !s.asFound {
		return s.at.prefix + hexFolder + hexName(key)
	}
	return s.at.prefix + key
}

// scratch returns the folder of the pieces of all writers of key, with a slash at its end. Keys
// keep their parts there, so that the scratch data of a folder's objects is in one folder.
func (s *Store) scratch(key string) string {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		if needsHex(part) || strings.HasPrefix(part, hexMark) {
			parts[i] = hexMark + hexName(part)
		}
	}
	return s.at.prefix + scratchFolder + strings.Join(parts, "/") + "/"
}

// hexMark starts a part of a scratch name that is in hexadecimal.
const hexMark = "hex="

// check returns an error for keys that are malformed, that lie in or above the store's own folders,
// or that are too long for S3.
func (s *Store) check(key string) error {
	if err := storage.CheckKey(key); err != nil {
		return err
	}
	if s.asFound {
		return checkLength(key, s.name(key))
	}
	for _, own := range []string{hexFolder, scratchFolder} {
		if strings.HasPrefix(key+"/", own) || strings.HasPrefix(own, key+"/") {
			return &storage.KeyError{Key: key, Reason: "reserved by the store"}
		}
	}
	return checkLength(key, s.name(key))
}

// checkLength returns an error if the key's name is too long for S3.
func checkLength(key, name string) error {
	if len(name) > maxName {
		return &storage.KeyError{Key: key, Reason: fmt.Sprintf("needs a name of %d bytes in the bucket; the limit is %d", len(name), maxName)}
	}
	return nil
}
