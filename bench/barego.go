package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// parallel is how many connections curl and the bare loop use for many files.
const parallel = 16

// bare is a minimal program in Go that keeps no records: it downloads, hashes and syncs.
type bare struct{ client *http.Client }

func newBare() *bare {
	return &bare{client: &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: parallel}}}
}

func (g *bare) get(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := g.client.Do(req)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("get %s: %s", url, answer.Status), answer.Body.Close())
	}
	return answer.Body, nil
}

// large downloads one file, hashes it with SHA-256 in a goroutine, and syncs it.
func (g *bare) large(ctx context.Context, url, name string) (_ time.Duration, err error) {
	begun := time.Now()
	body, err := g.get(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d := newDigester()
	err = d.copy(f, body)
	d.sum()
	if err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return time.Since(begun), nil
}

// digester hashes what was written in a goroutine. It reuses a few buffers.
type digester struct {
	free, full chan []byte
	done       chan struct{}
	hash       hash.Hash
}

func newDigester() *digester {
	const buffers = 8
	d := &digester{free: make(chan []byte, buffers), full: make(chan []byte, buffers), done: make(chan struct{}), hash: sha256.New()}
	for range buffers {
		d.free <- make([]byte, mib/4)
	}
	go func() {
		defer close(d.done)
		for buf := range d.full {
			d.hash.Write(buf)
			d.free <- buf[:cap(buf)]
		}
	}()
	return d
}

func (d *digester) copy(w io.Writer, r io.Reader) error {
	for {
		buf := <-d.free
		n, err := io.ReadFull(r, buf)
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		d.full <- buf[:n]
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (d *digester) sum() []byte {
	close(d.full)
	<-d.done
	return d.hash.Sum(nil)
}

// small downloads many files over parallel connections. It hashes and syncs each, then syncs the
// folder.
func (g *bare) small(ctx context.Context, files []sample, folder string) (time.Duration, error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return 0, err
	}
	begun := time.Now()
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(parallel)
	for i, s := range files {
		work.Go(func() error { return g.one(ctx, s, filepath.Join(folder, strconv.Itoa(i))) })
	}
	if err := work.Wait(); err != nil {
		return 0, err
	}
	d, err := os.Open(folder)
	if err != nil {
		return 0, err
	}
	err = errors.Join(d.Sync(), d.Close())
	return time.Since(begun), err
}

func (g *bare) one(ctx context.Context, s sample, name string) (err error) {
	body, err := g.get(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(raw); sum != s.sum {
		return fmt.Errorf("%s has the wrong digest", s.url)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	return errors.Join(err, f.Sync(), f.Close())
}
