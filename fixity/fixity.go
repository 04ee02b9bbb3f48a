// Package fixity takes digests: of bytes that pass by once, with as many algorithms as are wanted, and in a form that
// survives the process.
//
// It knows each algorithm under one name: lower case, as in adler32, crc32, md5, sha1, sha256, sha384, sha512 and
// sha512/256.
package fixity

import (
	"crypto/md5"  //nolint:gosec // depositors' digests are what they are
	"crypto/sha1" //nolint:gosec // likewise
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"maps"
	"slices"
)

// ErrUnknown says that an algorithm is not known here.
var ErrUnknown = errors.New("unknown digest algorithm")

// New returns a fresh hash, or an error that wraps ErrUnknown and names what is known.
func New(algorithm string) (hash.Hash, error) {
	if fresh, ok := algorithms()[algorithm]; ok {
		return fresh(), nil
	}
	return nil, fmt.Errorf("%w %q; known are %v", ErrUnknown, algorithm, Algorithms())
}

// Algorithms returns the known names in order.
func Algorithms() []string { return slices.Sorted(maps.Keys(algorithms())) }

func algorithms() map[string]func() hash.Hash {
	return map[string]func() hash.Hash{
		"adler32":    func() hash.Hash { return adler32.New() },
		"crc32":      func() hash.Hash { return crc32.NewIEEE() },
		"md5":        md5.New,
		"sha1":       sha1.New,
		"sha256":     sha256.New,
		"sha384":     sha512.New384,
		"sha512":     sha512.New,
		"sha512/256": sha512.New512_256,
	}
}
