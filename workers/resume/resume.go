// Package resume records the progress of a step, so that the next attempt continues there.
//
// Due says when a record is worth its cost. Places is a compact set of numbers, mostly of finished
// files. Stored records which files of a version are stored and verified in one storage.
//
// The package does not know what the files are. Records are interim data of package base: they may
// be lost, which costs only time.
package resume

import "github.com/holdfast/holdfast/staging"

// How much work a kill may cost, beside the present files. A record after each of very many small
// files would take longer than the files.
const (
	unnotedFiles = 100
	unnotedBytes = staging.MinPart
)

// Due says when a record of progress is due.
type Due struct {
	files int
	bytes int64
}

// Add counts a finished file, and reports whether a record is due.
func (d *Due) Add(bytes int64) bool {
	d.files++
	d.bytes += bytes
	if d.files < unnotedFiles && d.bytes < unnotedBytes {
		return false
	}
	*d = Due{}
	return true
}
