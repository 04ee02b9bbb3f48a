package catalog

import (
	"context"
	"fmt"
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
	rows, err := s.fileRows(ctx, q.ObjectID, selectFile+`f.path > $2 AND f.path < $3 AND f.version > $4 AND f.version = (
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
	before, err := s.filesWith(ctx, q.ObjectID, q.Since, "path", paths)
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

// mostSame is how many files with the bytes of a page's files are looked at to find renamed ones. With
// more, for instance many empty files, nothing of the page counts as renamed.
const mostSame = 5000

// filesWith returns the files of a version whose column, path or content_path, has one of these values,
// by path. Version 0 has none.
func (s *Catalog) filesWith(ctx context.Context, objectID string, version int, column string, values []string) (map[string]*registry.File, error) {
	byPath := map[string]*registry.File{}
	if len(values) == 0 || version == 0 {
		return byPath, nil
	}
	args := []any{objectID, version}
	marks := make([]string, len(values))
	for i, v := range values {
		args = append(args, []byte(v))
		marks[i] = "$" + strconv.Itoa(len(args))
	}
	rows, err := s.fileRows(ctx, objectID, selectFile+`f.`+column+` IN (`+strings.Join(marks, ", ")+`) AND f.deleted = 0 AND f.version = (
			SELECT MAX(g.version) FROM file g WHERE g.object_id = f.object_id AND g.path = f.path AND g.version <= $2)
		LIMIT `+strconv.Itoa(mostSame), args...)
	for i := range rows {
		byPath[rows[i].Path] = &rows[i]
	}
	return byPath, err
}

// addRenames marks the added and removed files that are one file under another path: a path that
// ended and one that began have the same bytes, and no other such path has.
func (s *Catalog) addRenames(ctx context.Context, q registry.FileChangesQuery, rows []registry.FileChange) error {
	seen := map[string]bool{}
	var contents []string
	for _, c := range rows {
		var f *registry.File
		switch c.Change {
		case registry.FileAdded:
			f = c.After
		case registry.FileRemoved:
			f = c.Before
		case registry.FileChanged, registry.FileRenamed:
			continue
		}
		if !seen[f.ContentPath] {
			seen[f.ContentPath] = true
			contents = append(contents, f.ContentPath)
		}
	}
	if q.Since == 0 || len(contents) == 0 {
		return nil
	}
	before, err := s.filesWith(ctx, q.ObjectID, q.Since, "content_path", contents)
	if err != nil {
		return err
	}
	after, err := s.filesWith(ctx, q.ObjectID, q.Version, "content_path", contents)
	if err != nil || len(before) == mostSame || len(after) == mostSame {
		return err
	}
	gone, err := s.onlyIn(ctx, q.ObjectID, before, after, q.Version)
	if err != nil {
		return err
	}
	came, err := s.onlyIn(ctx, q.ObjectID, after, before, q.Since)
	if err != nil {
		return err
	}
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

// onlyIn returns the paths of some files that another version has not, by their bytes. others are its
// files with these bytes.
func (s *Catalog) onlyIn(ctx context.Context, objectID string, some, others map[string]*registry.File, version int) (map[string][]string, error) {
	var paths []string
	for path := range some {
		if others[path] == nil {
			paths = append(paths, path)
		}
	}
	changed := map[string]*registry.File{} // it has the path, with other bytes
	for len(paths) > 0 {
		n := min(len(paths), sqldb.GroupWrites)
		found, err := s.filesWith(ctx, objectID, version, "path", paths[:n])
		if err != nil {
			return nil, err
		}
		for path, f := range found {
			changed[path] = f
		}
		paths = paths[n:]
	}
	out := map[string][]string{}
	for path, f := range some {
		if others[path] == nil && changed[path] == nil {
			out[f.ContentPath] = append(out[f.ContentPath], path)
		}
	}
	return out, nil
}
