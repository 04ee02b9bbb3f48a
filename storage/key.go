package storage

import (
	"fmt"
	"strings"
)

// Limits on keys. They are the smaller of what file systems and S3 take, so that a key valid in one
// driver is valid in all of them.
const (
	MaxKey  = 1024 // bytes of a whole key
	MaxPart = 255  // bytes between two slashes
)

// KeyError says that a key cannot be used, and why: it is malformed, reserved by the driver, or it
// names a folder of another object (or has another object for a folder) in a driver that cannot
// keep the two apart.
type KeyError struct {
	Key    string
	Reason string
}

// Error implements error.
func (e *KeyError) Error() string {
	return fmt.Sprintf("storage: key %q: %s", e.Key, e.Reason)
}

// CheckKey returns a *KeyError unless key is made of one or more parts between single slashes, each
// of 1 to MaxPart bytes, none of them "." or "..", without NUL, and of MaxKey bytes at most. Any
// other byte is allowed, valid UTF-8 or not. Nothing is cleaned or normalised: two different keys
// are two different objects.
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
