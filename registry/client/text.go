package client

import (
	"fmt"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
)

// checkKeys refuses names that are no UTF-8. On their way they would become other names, and what they stand for another
// thing; a note or a title only looks different.
func checkKeys(what string, keys ...string) error {
	for _, key := range keys {
		if !utf8.ValidString(key) {
			return fmt.Errorf("%s: %w: %q is no UTF-8", what, registry.ErrInvalid, key)
		}
	}
	return nil
}
