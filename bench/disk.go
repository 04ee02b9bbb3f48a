package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// checkRoom returns an error if the disk has too little space for the run.
func (b *bench) checkRoom() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(b.folder, &fs); err != nil {
		return fmt.Errorf("read the free space of %s: %w", b.folder, err)
	}
	need := gib / 4
	for _, c := range b.contests() {
		if b.chosen(c) {
			need = max(need, b.scaled(max(c.room, gib/2))+gib/4) // diskSpeed needs space too
		}
	}
	if free := int64(fs.Bavail) * int64(fs.Bsize); free < need { //nolint:unconvert // the types differ between systems
		return fmt.Errorf("%s has %d MiB free, and %d are needed; see -dir and -scale", b.folder, free/mib, need/mib)
	}
	return nil
}

// diskSpeed measures writing a file and syncing it, and syncing small writes. Both limit all other
// figures.
func (b *bench) diskSpeed(ctx context.Context) (string, error) {
	name := b.path("disk")
	defer os.Remove(name) //nolint:errcheck // the whole folder is removed later
	size := b.scaled(gib / 2)
	unix.Sync()
	begun := time.Now()
	if err := b.fill(ctx, name, size); err != nil {
		return "", err
	}
	rate := float64(size) / 1e6 / time.Since(begun).Seconds()
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // the content does not matter
	const syncs = 200
	begun = time.Now()
	for i := range int64(syncs) {
		if _, err := f.WriteAt(make([]byte, 4096), i*4096%size); err != nil {
			return "", err
		}
		if err := f.Sync(); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("disk: %s MB/s written and synced, %s fsync/s of 4 KiB", figures(rate), figures(syncs/time.Since(begun).Seconds())), nil
}

// fill writes a file of incompressible bytes and syncs it. The same name gets the same bytes.
func (b *bench) fill(ctx context.Context, name string, size int64) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	var seed [32]byte
	copy(seed[:], name[len(b.folder):])
	random := rand.NewChaCha8(seed)
	buf := make([]byte, mib)
	for left := size; left > 0; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n := min(left, mib)
		if _, err := random.Read(buf[:n]); err != nil {
			return err
		}
		if _, err := f.Write(buf[:n]); err != nil {
			return err
		}
		left -= n
	}
	return f.Sync()
}

// cleanUp removes what a run created and syncs the disk, outside of the measured time.
func cleanUp(name string) error {
	err := os.RemoveAll(name)
	unix.Sync()
	return err
}
