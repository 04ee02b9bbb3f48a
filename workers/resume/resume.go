// Package resume keeps account of how far a step is, so that the next attempt goes on there.
//
// Due says when a note is worth its cost. Places is a set of numbers, mostly of files that are
// done, which stays small however many there are. Stored notes which files of a version are stored
// and verified in one storage.
//
// It does not know what the files are. Notes are interim data of package base: they may be lost,
// which costs time only.
package resume

import "github.com/holdfast/holdfast/staging"

// What a kill may cost, beside the files in hand, where a step notes how far it is: a note after
// each of very many small files would take longer than the files do.
const (
	unnotedFiles = 100
	unnotedBytes = staging.MinPart
)

// Due tells when a note is due.
type Due struct {
	files int
	bytes int64
}

// Add counts a file that is done, and says whether it is time to note it and those before.
func (d *Due) Add(bytes int64) bool {
	d.files++
	d.bytes += bytes
	if d.files < unnotedFiles && d.bytes < unnotedBytes {
		return false
	}
	*d = Due{}
	return true
}
