package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// profiles runs one round of large, batch, small and orchestration with Holdfast in this process,
// and writes profiles.
func (b *bench) profiles(ctx context.Context) error {
	if err := os.MkdirAll(b.profile, 0o755); err != nil {
		return err
	}
	size, n := b.scaled(gib), b.scaled(2000)
	address, stop, err := b.largeSource(ctx, size)
	if err != nil {
		return err
	}
	for _, algorithm := range []string{"sha256", "sha512"} {
		d := deposit{urls: []string{address + "/" + largeName}, kind: registry.FileType, algorithm: algorithm, bytes: size}
		if err := b.profiled(ctx, "large-"+algorithm, d); err != nil {
			return errors.Join(err, stop())
		}
	}
	if err := stop(); err != nil {
		return err
	}
	rows := b.scaled(100_000)
	if address, stop, err = b.batchSource(ctx, rows); err != nil {
		return err
	}
	if err := errors.Join(b.profiledBatch(ctx, address+"/"+batchName, rows), stop()); err != nil {
		return err
	}
	address, _, stop, err = b.smallSource(ctx, n, smallSize)
	if err != nil {
		return err
	}
	d := deposit{urls: []string{address + "/" + manifestName}, kind: registry.ObjectManifest, algorithm: "sha256", bytes: n * smallSize}
	if err := errors.Join(b.profiled(ctx, "small", d), stop()); err != nil {
		return err
	}
	folder := b.path("orchestration")
	taken, err := stagesOnly(ctx, folder, "sqlite:"+filepath.Join(folder, "registry.db"), n, b.slots, func() (func() error, error) { return b.record("orchestration") })
	b.say("orchestration %s: %.0f items/s", taken.Round(time.Millisecond), float64(n)/taken.Seconds())
	return errors.Join(err, cleanUp(folder))
}

// profiled runs a deposit through a node in this process.
func (b *bench) profiled(ctx context.Context, name string, d deposit) error {
	return b.recordedIn(ctx, name, func(c *client.Client) error {
		taken, batches, err := d.run(ctx, c)
		if err != nil {
			return err
		}
		stages, err := stagesOf(ctx, c, batches[0])
		b.say("%s %s: %s", name, taken.Round(time.Millisecond), stages)
		return err
	})
}

// profiledBatch expands a batch manifest with its jobs held.
func (b *bench) profiledBatch(ctx context.Context, url string, rows int64) error {
	return b.recordedIn(ctx, "batch", func(c *client.Client) error {
		e := expansion{url: url, rows: rows, held: true}
		taken, batch, err := e.run(ctx, c)
		b.say("batch %s: %.0f jobs/s", taken.Round(time.Millisecond), float64(rows)/taken.Seconds())
		return errors.Join(err, e.complete(ctx, c, batch))
	})
}

// recordedIn profiles what fn does with a node in this process.
func (b *bench) recordedIn(ctx context.Context, name string, fn func(*client.Client) error) error {
	return b.inNode(ctx, func(c *client.Client) error {
		stop, err := b.record(name)
		if err != nil {
			return err
		}
		return errors.Join(fn(c), stop())
	})
}

// inNode calls fn with a node in this process.
func (b *bench) inNode(ctx context.Context, fn func(*client.Client) error) (err error) {
	defaults := config.Default()
	template, err := defaults.Template()
	if err != nil {
		return err
	}
	folder := b.path("node")
	defer func() { err = errors.Join(err, cleanUp(folder)) }()
	n, err := node.Up(ctx, node.UpOptions{
		Common: node.Common{Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler), Version: "bench"},
		Work: node.Work{
			Template: template, Sources: node.Sources{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, StagingFull: 1, StagingFullUnestimated: 1,
		},
		Dir: folder,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }() //nolint:contextcheck // it must drain even after ctx has ended
	c := client.New(n.URL(), n.Token(), client.Options{})
	defer c.Close()
	return fn(c)
}

// record starts the profiles NAME.cpu and NAME.mutex. stop ends and writes them.
func (b *bench) record(name string) (stop func() error, err error) {
	cpu, err := os.Create(filepath.Join(b.profile, name+".cpu"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	before := runtime.SetMutexProfileFraction(10)
	return func() error {
		pprof.StopCPUProfile()
		runtime.SetMutexProfileFraction(before)
		err := cpu.Close()
		mutex, createErr := os.Create(filepath.Join(b.profile, name+".mutex"))
		if createErr != nil {
			return errors.Join(err, createErr)
		}
		if writeErr := pprof.Lookup("mutex").WriteTo(mutex, 0); writeErr != nil {
			err = errors.Join(err, fmt.Errorf("write profile %s: %w", name, writeErr))
		}
		return errors.Join(err, mutex.Close())
	}, nil
}
