//go:build chaos

package node

import (
	"os"
	"time"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// The faults of a chaos build (go build -tags chaos), which is never released. The environment
// chooses them:
//
//	CHAOS_STAGING_FULL  a path: while this file exists, the staging volume is full
//	CHAOS_CLOCK_OFFSET  a duration: how far the Registry's clock is ahead of the workers'

const lookEvery = 20 * time.Millisecond

// faulty wraps the staging volume.
func faulty(staging storage.Store) storage.Store {
	path := os.Getenv("CHAOS_STAGING_FULL")
	if path == "" {
		return staging
	}
	f := storagetest.NewFaulty(staging)
	go func() { // until the process ends
		full := false
		for range time.Tick(lookEvery) {
			if _, err := os.Stat(path); (err == nil) != full {
				full = err == nil
				f.Quota(map[bool]int64{true: 0, false: -1}[full])
			}
		}
	}()
	return f
}

// registryClock returns the Registry's clock on SQLite; nil: the machine's.
func registryClock() func() time.Time {
	offset, err := time.ParseDuration(os.Getenv("CHAOS_CLOCK_OFFSET"))
	if err != nil {
		return nil
	}
	return func() time.Time { return time.Now().Add(offset) }
}
