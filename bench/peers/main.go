// Command peers runs chained jobs that do nothing through another queue, and prints how long
// they took. `make bench-peers` calls it for the rows beside Holdfast's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"time"
)

// stages is the length of a chain: as many as a job of Holdfast has.
const stages = 6

// slots is how many jobs of a client run at once. Of 16 to 1,000, River was the fastest with 64.
const slots = 64

// chains counts the jobs that have run.
type chains struct {
	items int
	runs  atomic.Int64
	ran   chan struct{} // closed when all jobs have begun their last run
}

// done counts a run.
func (c *chains) done() {
	if c.runs.Add(1) == int64(c.items*stages) {
		close(c.ran)
	}
}

// wait returns nil when all jobs have run and open returns 0.
func (c *chains) wait(ctx context.Context, open func(context.Context) (int, error)) error {
	select {
	case <-c.ran:
	case <-ctx.Done():
		return fmt.Errorf("%d of %d jobs have run: %w", c.runs.Load(), c.items*stages, context.Cause(ctx))
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := open(ctx)
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d jobs are open: %w", n, context.Cause(ctx))
		}
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	postgres := f.String("postgres", "", "postgres://... of a database for River, which makes a schema there and drops it")
	redis := f.String("redis", "", "redis://... of a Redis for Asynq, whose data are removed")
	always := f.Bool("always", false, "Asynq: Redis syncs each write, not once a second")
	whole := f.Bool("transactional", false, "River: insert the next job in the transaction that completes the one before")
	items := f.Int("items", 1000, "number of chains")
	if err := f.Parse(args); err != nil {
		return err
	}
	if (*postgres == "") == (*redis == "") || *items < 1 || f.NArg() > 0 {
		return errors.New("either -postgres or -redis is needed, and at least one item; see -help")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var taken time.Duration
	var err error
	c := &chains{items: *items, ran: make(chan struct{})}
	if *redis != "" {
		taken, err = asynqChains(ctx, *redis, c, *always)
	} else {
		taken, err = riverChains(ctx, *postgres, c, *whole)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, taken)
	return err
}
