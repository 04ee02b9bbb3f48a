package rebuild

import (
	"context"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// fileRows makes the rows of a version from the list of its files by path: those that changed, and the
// ends of those that are no more. It reads the version before beside it, a page at a time.
type fileRows struct {
	part *part                 // gets them
	of   registry.EnteredFiles // which files they are
	skip bool                  // the Registry has the version

	before []registry.File // read of the version before, and not yet passed
	after  string          // the path of the last of them
	ended  bool            // the version before has no more
}

// fileRows returns what makes the rows of a version, whose files count as checked at a time.
func (p *part) fileRows(version int, checked time.Time) *fileRows {
	return &fileRows{part: p, of: registry.EnteredFiles{Version: version, Checked: checked}, ended: version == 1}
}

// rows returns what makes the rows of a version. Of one that the Registry has there are none.
func (e *entering) rows(version int, checked time.Time) *fileRows {
	rows := e.part.fileRows(version, checked)
	rows.skip = version <= e.entered
	return rows
}

// peek returns the next file of the version before; nil: there is none.
func (r *fileRows) peek(ctx context.Context) (*registry.File, error) {
	if len(r.before) == 0 && !r.ended {
		if err := r.part.enter(ctx); err != nil { // it may have files of the version before
			return nil, err
		}
		files, err := r.part.to.EnteredFiles(ctx, r.part.next.ObjectID, r.of.Version-1, r.after, rowsAtOnce)
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
		if f.Version == 0 && same || f.Version > 0 && f.Version < r.of.Version {
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
	f.Version = r.of.Version
	return r.part.file(ctx, r.of, f)
}

// end ends the files that the version before has behind the last one.
func (r *fileRows) end(ctx context.Context) error {
	if r.skip {
		return nil
	}
	_, err := r.passTo(ctx, "")
	return err
}
