package deposit

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

const (
	// maxIncoming is the most incoming or dropped uploads that one call returns.
	maxIncoming = 500
	// keepDropped is how long the record of a dropped upload stays. It is longer than a request can
	// go on writing bytes without saving.
	keepDropped = time.Hour
)

const selectIncoming = `SELECT id, filename, size_bytes, acked, digest, metadata, state, n, created_by, created_at, expires_at, collection
	FROM incoming WHERE dropped_at IS NULL AND expires_at > $1 `

func scanIncoming(row sqldb.Scanner) (registry.Incoming, error) {
	var in registry.Incoming
	var digest, state string
	var created, expires int64
	err := row.Scan(&in.ID, &in.Filename, &in.SizeBytes, &in.Offset, &digest, &in.Metadata, &state, &in.N, &in.CreatedBy, &created, &expires, &in.Collection)
	if errors.Is(err, sql.ErrNoRows) {
		return in, registry.ErrNotFound
	} else if err != nil {
		return in, err
	}
	in.CreatedAt, in.ExpiresAt = sqldb.FromMicros(created), sqldb.FromMicros(expires)
	if state != "null" {
		in.State = json.RawMessage(state)
	}
	if err := json.Unmarshal([]byte(digest), &in.Digest); err != nil {
		return in, fmt.Errorf("decode digest: %w", err)
	}
	return in, nil
}

func (t *tx) incoming(id string) (registry.Incoming, error) {
	return scanIncoming(t.Row(selectIncoming+`AND id = $2`, t.Now, id))
}

