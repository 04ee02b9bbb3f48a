package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

const (
	smallSize    = 64 << 10
	manifestName = "object.checkm"
)

// sample is one of many small files.
type sample struct {
	name, url string
	size      int64
	sum       [sha256.Size]byte
}

// row returns the file's row of a manifest.
func (s sample) row() checkm.Row {
	return checkm.Row{URL: s.url, Algorithm: "sha256", Digest: hex.EncodeToString(s.sum[:]), Size: s.size, Name: s.name}
}

// small compares the download of an object of many small files, with their digests in its manifest.
func (b *bench) small(ctx context.Context) (err error) {
	n := b.scaled(2000)
	b.say("%d files of 64 KiB", n)
	address, files, stop, err := b.smallSource(ctx, n, smallSize)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	folder, config := b.path("copies"), b.path("curl")
	if err := curlConfig(config, files, folder); err != nil {
		return err
	}
	curl := func(synced bool) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) {
			taken, err := curlSmall(ctx, config, folder, synced)
			return taken, errors.Join(err, cleanUp(folder))
		}
	}
	loop := newBare()
	d := deposit{
		subject: "holdfast up, one object manifest, sha256", urls: []string{address + "/" + manifestName},
		kind: registry.ObjectManifest, algorithm: "sha256", bytes: n * smallSize, pieces: n,
	}
	subjects := []subject{
		{d.subject, func(ctx context.Context) (time.Duration, error) { return b.deposit(ctx, "peak, many small files", d) }},
		{"curl -Z", curl(false)},
		{"curl -Z && sync", curl(true)},
		{"bare Go: 16 at once, sha256, fsync", func(ctx context.Context) (time.Duration, error) {
			taken, err := loop.small(ctx, files, folder)
			return taken, errors.Join(err, cleanUp(folder))
		}},
	}
	taken, err := b.compare(ctx, subjects...)
	if err != nil {
		return err
	}
	b.part("many small files over loopback HTTP", float64(n), "files/s", taken,
		[2]string{subjects[1].name, subjects[3].name}, map[string]string{subjects[0].name: "1.0 of bare Go, 0.6 of curl -Z"}, subjects...)
	return nil
}

// smallSource creates n files and their manifest and serves them. stop ends the server and
// removes the files.
func (b *bench) smallSource(ctx context.Context, n, size int64) (address string, files []sample, stop func() error, err error) {
	folder := b.path("source")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", nil, nil, err
	}
	address, end, err := source(ctx, folder)
	if err != nil {
		return "", nil, nil, errors.Join(err, cleanUp(folder))
	}
	stop = func() error { return errors.Join(end(), cleanUp(folder)) }
	all := filepath.Join(folder, "all")
	if err := b.fill(ctx, all, n*size); err != nil {
		return "", nil, nil, errors.Join(err, stop())
	}
	raw, err := os.ReadFile(all)
	if err != nil {
		return "", nil, nil, errors.Join(err, stop())
	}
	for i := range n {
		part := raw[i*size : (i+1)*size]
		name := fmt.Sprintf("%05d.bin", i)
		if err := os.WriteFile(filepath.Join(folder, name), part, 0o600); err != nil {
			return "", nil, nil, errors.Join(err, stop())
		}
		files = append(files, sample{name: name, url: address + "/" + name, size: size, sum: sha256.Sum256(part)})
	}
	if err := writeManifest(filepath.Join(folder, manifestName), files); err != nil {
		return "", nil, nil, errors.Join(err, stop())
	}
	return address, files, stop, cleanUp(all)
}

// writeManifest writes an object manifest of the files.
func writeManifest(name string, files []sample) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := checkm.NewWriter(f, checkm.Object)
	for _, s := range files {
		if err := w.Write(s.row()); err != nil {
			return err
		}
	}
	return w.Close()
}
