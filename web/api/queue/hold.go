package queue

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) holdRoutes() {
	get := http.MethodGet
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-holds", Method: get, Path: "/holds", Summary: "List holds"}, s.holds)
	endpoint.Register(s.Server, endpoint.Operation{ID: "add-hold", Method: http.MethodPost, Path: "/holds", Summary: "Hold the items of a scope: they start no further step"}, s.addHold)
	endpoint.Register(s.Server, endpoint.Operation{ID: "remove-hold", Method: http.MethodDelete, Path: "/holds", Summary: "Remove a hold"}, s.removeHold)
}

func (s *Service) holds(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[registry.Hold]], error) {
	holds, err := s.Registry.Holds(ctx)
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(holds), nil
}

// checkScope returns the faults of a hold's scope and key. It does not check that the held thing
// exists.
func checkScope(in string, scope registry.HoldScope, key string) []wire.Fault {
	switch {
	case !slices.Contains(registry.HoldScopes(), scope):
		return []wire.Fault{{Location: in + ".scope", Message: fmt.Sprintf("%q is not one of %v", scope, registry.OneOf(registry.HoldScopes()))}}
	case scope.Keyless() && key != "":
		return []wire.Fault{{Location: in + ".key", Message: fmt.Sprintf("a hold on %s has no key", scope)}}
	case !scope.Keyless() && key == "":
		return []wire.Fault{{Location: in + ".key", Message: fmt.Sprintf("missing: name the %s", scope)}}
	case scope == registry.HoldStage:
		return valid.Stage(in+".key", registry.Stage(key))
	}
	return valid.Text(in+".key", key, valid.MaxText)
}

type addHoldInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"Accepted but not needed: a repeat changes nothing"`
	Body wire.HoldRequest
}

func (s *Service) addHold(ctx context.Context, in *addHoldInput) (*endpoint.Output[registry.Hold], error) {
	h := registry.Hold{
		Scope: registry.HoldScope(in.Body.Scope), Key: in.Body.Key, Reason: strings.TrimSpace(in.Body.Reason), Actor: access.Actor(ctx),
	}
	faults := append(checkScope("body", h.Scope, h.Key), valid.Text("body.reason", h.Reason, valid.MaxText)...)
	if h.Reason == "" {
		faults = append(faults, wire.Fault{Location: "body.reason", Message: "missing: give the reason; it is shown with held items"})
	}
	if err := endpoint.Invalid("the hold was not added", faults...); err != nil {
		return nil, err
	}
	var err error
	switch h.Scope {
	case registry.HoldCollection:
		_, err = lookup.Collection(ctx, s.Registry, h.Key)
	case registry.HoldBatch:
		_, err = lookup.Batch(ctx, s.Registry, h.Key)
	case registry.HoldItem:
		_, err = s.Registry.Item(ctx, h.Key)
	case registry.HoldVolume:
		err = s.volumeExists(ctx, h.Key)
	case registry.HoldAll, registry.HoldIngest, registry.HoldStage, registry.HoldWorker: // a worker can be held before it starts
	}
	if err != nil {
		return nil, err
	}
	if err := s.Registry.AddHold(ctx, h); err != nil {
		return nil, err
	}
	if h, err = s.holdOf(ctx, h); err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "hold added", "scope", string(h.Scope), "key", h.Key, "reason", h.Reason, "actor", h.Actor)
	return &endpoint.Output[registry.Hold]{Body: h}, nil
}

// holdOf returns the hold as it is recorded: a repeated hold keeps the time of the first.
func (s *Service) holdOf(ctx context.Context, h registry.Hold) (registry.Hold, error) {
	all, err := s.Registry.Holds(ctx)
	if err != nil {
		return h, err
	}
	i := slices.IndexFunc(all, func(other registry.Hold) bool { return other.Scope == h.Scope && other.Key == h.Key })
	if i < 0 {
		return h, nil // removed in the meantime
	}
	return all[i], nil
}

// volumeExists refuses an unknown volume: a hold on it would hold nothing.
func (s *Service) volumeExists(ctx context.Context, name string) error {
	known := append([]string{registry.DefaultStaging}, s.Objects.Names()...)
	all, err := s.Registry.Collections(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		for _, storage := range c.Profile.StorageNames() {
			if !slices.Contains(known, storage) {
				known = append(known, storage)
			}
		}
	}
	if !slices.Contains(known, name) {
		return endpoint.NotFound("volume %q was not found; use one of %s", name, strings.Join(known, ", "))
	}
	return nil
}

type removeHoldInput struct {
	Scope registry.HoldScope `query:"scope" required:"true"`
	Key   string             `query:"key" id:"scope" maxLength:"200"`
}

func (s *Service) removeHold(ctx context.Context, in *removeHoldInput) (*struct{}, error) {
	if err := endpoint.Invalid("the hold was not removed", checkScope("query", in.Scope, in.Key)...); err != nil {
		return nil, err
	}
	err := s.Registry.RemoveHold(ctx, in.Scope, in.Key, access.Actor(ctx))
	if errors.Is(err, registry.ErrNotFound) {
		return nil, endpoint.NotFound("no hold on %s was found; list the holds to see the existing ones",
			strings.TrimSpace(string(in.Scope)+" "+in.Key))
	}
	if err == nil {
		s.Log.InfoContext(ctx, "hold released", "scope", string(in.Scope), "key", in.Key, "actor", access.Actor(ctx))
	}
	return nil, err
}
