package checkm

import "strings"

// Algorithm returns the name under which this system knows a digest algorithm, and the
// number of hex digits of its digests. Case and hyphens do not count: SHA-256, sha256 and
// Sha-256 are one. ok is false for any other name than adler32, crc32, md2, md5, sha1,
// sha256, sha384, sha512 and sha512/256.
func Algorithm(name string) (canonical string, hexLen int, ok bool) {
	canonical = strings.ReplaceAll(strings.ToLower(name), "-", "")
	switch canonical {
	case "adler32", "crc32":
		hexLen = 8
	case "md2", "md5":
		hexLen = 32
	case "sha1":
		hexLen = 40
	case "sha256", "sha512/256":
		hexLen = 64
	case "sha384":
		hexLen = 96
	case "sha512":
		hexLen = 128
	default:
		return "", 0, false
	}
	return canonical, hexLen, true
}

func isHex(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}
