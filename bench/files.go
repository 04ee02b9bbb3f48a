package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// files compares an object of many files with one of a tenth of them: the time for each file, and
// the peak memory.
func (b *bench) files(ctx context.Context) (err error) {
	many := b.scaled(100_000)
	few := max(many/10, 1)
	b.say("objects of %d and of %d files of 1 KiB", few, many)
	const size = 1 << 10
	address, all, stop, err := b.smallSource(ctx, many, size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	const fewer = "fewer.checkm"
	if err := writeManifest(filepath.Join(b.path("source"), fewer), all[:few]); err != nil {
		return err
	}
	object := func(manifest string, n int64) subject {
		name := fmt.Sprintf("holdfast up, an object of %d files: each of 1 KiB", n)
		d := deposit{subject: name, urls: []string{address + "/" + manifest}, kind: registry.ObjectManifest, bytes: n * size, pieces: n}
		return subject{name, func(ctx context.Context) (time.Duration, error) {
			return b.deposit(ctx, fmt.Sprintf("peak, an object of %d files", n), d)
		}}
	}
	subjects := []subject{object(fewer, few), object(manifestName, many)}
	taken, err := b.compare(ctx, subjects...)
	if err != nil {
		return err
	}
	for i := range taken[subjects[1].name] { // as if it had as few
		taken[subjects[1].name][i] = taken[subjects[1].name][i] * time.Duration(few) / time.Duration(many)
	}
	b.part(fmt.Sprintf("growth of an object: time of %d files", few), float64(few), "files/s", taken, [2]string{subjects[0].name},
		map[string]string{subjects[1].name: "0.9"}, subjects...)
	return nil
}