// BeginUpload implements registry.Receiving.
func (s *Deposits) BeginUpload(ctx context.Context, u registry.NewUpload) (in registry.Incoming, err error) {
	digest, err := json.Marshal(u.Digest)
	if err != nil {
		return in, fmt.Errorf("encode digest of upload %s: %w", u.ID, err)
	}
	err = s.write(ctx, func(t *tx) error {
		if _, err := t.upload(u.ID); err == nil {
			return registry.ErrTaken
		} else if !errors.Is(err, registry.ErrNotFound) {
			return err
		}
		in, err = t.incoming(u.ID)
		if !errors.Is(err, registry.ErrNotFound) {
			return err // a repeat
		}
		if err := t.checkLimits(u.Limits, u.Room, u.SizeBytes, true); err != nil {
			return err
		}
		err := t.Do(`INSERT INTO incoming (id, filename, size_bytes, digest, metadata, created_by, created_at, expires_at, collection)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
			u.ID, sqldb.Clean(u.Filename), max(u.SizeBytes, -1), string(digest), sqldb.Clean(u.Metadata), sqldb.Clean(u.CreatedBy), t.Now, t.Now+u.Keep.Microseconds(),
			sqldb.Clean(u.Collection))
		if err != nil {
			return err
		}
		in, err = t.incoming(u.ID)
		if errors.Is(err, registry.ErrNotFound) {
			return registry.ErrTaken
		}
		return err
	})
	if err != nil {
		return registry.Incoming{}, fmt.Errorf("begin upload %s: %w", u.ID, err)
	}
	return in, nil
}

// IncomingByID implements registry.Uploads.
func (s *Deposits) IncomingByID(ctx context.Context, id string) (registry.Incoming, error) {
	in, err := scanIncoming(s.db.Read.QueryRowContext(ctx, selectIncoming+`AND id = $2`, sqldb.Micros(s.db.Now()), id))
	if err != nil {
		return in, fmt.Errorf("upload %s: %w", id, err)
	}
	return in, nil
}

// IncomingOf implements registry.Receiving.
func (s *Deposits) IncomingOf(ctx context.Context, createdBy string) (out []registry.Incoming, err error) {
	query, args := selectIncoming, []any{sqldb.Micros(s.db.Now()), maxIncoming}
	if createdBy != "" {
		query += `AND created_by = $3 `
		args = append(args, createdBy)
	}
	return sqldb.Collect(s.db.Read.Ask(ctx, query+`ORDER BY created_at DESC, id DESC LIMIT $2`, args...), "list incoming uploads", scanIncoming)
}

// TakeUpload implements registry.Receiving.
func (s *Deposits) TakeUpload(ctx context.Context, id string, offset int64) (in registry.Incoming, err error) {
	err = s.write(ctx, func(t *tx) (err error) {
		if in, err = t.incoming(id); err != nil || in.Offset != offset {
			return err
		}
		in.N++
		return t.Do(`UPDATE incoming SET n = $2 WHERE id = $1`, id, in.N)
	})
	if err != nil {
		return registry.Incoming{}, fmt.Errorf("take upload %s: %w", id, err)
	}
	return in, nil
}

// SaveUpload implements registry.Receiving.
func (s *Deposits) SaveUpload(ctx context.Context, p registry.UploadPart) (in registry.Incoming, err error) {
	state := "null"
	if len(p.State) > 0 {
		state = string(p.State)
	}
	err = s.write(ctx, func(t *tx) (err error) {
		in, err = t.incoming(p.ID)
		switch {
		case errors.Is(err, registry.ErrNotFound):
			return registry.ErrClaimLost
		case err != nil:
			return err
		case in.N != p.N || p.Offset < in.Offset || p.SizeBytes >= 0 && p.Offset > p.SizeBytes:
			return registry.ErrClaimLost
		case in.SizeBytes >= 0 && p.SizeBytes != in.SizeBytes:
			return fmt.Errorf("its size is %d, not %d: %w", in.SizeBytes, p.SizeBytes, registry.ErrInvalid)
		}
		if err := t.checkLimits(p.Limits, p.Room, quotaBytes(p.SizeBytes, p.Offset)-quotaBytes(in.SizeBytes, in.Offset), false); err != nil {
			return err
		}
		in.Offset, in.SizeBytes, in.State = p.Offset, max(p.SizeBytes, -1), p.State
		expires := t.Now + p.Keep.Microseconds()
		in.ExpiresAt = sqldb.FromMicros(expires)
		return t.Do(`UPDATE incoming SET acked = $2, size_bytes = $3, state = $4, expires_at = $5 WHERE id = $1`,
			p.ID, in.Offset, in.SizeBytes, state, expires)
	})
	if err != nil {
		return registry.Incoming{}, fmt.Errorf("save upload %s: %w", p.ID, err)
	}
	return in, nil
}

// DropUpload implements registry.Receiving.
func (s *Deposits) DropUpload(ctx context.Context, id string) error {
	err := s.write(ctx, func(t *tx) error {
		n, err := t.Exec(`UPDATE incoming SET dropped_at = COALESCE(dropped_at, $2) WHERE id = $1`, id, t.Now)
		if err == nil && n == 0 {
			err = registry.ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("drop upload %s: %w", id, err)
	}
	return nil
}

// DroppedUploads implements registry.Receiving.
func (s *Deposits) DroppedUploads(ctx context.Context) (out []registry.DroppedUpload, err error) {
	err = s.write(ctx, func(t *tx) (err error) {
		out = nil
		if err := t.Do(`UPDATE incoming SET dropped_at = $1 WHERE dropped_at IS NULL AND expires_at <= $1`, t.Now); err != nil {
			return err
		}
		ask := t.Ask(`SELECT id, dropped_at FROM incoming WHERE dropped_at IS NOT NULL ORDER BY dropped_at LIMIT $1`, maxIncoming)
		return sqldb.Each(ask, "", func(row sqldb.Scanner) error {
			var d registry.DroppedUpload
			var at int64
			if err := row.Scan(&d.ID, &at); err != nil {
				return err
			}
			d.Over = t.Now-at >= keepDropped.Microseconds()
			out = append(out, d)
			return nil
		})
	})
	if err == nil {
		var retired []string
		retired, err = s.db.Column(ctx, `SELECT id FROM upload WHERE held > 0 AND retired_at IS NOT NULL ORDER BY retired_at`+sqldb.Limit(maxIncoming))
		for _, id := range retired {
			out = append(out, registry.DroppedUpload{ID: id, Over: true})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list dropped uploads: %w", err)
	}
	return out, nil
}

// ForgetUpload implements registry.Receiving.
func (s *Deposits) ForgetUpload(ctx context.Context, id string) error {
	err := s.write(ctx, func(t *tx) error {
		if err := t.Do(`UPDATE upload SET held = 0 WHERE id = $1 AND retired_at IS NOT NULL`, id); err != nil {
			return err
		}
		return t.Do(`DELETE FROM incoming WHERE id = $1 AND dropped_at IS NOT NULL`, id)
	})
	if err != nil {
		return fmt.Errorf("forget upload %s: %w", id, err)
	}
	return nil
}
