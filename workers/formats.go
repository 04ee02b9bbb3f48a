package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
)

const (
	// noteFormats begins the names under which an attempt notes the formats that it found.
	noteFormats = "formats/"
	// identifiedAtOnce is how many files of a job are identified at a time.
	identifiedAtOnce = 4
)

// finding is what an identifier said of a content.
type finding struct {
	Format *registry.Format `json:"format,omitempty"` // nil: nothing fits
	Large  bool             `json:"large,omitempty"`  // it was not looked at
	kept   bool             // an earlier version knew it
}

// formats are what was said of a version's files, by their content. Its methods may be called concurrently.
type formats struct {
	item *base.Item

	mu      sync.Mutex
	by      map[string]finding
	pool    map[registry.Format]*registry.Format // equal formats are kept once
	agent   string
	unnoted map[string]finding
	notes   int
	pace    pace
}

// formatsNote is a part of them, as an attempt notes it.
type formatsNote struct {
	Agent string             `json:"agent"`
	Found map[string]finding `json:"found"`
}

// formats identifies the producer's files, each content once: what an earlier version, or an earlier attempt, was told
// holds. Without an identifier nobody is asked.
func (w *Process) formats(ctx context.Context, item *base.Item, dr *draft) (*formats, error) {
	fs := &formats{item: item, by: map[string]finding{}, pool: map[registry.Format]*registry.Format{}, unnoted: map[string]finding{}}
	if w.Identifier == nil {
		return fs, nil
	}
	err := base.Each(ctx, item, noteFormats, func(_ string, n formatsNote) error {
		fs.agent = n.Agent
		for key, t := range n.Found {
			fs.keep(key, t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for old, err := range w.before(ctx, dr) {
		if err != nil {
			return nil, err
		}
		if d := old.Digests[dr.Algorithm]; old.Format != nil && d != "" {
			fs.keep(contentKey(d), finding{Format: old.Format, kept: true})
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(identifiedAtOnce)
	progress := item.Progress("files identified", "files")
	for f, err := range w.producers(gctx, dr) {
		if err != nil {
			return nil, first(group.Wait(), err)
		}
		group.Go(func() error {
			defer progress.Add(1)
			key := contentKey(f.Digests[dr.Algorithm])
			if _, ok := fs.of(key); ok {
				return nil
			}
			return w.ask(gctx, fs, key, f)
		})
	}
	err = group.Wait()
	if err != nil && ctx.Err() != nil {
		// Told to stop: the next worker goes on right here.
		err = errors.Join(err, fs.note(context.WithoutCancel(ctx)))
	}
	return fs, err
}

// ask has one file identified. The bytes that it is identified by are those that were staged: otherwise
// the error wraps staging.ErrDamaged.
func (w *Process) ask(ctx context.Context, fs *formats, key string, f staging.File) error {
	sent := fs.item.Progress("bytes sent to be identified", "bytes")
	algorithm := fs.item.Spec().Profile.Digests()
	answer, err := w.Identifier.Identify(ctx, format.File{
		Name: f.Name, Size: f.SizeBytes, Read: func(ctx context.Context, fn func(io.Reader) error) error {
			var failed error
			err := staging.Verified(ctx, w.payloads.staging, f.Key, algorithm, f.Digests[algorithm], func(r io.Reader) error {
				if failed = fn(&counted{r: r, count: sent.Add}); failed != nil {
					return staging.ErrEnough // nothing is concluded
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

// contentKey is as much of a digest as tells contents apart; all of very many files' would take much memory.
func contentKey(digest string) string { return strings.Clone(digest[:min(len(digest), 32)]) }

// of is what was said of a content.
func (fs *formats) of(key string) (t finding, ok bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	t, ok = fs.by[key]
	return t, ok
}

// keep takes over what is known. The caller has fs to itself, or holds mu.
func (fs *formats) keep(key string, t finding) {
	if t.Format != nil {
		if fs.pool[*t.Format] == nil {
			fs.pool[*t.Format] = t.Format
		}
		t.Format = fs.pool[*t.Format]
	}
	fs.by[key] = t
}

// add takes what was just said of a content, and notes it now and then.
func (fs *formats) add(ctx context.Context, key string, t finding, agent string, bytes int64) error {
	fs.mu.Lock()
	fs.keep(key, t)
	fs.unnoted[key], fs.agent = t, cmp.Or(agent, fs.agent)
	due := fs.pace.add(bytes)
	fs.mu.Unlock()
	if !due {
		return nil
	}
	return fs.note(ctx)
}

// note keeps for a successor what was not noted yet.
func (fs *formats) note(ctx context.Context) error {
	fs.mu.Lock()
	n := formatsNote{Agent: fs.agent, Found: fs.unnoted}
	key := fmt.Sprintf("%s%d-%d", noteFormats, fs.item.Lease().N, fs.notes)
	fs.unnoted, fs.notes = map[string]finding{}, fs.notes+1
	fs.mu.Unlock()
	if len(n.Found) == 0 {
		return nil
	}
	return base.Put(ctx, fs.item, key, n)
}
