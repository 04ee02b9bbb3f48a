package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// noteThawing is the interim entry of a running thaw.
const noteThawing = "thawing"

const (
	// thawedFor is how long thawed files stay readable: longer than any queue.
	thawedFor = 7 * 24 * time.Hour
	// A thaw takes hours: check again after an eighth of the time that has passed, within these
	// bounds.
	thawWaitLeast = time.Minute
	thawWaitMost  = 30 * time.Minute
)

// thawing is the state of a running thaw. Paths are bytes, as file names are.
type thawing struct {
	Since time.Time `json:"since,omitzero"` // zero: no thaw is running
	From  []byte    `json:"from"`           // the first file that is needed
	Asked bool      `json:"asked"`          // all needed files were requested
	Files int64     `json:"files"`          // files requested
	After []byte    `json:"after"`          // last path requested or, once Asked, known to be readable
}

// startThaw requests all files that are still to be written, from the archived file of a path on,
// and makes the item wait. It releases the room for what was not written, so that others can use it
// meanwhile.
func (r *restoreRun) startThaw(ctx context.Context, path string) error {
	if err := r.releaseRoom(ctx, r.done.Last.offset()); err != nil {
		return err
	}
	return r.awaitThaw(ctx, thawing{Since: r.item.Now(), From: []byte(path)})
}

// thaw makes the item wait while a thaw is running.
func (r *restoreRun) thaw(ctx context.Context) error {
	t, _, err := base.Get[thawing](ctx, r.item, noteThawing)
	if err != nil || t.Since.IsZero() {
		return err
	}
	return r.awaitThaw(ctx, t)
}

// awaitThaw requests the remaining files, then checks whether all requested files are readable. A
// repeat continues where it stopped.
func (r *restoreRun) awaitThaw(ctx context.Context, t thawing) error {
	keep := func() error { return base.Put(ctx, r.item, noteThawing, t) }
	looked := r.item.Progress("files checked in the archive", "files")
	for {
		files, err := r.source.files(ctx, string(t.After))
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.Path >= string(t.From) {
				readable, err := r.source.thaw(ctx, f)
				if err != nil {
					return fmt.Errorf("thaw %s: %w", f.Path, err)
				}
				switch {
				case readable:
				case t.Asked:
					return errors.Join(keep(), r.waitThaw(t))
				default:
					t.Files++
				}
			}
			t.After = []byte(f.Path)
			looked.Add(1)
		}
		if len(files) > 0 {
			if err := keep(); err != nil {
				return err
			}
			continue
		}
		if t.Asked {
			t = thawing{}
			return keep()
		}
		t.Asked, t.After = true, nil
		if err := keep(); err != nil {
			return err
		}
		return r.waitThaw(t)
	}
}

func (r *restoreRun) waitThaw(t thawing) error {
	wait := min(max(r.item.Now().Sub(t.Since)/8, thawWaitLeast), thawWaitMost)
	return base.Snooze(wait, registry.ReasonThawing, fmt.Sprintf("waiting for the archive to restore %d files of %s, version %d, requested on %s; this takes hours",
		t.Files, r.source.object.ID, r.source.version, t.Since.UTC().Format(time.DateTime)))
}

// thaw reports whether some storage can read a file. If not, it requests the file in the nearest
// storage that has it archived.
func (s *replicas) thaw(ctx context.Context, f registry.File) (readable bool, err error) {
	frozen := -1
	var errs []error
	for i, root := range s.roots {
		if fault := s.reader.Excluded(f.Path, root.Name); fault != nil && !errors.Is(fault, storage.ErrArchived) {
			continue
		}
		readable, err := root.Store().Thaw(ctx, s.key(i, f), 0)
		switch {
		case readable:
			return true, nil
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			errs = append(errs, err)
		case frozen < 0:
			frozen = i
		}
	}
	if frozen < 0 {
		return len(errs) == 0, errors.Join(errs...) // reading then reports that the file is nowhere
	}
	return s.roots[frozen].Store().Thaw(ctx, s.key(frozen, f), thawedFor)
}
