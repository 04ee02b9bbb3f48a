package sqldb

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// PageSize bounds a page.
func PageSize(limit int) int {
	const normal, most = 50, 500
	if limit <= 0 {
		return normal
	}
	return min(limit, most)
}

// Cursor is where a page ends: the sort key of a page's last row.
func Cursor(n int64, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(n, 36) + " " + id))
}

// ParseCursor is the inverse of Cursor; ErrNotFound for what is none.
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

// Column reads a query's single text column.
func (d *DB) Column(ctx context.Context, query string, args ...any) (out []string, err error) {
	return Collect(d.Read.Ask(ctx, query, args...), "", value[string])
}
