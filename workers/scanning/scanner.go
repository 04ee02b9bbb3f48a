// Package scanning scans staged files for viruses.
//
// A virus is a content fault. A file that the scanner cannot scan completely fails the item too, as
// a system fault, unless the collection accepts such files unscanned. Files that were found clean
// are recorded, and the next attempt does not scan them again. The package does not know how
// viruses are found: clamd does that.
package scanning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/clamd"
	"github.com/holdfast/holdfast/faults"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/resume"
)

const (
	// noteScanned is the interim entry with the clean files of a list.
	noteScanned = "scanned"
	// scannedAtOnce is how many files of a job are scanned concurrently.
	scannedAtOnce = 4
)

// Scanner scans staged files for viruses.
type Scanner struct {
	Clamd   *clamd.Client // nil: not configured
	Staging storage.Store
}

// scannedFiles records the clean files of a list, by their places.
type scannedFiles struct {
	List   string        `json:"list"`
	Places resume.Places `json:"places"`
}

// Scan scans every file of a list that no earlier attempt found clean. A virus is a content fault
// that names the file and the signature. A file that the engine cannot scan completely is a system
// fault. There are two exceptions: with parts, its contents will be scanned later; and a collection
// may accept it unscanned, which is then counted.
func (w *Scanner) Scan(ctx context.Context, item *base.Item, c result.Contents, parts bool) (result.Scanned, error) {
	out := result.Scanned{At: item.Now().UTC().Truncate(time.Second)}
	if w.Clamd == nil {
		return out, base.Fatal(fmt.Errorf("collection %s requires a virus scan, and no clamd is configured; set HOLDFAST_CLAMD_ADDR and requeue the item", item.Collection))
	}
	var err error
	if out.Engine, err = w.Clamd.Engine(ctx); err != nil {
		return out, err
	}
	run := &scanRun{item: item, now: scannedFiles{List: c.Key}, files: item.Progress("files scanned", "files")}
	before, ok, err := base.Get[scannedFiles](ctx, item, noteScanned)
	if err != nil {
		return out, err
	}
	if ok && before.List == c.Key {
		run.now = before
	}
	clean := slices.Clone(run.now.Places)
	bytes := item.Progress("bytes scanned", "bytes")
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(scannedAtOnce)
	place := -1
	for f, err := range c.All(gctx, w.Staging) {
		if err != nil {
			return out, cmp.Or(group.Wait(), err)
		}
		place++
		if clean.Has(place) {
			continue
		}
		at := place
		group.Go(func() error {
			found, err := w.scanFile(gctx, item, f, bytes)
			return run.add(gctx, at, f, found, err)
		})
	}
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil {
			// Stopping: the next worker resumes here.
			err = errors.Join(err, run.note(context.WithoutCancel(ctx)))
		}
		return out, err
	}
	out.Clean, out.Large, out.Unseen = int64(place+1)-run.large, run.large, run.unseen
	return out, run.verdict(parts)
}

// scanFile scans one file.
func (w *Scanner) scanFile(ctx context.Context, item *base.Item, f staging.File, bytes *base.Progress) (found string, err error) {
	var tooLarge error
	algorithm := item.Spec().Profile.Digests()
	err = staging.Verified(ctx, w.Staging, f.Key, algorithm, f.Digests[algorithm], func(r io.Reader) error {
		var err error
		if found, err = w.Clamd.Scan(ctx, bytes.Reader(r)); errors.Is(err, clamd.ErrTooLarge) {
			tooLarge = err
			return staging.ErrEnough
		}
		return err
	})
	return found, errors.Join(tooLarge, err)
}

// scanRun collects the results. Its methods may be called concurrently.
type scanRun struct {
	item  *base.Item
	files *base.Progress

	mu      sync.Mutex
	now     scannedFiles
	due     resume.Due
	viruses []error
	more    int // further viruses
	large   int64
	unseen  []string
}

// add records the result of one file.
func (r *scanRun) add(ctx context.Context, place int, f staging.File, found string, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files.Add(1)
	switch {
	case errors.Is(err, clamd.ErrTooLarge):
		if r.large++; len(r.unseen) < faults.Named {
			r.unseen = append(r.unseen, f.Name)
		}
		return nil
	case err != nil:
		return fmt.Errorf("scan %s: %w", f.Name, err)
	case found != "" && len(r.viruses) < faults.Named:
		r.viruses = append(r.viruses, fmt.Errorf("%s contains %s", f.Name, found))
		return nil
	case found != "":
		r.more++
		return nil
	}
	r.now.Places = r.now.Places.Add(place)
	if !r.due.Add(f.SizeBytes) {
		return nil
	}
	return base.Put(ctx, r.item, noteScanned, r.now)
}

// note records the clean files for a successor.
func (r *scanRun) note(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return base.Put(ctx, r.item, noteScanned, r.now)
}

// verdict returns the verdict on all files.
func (r *scanRun) verdict(parts bool) error {
	switch {
	case len(r.viruses) > 0:
		return base.Content(fmt.Errorf("the virus scan found viruses: %w", faults.Join(r.viruses, r.more)))
	case r.large == 0 || parts || r.item.Spec().Profile.ScanPartly:
		return nil
	}
	return base.Fatal(fmt.Errorf("%d files are too large for clamd, such as %s; raise its StreamMaxLength, MaxFileSize and MaxScanSize "+
		"(2 GiB at most) or let the collection accept them unscanned (scan_partly), and requeue the item", r.large, r.unseen[0]))
}
