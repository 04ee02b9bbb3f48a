// Command bench compares Holdfast with what people would use instead, in one run on one machine and
// disk, and prints one table. It is not a test: compare figures only within the same run.
//
// `bench seed` fills a database with a million items. `bench registry` measures a Registry on it.
// `bench objects` fills a new one with objects and measures what the next ones cost. `bench rebuild`
// measures how a Registry is made again from a storage of many objects, and compared with it; with -adopt
// also how objects of another program are adopted. `bench soak`
// keeps Holdfast at work for an hour and shows whether it grows.
//
// It works in a folder of its own and removes it, uses free ports of 127.0.0.1, and ends every
// process that it starts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:forbidigo // only main may exit
	}
}

// options is the command line.
type options struct {
	binary   string  // of holdfast
	folder   string  // where the working folder is created: the measured disk
	only     string  // comma-separated names of contests
	scale    float64 // of the amounts of work
	rounds   int
	limit    time.Duration // of the whole run
	profile  string        // folder for profiles; if set, nothing is compared
	slots    int           // per stage, in the second row of the orchestration
	postgres string        // a database on which to run orchestration, batch and jobs too
	redis    string        // a Redis for jobs with roles apart
	peers    string        // the binary of bench/peers
	recordTo string        // file to write the ratios to
	check    string        // file of ratios to compare with
	timesTo  string        // folder to write service times to
	serve    string        // the folder to serve; set in the process of the source
}

// usual are the contests that run by default.
const usual = "large,four,small,jobs,latency,orchestration,bags,batch,start"

// contest is a part of the table. Its name is for -only.
type contest struct {
	name string
	room int64 // disk space in bytes at scale 1
	run  func(ctx context.Context) error
}

// contests returns all contests in the order in which they run. Those that make the most files come
// first: on ext4 without a journal, each new file looks at all inodes deleted in the last minutes.
func (b *bench) contests() []contest {
	return []contest{
		{"jobs", gib, b.jobs},
		{"small", gib, b.small},
		{"latency", gib, b.latency},
		{"orchestration", gib, b.orchestration},
		{"large", 6 * gib, b.large},
		{"four", 6 * gib, b.four},
		{"bags", 2 * gib, b.bags},
		{"batch", gib, b.batch},
		{"start", 0, b.starts},
		{"files", 2 * gib, b.files},
		{"backups", gib, b.backups},
		{"peers", gib, b.besidePeers},
		{"times", 9 * gib, b.times},
	}
}

// chosen reports whether -only includes a contest.
func (b *bench) chosen(c contest) bool {
	return slices.Contains(strings.Split(b.only, ","), c.name)
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.binary, "bin", "bin/holdfast", "the holdfast binary to measure")
	f.StringVar(&o.folder, "dir", os.TempDir(), "an existing folder on the disk to measure; files created in it are removed")
	f.StringVar(&o.only, "only", usual, "comma-separated contests to run; also files, backups, peers and times")
	f.Float64Var(&o.scale, "scale", 1, "scale of the amounts of work, above 0; the targets are for 1")
	f.IntVar(&o.rounds, "rounds", 3, "how often each is run; the median counts")
	f.DurationVar(&o.limit, "limit", 20*time.Minute, "when to abort the whole run")
	f.StringVar(&o.profile, "profile", "", "write CPU and mutex profiles of large, batch, small and orchestration to this folder instead")
	f.IntVar(&o.slots, "slots", 64, "slots per stage in the orchestration's second row")
	f.StringVar(&o.postgres, "postgres", "", "postgres://... of an existing database on which to run orchestration and batch too, in schemas that are removed")
	f.StringVar(&o.redis, "redis", "", "redis://... of an empty database: with -postgres, jobs also runs with roles apart, one process per stage")
	f.StringVar(&o.peers, "peers", "", "the binary of bench/peers, for the contest peers (make bench-peers)")
	f.StringVar(&o.recordTo, "record", "", "write the ratios of this run to a file")
	f.StringVar(&o.check, "check", "", "repeat the run that -record wrote to a file, and warn of each ratio that fell by a quarter")
	f.StringVar(&o.timesTo, "times", "", "folder to write the service times of the contest times to: those of `holdfast bench autoscale` are in bench/autoscale/measured")
	f.StringVar(&o.serve, "serve", "", "serve a folder over HTTP until standard input ends (bench starts this itself)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.scale <= 0 || o.rounds < 1 || o.slots < 1 {
		return o, errors.New("unexpected arguments, or a value that is not above 0; see -help")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	commands := map[string]func(ctx context.Context, args []string, stdout, stderr io.Writer) error{
		"seed": seed, "registry": measureRegistry, "objects": measureObjects, "rebuild": rebuilds, "soak": soak,
	}
	if len(args) > 0 {
		if command, ok := commands[args[0]]; ok {
			return command(ctx, args[1:], stdout, stderr)
		}
	}
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.serve != "" {
		return serve(ctx, o.serve, stdin, stdout)
	}
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return err
	}
	var before recorded
	if o.check != "" {
		if before, err = o.readRatios(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("not done within %s; see -limit", o.limit))
	defer cancel()
	folder, err := os.MkdirTemp(o.folder, "holdfast-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b := &bench{options: o, folder: folder, progress: stderr}
	if err := b.checkRoom(); err != nil {
		return err
	}
	if o.profile != "" {
		return b.profiles(ctx)
	}
	err = b.all(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	err = errors.Join(err, b.table.write(stdout))
	if err == nil && b.recordTo != "" {
		err = b.writeRatios()
	}
	if err == nil && b.check != "" {
		err = before.compare(stdout, b.table.ratios())
	}
	return err
}

// bench is one run.
type bench struct {
	options
	folder   string // contains everything that the run creates; removed at its end
	progress io.Writer
	table    table
	peaks    []peak
	load     string            // of the machine when the run began
	costs    map[string][]each // of the present contest, by subject
	calls    map[string]calls
	servers  string // a note on the servers of a fleet
	tracing  bool   // processes are started under strace
}

func (b *bench) all(ctx context.Context) error {
	begun := time.Now()
	b.load = loadAverage()
	speed, err := b.diskSpeed(ctx)
	if err != nil {
		return fmt.Errorf("measure the disk: %w", err)
	}
	b.table.title = fmt.Sprintf("%s, %s/%s, %d cores, load %s at the start, %s; scale %g, medians of %d; %s",
		begun.UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), b.load, runtime.Version(), b.scale, b.rounds, speed)
	for _, c := range b.contests() {
		if !b.chosen(c) {
			continue
		}
		if err := c.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	b.memory()
	if b.servers != "" {
		b.table.notes = append(b.table.notes, b.servers)
	}
	b.table.notes = append(b.table.notes, fmt.Sprintf("the whole run took %s", time.Since(begun).Round(time.Second)))
	return nil
}

// loadAverage returns the machine's load of the last minute, "unknown" without /proc.
func loadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	load, _, found := strings.Cut(string(raw), " ")
	if err != nil || !found {
		return "unknown"
	}
	return load
}

// scaled scales an amount of work; the result is at least 1.
func (b *bench) scaled(n int64) int64 { return max(int64(float64(n)*b.scale), 1) }

// path returns a name in the working folder.
func (b *bench) path(name ...string) string {
	return filepath.Join(append([]string{b.folder}, name...)...)
}

// say prints progress. Errors of printing are ignored.
func (b *bench) say(format string, args ...any) { _, _ = fmt.Fprintf(b.progress, format+"\n", args...) }
