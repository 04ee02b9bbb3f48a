package node

import "github.com/holdfast/holdfast/storage"

// SetMeasured changes what staging's volume tells of its room, in the processes that are started
// from now on.
func SetMeasured(f func(storage.Space) storage.Space) { measured = f }
