package account

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

var _ registry.ViewKeeper = (*Accounts)(nil)

// listedViews is how many views a list has at most.
const listedViews = 200

const selectView = `SELECT id, owner, name, shared, query, columns, oldest, version, created_at, changed_at FROM saved_view `

func scanView(row sqldb.Scanner) (v registry.View, err error) {
	var shared, oldest, created, changed int64
	var columns string
	err = row.Scan(&v.ID, &v.Owner, &v.Name, &shared, &v.Query, &columns, &oldest, &v.Version, &created, &changed)
	v.Shared, v.Oldest = shared == 1, oldest == 1
	if columns != "" {
		v.Columns = strings.Split(columns, ",")
	}
	v.CreatedAt, v.ChangedAt = sqldb.FromMicros(created), sqldb.FromMicros(changed)
	return v, err
}

// Views implements registry.ViewKeeper.
func (s *Accounts) Views(ctx context.Context, owner string) ([]registry.View, error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, selectView+`WHERE owner = $1 OR shared = 1
		ORDER BY CASE WHEN owner = $1 THEN 0 ELSE 1 END, name, id LIMIT $2`, sqldb.Clean(owner), listedViews), "list views", scanView)
}

// View implements registry.ViewKeeper.
func (s *Accounts) View(ctx context.Context, id string) (registry.View, error) {
	v, err := scanView(s.db.Read.QueryRowContext(ctx, selectView+`WHERE id = $1`, sqldb.Clean(id)))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return v, fmt.Errorf("view %s: %w", id, registry.ErrNotFound)
	case err != nil:
		return v, fmt.Errorf("read view: %w", err)
	}
	return v, nil
}

// viewWhere returns the view that a clause selects; ok is false for none.
func (t *tx) viewWhere(which string, args ...any) (v registry.View, ok bool, err error) {
	v, err = scanView(t.Row(selectView+which, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return v, false, nil
	}
	return v, err == nil, err
}

// AddView implements registry.ViewKeeper.
func (s *Accounts) AddView(ctx context.Context, v registry.View) (out registry.View, err error) {
	if err := v.Check(); err != nil {
		return out, fmt.Errorf("save view: %w", err)
	}
	err = s.write(ctx, func(t *tx) error {
		have, there, err := t.viewWhere(`WHERE owner = $1 AND name = $2`, v.Owner, v.Name)
		switch {
		case err != nil:
			return err
		case there && have.Same(v):
			out = have
			return nil
		case there:
			return registry.ErrViewExists
		}
		var n int
		if err := t.Get(`SELECT COUNT(*) FROM saved_view WHERE owner = $1`, []any{v.Owner}, &n); err != nil {
			return err
		}
		if n >= registry.MostViews {
			return registry.ErrTooManyViews
		}
		out = v
		out.ID, out.Version, out.CreatedAt, out.ChangedAt = sqldb.NewID(), 1, sqldb.FromMicros(t.Now), sqldb.FromMicros(t.Now)
		err = t.Do(`INSERT INTO saved_view (id, owner, name, shared, query, columns, oldest, version, created_at, changed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, $8)`,
			out.ID, v.Owner, v.Name, sqldb.Bit(v.Shared), v.Query, strings.Join(v.Columns, ","), sqldb.Bit(v.Oldest), t.Now)
		if err != nil {
			return err
		}
		return t.noteView(registry.EventViewSet, v.Owner, registry.View{}, out)
	})
	if err != nil {
		return registry.View{}, fmt.Errorf("save view %q: %w", v.Name, err)
	}
	return out, nil
}

// EditView implements registry.ViewKeeper.
func (s *Accounts) EditView(ctx context.Context, v registry.View) (out registry.View, err error) {
	if err := v.Check(); err != nil {
		return out, fmt.Errorf("change view: %w", err)
	}
	err = s.write(ctx, func(t *tx) error {
		have, there, err := t.viewWhere(`WHERE id = $1 AND owner = $2`, sqldb.Clean(v.ID), v.Owner)
		switch {
		case err != nil:
			return err
		case !there:
			return registry.ErrNotFound
		case have.Same(v):
			out = have
			return nil
		case v.Version != 0 && v.Version != have.Version:
			return registry.ErrViewChanged
		}
		if _, other, err := t.viewWhere(`WHERE owner = $1 AND name = $2 AND id <> $3`, v.Owner, v.Name, have.ID); err != nil {
			return err
		} else if other {
			return registry.ErrViewExists
		}
		out = have
		out.Name, out.Shared, out.Query, out.Columns, out.Oldest = v.Name, v.Shared, v.Query, v.Columns, v.Oldest
		out.Version, out.ChangedAt = have.Version+1, sqldb.FromMicros(t.Now)
		err = t.Do(`UPDATE saved_view SET name = $2, shared = $3, query = $4, columns = $5, oldest = $6, version = $7, changed_at = $8 WHERE id = $1`,
			have.ID, v.Name, sqldb.Bit(v.Shared), v.Query, strings.Join(v.Columns, ","), sqldb.Bit(v.Oldest), out.Version, t.Now)
		if err != nil {
			return err
		}
		return t.noteView(registry.EventViewSet, v.Owner, have, out)
	})
	if err != nil {
		return registry.View{}, fmt.Errorf("change view %q: %w", v.Name, err)
	}
	return out, nil
}

// RemoveView implements registry.ViewKeeper.
func (s *Accounts) RemoveView(ctx context.Context, id, actor string) error {
	err := s.write(ctx, func(t *tx) error {
		have, there, err := t.viewWhere(`WHERE id = $1`, sqldb.Clean(id))
		switch {
		case err != nil:
			return err
		case !there:
			return registry.ErrNotFound
		}
		if err := t.Do(`DELETE FROM saved_view WHERE id = $1`, have.ID); err != nil {
			return err
		}
		return t.noteView(registry.EventViewRemoved, actor, have, registry.View{})
	})
	if err != nil {
		return fmt.Errorf("remove view %.100q: %w", id, err)
	}
	return nil
}

// viewNote is the data of a view's event.
type viewNote struct {
	Name   string `json:"name"`
	Owner  string `json:"owner"`
	Query  string `json:"query"`
	Shared bool   `json:"shared"`
}

// noteView records a change of a view that others see or saw. before or after is zero when the view is
// new or removed.
func (t *tx) noteView(kind, actor string, before, after registry.View) error {
	if !before.Shared && !after.Shared {
		return nil
	}
	shown := after
	if after.ID == "" {
		shown = before
	}
	return t.Event(registry.ViewOwner(shown.ID), 0, kind, actor, viewNote{shown.Name, shown.Owner, shown.Query, after.Shared})
}
