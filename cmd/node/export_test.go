package node

import "github.com/holdfast/holdfast/storage"

// SetMeasured changes the reported room of staging's volume, in processes started from now on.
func SetMeasured(f func(storage.Space) storage.Space) { measured = f }
