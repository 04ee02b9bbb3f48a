package deposit

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/outbound"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// addressPrefix begins the fingerprint of a batch whose content is at an address that nobody has
// requested yet. Such a fingerprint equals no other.
const addressPrefix = "address:"

// initialFingerprint is the fingerprint of a new batch. The content of an upload is known. That of
// an address is known only by its validator, once a worker has requested it.
func initialFingerprint(spec registry.Spec, content string) string {
	if _, upload := registry.UploadID(spec.URL); upload {
		return content
	}
	return addressPrefix + content
}

// duplicateUpload finds an earlier batch with the same uploaded bytes.
func (t *tx) duplicateUpload(sub registry.Submission, c registry.Collection, content string) (id string, ok bool, err error) {
	if _, upload := registry.UploadID(sub.Spec.URL); sub.Force || !upload {
		return "", false, nil
	}
	id, err = t.firstBatchWith(content, t.Now, c.Profile.DuplicateWindow(), "")
	return id, id != "", err
}

// firstBatchWith returns the oldest other batch with a fingerprint that was submitted at most a
// window before at, and that is pending, running or completed. Batches that failed or were given up
// do not count, nor does one with a deleted job. It returns "" if there is none.
func (t *tx) firstBatchWith(fingerprint string, at int64, window time.Duration, itself string) (id string, err error) {
	if window <= 0 {
		return "", nil
	}
	err = t.Get(`SELECT i.id FROM work_item i WHERE i.fingerprint = $1 AND i.fingerprint <> '' AND i.id <> $2 AND i.created_at >= $3
		AND i.status IN ('pending', 'running', 'completed') AND NOT `+outbound.JobDeleted+` ORDER BY i.created_at, i.id LIMIT 1`,
		[]any{fingerprint, itself, at - window.Microseconds()}, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("look up batches with the same content: %w", err)
	}
	return id, nil
}

// FirstOf implements registry.Batching.
func (s *Deposits) FirstOf(ctx context.Context, l registry.Lease, validator string) (string, error) {
	if err := bounds.Check(l, validator); err != nil {
		return "", err
	}
	var first string
	err := s.write(ctx, func(t *tx) error {
		batch, err := t.expanding(l)
		if err != nil {
			return err
		}
		first, err = t.firstOf(batch, validator)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("look up what batch %s repeats: %w", l.ItemID, err)
	}
	return first, nil
}

func (t *tx) firstOf(batch registry.WorkItem, validator string) (first string, err error) {
	if raw, ok := batch.Results[registry.ResultDuplicateOf]; ok {
		return first, json.Unmarshal(raw, &first)
	}
	var known string
	if err := t.Get(`SELECT fingerprint FROM work_item WHERE id = $1`, []any{batch.ID}, &known); err != nil {
		return "", err
	}
	address, fresh := strings.CutPrefix(known, addressPrefix)
	if !fresh || validator == "" {
		return "", nil // an upload, or an earlier call found none
	}
	content, err := work.Fingerprint([]string{address, validator})
	if err != nil {
		return "", err
	}
	spec, err := work.SpecOf(batch)
	if err != nil {
		return "", err
	}
	if !spec.Force {
		first, err = t.firstBatchWith(content, sqldb.Micros(batch.CreatedAt), spec.Profile.DuplicateWindow(), batch.ID)
		if err != nil {
			return "", err
		}
	}
	if first == "" {
		return "", t.Do(`UPDATE work_item SET fingerprint = $2 WHERE id = $1`, batch.ID, content)
	}
	raw, err := json.Marshal(first)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", registry.ResultDuplicateOf, err)
	}
	err = t.SetResult(batch, registry.ResultDuplicateOf, raw)
	if err == nil {
		err = t.Event(batch.ID, batch.Attempt, registry.EventDuplicate, work.ActorWorker, map[string]string{registry.ResultDuplicateOf: first})
	}
	return first, err
}
