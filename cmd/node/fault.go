//go:build !chaos

package node

import (
	"time"

	"github.com/holdfast/holdfast/storage"
)

// What the chaos suite (e2e) injects into a build of its own; here there is nothing of it.

// faulty is where faults of the staging volume come in.
func faulty(staging storage.Store) storage.Store { return staging }

// registryClock is the Registry's clock on SQLite; nil: the machine's.
func registryClock() func() time.Time { return nil }
