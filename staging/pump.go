package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/storage"
)

// pump moves a body into a staged file. Each chunk is read once, then written and digested in
// parallel while the next chunks are read. Reading continues during a checkpoint as long as there
// are free chunks.
type pump struct {
	*transfer
	unsaved  int64 // bytes since the last checkpoint
	received int64 // bytes of the file so far, including those before this pump

	more  []*block // beside the first
	free  chan *block
	write chan *block
	hash  chan *block
	// states has the digests at each checkpoint, in order.
	states chan fixity.State
}

// run transfers the body to its end. After a read error both sides have processed the same bytes.
func (p *pump) run(ctx context.Context) error {
	first := p.fetch.Buffers.lend()
	defer func() {
		p.fetch.Buffers.takeBack(first)
		p.fetch.Buffers.takeBackMore(p.more)
	}()
	p.received = p.digests.Size()
	err := fill(p.body, first)
	p.identify(first)
	if over := p.checkLimit(first.n); over != nil {
		return over
	}
	if errors.Is(err, io.EOF) {
		// Most files are small: they need no goroutines.
		return p.storeSingle(first)
	}
	// Sending never blocks: each channel has room for all chunks.
	p.free, p.write, p.hash = make(chan *block, readAhead), make(chan *block, readAhead), make(chan *block, readAhead)
	p.states = make(chan fixity.State, readAhead)
	both, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// If the writing side fails, do not leave the reader waiting for the network.
	defer context.AfterFunc(both, func() { _ = p.body.Close() })()
	var sides sync.WaitGroup
	var failed error
	sides.Go(func() {
		if failed = p.writeAll(both); failed != nil {
			stop(failed)
		}
	})
	sides.Go(p.hashAll)
	if first.n > 0 {
		p.send(first)
	}
	if err == nil {
		err = p.readAll(both)
	}
	close(p.write)
	close(p.hash)
	sides.Wait()
	if failed != nil {
		return failed // the reader's error, if any, follows from it
	}
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	return err
}

// checkLimit counts n received bytes. It returns an error if the source does not state the size and
// sends more than allowed: it may never end.
func (p *pump) checkLimit(n int) error {
	p.received += int64(n)
	info, wanted := p.body.Info, p.fetch.Wanted.SizeBytes
	switch {
	case info.Size >= 0:
	case wanted >= 0 && p.received > wanted:
		return &MismatchError{URL: info.URL, What: "size", Expected: inBytes(wanted), Found: "more than " + inBytes(wanted), cut: true}
	case wanted < 0 && p.fetch.Most > 0 && p.received > p.fetch.Most:
		return &UnboundedError{URL: info.URL, Most: p.fetch.Most}
	}
	return nil
}

// storeSingle stores a file of one chunk.
func (p *pump) storeSingle(b *block) error {
	if err := p.store(b); err != nil {
		return err
	}
	p.digests.Write(b.data()) //nolint:errcheck // it never fails
	return nil
}

// identify sets the format, if the file is here from its first byte.
func (p *pump) identify(b *block) {
	if p.digests.Size() == 0 {
		p.format = format.MIME(b.data(), p.fetch.Wanted.Name, p.fetch.Wanted.MIMEType)
	}
}

// readAll fills chunks until the body ends.
func (p *pump) readAll(ctx context.Context) error {
	for {
		b, err := p.next(ctx)
		if err != nil {
			return err
		}
		err = fill(p.body, b)
		if over := p.checkLimit(b.n); over != nil {
			return over
		}
		if b.n > 0 {
			p.send(b)
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// next returns a free chunk.
func (p *pump) next(ctx context.Context) (*block, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case b := <-p.free:
		return b, nil
	default:
	}
	if len(p.more) < readAhead-1 {
		if b := p.fetch.Buffers.lendMore(); b != nil {
			p.more = append(p.more, b)
			return b, nil
		}
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case b := <-p.free:
		return b, nil
	}
}

// send passes a chunk to both sides.
func (p *pump) send(b *block) {
	p.unsaved += int64(b.n)
	if b.save = p.fetch.Save != nil && p.unsaved >= p.part(); b.save {
		p.unsaved = 0
	}
	b.users.Store(2)
	p.write <- b
	p.hash <- b
}

// release frees a chunk after both sides have processed it.
func (p *pump) release(b *block) {
	if b.users.Add(-1) == 0 {
		p.free <- b
	}
}

func (p *pump) hashAll() {
	for b := range p.hash {
		p.digests.Write(b.data()) //nolint:errcheck // it never fails
		if b.save {
			state, err := p.digests.State()
			if err != nil {
				state = fixity.State{} // which cannot be resumed from
			}
			p.states <- state
		}
		p.release(b)
	}
}

func (p *pump) writeAll(ctx context.Context) error {
	for b := range p.write {
		err := p.store(b)
		save := b.save
		p.release(b)
		if err == nil && save {
			err = p.save(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *pump) store(b *block) error {
	if _, err := p.to.Write(b.data()); err != nil {
		return fmt.Errorf("stage %s: %w", p.body.Info.URL, err)
	}
	p.count(int64(b.n))
	return nil
}

// part returns how many bytes lie between two checkpoints.
func (p *pump) part() int64 {
	const parts = 10_000
	return max(MinPart, p.body.Info.Size/parts)
}

// save makes the received bytes durable, and then records the checkpoint, in this order (R4).
func (p *pump) save(ctx context.Context) error {
	stored, err := p.to.Checkpoint(ctx)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", p.body.Info.URL, err)
	}
	err = p.fetch.Save(ctx, Checkpoint{
		Key: p.key, Stored: stored, Digests: <-p.states, Validator: p.body.Info.Validator,
		SizeBytes: p.body.Info.Size, Modified: p.body.Info.Modified,
	})
	if err == nil {
		p.kept = stored.Size
	}
	return err
}

// fill reads until the chunk is full.
func fill(r io.Reader, b *block) (err error) {
	b.n, err = storage.Fill(r, b.buf)
	return err
}
