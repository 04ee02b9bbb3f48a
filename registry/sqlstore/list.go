package sqlstore

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// pageSize bounds a page.
func pageSize(limit int) int {
	const normal, most = 50, 500
	if limit <= 0 {
		return normal
	}
	return min(limit, most)
}

// A cursor is the sort key of a page's last row.
func cursor(n int64, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(n, 36) + " " + id))
}

func parseCursor(s string) (n int64, id string, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return 0, "", fmt.Errorf("page cursor %q: %w", s, registry.ErrNotFound)
	}
	num, id, ok := strings.Cut(string(raw), " ")
	n, err = strconv.ParseInt(num, 36, 64)
	if !ok || err != nil {
		return 0, "", fmt.Errorf("page cursor %q: %w", s, registry.ErrNotFound)
	}
	return n, id, nil
}

// column reads a query's single text column.
func (s *Store) column(ctx context.Context, query string, args ...any) (out []string, err error) {
	return collect(s.read.ask(ctx, query, args...), "", value[string])
}

// Item implements registry.Reading.
func (s *Store) Item(ctx context.Context, id string) (registry.WorkItem, error) {
	it, err := scanItem(s.read.QueryRowContext(ctx, selectItem+`WHERE i.id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return it, fmt.Errorf("item %s: %w", id, registry.ErrNotFound)
	} else if err != nil {
		return it, fmt.Errorf("read item %s: %w", id, err)
	}
	return it, s.nameHolds(ctx, &it)
}

// Attempts implements registry.Reading.
func (s *Store) Attempts(ctx context.Context, itemID string) (out []registry.Attempt, err error) {
	return collect(s.read.ask(ctx, selectAttempt+`WHERE item_id = $1 ORDER BY n`, itemID), "list attempts of "+itemID, scanAttempt)
}
