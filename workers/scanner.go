package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/clamd"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

const (
	// resultScan is the name of the durable result that says what a scan of what was downloaded came to.
	resultScan = "scan"
	// noteScanned is the name under which an attempt notes which files of a list are clean.
	noteScanned = "scanned"
	// scannedAtOnce is how many files of a job are scanned at a time.
	scannedAtOnce = 4
)

// scanned is what a scan without findings came to.
type scanned struct {
	Engine string    `json:"engine"` // with its version and that of its signatures
	At     time.Time `json:"at"`
	Clean  int64     `json:"clean"`           // files
	Large  int64     `json:"large,omitempty"` // files that the engine did not see all of
	Unseen []string  `json:"unseen,omitempty"`
}

// detail is the event's text.
func (s *scanned) detail() string {
	text := fmt.Sprintf("no virus found in %d files", s.Clean)
	if s.Large == 0 {
		return text
	}
	text += fmt.Sprintf("; %d files were not scanned, being larger than the engine takes: %s", s.Large, strings.Join(s.Unseen, ", "))
	if more := s.Large - int64(len(s.Unseen)); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// scanner has staged files looked at for viruses.
type scanner struct {
	clamd   *clamd.Client // nil: none is set
	staging storage.Store
}

// scannedFiles are those files of a list that are clean, by their places.
type scannedFiles struct {
	List   string `json:"list"`
	Places places `json:"places"`
}

// scan looks at every file of a list, after those that an earlier attempt found clean. A virus is a content fault that
// names file and signature. What the engine cannot see all of fails the item, too, as the system's fault: unless parts says
// that its parts are looked at later, or the collection takes it unseen, which is then counted.
func (w *scanner) scan(ctx context.Context, item *base.Item, c contents, parts bool) (scanned, error) {
	out := scanned{At: item.Now().UTC().Truncate(time.Second)}
	if w.clamd == nil {
		return out, base.Fatal(fmt.Errorf("collection %s asks for a virus scan, and no clamd is set; set HOLDFAST_CLAMD_ADDR and requeue the item", item.Collection))
	}
	var err error
	if out.Engine, err = w.clamd.Engine(ctx); err != nil {
		return out, err
	}
	run := &scanRun{item: item, now: scannedFiles{List: c.List}, files: item.Progress("files scanned", "files")}
	before, ok, err := base.Get[scannedFiles](ctx, item, noteScanned)
	if err != nil {
		return out, err
	}
	if ok && before.List == c.List {
		run.now = before
	}
	clean := slices.Clone(run.now.Places)
	bytes := item.Progress("bytes scanned", "bytes")
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(scannedAtOnce)
	place := -1
	for f, err := range c.all(gctx, w.staging) {
		if err != nil {
			return out, first(group.Wait(), err)
		}
		place++
		if clean.has(place) {
			continue
		}
		at := place
		group.Go(func() error {
			found, err := w.look(gctx, item, f, bytes)
			return run.add(gctx, at, f, found, err)
		})
	}
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil {
			// Told to stop: the next worker goes on right here.
			err = errors.Join(err, run.note(context.WithoutCancel(ctx)))
		}
		return out, err
	}
	out.Clean, out.Large, out.Unseen = int64(place+1)-run.large, run.large, run.unseen
	return out, run.verdict(parts)
}

// look has one file scanned.
func (w *scanner) look(ctx context.Context, item *base.Item, f staging.File, bytes *base.Progress) (found string, err error) {
	var tooLarge error
	algorithm := item.Spec().Profile.Digests()
	err = staging.Verified(ctx, w.staging, f.Key, algorithm, f.Digests[algorithm], func(r io.Reader) error {
		var err error
		if found, err = w.clamd.Scan(ctx, &counted{r: r, count: bytes.Add}); errors.Is(err, clamd.ErrTooLarge) {
			tooLarge = err
			return staging.ErrEnough
		}
		return err
	})
	return found, errors.Join(tooLarge, err)
}

// scanRun gathers what is found. Its methods may be called concurrently.
type scanRun struct {
	item  *base.Item
	files *base.Progress

	mu      sync.Mutex
	now     scannedFiles
	pace    pace
	viruses []error
	more    int // viruses beside those
	large   int64
	unseen  []string
}

// add takes what came of one file.
func (r *scanRun) add(ctx context.Context, place int, f staging.File, found string, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files.Add(1)
	switch {
	case errors.Is(err, clamd.ErrTooLarge):
		if r.large++; len(r.unseen) < named {
			r.unseen = append(r.unseen, f.Name)
		}
		return nil
	case err != nil:
		return fmt.Errorf("scan %s: %w", f.Name, err)
	case found != "" && len(r.viruses) < named:
		r.viruses = append(r.viruses, fmt.Errorf("%s holds %s", f.Name, found))
		return nil
	case found != "":
		r.more++
		return nil
	}
	r.now.Places = r.now.Places.add(place)
	if !r.pace.add(f.SizeBytes) {
		return nil
	}
	return base.Put(ctx, r.item, noteScanned, r.now)
}

// note keeps for a successor what is clean.
func (r *scanRun) note(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return base.Put(ctx, r.item, noteScanned, r.now)
}

// verdict is what the files come to.
func (r *scanRun) verdict(parts bool) error {
	switch {
	case len(r.viruses) > 0:
		return base.Content(fmt.Errorf("the virus scan found something: %w", told(r.viruses, r.more)))
	case r.large == 0 || parts || r.item.Spec().Profile.ScanPartly:
		return nil
	}
	return base.Fatal(fmt.Errorf("%d files are larger than clamd takes, such as %s; raise its StreamMaxLength, MaxFileSize and MaxScanSize "+
		"(2 GiB at most) or let the collection take them unseen (scan_partly), and requeue the item", r.large, r.unseen[0]))
}

// scanned is what the scan of the files that are to be preserved came to; nil when the item takes none. What came out of a
// container is scanned now, file by file: clamd takes larger archives for clean unseen, and does not know all kinds.
func (w *Process) scanned(ctx context.Context, item *base.Item, c contents) (*scanned, error) {
	if !slices.Contains(item.Optional, registry.Scan) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	s, err := result[scanned](item, resultScan, "nothing is noted as scanned; requeue the item at scan")
	if err == nil && c.List != c.From {
		s, err = w.scanner.scan(ctx, item, c, false)
	}
	return &s, err
}
