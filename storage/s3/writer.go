package s3

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/storage"
)

const (
	// piecesAhead is how many pieces of one writer are being stored while it collects the next.
	piecesAhead = 2
	// maxInFlight is how many pieces of all writers of a store are being stored at once. It bounds
	// the memory: one piece for every large object being written, and these.
	maxInFlight = 4
	// landing is how long a writer that is given up waits for its pieces before it cancels them.
	landing = 10 * time.Second
)

// writer writes one object.
type writer struct {
	store *Store
	key   string
	id    string
	dir   string // folder of the pieces, with a slash

	gathered content
	pieces   []*piece // consecutive, up to gathered; stored or being stored
	merged   int      // how many of the first ones were merged from others
	spare    []*piece // stored, and needed only by earlier checkpoints
	tail     int      // how much of gathered a spare piece has

	// The context of Create bounds what Write starts.
	acquireSlot func() error                           // waits until few enough pieces of all writers are being stored
	send        func(p *piece, c content) <-chan error // stores a piece in the background, and releases the slot
	merge       func() error                           // merges the small pieces into one
	remove      func(names []string) error             // also after that context has ended
	stop        context.CancelFunc                     // cancels what send started
	inFlight    []<-chan error

	kept    bool  // a checkpoint was returned
	broken  error // the first error; bytes are missing afterwards
	done    bool
	info    storage.Info
	success bool
}

// Create implements storage.Store. ctx also bounds the background work that Write starts.
func (s *Store) Create(ctx context.Context, key string) (storage.Writer, error) {
	w, err := s.create(ctx, key)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (s *Store) create(ctx context.Context, key string) (*writer, error) {
	if err := s.check(key); err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create %q: %w", key, err)
	}
	w := &writer{store: s, key: key, id: newID()}
	w.dir = s.scratch(key) + w.id + "/"
	background, stop := context.WithCancel(ctx)
	w.stop = stop
	w.acquireSlot = func() error {
		select {
		case s.uploadSlots <- struct{}{}:
			return nil
		case <-background.Done():
			return background.Err()
		}
	}
	w.send = func(p *piece, c content) <-chan error {
		result := make(chan error, 1)
		go func() {
			defer func() {
				c.release()
				<-s.uploadSlots
			}()
			result <- w.storePiece(background, p, &c)
		}()
		return result
	}
	w.merge = func() error { return w.mergeSmall(background) }
	w.remove = func(names []string) error {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		return s.remove(tidy, names)
	}
	return w, nil
}

// storePiece stores c as the piece p.
func (w *writer) storePiece(ctx context.Context, p *piece, c *content) error {
	name := w.dir + p.base()
	if err := checkLength(w.key, name); err != nil {
		return err
	}
	p.sum = c.sum()
	_, err := w.store.createFrom(ctx, name, w.id, c, p.sum)
	return err
}

// size returns how many bytes were written.
func (w *writer) size() int64 {
	return w.stored() + int64(w.gathered.size)
}

// stored returns how many of them are in pieces.
func (w *writer) stored() int64 {
	if len(w.pieces) == 0 {
		return 0
	}
	return w.pieces[len(w.pieces)-1].end()
}

// usable returns why the writer cannot continue, or nil.
func (w *writer) usable(op string) error {
	switch {
	case w.done:
		return fmt.Errorf("%s %q: %w", op, w.key, storage.ErrClosed)
	case w.broken != nil:
		return fmt.Errorf("%s after an error: %w", op, w.broken)
	}
	return nil
}

// fail records err; the writer then accepts nothing more.
func (w *writer) fail(err error) error {
	w.broken = wrap("write", w.key, err)
	return w.broken
}

