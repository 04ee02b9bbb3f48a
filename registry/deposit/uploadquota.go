package deposit

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// An upload counts from the transaction that begins it until the one that marks its bytes for
// removal. So the counts are right whatever begins at the same time and whatever is killed.

// checkLimits returns a *registry.QuotaError or *registry.NoSpaceError if an upload may not take
// need more bytes. begins is true for a new upload, which also counts as one more. A call that
// begins nothing and needs no bytes is never refused.
func (t *tx) checkLimits(limits []registry.UploadLimit, room registry.UploadRoom, need int64, begins bool) error {
	for _, l := range limits {
		used, err := t.uploadsOf(l)
		if err != nil {
			return err
		}
		used.Need = max(need, 0)
		if begins && used.TooMany() || l.Bytes > 0 && used.Need > 0 && used.Need > l.Bytes-used.Held {
			if !begins {
				used.Open = 0 // this upload is among the open ones
			}
			return &used
		}
	}
	if need <= 0 && !begins || room.Total <= 0 {
		return nil
	}
	var promised, coming int64
	err := t.Get(`SELECT COALESCE((SELECT bytes FROM promised WHERE volume = $1), 0),
		COALESCE((SELECT SUM(size_bytes - acked) FROM incoming WHERE dropped_at IS NULL AND size_bytes > acked), 0)`,
		[]any{room.Volume}, &promised, &coming)
	if err != nil {
		return fmt.Errorf("look up reserved room: %w", err)
	}
	if need = max(need, 0); float64(room.Used)+float64(promised)+float64(coming)+float64(need) > room.Threshold*float64(room.Total) {
		return &registry.NoSpaceError{
			Volume: room.Volume, Need: need, Used: room.Used, Total: room.Total, Reserved: promised + coming, ThresholdFactor: room.Threshold,
		}
	}
	return nil
}

// uploadsOf counts the uploads in a limit's scope.
func (t *tx) uploadsOf(l registry.UploadLimit) (registry.QuotaError, error) {
	used := registry.QuotaError{UploadLimit: l}
	and, args := "", []any(nil)
	switch l.Scope {
	case registry.UploadsOfToken:
		and, args = ` AND created_by = $1`, []any{sqldb.Clean(l.Key)}
	case registry.UploadsOfCollection:
		and, args = ` AND collection = $1`, []any{sqldb.Clean(l.Key)}
	case registry.UploadsOfTenant:
	}
	err := t.Get(`SELECT i.n, i.bytes + u.bytes FROM
		(SELECT COUNT(*) AS n, COALESCE(SUM(CASE WHEN size_bytes >= 0 THEN size_bytes ELSE acked END), 0) AS bytes
			FROM incoming WHERE dropped_at IS NULL`+and+`) i,
		(SELECT COALESCE(SUM(held), 0) AS bytes FROM upload WHERE held > 0 AND retired_at IS NULL`+and+`) u`,
		args, &used.Uploads, &used.Held)
	if err != nil {
		return used, fmt.Errorf("count the uploads of %s %s: %w", l.Scope, l.Key, err)
	}
	return used, nil
}

// assignCollection makes an upload count for the collection that it is submitted to. It returns a
// *registry.QuotaError if that would exceed a limit of the collection.
func (t *tx) assignCollection(uploadID, collection string, limits []registry.UploadLimit) error {
	var held int64
	err := t.Get(`SELECT held FROM upload WHERE id = $1 AND collection <> $2`, []any{uploadID, collection}, &held)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look up upload %s: %w", uploadID, err)
	}
	if err := t.checkLimits(limits, registry.UploadRoom{}, held, false); err != nil {
		return err
	}
	if err := t.Do(`UPDATE upload SET collection = $2 WHERE id = $1`, uploadID, collection); err != nil {
		return fmt.Errorf("set the collection of upload %s: %w", uploadID, err)
	}
	return nil
}

