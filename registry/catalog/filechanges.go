package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// FileChanges implements registry.Catalog. Rows of files exist only for versions that changed a path,
// so it reads no file that both versions have.
func (s *Catalog) FileChanges(ctx context.Context, q registry.FileChangesQuery) (page registry.Page[registry.FileChange], err error) {
	head, err := s.recordedHead(ctx, q.ObjectID)
	if err != nil {
		return page, err
	}
	if q.Version == 0 {
		q.Version = head
	}
	if q.Version < 0 || q.Version > head {
		return page, fmt.Errorf("version %d of object %s: %w", q.Version, q.ObjectID, registry.ErrNotFound)
	}
	if q.Since < 0 || q.Since >= q.Version {
		return page, fmt.Errorf("%w: version %d is not before version %d", registry.ErrInvalid, q.Since, q.Version)
	}
	limit := sqldb.PageSize(q.Limit)
	after, until := []byte(q.After), "\xff\xff\xff\xff" // no path of ours begins so
	if q.Folder != "" {
		after, until = []byte(max(q.After, q.Folder)), q.Folder[:len(q.Folder)-1]+string(rune(q.Folder[len(q.Folder)-1]+1))
	}
	rows, err := s.fileRows(ctx, q.ObjectID, selectFile+`f.path > $2 AND f.path < $3 AND f.version > $4 AND f.version <= $5 AND f.version = (
			SELECT MAX(g.version) FROM file g WHERE g.object_id = f.object_id AND g.path = f.path AND g.version <= $5)
		ORDER BY f.path LIMIT $6`, q.ObjectID, after, []byte(until), q.Since, q.Version, limit+1)
	if err != nil {
		return page, err
	}
	if len(rows) > limit {
		rows, page.Next = rows[:limit], rows[limit-1].Path
	}
	paths := make([]string, len(rows))
	for i, f := range rows {
		paths[i] = f.Path
	}
	before, err := s.filesAt(ctx, q.ObjectID, q.Since, paths)
	if err != nil {
		return page, err
	}
	for i := range rows {
		c := registry.FileChange{Path: rows[i].Path, Before: before[rows[i].Path]}
		if !rows[i].Deleted {
			c.After = &rows[i]
		}
		switch {
		case c.Before == nil && c.After == nil: // it came and went in between
			continue
		case c.Before == nil:
			c.Change = registry.FileAdded
		case c.After == nil:
			c.Change = registry.FileRemoved
		case c.Before.ContentPath == c.After.ContentPath:
			continue // the same bytes
		default:
			c.Change = registry.FileChanged
		}
		page.Rows = append(page.Rows, c)
	}
	return page, s.addRenames(ctx, q, page.Rows)
}

// mostSame is how many paths with the bytes of a page's files are looked at to find renamed files. With
// more, for instance of many empty files, nothing of the page counts as renamed.
const mostSame = 5000

// filesAt returns the files of a version that have one of these paths. Version 0 has none.
func (s *Catalog) filesAt(ctx context.Context, objectID string, version int, paths []string) (map[string]*registry.File, error) {
	byPath := map[string]*registry.File{}
	if version == 0 {
		return byPath, nil
	}
	for some := range slices.Chunk(paths, sqldb.GroupWrites) {
		marks, args := marksOf(some, objectID, version)
		rows, err := s.fileRows(ctx, objectID, selectFile+`f.path IN (`+marks+`) AND f.deleted = 0 AND f.version = (
			SELECT MAX(g.version) FROM file g WHERE g.object_id = f.object_id AND g.path = f.path AND g.version <= $2)`, args...)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			byPath[rows[i].Path] = &rows[i]
		}
	}
	return byPath, nil
}

// marksOf returns the placeholders of names behind other arguments, and all arguments.
func marksOf(names []string, args ...any) (string, []any) {
	marks := make([]string, len(names))
	for i, name := range names {
		args = append(args, []byte(name))
		marks[i] = "$" + strconv.Itoa(len(args))
	}
	return strings.Join(marks, ", "), args
}

// addRenames marks the added and removed files that are one file under another path: a path that
// ended and one that began have the same bytes, and no other such path has.
func (s *Catalog) addRenames(ctx context.Context, q registry.FileChangesQuery, rows []registry.FileChange) error {
	contents := map[string]bool{}
	for _, c := range rows {
		switch c.Change {
		case registry.FileAdded:
			if !cameAfter(c.After.ContentPath, q.Since) {
				contents[c.After.ContentPath] = true
			}
		case registry.FileRemoved:
			contents[c.Before.ContentPath] = true
		case registry.FileChanged, registry.FileRenamed:
		}
	}
	if q.Since == 0 || len(contents) == 0 {
		return nil
	}
	// No index has the bytes of files: this reads all rows of the object, once for a page.
	marks, args := marksOf(slices.Sorted(maps.Keys(contents)), q.ObjectID, q.Version)
	same, err := s.db.Column(ctx, `SELECT DISTINCT path FROM file WHERE object_id = $1 AND version <= $2 AND content_path IN (`+marks+`)
		LIMIT `+strconv.Itoa(mostSame+1), args...)
	if err != nil || len(same) > mostSame {
		return err
	}
	before, err := s.filesAt(ctx, q.ObjectID, q.Since, same)
	if err != nil {
		return err
	}
	after, err := s.filesAt(ctx, q.ObjectID, q.Version, same)
	if err != nil {
		return err
	}
	gone, came := onlyIn(before, after), onlyIn(after, before)
	for i := range rows {
		c := &rows[i]
		switch {
		case c.Change == registry.FileAdded && len(gone[c.After.ContentPath]) == 1 && len(came[c.After.ContentPath]) == 1:
			c.Change, c.From = registry.FileRenamed, gone[c.After.ContentPath][0]
		case c.Change == registry.FileRemoved && len(gone[c.Before.ContentPath]) == 1 && len(came[c.Before.ContentPath]) == 1:
			c.Change, c.To = registry.FileRenamed, came[c.Before.ContentPath][0]
		}
	}
	return nil
}

// cameAfter reports whether the bytes at a path in the object came with a version after another one.
func cameAfter(contentPath string, version int) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(contentPath, "v"), "/")
	n, err := strconv.Atoi(name)
	return err == nil && n > version
}

// onlyIn returns the paths that only the first of two versions has, by their bytes.
func onlyIn(some, others map[string]*registry.File) map[string][]string {
	out := map[string][]string{}
	for path, f := range some {
		if others[path] == nil {
			out[f.ContentPath] = append(out[f.ContentPath], path)
		}
	}
	return out
}
