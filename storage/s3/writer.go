package s3

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/storage"
)

const (
	// piecesAhead is how many pieces of one writer are on their way while it gathers the next.
	piecesAhead = 2
	// maxInFlight is how many pieces of all writers of a store are on their way at once. With what
	// each writer gathers this bounds the memory: a piece for every large object that is being
	// written, and these.
	maxInFlight = 4
)

// writer is an object on its way.
type writer struct {
	store *Store
	key   string
	id    string
	dir   string // of the pieces, with a slash

	gathered content
	pieces   []*piece // one after the other, up to what is gathered; stored, or on their way
	merged   int      // how many of them, from the first, were made of others
	spare    []*piece // stored, and no longer needed but by checkpoints of the past
	tail     int      // how much of what is gathered a spare piece holds

	// What Write begins is bounded by the context of Create.
	turn   func() error                           // waits until few enough pieces of all writers are on their way
	send   func(p *piece, c content) <-chan error // stores a piece in the background, and ends the turn
	merge  func() error                           // makes one piece of the small ones
	remove func(names []string) error             // even when that context has ended
	stop   context.CancelFunc                     // ends what send began
	flying []<-chan error

	kept    bool  // a checkpoint was given out
	broken  error // the first failure; bytes are missing after it
	done    bool
	info    storage.Info
	success bool
}

// Create implements storage.Store. ctx bounds the storing that Write begins, too.
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
	w.turn = func() error {
		select {
		case s.turns <- struct{}{}:
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
				<-s.turns
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

// storePiece makes c the piece p.
func (w *writer) storePiece(ctx context.Context, p *piece, c *content) error {
	name := w.dir + p.base()
	if err := checkLength(w.key, name); err != nil {
		return err
	}
	p.sum = c.sum()
	_, err := w.store.createFrom(ctx, name, w.id, c, p.sum)
	return err
}

// size is how much was written.
func (w *writer) size() int64 {
	return w.stored() + int64(w.gathered.size)
}

// stored is how much of it is in pieces.
func (w *writer) stored() int64 {
	if len(w.pieces) == 0 {
		return 0
	}
	return w.pieces[len(w.pieces)-1].end()
}

// usable returns why the writer cannot go on, or nil.
func (w *writer) usable(op string) error {
	switch {
	case w.done:
		return fmt.Errorf("%s %q: %w", op, w.key, storage.ErrClosed)
	case w.broken != nil:
		return fmt.Errorf("%s after an error: %w", op, w.broken)
	}
	return nil
}

// fail makes err the writer's own.
func (w *writer) fail(err error) error {
	w.broken = wrap("write", w.key, err)
	return w.broken
}

// Write implements io.Writer. It waits when more is on its way than memory should hold.
func (w *writer) Write(p []byte) (int, error) {
	if err := w.usable("write"); err != nil {
		return 0, err
	}
	n := 0
	for len(p) > 0 {
		// A piece goes when it is full and more comes, so that what fits one piece is stored by one
		// request.
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

// flush sends what is gathered on its way as a piece.
func (w *writer) flush() error {
	for len(w.flying) >= piecesAhead {
		if err := w.land(); err != nil {
			return err
		}
	}
	if len(w.pieces)-w.merged >= w.store.mergeAt {
		if err := w.merge(); err != nil {
			return w.fail(err)
		}
	}
	if err := w.turn(); err != nil {
		return w.fail(err)
	}
	c := w.gathered
	p := &piece{at: w.stored(), size: int64(c.size)}
	w.gathered, w.tail = content{}, 0
	w.pieces = append(w.pieces, p)
	w.flying = append(w.flying, w.send(p, c))
	return nil
}

// land waits for the piece that has been on its way for longest.
func (w *writer) land() error {
	err := <-w.flying[0]
	w.flying = w.flying[1:]
	if err != nil {
		return w.fail(err)
	}
	return nil
}

// landAll waits for all pieces, or until ctx ends, which leaves the writer as it is.
func (w *writer) landAll(ctx context.Context) error {
	for len(w.flying) > 0 {
		select {
		case err := <-w.flying[0]:
			w.flying = w.flying[1:]
			if err != nil {
				return w.fail(err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Checkpoint implements storage.Writer. What is too little for a part of an upload is stored as a
// piece, too, but stays in memory and will be part of a larger one.
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
	if err := w.landAll(ctx); err != nil {
		return storage.Checkpoint{}, wrap("checkpoint", w.key, err)
	}
	w.kept = true
	return storage.Checkpoint{Token: token{key: w.key, id: w.id}.String(), Size: w.size()}, nil
}

// mergeSmall makes one piece of those that were not made of others.
func (w *writer) mergeSmall(ctx context.Context) error {
	if err := w.landAll(ctx); err != nil {
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

// sources are what an object is made of.
func (w *writer) sources(pieces []*piece) []source {
	var all []source
	most := w.store.rangeOf(w.stored())
	for _, p := range pieces {
		all = append(all, source{store: w.store, name: w.dir + p.base(), size: p.size, whole: true, sum: p.sum}.cut(most)...)
	}
	return all
}

// Commit implements storage.Writer. What fits one piece is one request; anything else is put
// together of its pieces inside the service, which can be begun again at will, since they stay
// until it is done.
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
	_ = w.discard() // what it misses is left for DeletePrefix
	return w.info, nil
}

// publish makes the object.
func (w *writer) publish(ctx context.Context) (written, error) {
	name := w.store.name(w.key)
	if len(w.pieces) == 0 {
		return w.store.createFrom(ctx, name, w.id, &w.gathered, w.gathered.sum())
	}
	if err := w.landAll(ctx); err != nil {
		return written{}, err
	}
	all := w.sources(w.pieces)
	if w.gathered.size > 0 {
		all = append(all, source{bytes: &w.gathered})
	}
	return w.store.compose(ctx, name, w.id, all)
}

// discard removes all pieces and gives the memory back.
func (w *writer) discard() error {
	w.end()
	names := append(w.names(w.spare), w.names(w.pieces)...)
	w.spare, w.pieces = nil, nil
	return w.remove(names)
}

// names are those of pieces in the bucket.
func (w *writer) names(pieces []*piece) []string {
	var names []string
	for _, p := range pieces {
		names = append(names, w.dir+p.base())
	}
	return names
}

// end stops what is under way and waits for it.
func (w *writer) end() {
	w.done = true
	w.stop()
	for _, result := range w.flying {
		<-result //nolint:errcheck // nothing depends on it any more
	}
	w.flying = nil
	w.gathered.release()
}

// Abort implements storage.Writer.
func (w *writer) Abort() error {
	if w.success || w.done && !w.kept {
		return nil
	}
	return wrap("abort", w.key, w.discard())
}

// Close implements storage.Writer. Pieces that no checkpoint speaks of go with it.
func (w *writer) Close() error {
	switch {
	case w.done:
		return nil
	case !w.kept:
		return wrap("close", w.key, w.discard())
	}
	w.end()
	return nil
}
