package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// housekeepingRoutes are registry.Housekeeping, for a relay or a sweep in another process.
func (s *server) housekeepingRoutes(api huma.API) {
	op := func(id, method, path, summary string) operation {
		return operation{id: id, method: method, path: path, summary: summary, contract: true}
	}
	post := http.MethodPost
	register(s, api, op("offer", post, "/offers", "Take the items whose message is due"), s.offer)
	register(s, api, op("undo-offers", post, "/offers/undo", "Make messages due again that could not be sent"), s.undo)
	register(s, api, op("repeat-offers", post, "/offers/repeat", "Make due again what was offered and not answered"), s.reoffer)
	register(s, api, op("await-offers", http.MethodGet, "/offers/bell", "Wait until a message is due"), s.bell)
	register(s, api, op("sweep", post, "/sweeps", "Take away attempts whose lease ran out"), s.sweep)
	register(s, api, op("purge-expired", post, "/purges", "Purge what has been kept for its time"), s.purgeExpired)
	ask(s, api, op("recheck", post, "/rechecks", "Queue checks of stored files that are due"), Registry.Recheck)
}

func (s *server) offer(ctx context.Context, in *given[registry.DueRequest]) (*output[wire.Wakes], error) {
	wakes, err := s.registry.Due(ctx, in.Body)
	return answered(wire.Wakes{Wakes: wakes}, err)
}

func (s *server) undo(ctx context.Context, in *given[wire.Wakes]) (*struct{}, error) {
	return nil, s.registry.Undo(ctx, in.Body.Wakes)
}

func (s *server) reoffer(ctx context.Context, _ *struct{}) (*struct{}, error) {
	return nil, s.registry.Reoffer(ctx)
}

// bell waits for the Registry's bell. Whoever hears a ring offers everything that is due, so it does no harm that a relay
// in this process does not hear the same one.
func (s *server) bell(ctx context.Context, in *LongPoll) (*output[wire.Rung], error) {
	ctx, cancel := s.polling(ctx, in.Wait)
	defer cancel()
	select {
	case <-s.registry.Woken():
		return &output[wire.Rung]{Body: wire.Rung{Rung: true}}, nil
	case <-ctx.Done():
		return &output[wire.Rung]{}, nil
	}
}

func (s *server) purgeExpired(ctx context.Context, _ *struct{}) (*output[wire.Purged], error) {
	batches, err := s.registry.PurgeExpired(ctx)
	return answered(wire.Purged{Batches: batches}, err)
}

func (s *server) sweep(ctx context.Context, in *given[wire.SweepRequest]) (*output[wire.Lost], error) {
	lost, err := s.registry.Sweep(ctx, in.Body.Lease)
	return answered(wire.Lost{Lost: lost}, err)
}