// quotaBytes is what an incoming upload counts for its quotas: its size, or the received bytes
// while the size is unknown.
func quotaBytes(size, acked int64) int64 {
	if size >= 0 {
		return size
	}
	return acked
}

// UploadUse implements registry.Receiving.
func (s *Deposits) UploadUse(ctx context.Context, createdBy string) (out []registry.UploadUse, err error) {
	ask := s.db.Read.Ask(ctx, `SELECT created_by, collection, SUM(coming), COUNT(*) - SUM(coming), SUM(bytes) FROM (
			SELECT created_by, collection, 1 AS coming, CASE WHEN size_bytes >= 0 THEN size_bytes ELSE acked END AS bytes
				FROM incoming WHERE dropped_at IS NULL
			UNION ALL SELECT created_by, collection, 0, held FROM upload WHERE held > 0 AND retired_at IS NULL) u
		WHERE $1 = '' OR created_by = $1 GROUP BY created_by, collection`, sqldb.Clean(createdBy))
	tenant := registry.UploadLimit{Scope: registry.UploadsOfTenant}
	token := registry.UploadLimit{Scope: registry.UploadsOfToken, Key: createdBy}
	sums := map[registry.UploadLimit]*registry.UploadUse{}
	add := func(scope registry.UploadLimit, part registry.UploadUse) {
		sum := sums[scope]
		if sum == nil {
			sum = &registry.UploadUse{UploadLimit: scope}
			sums[scope] = sum
		}
		sum.Uploads, sum.Stored, sum.Held = sum.Uploads+part.Uploads, sum.Stored+part.Stored, sum.Held+part.Held
	}
	if createdBy == "" {
		add(tenant, registry.UploadUse{})
	} else {
		add(token, registry.UploadUse{})
	}
	err = sqldb.Each(ask, "count uploads", func(row sqldb.Scanner) error {
		var part registry.UploadUse
		var by, collection string
		if err := row.Scan(&by, &collection, &part.Uploads, &part.Stored, &part.Held); err != nil {
			return err
		}
		if createdBy != "" {
			add(token, part)
			return nil
		}
		add(tenant, part)
		add(registry.UploadLimit{Scope: registry.UploadsOfToken, Key: by}, part)
		add(registry.UploadLimit{Scope: registry.UploadsOfCollection, Key: collection}, part)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, sum := range sums {
		out = append(out, *sum)
	}
	order := []registry.UploadScope{registry.UploadsOfTenant, registry.UploadsOfToken, registry.UploadsOfCollection}
	slices.SortFunc(out, func(a, b registry.UploadUse) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Scope), slices.Index(order, b.Scope)), cmp.Compare(b.Held, a.Held), cmp.Compare(a.Key, b.Key))
	})
	return out, nil
}

// StoredUploads implements registry.Receiving.
func (s *Deposits) StoredUploads(ctx context.Context, createdBy, after string) (page registry.Page[registry.Upload], err error) {
	const most = 100
	query, args := selectStored+`WHERE retired_at IS NULL`, []any{}
	if createdBy != "" {
		args = append(args, sqldb.Clean(createdBy))
		query += ` AND created_by = $1`
	}
	if after != "" {
		n, id, err := sqldb.ParseCursor(after)
		if err != nil {
			return page, err
		}
		k := len(args)
		args = append(args, n, id)
		query += fmt.Sprintf(` AND (created_at < $%d OR created_at = $%d AND id < $%d)`, k+1, k+1, k+2)
	}
	query += ` ORDER BY created_at DESC, id DESC` + sqldb.Limit(most+1)
	rows, err := sqldb.Collect(s.db.Read.Ask(ctx, query, args...), "list stored uploads", func(row sqldb.Scanner) (registry.Upload, error) {
		return scanUpload("", row)
	})
	return sqldb.PageOf(rows, most, func(last registry.Upload) string { return sqldb.Cursor(sqldb.Micros(last.CreatedAt), last.ID) }), err
}
