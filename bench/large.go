package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast/holdfast/registry"
)

const largeName = "large.bin"

// large compares one large file.
func (b *bench) large(ctx context.Context) (err error) {
	size := b.scaled(gib)
	b.say("one file of %d MiB", size/mib)
	address, stop, err := b.largeSource(ctx, size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	url := address + "/" + largeName
	copied := b.path("copy")
	alone := func(run func(ctx context.Context, url, name string) (time.Duration, error)) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) {
			taken, err := run(ctx, url, copied)
			return taken, errors.Join(err, cleanUp(copied))
		}
	}
	through := func(name, algorithm, label string) subject {
		d := deposit{subject: name, urls: []string{url}, kind: registry.FileType, algorithm: algorithm, bytes: size, pieces: 1}
		return subject{name, func(ctx context.Context) (time.Duration, error) { return b.deposit(ctx, label, d) }}
	}
	subjects := []subject{
		through("holdfast up, default (sha256) collection", "", "peak, one large file, sha256"),
		{"curl -o FILE && sync", alone(curlLarge)},
		{"bare Go: sha256 beside, fsync", alone(newBare().large)},
		through("holdfast up, sha512 collection", "sha512", "peak, one large file, sha512"),
	}
	taken, err := b.compare(ctx, subjects...)
	if err != nil {
		return err
	}
	b.part("one large file over loopback HTTP", float64(size)/1e6, "MB/s", taken,
		[2]string{subjects[1].name, subjects[2].name}, map[string]string{subjects[0].name: "0.9 of curl"}, subjects...)
	return nil
}

// largeSource creates the file and serves it. stop ends the server and removes the file.
func (b *bench) largeSource(ctx context.Context, size int64) (address string, stop func() error, err error) {
	folder := b.path("source")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", nil, err
	}
	if err := b.fill(ctx, filepath.Join(folder, largeName), size); err != nil {
		return "", nil, errors.Join(err, cleanUp(folder))
	}
	address, end, err := source(ctx, folder)
	if err != nil {
		return "", nil, errors.Join(err, cleanUp(folder))
	}
	return address, func() error { return errors.Join(end(), cleanUp(folder)) }, nil
}
