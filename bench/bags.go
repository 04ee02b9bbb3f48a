package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/safefs"
)

// bags compares the validation of cached bags with plain hashing on all cores.
func (b *bench) bags(ctx context.Context) error {
	if err := b.bag(ctx, "bag of a few large files", 4, b.scaled(256*mib)); err != nil {
		return err
	}
	return b.bag(ctx, "bag of many small files", b.scaled(5000), 20<<10)
}

func (b *bench) bag(ctx context.Context, title string, files, size int64) (err error) {
	b.say("%s: %d of %d KiB", title, files, size>>10)
	folder := b.path("bag")
	defer func() { err = errors.Join(err, cleanUp(folder)) }()
	names, err := b.makeBag(ctx, folder, files, size)
	if err != nil {
		return err
	}
	validate := subject{"bagit.ValidateFS", func(ctx context.Context) (time.Duration, error) { return validate(ctx, folder) }}
	bare := subject{"bare Go: sha256 on all cores", func(ctx context.Context) (time.Duration, error) { return hashAll(ctx, names) }}
	taken, err := b.compare(ctx, validate, bare)
	if err != nil {
		return err
	}
	b.part(fmt.Sprintf("%s, %d x %d KiB", title, files, size>>10), float64(files*size)/1e6, "MB/s", taken,
		[2]string{bare.name}, map[string]string{validate.name: "0.9 of bare Go"}, validate, bare)
	return nil
}

// makeBag writes a complete bag and returns the paths of its payload.
func (b *bench) makeBag(ctx context.Context, folder string, files, size int64) (names []string, err error) {
	data := filepath.Join(folder, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	var manifest strings.Builder
	for i := range files {
		base := fmt.Sprintf("%05d.bin", i)
		name := filepath.Join(data, base)
		if err := b.plain(ctx, name, size, i); err != nil {
			return nil, err
		}
		sum, err := sumOf(name, make([]byte, mib))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&manifest, "%x  data/%s\n", sum, base)
		names = append(names, name)
	}
	for name, text := range map[string]string{
		"bagit.txt":           "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
		"manifest-sha256.txt": manifest.String(),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// plain writes a file without syncing it, because the bag is validated from the cache.
func (b *bench) plain(ctx context.Context, name string, size, seed int64) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, min(size, mib))
	for i := range buf {
		buf[i] = byte(int64(i) * (seed + 3) >> 2)
	}
	for left := size; left > 0; left -= int64(len(buf)) {
		if _, err := f.Write(buf[:min(left, int64(len(buf)))]); err != nil {
			return err
		}
	}
	return nil
}

func validate(ctx context.Context, folder string) (_ time.Duration, err error) {
	begun := time.Now()
	root, err := safefs.Open(folder)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	report, err := bagit.ValidateFS(ctx, root, bagit.Options{})
	if err != nil {
		return 0, err
	}
	taken := time.Since(begun)
	if !report.Valid {
		return 0, fmt.Errorf("the bag is not valid: %v", report.Faults)
	}
	return taken, nil
}

// hashAll computes the SHA-256 of every file on all cores.
func hashAll(ctx context.Context, names []string) (time.Duration, error) {
	buffers := sync.Pool{New: func() any { return new([mib]byte) }}
	begun := time.Now()
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.NumCPU())
	for _, name := range names {
		work.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			buf, _ := buffers.Get().(*[mib]byte)
			defer buffers.Put(buf)
			_, err := sumOf(name, buf[:])
			return err
		})
	}
	err := work.Wait()
	return time.Since(begun), err
}

func sumOf(name string, buf []byte) (sum []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	// The file's WriteTo would allocate a buffer of its own.
	_, err = io.CopyBuffer(h, struct{ io.Reader }{f}, buf)
	return h.Sum(nil), err
}
