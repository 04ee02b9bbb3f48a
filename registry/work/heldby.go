package work

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// NameHolds is the function of that name on the reading connections.
func (e *Engine) NameHolds(ctx context.Context, items ...*registry.WorkItem) error {
	return nameHolds(func(query string, args ...any) sqldb.Asking { return e.db.Read.Ask(ctx, query, args...) }, items...)
}

// nameHolds says of each item that is held by which hold: the oldest that covers it. A hold that was released since the
// item was read holds it no more. Items that are not held cost nothing.
func nameHolds(ask func(string, ...any) sqldb.Asking, items ...*registry.WorkItem) error {
	var held []*registry.WorkItem
	var keys []any
	for _, it := range items {
		if it.HeldBy == nil {
			continue
		}
		held = append(held, it)
		for _, key := range []any{it.ID, it.ParentID} {
			if key != "" && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	if len(held) == 0 {
		return nil
	}
	marks := make([]string, len(keys))
	for i := range keys {
		marks[i] = "$" + strconv.Itoa(i+1)
	}
	// There may be many holds on single items, so only those of these items are read.
	holds, err := sqldb.Collect(ask(SelectHold+`WHERE scope IN ('all', 'ingest', 'stage', 'collection', 'volume')
		OR (scope IN ('batch', 'item') AND key IN (`+strings.Join(marks, ", ")+`)) ORDER BY created_at, scope, key`, keys...), "look up holds", ScanHold)
	if err != nil {
		return err
	}
	for _, it := range held {
		it.HeldBy = nil
		if i := slices.IndexFunc(holds, func(h registry.Hold) bool { return h.Covers(*it) }); i >= 0 {
			it.HeldBy = &holds[i]
		}
		derive(it)
	}
	return nil
}

// Pointers are the addresses of rows.
func Pointers[T any](rows []T) []*T {
	out := make([]*T, len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	return out
}
