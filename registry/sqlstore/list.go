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

// where collects conditions with their arguments.
type where struct {
	conds []string
	args  []any
}

// add appends a condition whose ? stand for args.
func (w *where) add(cond string, args ...any) {
	for _, a := range args {
		w.args = append(w.args, a)
		cond = strings.Replace(cond, "?", "$"+strconv.Itoa(len(w.args)), 1)
	}
	w.conds = append(w.conds, cond)
}

// within restricts a column to values; nil does not restrict, and none finds nothing.
func (w *where) within(column string, values []string) {
	if values != nil {
		w.in(column, values)
	}
}

// in restricts a column to values, of which there may be none.
func (w *where) in(column string, values []string) {
	if len(values) == 0 {
		w.add("1 = 0")
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	w.add(column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")", args...)
}

func (w *where) String() string { return " WHERE " + strings.Join(w.conds, " AND ") }

// contains makes a LIKE pattern that finds text as it is.
func contains(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
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

// Item implements registry.Reading.
func (s *Store) Item(ctx context.Context, id string) (registry.WorkItem, error) {
	it, err := scanItem(s.read.QueryRowContext(ctx, selectItem+`WHERE i.id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return it, fmt.Errorf("item %s: %w", id, registry.ErrNotFound)
	} else if err != nil {
		return it, fmt.Errorf("read item %s: %w", id, err)
	}
	return it, nil
}

// Items implements registry.Reading.
func (s *Store) Items(ctx context.Context, q registry.ItemQuery) (page registry.Page[registry.WorkItem], err error) {
	var w where
	w.add("i.tenant = ?", Tenant)
	order := " ORDER BY i.created_at DESC, i.id DESC"
	if q.ParentID != "" {
		w.add("i.parent_id = ?", q.ParentID)
		order = " ORDER BY i.row_no"
	}
	if q.Action != "" {
		w.add("i.action = ?", q.Action)
	}
	if q.Collection != "" {
		w.add("i.collection = ?", q.Collection)
	}
	w.within("i.collection", q.Within)
	if q.Status != "" {
		w.add("i.status = ?", q.Status)
	}
	if q.Stage != "" {
		w.add("i.stage = ?", q.Stage)
	}
	if q.Text != "" {
		w.add(`(i.name LIKE ? ESCAPE '\' OR i.note LIKE ? ESCAPE '\')`, contains(q.Text), contains(q.Text))
	}
	if q.After != "" {
		n, id, err := parseCursor(q.After)
		if err != nil {
			return page, err
		}
		if q.ParentID != "" {
			w.add("i.row_no > ?", n)
		} else {
			w.add("(i.created_at, i.id) < (?, ?)", n, id)
		}
	}
	limit := pageSize(q.Limit)
	rows, err := s.read.QueryContext(ctx, selectItem+w.String()+order+" LIMIT "+strconv.Itoa(limit+1), w.args...)
	if err != nil {
		return page, fmt.Errorf("list items: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		it, err := scanItem(rows)
		if err != nil {
			return page, fmt.Errorf("list items: %w", err)
		}
		if len(page.Rows) == limit {
			last := page.Rows[limit-1]
			page.Next = cursor(micros(last.CreatedAt), last.ID)
			if q.ParentID != "" {
				page.Next = cursor(last.Row, last.ID)
			}
			break
		}
		page.Rows = append(page.Rows, it)
	}
	return page, rows.Err()
}

// Attempts implements registry.Reading.
func (s *Store) Attempts(ctx context.Context, itemID string) (out []registry.Attempt, err error) {
	rows, err := s.read.QueryContext(ctx, selectAttempt+`WHERE item_id = $1 ORDER BY n`, itemID)
	if err != nil {
		return nil, fmt.Errorf("list attempts of %s: %w", itemID, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		a, err := scanAttempt(rows)
		if err != nil {
			return nil, fmt.Errorf("list attempts of %s: %w", itemID, err)
		}
		out = append(out, a)
	}
	return out, rows.Err()
}
