package storage

import (
	"fmt"
	"strings"
)

// Limits on keys: the lower ones of file systems and S3, so that all drivers accept the same keys.
const (
	MaxKey  = 1024 // bytes of a whole key
	MaxPart = 255  // bytes between two slashes
)

// KeyError says that a key cannot be used, and why. It is malformed, or reserved by the driver. Or
// it is a folder of another object, or below one, in a driver that cannot have both.
type KeyError struct {
	Key    string
	Reason string
}

// Error implements error.
func (e *KeyError) Error() string {
	return fmt.Sprintf("storage: key %q: %s", e.Key, e.Reason)
}

// CheckKey returns a *KeyError unless key is valid: at most MaxKey bytes, in parts of 1 to MaxPart
// bytes between single slashes. No part is "." or "..", and there is no NUL. All other bytes are
// allowed, valid UTF-8 or not. Nothing is normalised: different keys are different objects.
func CheckKey(key string) error {
	refuse := func(reason string) error { return &KeyError{Key: key, Reason: reason} }
	switch {
	case key == "":
		return refuse("empty")
	case len(key) > MaxKey:
		return refuse(fmt.Sprintf("longer than %d bytes", MaxKey))
	case key[0] == '/':
		return refuse("begins with a slash")
	case key[len(key)-1] == '/':
		return refuse("ends with a slash")
	case strings.IndexByte(key, 0) >= 0:
		return refuse("contains NUL")
	}
	for part := range strings.SplitSeq(key, "/") {
		switch {
		case part == "":
			return refuse("contains an empty part")
		case part == "." || part == "..":
			return refuse("contains the part " + part)
		case len(part) > MaxPart:
			return refuse(fmt.Sprintf("contains a part longer than %d bytes", MaxPart))
		}
	}
	return nil
}
