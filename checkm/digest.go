package checkm

import "strings"

// Algorithm returns the canonical name of a digest algorithm and the number of hex digits of its
// digests. Case and hyphens do not matter: SHA-256, sha256 and Sha-256 are the same. ok is false
// for other names than adler32, crc32, md2, md5, sha1, sha256, sha384, sha512 and sha512/256.
func Algorithm(name string) (canonical string, hexLen int, ok bool) {
	if hexLen = hexDigits(name); hexLen > 0 {
		return name, hexLen, true
	}
	canonical = strings.ReplaceAll(strings.ToLower(name), "-", "")
	if hexLen = hexDigits(canonical); hexLen > 0 {
		return canonical, hexLen, true
	}
	return "", 0, false
}

// hexDigits returns the length of an algorithm's digests, or 0 for an unknown name.
func hexDigits(canonical string) int {
	switch canonical {
	case "adler32", "crc32":
		return 8
	case "md2", "md5":
		return 32
	case "sha1":
		return 40
	case "sha256", "sha512/256":
		return 64
	case "sha384":
		return 96
	case "sha512":
		return 128
	}
	return 0
}

// lowerHex returns hex digits in lower case. ok is false for any other text.
func lowerHex(s string) (lower string, ok bool) {
	all, any := hexByte, class(0)
	for i := range len(s) {
		c := classes[s[i]]
		all &= c
		any |= c
	}
	if all == 0 {
		return "", false
	}
	if any.is(upperByte) {
		s = strings.ToLower(s)
	}
	return s, true
}
