package deposit

import (
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// This file is this subject's part of one rule: what an attempt writes may name only what its own item is about. Whoever has the secret of
// one worker can so spoil the items that it is given, and nobody else's. It is judged in the transaction that writes, so that it holds for
// workers in the same process, too.

// uploadNamed says that an address is of an upload. Sources take the scheme in any case (RFC 3986, 3.1).
func uploadNamed(address string) bool {
	scheme, _, ok := strings.Cut(address, ":")
	own, _, _ := strings.Cut(registry.UploadURL(""), ":")
	return ok && strings.EqualFold(scheme, own)
}

// ownJob is a row as a job of its batch: whatever the worker says, what was settled when the batch was submitted is the batch's. The only
// upload that it can name is the one that the batch was submitted from. A bad row, which only quotes its manifest, loses another one's id.
func ownJob(batch registry.WorkItem, submitted registry.Spec, j registry.NewJob) (registry.NewJob, error) {
	if uploadNamed(j.Spec.URL) && j.Spec.URL != submitted.URL {
		if j.Fault == "" {
			return j, fmt.Errorf("%w: line %d names an upload that batch %s was not submitted from", registry.ErrInvalid, j.Line, batch.ID)
		}
		j.Spec.URL = ""
	}
	if j.Priority < min(0, batch.Priority) {
		return j, fmt.Errorf("%w: line %d has priority %d; only an operator puts a job in front of everything", registry.ErrInvalid, j.Line, j.Priority)
	}
	s := &j.Spec
	s.Mode, s.Force, s.Priority = submitted.Mode, submitted.Force, submitted.Priority
	s.Submitter, s.UserAgent, s.SubmittedAt, s.Notify = submitted.Submitter, submitted.UserAgent, submitted.SubmittedAt, submitted.Notify
	s.Profile, s.ProfileVersion = submitted.Profile, submitted.ProfileVersion
	return j, nil
}
