package bagit

import (
	"crypto/md5"  // a bag may be made with MD5, section 2.4
	"crypto/sha1" // a bag may be made with SHA-1, section 2.4
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"hash"
	"strings"
)

// algorithm is an index into the supported checksum algorithms. Its order is that of the digests in
// a fileRecord.
type algorithm uint8

const (
	algMD5 algorithm = iota
	algSHA1
	algSHA224
	algSHA256
	algSHA384
	algSHA512
	algSHA512t256
	algSHA3t224
	algSHA3t256
	algSHA3t384
	algSHA3t512
	algCount
)

// String returns the normalized name (RFC 8493 section 2.4).
func (a algorithm) String() string {
	return [algCount]string{
		"md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha512256",
		"sha3224", "sha3256", "sha3384", "sha3512",
	}[a]
}

// size returns the length of a digest in octets.
func (a algorithm) size() int {
	return [algCount]int{16, 20, 28, 32, 48, 64, 32, 28, 32, 48, 64}[a]
}

func (a algorithm) new() hash.Hash {
	switch a {
	case algMD5:
		return md5.New()
	case algSHA1:
		return sha1.New()
	case algSHA224:
		return sha256.New224()
	case algSHA256:
		return sha256.New()
	case algSHA384:
		return sha512.New384()
	case algSHA512t256:
		return sha512.New512_256()
	case algSHA3t224:
		return sha3.New224()
	case algSHA3t256:
		return sha3.New256()
	case algSHA3t384:
		return sha3.New384()
	case algSHA3t512:
		return sha3.New512()
	default:
		return sha512.New()
	}
}

// normalizeAlgorithm lowers the name and drops all but letters and digits (section 2.4).
func normalizeAlgorithm(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, name)
}

func lookupAlgorithm(name string) (algorithm, bool) {
	name = normalizeAlgorithm(name)
	for a := range algCount {
		if a.String() == name {
			return a, true
		}
	}
	return 0, false
}

// Algorithms returns the names of all supported checksum algorithms, normalized as in section 2.4
// (sha512, not SHA-512).
func Algorithms() []string { return (algSet(1)<<algCount - 1).names() }

// algSet is a set of algorithms, one bit each.
type algSet uint16

// usualAlgorithms are those that bags commonly use. A Validator takes them of files whose manifests
// it does not know yet.
const usualAlgorithms = algSet(1<<algMD5 | 1<<algSHA1 | 1<<algSHA224 | 1<<algSHA256 | 1<<algSHA384 | 1<<algSHA512)

func (s algSet) has(a algorithm) bool { return s&(1<<a) != 0 }

func (s algSet) list() []algorithm {
	var out []algorithm
	for a := range algCount {
		if s.has(a) {
			out = append(out, a)
		}
	}
	return out
}

func (s algSet) names() []string {
	var out []string
	for _, a := range s.list() {
		out = append(out, a.String())
	}
	return out
}

// offset returns where the digest of a begins in the concatenated digests of the set.
func (s algSet) offset(a algorithm) int {
	n := 0
	for b := range a {
		if s.has(b) {
			n += b.size()
		}
	}
	return n
}
