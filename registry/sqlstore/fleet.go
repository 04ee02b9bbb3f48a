package sqlstore

import (
	"context"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// fleet is the workers that are alive and the holds on workers.
type fleet struct {
	workers []registry.WorkerInfo
	holds   []registry.Hold // oldest first
}

// crew is the part of a fleet that serves one stage.
type crew struct {
	capacity, free int             // of those that are neither held nor stopping
	held           []registry.Hold // one for each worker that is held
	stopping       int
}

func (s *Store) fleet(ctx context.Context) (f fleet, err error) {
	if f.workers, err = s.Workers(ctx); err != nil {
		return f, err
	}
	f.holds, err = collect(s.read.ask(ctx, selectHold+`WHERE scope = 'worker' ORDER BY created_at, key`), "look up holds on workers", scanHold)
	return f, err
}

func (f fleet) of(stage registry.Stage) (c crew) {
	for _, w := range f.workers {
		if w.Capacity[stage] == 0 {
			continue
		}
		hold := slices.IndexFunc(f.holds, func(h registry.Hold) bool { return h.CoversWorker(w.ID) })
		switch {
		case w.Draining:
			c.stopping++
		case hold >= 0:
			c.held = append(c.held, f.holds[hold])
		default:
			c.capacity += w.Capacity[stage]
			c.free += w.Free[stage]
		}
	}
	return c
}
