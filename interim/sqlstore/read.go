package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/interim"
)

const (
	anySQL  = `SELECT EXISTS (SELECT 1 FROM attempt WHERE item = $1 OR item IS NULL)`
	findSQL = `SELECT id FROM attempt WHERE item = $1 AND n = $2`
	getSQL  = `SELECT e.value FROM attempt a JOIN entry e ON e.attempt_id = a.id WHERE a.item = $1 AND a.n = $2 AND e.key = $3`

	pageSQL   = `SELECT key, value FROM entry WHERE attempt_id = $1 AND key >= $2`
	countSQL  = `SELECT count(*) FROM entry WHERE attempt_id = $1 AND key >= $2`
	belowSQL  = ` AND key < $3`
	pagingSQL = ` ORDER BY key LIMIT 500`

	// pageBytes ends a page early, which bounds the memory for large values.
	pageBytes = 1 << 20
)

// Get implements interim.Store.
func (s *Store) Get(ctx context.Context, a interim.Attempt, key string) ([]byte, error) {
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("get interim data: %w", err)
	}
	var value []byte
	err := s.readRow(ctx, getSQL, []any{a.ItemID, a.N, []byte(key)}, &value)
	if errors.Is(err, sql.ErrNoRows) {
		err = interim.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get interim data %q of %s: %w", key, a, err)
	}
	return value, nil
}

// Each implements interim.Store, in byte order of the keys. It reads page by page, so that no read
// transaction stays open while fn runs (R25).
func (s *Store) Each(ctx context.Context, a interim.Attempt, prefix string, fn func(key string, value []byte) error) error {
	if err := a.Validate(); err != nil {
		return fmt.Errorf("walk interim data: %w", err)
	}
	id, err := s.find(ctx, a)
	if errors.Is(err, interim.ErrNotFound) {
		return nil
	} else if err != nil {
		return fmt.Errorf("walk interim data of %s: %w", a, err)
	}
	for from := []byte(prefix); ; {
		page, err := s.page(ctx, id, prefix, from)
		if err != nil {
			return fmt.Errorf("walk interim data of %s: %w", a, err)
		}
		if len(page) == 0 {
			return nil
		}
		for _, e := range page {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("walk interim data of %s: %w", a, err)
			}
			if err := fn(string(e.key), e.value); err != nil {
				return fmt.Errorf("walk interim data of %s at %q: %w", a, e.key, err)
			}
		}
		// The smallest key above the last one.
		from = append(page[len(page)-1].key, 0)
	}
}

// Count implements interim.Store.
func (s *Store) Count(ctx context.Context, a interim.Attempt, prefix string) (int64, error) {
	if err := a.Validate(); err != nil {
		return 0, fmt.Errorf("count interim data: %w", err)
	}
	id, err := s.find(ctx, a)
	if errors.Is(err, interim.ErrNotFound) {
		return 0, nil
	} else if err != nil {
		return 0, fmt.Errorf("count interim data of %s: %w", a, err)
	}
	var n int64
	err = s.reading(ctx, func(db *sql.DB) error {
		query, args := within(countSQL, id, []byte(prefix), prefix)
		return db.QueryRowContext(ctx, query, args...).Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("count interim data of %s: %w", a, err)
	}
	return n, nil
}

// find returns the row id of an attempt, or interim.ErrNotFound.
func (s *Store) find(ctx context.Context, a interim.Attempt) (id int64, err error) {
	err = s.readRow(ctx, findSQL, []any{a.ItemID, a.N}, &id)
	if errors.Is(err, sql.ErrNoRows) {
		err = interim.ErrNotFound
	}
	return id, err
}

// has reports whether any attempt of the item has entries, or a drop was interrupted.
func (s *Store) has(ctx context.Context, itemID string) (has bool, err error) {
	if err = s.readRow(ctx, anySQL, []any{itemID}, &has); err != nil {
		return false, fmt.Errorf("look for interim data of %s: %w", itemID, err)
	}
	return has, nil
}

type entry struct{ key, value []byte }

// page returns the next entries of an attempt with the prefix, starting at the key from. An empty
// page is the end.
func (s *Store) page(ctx context.Context, id int64, prefix string, from []byte) (page []entry, err error) {
	err = s.reading(ctx, func(db *sql.DB) error {
		query, args := within(pageSQL, id, from, prefix)
		rows, err := db.QueryContext(ctx, query+pagingSQL, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for size := 0; size < pageBytes && rows.Next(); {
			var e entry
			if err := rows.Scan(&e.key, &e.value); err != nil {
				return err
			}
			size += len(e.key) + len(e.value)
			page = append(page, e)
		}
		return rows.Err()
	})
	return page, err
}

// within adds the range of keys to a query: from the key from to the end of the prefix.
func within(query string, id int64, from []byte, prefix string) (string, []any) {
	if end := prefixEnd(prefix); end != nil {
		return query + belowSQL, []any{id, from, end}
	}
	return query, []any{id, from}
}

// prefixEnd returns the smallest key above every key with the prefix, or nil if there is none.
func prefixEnd(prefix string) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			end := []byte(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}
