package ocfl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// accepted is the folder of the storage root with one file for each Registry that may work here
// although it does not know the objects that were here before.
const accepted = extensionsFolder + "/holdfast-accepted"

// ErrRegistryName is returned for a malformed name of a Registry.
var ErrRegistryName = errors.New("not the name of a Registry: want urn:uuid: and a UUID")

// Accept records that a Registry may work here beside objects that it does not know. A second call
// changes nothing.
func (r *Root) Accept(ctx context.Context, registry string) error {
	key, err := r.acceptedKey(registry)
	if err == nil {
		err = putSame(ctx, r.store, key, []byte(registry+"\n"))
	}
	if err != nil {
		return fmt.Errorf("record that the Registry %s may work here: %w", registry, err)
	}
	return nil
}

// Accepts reports whether Accept was called for a Registry.
func (r *Root) Accepts(ctx context.Context, registry string) (bool, error) {
	key, err := r.acceptedKey(registry)
	if err == nil {
		_, err = r.store.Stat(ctx, key)
	}
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("check whether the Registry %s may work here: %w", registry, err)
	}
	return true, nil
}

func (r *Root) acceptedKey(registry string) (string, error) {
	const length = 36
	name, ok := strings.CutPrefix(registry, "urn:uuid:")
	if !ok || len(name) != length || strings.Trim(name, "0123456789abcdef-") != "" {
		return "", fmt.Errorf("%q: %w", registry, ErrRegistryName)
	}
	return r.prefix + accepted + "/" + name + ".txt", nil
}
