package staging

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
)

// chunk is how many bytes are moved at a time.
const chunk = 1 << 20

// pump moves a body into a staged file. The bytes cross once: while one chunk is read from the network, the one
// before it is written and digested side by side.
type pump struct {
	fetch    *Fetch
	from     *source.Body
	to       storage.Writer
	digester *fixity.Digester
}

func (p *pump) run(ctx context.Context) error {
	size := int64(chunk)
	if known := p.from.Info.Size; known >= 0 && known < size {
		size = known + 1
	}
	free, full := make(chan []byte, 2), make(chan []byte)
	free <- make([]byte, size)
	if size == chunk {
		free <- make([]byte, size)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.write(ctx, full, free) }()
	err := p.read(ctx, full, free)
	close(full)
	// The writer's error is the cause of the reader's, if it has one.
	if werr := <-ended; werr != nil {
		return werr
	}
	return err
}

// read fills chunks until the source ends.
func (p *pump) read(ctx context.Context, full chan<- []byte, free <-chan []byte) error {
	for {
		var buf []byte
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case buf = <-free:
			if buf == nil {
				return nil // the writer gave up and says why
			}
		}
		n, err := fill(p.from, buf)
		if n > 0 {
			full <- buf[:n]
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// fill reads until buf is full. Unlike io.ReadFull it passes the source's own error on when the last chunk is short.
func fill(r io.Reader, buf []byte) (int, error) {
	n := 0
	for n < len(buf) {
		m, err := r.Read(buf[n:])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// write takes chunks until there are no more. After an error it closes free, so that the reader stops.
func (p *pump) write(ctx context.Context, full <-chan []byte, free chan<- []byte) error {
	part := p.part()
	unsaved := int64(0)
	var failed error
	for buf := range full {
		if failed != nil {
			continue // drain, so that the reader is never left waiting
		}
		if failed = p.take(buf); failed == nil {
			if unsaved += int64(len(buf)); unsaved >= part {
				unsaved = 0
				failed = p.save(ctx)
			}
		}
		if failed != nil {
			close(free)
			continue
		}
		free <- buf[:cap(buf)]
	}
	return failed
}

func (p *pump) take(buf []byte) error {
	digested := make(chan struct{})
	go func() {
		defer close(digested)
		p.digester.Write(buf) //nolint:errcheck // it never fails
	}()
	_, err := p.to.Write(buf)
	<-digested
	if err != nil {
		return fmt.Errorf("stage %s: %w", p.from.Info.URL, err)
	}
	p.fetch.moved(int64(len(buf)))
	return nil
}

// part is how many bytes lie between two checkpoints.
func (p *pump) part() int64 {
	const parts = 10_000
	return max(MinPart, p.from.Info.Size/parts)
}

// save makes what has come durable and then notes it, in this order (R4).
func (p *pump) save(ctx context.Context) error {
	if p.fetch.Save == nil {
		return nil
	}
	stored, err := p.to.Checkpoint(ctx)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", p.from.Info.URL, err)
	}
	state, err := p.digester.State()
	if err != nil {
		return err
	}
	return p.fetch.Save(ctx, Checkpoint{
		Stored: stored, Digests: state, Validator: p.from.Info.Validator,
		SizeBytes: p.from.Info.Size, Modified: p.from.Info.Modified,
	})
}
