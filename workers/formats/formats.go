// Package formats identifies the formats of a version's files.
//
// Each content is identified once: results of an earlier version or an earlier attempt are used
// again. If the bytes differ from those that were staged, the error wraps staging.ErrDamaged. An
// unknown format is no error. The package does not know how formats are identified: that is
// [format.Identifier].
package formats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/faults"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/resume"
)

const (
	// noteFormats begins the interim entries with the formats found.
	noteFormats = "formats/"
	// identifiedAtOnce is how many files of a job are identified concurrently.
	identifiedAtOnce = 4
)

// finding is the identifier's result for a content.
type finding struct {
	Format *registry.Format `json:"format,omitempty"` // nil: unknown
	Large  bool             `json:"large,omitempty"`  // too large: not examined
	kept   bool             // from an earlier version
}

// Finder identifies the formats of staged files.
type Finder struct {
	Identifier format.Identifier // nil: no format is identified
	Staging    storage.Store
}

// Found has the results for a version's files, by content. Its methods may be called concurrently.
type Found struct {
	item      *base.Item
	algorithm string // of the digests that identify contents
	asked     bool

	mu      sync.Mutex
	by      map[string]finding
	pool    map[registry.Format]*registry.Format // equal formats are stored once
	Agent   string
	unnoted map[string]finding
	notes   int
	due     resume.Due
}

// formatsNote is an interim entry with a part of the results.
type formatsNote struct {
	Agent string             `json:"agent"`
	Found map[string]finding `json:"found"`
}

// Find identifies files, each content once. It uses the results of an earlier version (its files
// are before) and of earlier attempts. Digests by the algorithm identify contents.
func (w Finder) Find(ctx context.Context, item *base.Item, algorithm string, before iter.Seq2[registry.File, error],
	files func(context.Context) iter.Seq2[staging.File, error],
) (*Found, error) {
	fs := &Found{
		item: item, algorithm: algorithm, asked: w.Identifier != nil,
		by: map[string]finding{}, pool: map[registry.Format]*registry.Format{}, unnoted: map[string]finding{},
	}
	if !fs.asked {
		return fs, nil
	}
	err := base.Each(ctx, item, noteFormats, func(_ string, n formatsNote) error {
		fs.Agent = n.Agent
		for key, t := range n.Found {
			fs.set(key, t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for old, err := range before {
		if err != nil {
			return nil, err
		}
		if d := old.Digests[algorithm]; old.Format != nil && d != "" {
			fs.set(contentKey(d), finding{Format: old.Format, kept: true})
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(identifiedAtOnce)
	progress := item.Progress("files identified", "files")
	for f, err := range files(gctx) {
		if err != nil {
			return nil, cmp.Or(group.Wait(), err)
		}
		group.Go(func() error {
			defer progress.Add(1)
			key := contentKey(f.Digests[algorithm])
			if _, ok := fs.get(key); ok {
				return nil
			}
			return w.identify(gctx, fs, key, f)
		})
	}
	err = group.Wait()
	if err != nil && ctx.Err() != nil {
		// Stopping: the next worker resumes here.
		err = errors.Join(err, fs.note(context.WithoutCancel(ctx)))
	}
	return fs, err
}

// identify identifies one file. If its bytes differ from those that were staged, the error wraps
// staging.ErrDamaged.
func (w Finder) identify(ctx context.Context, fs *Found, key string, f staging.File) error {
	sent := fs.item.Progress("bytes sent to be identified", "bytes")
	algorithm := fs.item.Spec().Profile.Digests()
	answer, err := w.Identifier.Identify(ctx, format.File{
		Name: f.Name, Size: f.SizeBytes, Read: func(ctx context.Context, fn func(io.Reader) error) error {
			var failed error
			err := staging.Verified(ctx, w.Staging, f.Key, algorithm, f.Digests[algorithm], func(r io.Reader) error {
				if failed = fn(sent.Reader(r)); failed != nil {
					return staging.ErrEnough // nothing was concluded
				}
				return nil
			})
			if failed != nil {
				return failed
			}
			return err
		},
	})
	t := finding{Format: (*registry.Format)(answer.Format)}
	if errors.Is(err, format.ErrTooLarge) {
		t.Large = true
	} else if err != nil {
		return fmt.Errorf("identify the format of %s: %w", f.Name, err)
	}
	return fs.add(ctx, key, t, answer.Agent, f.SizeBytes)
}

// Count counts a file in the summary and returns its format. Without an identifier, a file with a
// known media type counts as known.
func (fs *Found) Count(to *result.Identified, name string, f staging.File) *registry.Format {
	t, _ := fs.get(contentKey(f.Digests[fs.algorithm]))
	known := t.Format != nil
	if !fs.asked {
		known = f.MIMEType != format.Unknown
	}
	to.Files++
	switch {
	case known:
		to.Known++
		to.Kept += oneIf(t.kept)
		to.Warned += oneIf(t.Format != nil && t.Format.Warning != "")
		return t.Format
	case len(to.Unknown) < faults.Named:
		to.Unknown = append(to.Unknown, name)
	}
	to.Large += oneIf(t.Large)
	return t.Format
}

func oneIf(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// contentKey returns the beginning of a digest, which identifies contents: whole digests of very
// many files would take much memory.
func contentKey(digest string) string { return strings.Clone(digest[:min(len(digest), 32)]) }

// get returns the result for a content.
func (fs *Found) get(key string) (t finding, ok bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	t, ok = fs.by[key]
	return t, ok
}

// set stores a result. The caller has fs to itself, or holds mu.
func (fs *Found) set(key string, t finding) {
	if t.Format != nil {
		if fs.pool[*t.Format] == nil {
			fs.pool[*t.Format] = t.Format
		}
		t.Format = fs.pool[*t.Format]
	}
	fs.by[key] = t
}

// add stores a new result, and notes results from time to time.
func (fs *Found) add(ctx context.Context, key string, t finding, agent string, bytes int64) error {
	fs.mu.Lock()
	fs.set(key, t)
	fs.unnoted[key], fs.Agent = t, cmp.Or(agent, fs.Agent)
	due := fs.due.Add(bytes)
	fs.mu.Unlock()
	if !due {
		return nil
	}
	return fs.note(ctx)
}

// note writes the new results as an interim entry.
func (fs *Found) note(ctx context.Context) error {
	fs.mu.Lock()
	n := formatsNote{Agent: fs.Agent, Found: fs.unnoted}
	key := fmt.Sprintf("%s%d-%d", noteFormats, fs.item.Lease().N, fs.notes)
	fs.unnoted, fs.notes = map[string]finding{}, fs.notes+1
	fs.mu.Unlock()
	if len(n.Found) == 0 {
		return nil
	}
	return base.Put(ctx, fs.item, key, n)
}
