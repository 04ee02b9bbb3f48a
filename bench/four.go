package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/registry"
)

// four compares large files that are downloaded at the same time.
func (b *bench) four(ctx context.Context) (err error) {
	const files = 4
	size := b.scaled(gib / files)
	b.say("%d files of %d MiB at once", files, size/mib)
	folder := b.path("source")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanUp(folder)) }()
	address, end, err := source(ctx, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	var urls []string
	for i := range files {
		name := fmt.Sprintf("large-%d.bin", i)
		if err := b.fill(ctx, b.path("source", name), size); err != nil {
			return err
		}
		urls = append(urls, address+"/"+name)
	}
	atOnce := func(get func(ctx context.Context, url, name string) (time.Duration, error), synced bool) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (_ time.Duration, err error) {
			copies := b.path("copies")
			if err := os.Mkdir(copies, 0o700); err != nil {
				return 0, err
			}
			defer func() { err = errors.Join(err, cleanUp(copies)) }()
			begun := time.Now()
			work, each := errgroup.WithContext(ctx)
			for i, url := range urls {
				work.Go(func() error {
					_, err := get(each, url, b.path("copies", strconv.Itoa(i)))
					return err
				})
			}
			err = work.Wait()
			if err == nil && synced {
				_, err = command(ctx, "sync")
			}
			return time.Since(begun), err
		}
	}
	through := func(name, algorithm, label string) subject {
		d := deposit{subject: name, urls: urls, kind: registry.FileType, algorithm: algorithm, bytes: files * size, pieces: files}
		return subject{name, func(ctx context.Context) (time.Duration, error) { return b.deposit(ctx, label, d) }}
	}
	subjects := []subject{
		through("holdfast up, default (sha256) collection", "", "peak, four large files, sha256"),
		{"four curls && sync", atOnce(curlGet, true)},
		{"bare Go: sha256 beside, fsync", atOnce(newBare().large, false)},
		through("holdfast up, sha512 collection", "sha512", "peak, four large files, sha512"),
	}
	taken, err := b.compare(ctx, subjects...)
	if err != nil {
		return err
	}
	b.part("four large files at once over loopback HTTP", float64(files*size)/1e6, "MB/s", taken,
		[2]string{subjects[1].name, subjects[2].name}, map[string]string{}, subjects...)
	return nil
}
