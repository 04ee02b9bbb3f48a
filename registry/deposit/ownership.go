package deposit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/work"
)

// This file is this subject's part of one rule: what an attempt writes may name only what its own
// item is about. Whoever has the secret of one worker can so spoil the items that it is given, and
// nobody else's. It is judged in the transaction that writes, so that it holds for workers in the
// same process, too.

// uploadNamed says that an address is of an upload. Sources take the scheme in any case (RFC 3986,
// 3.1).
func uploadNamed(address string) bool {
	scheme, _, ok := strings.Cut(address, ":")
	own, _, _ := strings.Cut(registry.UploadURL(""), ":")
	return ok && strings.EqualFold(scheme, own)
}

// ownUpload returns ErrInvalid unless an upload is an item's to release. itself is the batch whose
// own need of it ends with this very step, "" where there is none.
func (t *tx) ownUpload(it registry.WorkItem, uploadID string) (itself string, err error) {
	foreign := fmt.Errorf("%w: upload %s is not item %s's to release", registry.ErrInvalid, uploadID, it.ID)
	switch {
	case it.Action == registry.Batch && it.Stage == registry.Report:
		itself = it.ID
	case it.Action == registry.Tidy:
		var tidy registry.TidySpec
		if err := json.Unmarshal(it.Spec, &tidy); err != nil {
			return "", fmt.Errorf("decode spec of item %s: %w", it.ID, err)
		}
		if tidy.Orphans != nil {
			return "", t.orphanUpload(*tidy.Orphans, uploadID, foreign)
		}
		if it, err = t.Item(tidy.Subject); errors.Is(err, registry.ErrNotFound) {
			return "", foreign // it was purged, and its upload is for the search for orphans
		} else if err != nil {
			return "", err
		}
	default:
		return "", foreign
	}
	spec, err := work.SpecOf(it)
	if err != nil {
		return "", err
	}
	if own, ok := registry.UploadID(spec.URL); it.Action != registry.Batch || !ok || own != uploadID {
		return "", foreign
	}
	return itself, nil
}

// orphanUpload returns foreign unless a search for orphans may remove an upload: one that nobody
// asked it to remove, or which somebody may be about to submit, is none of its business. It may be
// unknown.
func (t *tx) orphanUpload(search registry.OrphanSearch, uploadID string, foreign error) error {
	var young bool
	err := t.Get(`SELECT EXISTS (SELECT 1 FROM upload WHERE id = $1 AND created_at > $2) OR EXISTS (SELECT 1 FROM incoming WHERE id = $1)`,
		[]any{uploadID, t.Now - search.Older.Microseconds()}, &young)
	if err == nil && (young || !search.Remove) {
		err = foreign
	}
	return err
}

// ownJob is a row as a job of its batch: whatever the worker says, what was settled when the batch
// was submitted is the batch's. The only upload that it can name is the one that the batch was
// submitted from. A bad row, which only quotes its manifest, loses another one's id.
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
