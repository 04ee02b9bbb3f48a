package sqldb

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// PageSize returns the size of a page: the default for 0, and a maximum.
func PageSize(limit int) int {
	const normal, most = 50, 500
	if limit <= 0 {
		return normal
	}
	return min(limit, most)
}

// Cursor returns the cursor behind a page: the sort key of its last row.
func Cursor(n int64, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(n, 36) + " " + id))
}

// ParseCursor is the inverse of Cursor. It returns ErrNotFound for text that is not a cursor.
func ParseCursor(s string) (n int64, id string, err error) {
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

// Column returns the values of a query with one text column.
func (d *DB) Column(ctx context.Context, query string, args ...any) (out []string, err error) {
	return Collect(d.Read.Ask(ctx, query, args...), "", value[string])
}
