package ocfl

import (
	"crypto/md5"  //nolint:gosec // the specification names it for legacy fixity values
	"crypto/sha1" //nolint:gosec // as md5
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"strings"

	"golang.org/x/crypto/blake2b"
)

// Digest algorithms that may address content.
const (
	SHA512 = "sha512"
	SHA256 = "sha256"
)

// newHash returns a new hash for an algorithm of the specification's table (3.4) or of extension
// 0009, or nil for any other name.
func newHash(algorithm string) hash.Hash {
	switch algorithm {
	case SHA512:
		return sha512.New()
	case SHA256:
		return sha256.New()
	case "sha1":
		return sha1.New() //nolint:gosec // legacy fixity values
	case "md5":
		return md5.New() //nolint:gosec // legacy fixity values
	case "sha512/256":
		return sha512.New512_256()
	case "blake2b-512":
		return newBlake2b(64)
	case "blake2b-384":
		return newBlake2b(48)
	case "blake2b-256":
		return newBlake2b(32)
	case "blake2b-160":
		return newBlake2b(20)
	}
	return nil
}

// newBlake2b returns unkeyed BLAKE2b (RFC 7693) with a sum of size bytes, 1 to 64.
func newBlake2b(size int) hash.Hash {
	h, err := blake2b.New(size, nil)
	if err != nil {
		panic(err) // only for other sizes
	}
	return h
}

// addresses reports whether an algorithm may be used in a manifest.
func addresses(algorithm string) bool { return algorithm == SHA512 || algorithm == SHA256 }

// isDigest reports whether text is a hex digest of the algorithm's length.
func isDigest(algorithm, text string) bool {
	h := newHash(algorithm)
	if h == nil || len(text) != 2*h.Size() {
		return false
	}
	return strings.Trim(text, "0123456789abcdefABCDEF") == ""
}

// hexSum returns the digest of h as inventories spell it.
func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
