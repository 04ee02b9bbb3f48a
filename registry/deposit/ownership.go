package deposit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/work"
)

// This file has the deposits' part of one rule: an attempt's write may name only what its own item
// is about. So whoever steals the secret of one worker can spoil only the items that this worker is
// given. The check runs in the transaction that writes, so it also holds for workers in the same
// process.

// uploadNamed says whether an address names an upload. Schemes are case-insensitive (RFC 3986,
// 3.1).
func uploadNamed(address string) bool {
	scheme, _, ok := strings.Cut(address, ":")
	own, _, _ := strings.Cut(registry.UploadURL(""), ":")
	return ok && strings.EqualFold(scheme, own)
}

// ownUpload returns ErrInvalid unless an item may release an upload. itself is the batch that stops
// needing the upload with this step, or "".
func (t *tx) ownUpload(it registry.WorkItem, uploadID string) (itself string, err error) {
	foreign := fmt.Errorf("%w: item %s may not release upload %s", registry.ErrInvalid, it.ID, uploadID)
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
			return "", foreign // purged: the search for orphaned data removes its upload
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

// orphanUpload returns foreign unless a search for orphaned data may remove an upload. The search
// must be one that removes, and the upload must be old enough that nobody is about to submit it. An
// unknown upload may be removed.
func (t *tx) orphanUpload(search registry.OrphanSearch, uploadID string, foreign error) error {
	var young bool
	err := t.Get(`SELECT EXISTS (SELECT 1 FROM upload WHERE id = $1 AND created_at > $2) OR EXISTS (SELECT 1 FROM incoming WHERE id = $1)`,
		[]any{uploadID, t.Now - search.Older.Microseconds()}, &young)
	if err == nil && (young || !search.Remove) {
		err = foreign
	}
	return err
}

// ownJob returns a row as a job of its batch. It overwrites what the submission of the batch
// settled, whatever the worker sent. The job may name no upload but that of the batch. A refused
// row, which only quotes its manifest, loses another upload's id.
func ownJob(batch registry.WorkItem, submitted registry.Spec, j registry.NewJob) (registry.NewJob, error) {
	if uploadNamed(j.Spec.URL) && j.Spec.URL != submitted.URL {
		if j.Fault == "" {
			return j, fmt.Errorf("%w: line %d names an upload that batch %s was not submitted from", registry.ErrInvalid, j.Line, batch.ID)
		}
		j.Spec.URL = ""
	}
	if least := min(0, batch.Priority); j.Priority < least {
		return j, fmt.Errorf("%w: line %d has priority %d; only an operator may set one below %d", registry.ErrInvalid, j.Line, j.Priority, least)
	}
	s := &j.Spec
	if s.Received = nil; s.URL == submitted.URL {
		s.Received = submitted.Received
	}
	s.Mode, s.Force, s.Priority = submitted.Mode, submitted.Force, submitted.Priority
	s.Submitter, s.UserAgent, s.SubmittedAt, s.Notify = submitted.Submitter, submitted.UserAgent, submitted.SubmittedAt, submitted.Notify
	s.Corrects = nil // the batch corrects, not its jobs
	s.Profile, s.ProfileVersion, s.Terms = submitted.Profile, submitted.ProfileVersion, submitted.Terms
	return j, nil
}
