package rebuild

import (
	"context"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// fileRows makes the rows of a version from the list of its files by path: those that changed, and the
// ends of those that are no more. It reads the version before beside it, a page at a time.
type fileRows struct {
	to      filing
	object  string
	version int
	checked time.Time
	skip    bool // the Registry has the version

	rows   []registry.File // to be entered
	before []registry.File // read of the version before, and not yet passed
	after  string          // the path of the last of them
	ended  bool            // the version before has no more
}

// filing is the Registry that rows of files are entered into.
type filing interface {
	EnteredFiles(ctx context.Context, objectID string, version int, after string, limit int) ([]registry.File, error)
	EnterFiles(ctx context.Context, objectID string, version int, files []registry.File, checked time.Time) error
}

// rows returns what makes the rows of a version.
func (e *entering) rows(version int, checked time.Time) *fileRows {
	return &fileRows{to: e.to, object: e.ID, version: version, checked: checked, skip: version <= e.entered, ended: version == 1}
}

// peek returns the next file of the version before; nil: there is none.
func (r *fileRows) peek(ctx context.Context) (*registry.File, error) {
	if len(r.before) == 0 && !r.ended {
		files, err := r.to.EnteredFiles(ctx, r.object, r.version-1, r.after, rowsAtOnce)
		if err != nil {
			return nil, err
		}
		r.before, r.ended = files, len(files) < rowsAtOnce
		if len(files) > 0 {
			r.after = files[len(files)-1].Path
		}
	}
	if len(r.before) == 0 {
		return nil, nil //nolint:nilnil // the end is an answer
	}
	return &r.before[0], nil
}

// add adds the next file of the version. Its Version is that from which on the path has this content,
// or 0 if that is not known.
func (r *fileRows) add(ctx context.Context, f registry.File) error {
	if r.skip {
		return nil
	}
	before, err := r.passTo(ctx, f.Path)
	if err != nil {
		return err
	}
	if before != nil && before.Path == f.Path {
		same := before.ContentPath == f.ContentPath
		r.before = r.before[1:]
		if f.Version == 0 && same || f.Version > 0 && f.Version < r.version {
			return nil
		}
	}
	return r.row(ctx, f)
}

// passTo ends the files of the version before that come before a path. It returns the next one.
func (r *fileRows) passTo(ctx context.Context, path string) (*registry.File, error) {
	for {
		before, err := r.peek(ctx)
		if err != nil || before == nil || path != "" && before.Path >= path {
			return before, err
		}
		gone := *before
		r.before = r.before[1:]
		if err := r.row(ctx, registry.File{Path: gone.Path, Deleted: true}); err != nil {
			return nil, err
		}
	}
}

func (r *fileRows) row(ctx context.Context, f registry.File) error {
	f.Version = r.version
	r.rows = append(r.rows, f)
	if len(r.rows) < rowsAtOnce {
		return nil
	}
	return r.flush(ctx)
}

func (r *fileRows) flush(ctx context.Context) error {
	if len(r.rows) == 0 {
		return nil
	}
	err := r.to.EnterFiles(ctx, r.object, r.version, r.rows, r.checked)
	r.rows = r.rows[:0]
	return err
}

// end ends the files that the version before has behind the last one, and enters what is left.
func (r *fileRows) end(ctx context.Context) error {
	if r.skip {
		return nil
	}
	if _, err := r.passTo(ctx, ""); err != nil {
		return err
	}
	return r.flush(ctx)
}
