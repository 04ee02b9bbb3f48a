package dir

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/storage"
)

// folderStore is the label of this driver's metrics.
const folderStore = "folder"

// measure records a request that began at a time and ended with an error. A request that its caller
// gave up says nothing about the disk.
func measure(operation string, begun time.Time, err *error) {
	if errors.Is(*err, context.Canceled) || errors.Is(*err, context.DeadlineExceeded) {
		return
	}
	metrics.StorageRequest.Since(begun, folderStore, operation, outcome(*err))
}

// outcome tells a refusal, which is an answer, from a failure of the disk.
func outcome(err error) string {
	var key *storage.KeyError
	for _, answer := range []error{storage.ErrNotFound, storage.ErrExists, storage.ErrRange, storage.ErrClosed, errors.ErrUnsupported} {
		if errors.Is(err, answer) {
			return "refused"
		}
	}
	if errors.As(err, &key) {
		return "refused"
	}
	return metrics.Outcome(err)
}

// countBytes counts bytes that were written, or that a reader was opened for.
func countBytes(direction string, n int64) {
	metrics.StorageBytes.Add(float64(n), folderStore, direction)
}
