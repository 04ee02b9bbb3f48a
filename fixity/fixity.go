// Package fixity computes digests of a stream, with several algorithms at once. A computation can
// be saved and continued in another process.
//
// Algorithms have one name each, in lower case: adler32, crc32, md2, md5, sha1, sha256, sha384,
// sha512 and sha512/256.
package fixity

import (
	"crypto/md5"  //nolint:gosec // depositors choose the algorithms of their digests
	"crypto/sha1" //nolint:gosec // likewise
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"strings"
)

// ErrUnknown says that the algorithm is not supported.
var ErrUnknown = errors.New("unknown digest algorithm")

// New returns a new hash. For an unknown algorithm it returns an error that wraps ErrUnknown and
// names the known ones.
func New(algorithm string) (hash.Hash, error) {
	switch algorithm {
	case "adler32":
		return adler32.New(), nil
	case "crc32":
		return crc32.NewIEEE(), nil
	case "md5":
		return md5.New(), nil
	case "sha1":
		return sha1.New(), nil
	case "sha256":
		return sha256.New(), nil
	case "sha384":
		return sha512.New384(), nil
	case "sha512":
		return sha512.New(), nil
	case "md2":
		return newMD2(), nil
	case "sha512/256":
		return sha512.New512_256(), nil
	default:
		return nil, fmt.Errorf("%w %q; known are %s", ErrUnknown, algorithm, strings.Join(Algorithms(), ", "))
	}
}

// Algorithms returns the known names, sorted.
func Algorithms() []string {
	return []string{"adler32", "crc32", "md2", "md5", "sha1", "sha256", "sha384", "sha512", "sha512/256"}
}
