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

// noteThawing is the key of the note of a thaw under way.
const noteThawing = "thawing"

const (
	// thawedFor is how long what was thawed can be read: long enough to be read in whatever queue
	// there is.
	thawedFor = 7 * 24 * time.Hour
	// A thaw takes hours: it is looked at again after an eighth of the time that it has taken,
	// within these bounds.
	thawWaitLeast = time.Minute
	thawWaitMost  = 30 * time.Minute
)

// thawing is a thaw under way. Paths are bytes, as names are.
type thawing struct {
	Since time.Time `json:"since,omitzero"` // zero: none is under way
	From  []byte    `json:"from"`           // the first file that is needed
	Asked bool      `json:"asked"`          // for all that are
	Files int64     `json:"files"`          // that were asked for
	After []byte    `json:"after"`          // up to here all were asked for; or, once Asked, can be read
}

// askThaw has everything thawed that is still to be written, from the file of a path on, which is
// archived, and lets the item wait. The room for what was not written is given back, since others
// can use it in the meantime.
func (r *restoring) askThaw(ctx context.Context, path string) error {
	if err := r.shrink(ctx, r.done.Last.offset()); err != nil {
		return err
	}
	return r.awaitThaw(ctx, thawing{Since: r.item.Now(), From: []byte(path)})
}

// thaw lets the item wait while a thaw is under way.
func (r *restoring) thaw(ctx context.Context) error {
	t, _, err := base.Get[thawing](ctx, r.item, noteThawing)
	if err != nil || t.Since.IsZero() {
		return err
	}
	return r.awaitThaw(ctx, t)
}

// awaitThaw asks for what was not asked for yet, and looks whether all that was asked for is there.
// A repeat goes on where it was.
func (r *restoring) awaitThaw(ctx context.Context, t thawing) error {
	keep := func() error { return base.Put(ctx, r.item, noteThawing, t) }
	looked := r.item.Progress("files looked at in the archive", "files")
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

func (r *restoring) waitThaw(t thawing) error {
	wait := min(max(r.item.Now().Sub(t.Since)/8, thawWaitLeast), thawWaitMost)
	return base.Snooze(wait, registry.ReasonThawing, fmt.Sprintf("waits for the archive to give back %d of the files of %s, version %d, asked for on %s; that takes hours",
		t.Files, r.source.object.ID, r.source.version, t.Since.UTC().Format(time.DateTime)))
}

// thaw says whether a file can be read in some storage, and has it thawed in the nearest one where
// it is archived, if not.
func (s *replicas) thaw(ctx context.Context, f registry.File) (readable bool, err error) {
	frozen := -1
	var errs []error
	for i, root := range s.roots {
		if fault := s.reader.Useless(f.Path, root.Name); fault != nil && !errors.Is(fault, storage.ErrArchived) {
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
		return len(errs) == 0, errors.Join(errs...) // reading says that a file is nowhere
	}
	return s.roots[frozen].Store().Thaw(ctx, s.key(frozen, f), thawedFor)
}
