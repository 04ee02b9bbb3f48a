// Package throughput has the Registry count, minute by minute, what was preserved and failed.
package throughput

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast/holdfast/periodic"
	"github.com/holdfast/holdfast/registry"
)

// every is the interval of checks whether a minute has ended.
const every = 10 * time.Second

// Counter counts throughput. It may run in several processes at once.
type Counter struct {
	Registry registry.ThroughputNoting
	Log      *slog.Logger
}

// Run counts until ctx ends. It logs the first of a series of failures and the end of the series.
func (c *Counter) Run(ctx context.Context) {
	periodic.Job{
		Do: c.Registry.NoteThroughput, Every: every, Log: c.Log,
		Fails: "counting throughput failed; will retry", Works: "throughput is counted again",
	}.Run(ctx)
}
