package queue

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) holdingRoutes() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "read-holdings", Method: http.MethodGet, Path: "/queue/holdings",
		Summary: "Show how full staging and storages are, how many copies there are, and how many files were checked lately",
	}, s.holdings)
}

func (s *Service) holdings(ctx context.Context, _ *struct{}) (*endpoint.Output[wire.Holdings], error) {
	h, err := s.Registry.Holdings(ctx)
	if err != nil {
		return nil, err
	}
	out := wire.Holdings{Holdings: h, Volumes: []wire.Volume{s.volume(ctx, registry.DefaultStaging, s.Staging)}}
	for _, root := range s.Objects {
		out.Volumes = append(out.Volumes, s.volume(ctx, root.Name, root.Store()))
	}
	return &endpoint.Output[wire.Holdings]{Body: out}, nil
}

// volume says how full a volume is. One that does not answer is no fault of the others.
func (s *Service) volume(ctx context.Context, name string, store storage.Store) wire.Volume {
	v := wire.Volume{Name: name}
	space, err := store.Space(ctx)
	switch {
	case errors.Is(err, storage.ErrUnlimited):
		v.Unlimited = true
	case err != nil:
		s.Log.WarnContext(ctx, "the room of a volume is not known", "volume", name, "err", err)
	default:
		v.Total, v.Used = space.Total, space.Used
	}
	return v
}
