package workers

import "github.com/holdfast/holdfast/staging"

// What a kill may cost, beside the files in hand, where a step notes how far it is: a note after each of very many small
// files would take longer than the files do.
const (
	unnotedFiles = 100
	unnotedBytes = staging.MinPart
)

// pace tells when a note is due.
type pace struct {
	files int
	bytes int64
}

// add counts a file that is done, and says whether it is time to note it and those before.
func (p *pace) add(bytes int64) bool {
	p.files++
	p.bytes += bytes
	if p.files < unnotedFiles && p.bytes < unnotedBytes {
		return false
	}
	*p = pace{}
	return true
}
