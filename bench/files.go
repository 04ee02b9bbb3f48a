package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// changed is how many files the update of an object changes.
const changed = 10

// files compares an object of many files with one of a tenth of them: the time for each file, and
// the peak memory. Then it measures an update of the large one that changes a few files.
func (b *bench) files(ctx context.Context) (err error) {
	many := b.scaled(100_000)
	few := max(many/10, 1)
	b.say("objects of %d and of %d files of 1 KiB", few, many)
	const size = 1 << 10
	address, all, stop, err := b.smallSource(ctx, many+changed, size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	edits := slices.Clone(all[many:])
	for i := range edits {
		edits[i].name = all[i*len(all)/len(edits)].name
	}
	const fewer, most, update = "fewer.checkm", "most.checkm", "update.checkm"
	for name, files := range map[string][]sample{fewer: all[:few], most: all[:many], update: edits} {
		if err := writeManifest(filepath.Join(b.path("source"), name), files); err != nil {
			return err
		}
	}
	object := func(manifest string, n int64) deposit {
		return deposit{
			subject: fmt.Sprintf("holdfast up, an object of %d files: each of 1 KiB", n), urls: []string{address + "/" + manifest},
			kind: registry.ObjectManifest, bytes: n * size, pieces: n, localID: "bench",
		}
	}
	label := func(n int64) string { return fmt.Sprintf("peak, an object of %d files", n) }
	small, large, edit := object(fewer, few), object(most, many), object(update, changed)
	edit.subject, edit.update = fmt.Sprintf("holdfast up, version 2: %d of %d files changed", changed, many), true
	subjects := []subject{
		{small.subject, func(ctx context.Context) (time.Duration, error) { return b.deposit(ctx, label(few), small) }},
		{large.subject, func(ctx context.Context) (taken time.Duration, err error) {
			err = b.onFresh(ctx, b.up, func(s *service) (err error) {
				if taken, err = b.depositIn(ctx, s, label(many), large); err != nil {
					return err
				}
				for _, p := range s.procs {
					if err := p.forgetPeak(); err != nil {
						return err
					}
				}
				updated, err := b.depositIn(ctx, s, "peak, its update", edit)
				b.say("  %-44s %s", edit.subject, updated.Round(time.Millisecond))
				return err
			})
			return taken, err
		}},
	}
	taken, err := b.compare(ctx, subjects...)
	if err != nil {
		return err
	}
	for i := range taken[large.subject] { // as if it had as few
		taken[large.subject][i] = taken[large.subject][i] * time.Duration(few) / time.Duration(many)
	}
	b.part(fmt.Sprintf("growth of an object: time of %d files", few), float64(few), "files/s", taken, [2]string{small.subject},
		map[string]string{large.subject: "0.9"}, subjects...)
	return nil
}
