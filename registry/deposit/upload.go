package deposit

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

const (
	selectStored = `SELECT id, filename, size_bytes, digest, created_by, created_at, collection FROM upload `
	selectUpload = selectStored + `WHERE id = $1`
)

func scanUpload(id string, row sqldb.Scanner) (registry.Upload, error) {
	var u registry.Upload
	var digest string
	var at int64
	err := row.Scan(&u.ID, &u.Filename, &u.SizeBytes, &digest, &u.CreatedBy, &at, &u.Collection)
	if errors.Is(err, sql.ErrNoRows) {
		return u, fmt.Errorf("upload %s: %w", id, registry.ErrNotFound)
	} else if err != nil {
		return u, fmt.Errorf("read upload %s: %w", id, err)
	}
	u.CreatedAt = sqldb.FromMicros(at)
	if err := json.Unmarshal([]byte(digest), &u.Digest); err != nil {
		return u, fmt.Errorf("decode digest of upload %s: %w", id, err)
	}
	return u, nil
}

func (t *tx) upload(id string) (registry.Upload, error) {
	return scanUpload(id, t.Row(selectUpload, id))
}

// UploadByID implements registry.Uploads.
func (s *Deposits) UploadByID(ctx context.Context, id string) (registry.Upload, error) {
	return scanUpload(id, s.db.Read.QueryRowContext(ctx, selectUpload, id))
}

// RetireUpload implements registry.Receiving.
func (s *Deposits) RetireUpload(ctx context.Context, uploadID string) (retired bool, err error) {
	err = s.write(ctx, func(t *tx) error {
		retired, err = t.retireUpload(sqldb.Clean(uploadID), "")
		return err
	})
	if err != nil {
		return false, fmt.Errorf("retire upload %s: %w", uploadID, err)
	}
	return retired, nil
}

// ReleaseUpload implements registry.Working.
func (s *Deposits) ReleaseUpload(ctx context.Context, l registry.Lease, uploadID string) (released bool, err error) {
	if err := bounds.Check(l, uploadID); err != nil {
		return false, fmt.Errorf("release upload %s: %w", uploadID, err)
	}
	err = s.write(ctx, func(t *tx) error {
		it, err := t.Live(l)
		if err != nil {
			return err
		}
		itself, err := t.ownUpload(it, sqldb.Clean(uploadID))
		if err == nil {
			released, err = t.retireUpload(sqldb.Clean(uploadID), itself)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("release upload %s: %w", uploadID, err)
	}
	return released, nil
}

// retireUpload marks an upload for removal. It returns false if a batch other than itself, or a job
// of any batch, may still need it. Failed and cancelled items count, since they can be requeued.
func (t *tx) retireUpload(uploadID, itself string) (retired bool, err error) {
	const open = `IN ('prepare', 'pending', 'running', 'failed', 'cancelled')`
	var needed bool
	err = t.Get(`SELECT EXISTS (SELECT 1 FROM work_detail p JOIN work_item i ON i.id = p.item_id WHERE p.payload = $1 AND p.payload <> ''
		AND (i.id <> $2 AND i.status `+open+` OR EXISTS (SELECT 1 FROM work_item j WHERE j.parent_id = i.id AND j.status `+open+`)))`,
		[]any{registry.UploadURL(uploadID), itself}, &needed)
	if err != nil || needed {
		return false, err
	}
	return true, t.Do(`UPDATE upload SET retired_at = COALESCE(retired_at, $2) WHERE id = $1`, uploadID, t.Now)
}

// BatchesOf implements registry.Uploads.
func (s *Deposits) BatchesOf(ctx context.Context, uploadID string) ([]registry.WorkItem, error) {
	const most = 100
	all, err := s.work.ReadItems(ctx, work.SelectItem+`JOIN work_detail p ON p.item_id = i.id WHERE p.payload = $1 AND p.payload <> ''
		ORDER BY i.created_at DESC, i.id DESC`+sqldb.Limit(most), registry.UploadURL(sqldb.Clean(uploadID)))
	if err != nil {
		return nil, fmt.Errorf("list the batches of upload %s: %w", uploadID, err)
	}
	return all, nil
}

// FinishUpload implements registry.Receiving.
func (s *Deposits) FinishUpload(ctx context.Context, u registry.Upload) error {
	digest, err := json.Marshal(u.Digest)
	if err != nil {
		return fmt.Errorf("encode digest of upload %s: %w", u.ID, err)
	}
	err = s.write(ctx, func(t *tx) error {
		if _, err := t.upload(u.ID); !errors.Is(err, registry.ErrNotFound) {
			return err // a repeat
		}
		var collection string
		err := t.Get(`DELETE FROM incoming WHERE id = $1 AND dropped_at IS NULL RETURNING collection`, []any{u.ID}, &collection)
		if errors.Is(err, sql.ErrNoRows) {
			return registry.ErrNotFound
		} else if err != nil {
			return err
		}
		return t.Do(`INSERT INTO upload (id, filename, size_bytes, digest, created_by, created_at, collection, held)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $3)`, u.ID, sqldb.Clean(u.Filename), u.SizeBytes, string(digest), sqldb.Clean(u.CreatedBy), t.Now, collection)
	})
	if err != nil {
		return fmt.Errorf("finish upload %s: %w", u.ID, err)
	}
	return nil
}