// Write implements io.Writer. It blocks while too many pieces are being stored.
func (w *writer) Write(p []byte) (int, error) {
	if err := w.usable("write"); err != nil {
		return 0, err
	}
	n := 0
	for len(p) > 0 {
		// Send a full piece only when more follows, so that content of one piece takes one request.
		if w.gathered.size == w.store.piece {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
		m := min(w.store.piece-w.gathered.size, len(p))
		_, _ = w.gathered.Write(p[:m])
		n, p = n+m, p[m:]
	}
	return n, nil
}

// flush stores the collected bytes as a piece in the background.
func (w *writer) flush() error {
	for len(w.inFlight) >= piecesAhead {
		if err := w.awaitOldest(); err != nil {
			return err
		}
	}
	if len(w.pieces)-w.merged >= w.store.mergeAt {
		if err := w.merge(); err != nil {
			return w.fail(err)
		}
	}
	if err := w.acquireSlot(); err != nil {
		return w.fail(err)
	}
	c := w.gathered
	p := &piece{at: w.stored(), size: int64(c.size)}
	w.gathered, w.tail = content{}, 0
	w.pieces = append(w.pieces, p)
	w.inFlight = append(w.inFlight, w.send(p, c))
	return nil
}

// awaitOldest waits for the piece that was sent first.
func (w *writer) awaitOldest() error {
	err := <-w.inFlight[0]
	w.inFlight = w.inFlight[1:]
	if err != nil {
		return w.fail(err)
	}
	return nil
}

// awaitAll waits for all pieces, or until ctx ends, which leaves the writer usable.
func (w *writer) awaitAll(ctx context.Context) error {
	for len(w.inFlight) > 0 {
		select {
		case err := <-w.inFlight[0]:
			w.inFlight = w.inFlight[1:]
			if err != nil {
				return w.fail(err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Checkpoint implements storage.Writer. Bytes that are too few for a part of an upload are stored
// as a piece, and also stay in memory for a larger piece.
func (w *writer) Checkpoint(ctx context.Context) (storage.Checkpoint, error) {
	if err := w.usable("checkpoint"); err != nil {
		return storage.Checkpoint{}, err
	}
	if err := ctx.Err(); err != nil {
		return storage.Checkpoint{}, fmt.Errorf("checkpoint %q: %w", w.key, err)
	}
	switch {
	case w.gathered.size >= w.store.minPart:
		if err := w.flush(); err != nil {
			return storage.Checkpoint{}, err
		}
	case w.gathered.size > w.tail:
		p := &piece{at: w.stored(), size: int64(w.gathered.size)}
		w.spare = append(w.spare, p)
		if err := w.storePiece(ctx, p, &w.gathered); err != nil {
			return storage.Checkpoint{}, wrap("checkpoint", w.key, err)
		}
		w.tail = w.gathered.size
	}
	if err := w.awaitAll(ctx); err != nil {
		return storage.Checkpoint{}, wrap("checkpoint", w.key, err)
	}
	w.kept = true
	return storage.Checkpoint{Token: token{key: w.key, id: w.id}.String(), Size: w.size()}, nil
}

// mergeSmall merges into one piece all pieces that were not merged yet.
func (w *writer) mergeSmall(ctx context.Context) error {
	if err := w.awaitAll(ctx); err != nil {
		return err
	}
	small := w.pieces[w.merged:]
	one := &piece{at: small[0].at, size: w.stored() - small[0].at}
	if _, err := w.store.compose(ctx, w.dir+one.base(), w.id, w.sources(small)); err != nil {
		return err
	}
	if err := w.remove(w.names(small)); err != nil {
		w.spare = append(w.spare, small...)
	}
	w.pieces = append(w.pieces[:w.merged:w.merged], one)
	w.merged++
	return nil
}

// sources returns the sources of an object made of pieces.
func (w *writer) sources(pieces []*piece) []source {
	var all []source
	most := w.store.rangeOf(w.stored())
	for _, p := range pieces {
		all = append(all, source{store: w.store, name: w.dir + p.base(), size: p.size, whole: true, sum: p.sum}.cut(most)...)
	}
	return all
}

// Commit implements storage.Writer. Content of one piece takes one request. Larger content is
// assembled from its pieces inside the service. That can be repeated, since the pieces stay until
// it is done.
func (w *writer) Commit(ctx context.Context) (storage.Info, error) {
	if w.success {
		return w.info, nil
	}
	if err := w.usable("commit"); err != nil {
		return storage.Info{}, err
	}
	if err := ctx.Err(); err != nil {
		return storage.Info{}, fmt.Errorf("commit %q: %w", w.key, err)
	}
	done, err := w.publish(ctx)
	if err != nil {
		return storage.Info{}, wrap("commit", w.key, err)
	}
	w.info = storage.Info{Key: w.key, Size: w.size(), Modified: done.at, ETag: done.etag}
	w.success = true
	_ = w.discard() // DeletePrefix removes what it misses
	return w.info, nil
}

// publish makes the object.
func (w *writer) publish(ctx context.Context) (written, error) {
	name := w.store.name(w.key)
	if len(w.pieces) == 0 {
		return w.store.createFrom(ctx, name, w.id, &w.gathered, w.gathered.sum())
	}
	if err := w.awaitAll(ctx); err != nil {
		return written{}, err
	}
	all := w.sources(w.pieces)
	if w.gathered.size > 0 {
		all = append(all, source{bytes: &w.gathered})
	}
	return w.store.compose(ctx, name, w.id, all)
}

// discard removes all pieces and releases the memory.
func (w *writer) discard() error {
	// The service may store the piece of a cancelled request after its name was deleted.
	w.end(landing)
	names := append(w.names(w.spare), w.names(w.pieces)...)
	w.spare, w.pieces = nil, nil
	return w.remove(names)
}

// names returns the pieces' names in the bucket.
func (w *writer) names(pieces []*piece) []string {
	var names []string
	for _, p := range pieces {
		names = append(names, w.dir+p.base())
	}
	return names
}

// end waits for the background work, and cancels it when patience is over.
func (w *writer) end(patience time.Duration) {
	w.done = true
	late := time.AfterFunc(patience, w.stop)
	for _, result := range w.inFlight {
		<-result //nolint:errcheck // the result no longer matters
	}
	late.Stop()
	w.stop()
	w.inFlight = nil
	w.gathered.release()
}

// Abort implements storage.Writer.
func (w *writer) Abort() error {
	if w.success || w.done && !w.kept {
		return nil
	}
	return wrap("abort", w.key, w.discard())
}

// Close implements storage.Writer. It removes pieces that no checkpoint needs.
func (w *writer) Close() error {
	switch {
	case w.done:
		return nil
	case !w.kept:
		return wrap("close", w.key, w.discard())
	}
	w.end(0)
	return nil
}
