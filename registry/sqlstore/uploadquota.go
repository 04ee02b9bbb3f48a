package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// Uploads count from the transaction on that begins them, until the one that decides that their bytes go. So what is counted is right however
// many begin at once and whatever is killed.

// admit refuses an upload that is about to need more bytes. begins says that it is a new one. Nothing is refused to what needs none.
func (t *tx) admit(limits []registry.UploadLimit, room registry.UploadRoom, need int64, begins bool) error {
	for _, l := range limits {
		used, err := t.uploadsOf(l)
		if err != nil {
			return err
		}
		used.Need = max(need, 0)
		if begins && used.TooMany() || l.Bytes > 0 && used.Need > 0 && used.Need > l.Bytes-used.Held {
			if !begins {
				used.Open = 0 // it is one of those on their way
			}
			return &used
		}
	}
	if need <= 0 && !begins || room.Total <= 0 {
		return nil
	}
	var promised, coming int64
	err := t.get(`SELECT COALESCE((SELECT bytes FROM promised WHERE volume = $1), 0),
		COALESCE((SELECT SUM(size_bytes - acked) FROM incoming WHERE dropped_at IS NULL AND size_bytes > acked), 0)`,
		[]any{room.Volume}, &promised, &coming)
	if err != nil {
		return fmt.Errorf("look up what is promised: %w", err)
	}
	if need = max(need, 0); float64(room.Used)+float64(promised)+float64(coming)+float64(need) > room.Threshold*float64(room.Total) {
		return &registry.NoSpaceError{
			Volume: room.Volume, Need: need, Used: room.Used, Total: room.Total, Reserved: promised + coming, ThresholdFactor: room.Threshold,
		}
	}
	return nil
}

// uploadsOf counts the uploads of a limit's scope.
func (t *tx) uploadsOf(l registry.UploadLimit) (registry.QuotaError, error) {
	used := registry.QuotaError{UploadLimit: l}
	and, args := "", []any(nil)
	switch l.Scope {
	case registry.UploadsOfToken:
		and, args = ` AND created_by = $1`, []any{clean(l.Key)}
	case registry.UploadsOfCollection:
		and, args = ` AND collection = $1`, []any{clean(l.Key)}
	case registry.UploadsOfTenant:
	}
	err := t.get(`SELECT i.n, i.bytes + u.bytes FROM
		(SELECT COUNT(*) AS n, COALESCE(SUM(CASE WHEN size_bytes >= 0 THEN size_bytes ELSE acked END), 0) AS bytes
			FROM incoming WHERE dropped_at IS NULL`+and+`) i,
		(SELECT COALESCE(SUM(held), 0) AS bytes FROM upload WHERE held > 0 AND retired_at IS NULL`+and+`) u`,
		args, &used.Uploads, &used.Held)
	if err != nil {
		return used, fmt.Errorf("count the uploads of %s %s: %w", l.Scope, l.Key, err)
	}
	return used, nil
}

// assign has an upload count for the collection that it is submitted to, from now on. It returns
// *registry.QuotaError when that would exceed a limit: until now the upload counted elsewhere.
func (t *tx) assign(uploadID, collection string, limits []registry.UploadLimit) error {
	var held int64
	err := t.get(`SELECT held FROM upload WHERE id = $1 AND collection <> $2`, []any{uploadID, collection}, &held)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look up upload %s: %w", uploadID, err)
	}
	if err := t.admit(limits, registry.UploadRoom{}, held, false); err != nil {
		return err
	}
	if err := t.do(`UPDATE upload SET collection = $2 WHERE id = $1`, uploadID, collection); err != nil {
		return fmt.Errorf("note the collection of upload %s: %w", uploadID, err)
	}
	return nil
}

// counts is what an upload on its way counts for its quotas.
func counts(size, acked int64) int64 {
	if size >= 0 {
		return size
	}
	return acked
}

// StoredUploads implements registry.Receiving.
func (s *Store) StoredUploads(ctx context.Context, createdBy, after string) (page registry.Page[registry.Upload], err error) {
	const most = 100
	query, args := selectStored+`WHERE retired_at IS NULL`, []any{}
	if createdBy != "" {
		args = append(args, clean(createdBy))
		query += ` AND created_by = $1`
	}
	if after != "" {
		n, id, err := parseCursor(after)
		if err != nil {
			return page, err
		}
		k := len(args)
		args = append(args, n, id)
		query += fmt.Sprintf(` AND (created_at < $%d OR created_at = $%d AND id < $%d)`, k+1, k+1, k+2)
	}
	rows, err := s.read.QueryContext(ctx, query+` ORDER BY created_at DESC, id DESC`+limit(most+1), args...)
	if err != nil {
		return page, fmt.Errorf("list stored uploads: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		u, err := scanUpload("", rows)
		if err != nil {
			return page, err
		}
		if len(page.Rows) == most {
			last := page.Rows[most-1]
			page.Next = cursor(micros(last.CreatedAt), last.ID)
			break
		}
		page.Rows = append(page.Rows, u)
	}
	return page, rows.Err()
}
