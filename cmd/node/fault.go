//go:build !chaos

package node

import (
	"time"

	"github.com/holdfast/holdfast/storage"
)

// Faults that the chaos suite (e2e) injects into its own build. Other builds have none.

// faulty wraps the staging volume.
func faulty(staging storage.Store) storage.Store { return staging }

// registryClock returns the Registry's clock on SQLite; nil: the machine's.
func registryClock() func() time.Time { return nil }
