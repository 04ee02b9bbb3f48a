package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// backups measures the jobs of the contest jobs in two services: one makes no backups, and one makes and
// verifies a backup each second meanwhile.
func (b *bench) backups(ctx context.Context) (err error) {
	n := b.scaled(1000)
	b.say("%d jobs of one file of 64 KiB beside backups", n)
	address, files, stop, err := b.smallSource(ctx, n, smallSize)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := writeBatch(b.path("source", "jobs.checkm"), n, func(i int64) checkm.Row { return files[i].row() }); err != nil {
		return err
	}
	beside := func(ctx context.Context, folder string, settings ...string) (*service, error) {
		to := filepath.Join(folder, "backups")
		if err := os.MkdirAll(to, 0o700); err != nil {
			return nil, err
		}
		return b.up(ctx, folder, append(settings, "HOLDFAST_BACKUP_TO="+to, "HOLDFAST_BACKUP_EVERY=1s")...)
	}
	through := func(name string, begin starter) subject {
		return subject{name, func(ctx context.Context) (time.Duration, error) {
			return b.jobsThrough(ctx, begin, deposit{subject: name, urls: []string{address + "/jobs.checkm"}, kind: registry.SingleFileBatch, bytes: n * smallSize, pieces: n})
		}}
	}
	subjects := []subject{through("holdfast up, a backup each second", beside), through("holdfast up, no backups", b.up)}
	taken, err := b.compare(ctx, subjects...)
	if err != nil {
		return err
	}
	b.part("jobs of one file of 64 KiB beside backups", float64(n), "jobs/s", taken, [2]string{subjects[1].name}, nil, subjects...)
	return nil
}
