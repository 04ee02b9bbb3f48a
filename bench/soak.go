package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// grown is the share by which a figure may grow from the second quarter of a soak to the last.
const grown = 0.1

// soaking says how long small jobs are submitted, how many a second, and how often figures are
// taken.
type soaking struct {
	during, every time.Duration
	rate          float64
}

// moment holds the figures of one moment of a soak.
type moment struct {
	completed, failed int64 // jobs

	rss, heap, database   int64 // bytes; heap is what a garbage collection leaves
	goroutines, openFiles int64
}

// soak keeps a Holdfast in this process at work on small jobs, and shows whether it grows.
func soak(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var s soaking
	var where string
	f := flag.NewFlagSet("bench soak", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.DurationVar(&s.during, "for", time.Hour, "how long jobs are submitted")
	f.DurationVar(&s.every, "every", time.Minute, "how often figures are taken; at least 8 times")
	f.Float64Var(&s.rate, "rate", 10, "jobs submitted a second, of one file of 64 KiB each")
	f.StringVar(&where, "dir", os.TempDir(), "an existing folder on the disk to use; files created in it are removed")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 || s.rate <= 0 || s.every <= 0 || s.during < 8*s.every {
		return errors.New("unexpected arguments, or too little time for 8 figures; see -help")
	}
	folder, err := os.MkdirTemp(where, "holdfast-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b := &bench{folder: folder, progress: stderr}
	_, files, stop, err := b.smallSource(ctx, 100, smallSize)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var moments []moment
	err = b.inNode(ctx, func(c *client.Client) error {
		moments, err = s.run(ctx, c, files, b.path("node"), stdout)
		return err
	})
	return errors.Join(err, judge(moments, stdout))
}

// run submits jobs, writes a line of figures each time, and waits for the last job's end.
func (s soaking) run(ctx context.Context, c *client.Client, files []sample, folder string, stdout io.Writer) (all []moment, err error) {
	err = c.PutCollection(ctx, registry.Collection{Mnemonic: "bench", Profile: registry.Profile{
		Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/bench"},
	}})
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(stdout, "%s, %d cores, load %s; %g jobs/s for %s\n%8s %10s %8s %8s %9s %9s %11s %11s %12s\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), loadAverage(), s.rate, s.during,
		"AFTER", "COMPLETED", "OPEN", "JOBS/S", "RSS MiB", "HEAP MiB", "GOROUTINES", "OPEN FILES", "DATABASE MiB"); err != nil {
		return nil, err
	}
	begun, most := time.Now(), int(s.during/s.every)
	next, look := time.NewTicker(time.Duration(float64(time.Second)/s.rate)), time.NewTicker(s.every)
	defer next.Stop()
	defer look.Stop()
	var submitted int64
	for {
		select {
		case <-ctx.Done():
			return all, context.Cause(ctx)
		case <-next.C:
			url := files[submitted%int64(len(files))].url
			if _, err := c.Submit(ctx, wire.SubmitRequest{URL: url, Type: string(registry.FileType), Collection: "bench"}, ""); err != nil {
				return all, fmt.Errorf("submit job %d: %w", submitted+1, err)
			}
			submitted++
		case <-look.C:
			m, err := observe(ctx, c, folder)
			if err != nil {
				return all, err
			}
			if m.failed > 0 || time.Since(begun) > s.during+patience {
				return all, fmt.Errorf("of %d jobs, %d are completed and %d failed", submitted, m.completed, m.failed)
			}
			if len(all) == most {
				if m.completed == submitted {
					return all, nil
				}
				continue // jobs are open
			}
			var before int64
			if len(all) > 0 {
				before = all[len(all)-1].completed
			}
			all = append(all, m)
			_, err = fmt.Fprintf(stdout, "%8s %10d %8d %8.1f %9.1f %9.1f %11d %11d %12.1f\n", time.Since(begun).Round(time.Second), m.completed,
				submitted-m.completed, float64(m.completed-before)/s.every.Seconds(), inMiB(m.rss), inMiB(m.heap), m.goroutines, m.openFiles, inMiB(m.database))
			if err != nil {
				return all, err
			}
			if len(all) == most {
				next.Stop()
				look.Reset(min(s.every, time.Second))
			}
		}
	}
}

func inMiB(bytes int64) float64 { return float64(bytes) / float64(mib) }

// observe takes the figures of this process and of the data in folder.
func observe(ctx context.Context, c *client.Client, folder string) (m moment, err error) {
	states, err := c.CountItems(ctx, registry.ItemQuery{Action: registry.Ingest})
	if err != nil {
		return m, err
	}
	m.completed, m.failed = states[registry.StateCompleted], states[registry.StateFailed]
	var heap runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&heap)
	m.heap, m.goroutines = int64(heap.HeapAlloc), int64(runtime.NumGoroutine()) //nolint:gosec // far below the limit
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return m, err
	}
	m.rss = fieldOf(raw, "VmRSS: %d kB") << 10
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return m, err
	}
	m.openFiles = int64(len(open))
	databases, err := filepath.Glob(filepath.Join(folder, "*.db*"))
	for _, name := range databases {
		if info, err := os.Stat(name); err == nil { // a journal may have gone meanwhile
			m.database += info.Size()
		}
	}
	return m, err
}

// judge compares the medians of the second and of the last quarter. The first one warms up.
func judge(all []moment, stdout io.Writer) error {
	n := len(all)
	if n < 8 {
		return nil // an error ended the soak
	}
	for _, figure := range []struct {
		name string
		of   func(moment) int64
	}{
		{"RSS", func(m moment) int64 { return m.rss }},
		{"heap", func(m moment) int64 { return m.heap }},
		{"goroutines", func(m moment) int64 { return m.goroutines }},
		{"open files", func(m moment) int64 { return m.openFiles }},
	} {
		median := func(part []moment) float64 {
			values := make([]int64, len(part))
			for i, m := range part {
				values[i] = figure.of(m)
			}
			slices.Sort(values)
			return float64(values[len(values)/2])
		}
		second, last := median(all[n/4:n/2]), median(all[n-n/4:])
		verdict := "flat"
		if last > second*(1+grown) {
			verdict = "GROWS"
		}
		if _, err := fmt.Fprintf(stdout, "%s: %s; last quarter %+.1f %% beside the second\n", figure.name, verdict, 100*(last/max(second, 1)-1)); err != nil {
			return err
		}
	}
	return nil
}
