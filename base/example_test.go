package base_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
)

// inspect is a worker: it embeds base.Worker, names its stage and does its work.
type inspect struct{ base.Worker }

func (*inspect) Stage() registry.Stage { return registry.Scan }

func (*inspect) Work(ctx context.Context, item *base.Item) error {
	if item.SizeBytes == 0 {
		return base.Content(errors.New("the payload is empty"))
	}
	return item.Writable(ctx)
}

// The error that Work returns is the verdict; the embedded policy says how often an item is tried.
func Example() {
	var h base.Handler = &inspect{base.Worker{Attempts: 3, Slots: 4}}
	fmt.Println(h.Stage(), h.MaxAttempts(), h.Concurrency(), h.Lease())

	err := h.Work(context.Background(), &base.Item{})
	fmt.Println(err, base.ContentFault(err))
	// Output:
	// scan 3 4 30s
	// the payload is empty true
}
