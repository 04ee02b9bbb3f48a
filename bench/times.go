package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/holdfast/holdfast/bench/autoscale"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// timesSlots is how many items each worker has at once while service times are taken: few, so that
// they wait for each other's processors seldom. The model of bench/autoscale adds that wait.
const timesSlots = 4

// times writes service times for the model of bench/autoscale: of jobs of one file, small and large,
// with one process for each role.
func (b *bench) times(ctx context.Context) error {
	if b.postgres == "" || b.redis == "" || b.timesTo == "" {
		return errors.New("it needs -postgres, -redis and -times; see scripts/bench-servers.sh")
	}
	for _, set := range []struct {
		name    string
		n, size int64
	}{{"small", b.scaled(1000), smallSize}, {"large", b.scaled(32), 64 << 20}} {
		if err := b.timesOf(ctx, set.name, set.n, set.size); err != nil {
			return fmt.Errorf("%s: %w", set.name, err)
		}
	}
	return nil
}

func (b *bench) timesOf(ctx context.Context, name string, n, size int64) (err error) {
	b.say("service times of %d jobs of one file of %d KiB", n, size>>10)
	address, files, stop, err := b.smallSource(ctx, n, size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	manifest := "times-" + name + ".checkm"
	if err := writeBatch(b.path("source", manifest), n, func(i int64) checkm.Row { return files[i].row() }); err != nil {
		return err
	}
	begin := func(ctx context.Context, folder string, settings ...string) (*service, error) {
		return b.fleet(ctx, folder, append(settings, fmt.Sprintf("HOLDFAST_CONCURRENCY=%d", timesSlots))...)
	}
	return b.onFresh(ctx, begin, func(s *service) error {
		d := deposit{subject: name, urls: []string{address + "/" + manifest}, kind: registry.SingleFileBatch, bytes: n * size, pieces: n}
		if _, _, err := d.run(ctx, s.client); err != nil {
			return err
		}
		var scrapes []io.Reader
		for _, p := range s.procs {
			if p.metrics == "" {
				continue
			}
			text, err := autoscale.Scrape(ctx, "http://"+p.metrics+"/metrics", s.token)
			if err != nil {
				return fmt.Errorf("metrics of %s: %w", p.name, err)
			}
			scrapes = append(scrapes, bytes.NewReader(text))
		}
		t, err := autoscale.Measure(scrapes...)
		if err != nil {
			return err
		}
		t.Measured = fmt.Sprintf("%s, %s/%s, %d cores, load %s: %d jobs of one file of %d KiB over loopback HTTP, folders, one process for each stage with %d slots, by scripts/bench-servers.sh -only times",
			time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), b.load, n, size>>10, timesSlots)
		text, err := json.MarshalIndent(t, "", "\t")
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(b.timesTo, name+".json"), append(text, '\n'), 0o600)
	})
}
