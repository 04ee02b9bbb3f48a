package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
)

const (
	itemsSQL   = `SELECT DISTINCT item FROM attempt WHERE item > $1 ORDER BY item LIMIT $2`
	itemsAPage = 500
)

// Items implements interim.Store, in byte order of the ids.
func (s *Store) Items(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for last := ""; ; {
			page, err := s.itemsAfter(ctx, last)
			if err != nil {
				yield("", fmt.Errorf("list items with interim data: %w", err))
				return
			}
			for _, id := range page {
				if !yield(id, nil) {
					return
				}
			}
			if len(page) < itemsAPage {
				return
			}
			last = page[len(page)-1]
		}
	}
}

func (s *Store) itemsAfter(ctx context.Context, last string) (page []string, err error) {
	err = s.reading(ctx, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, itemsSQL, last, itemsAPage)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			page = append(page, id)
		}
		return rows.Err()
	})
	return page, err
}
