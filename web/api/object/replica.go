package object

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// replicaHead is the newest version of an object in a storage.
type replicaHead struct {
	storage string
	version int // the newest recorded version
}

// replicasOf returns the storages that an object is recorded in: first those of its collection, in
// the collection's order.
func (s *Service) replicasOf(ctx context.Context, o registry.Object) ([]replicaHead, error) {
	c, err := s.All.Collection(ctx, o.Collection)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return nil, err
	}
	var heads []replicaHead
	for _, v := range o.Versions {
		for _, r := range v.Replicas {
			i := slices.IndexFunc(heads, func(h replicaHead) bool { return h.storage == r.Storage })
			if i < 0 {
				i = len(heads)
				heads = append(heads, replicaHead{storage: r.Storage})
			}
			heads[i].version = max(heads[i].version, v.Version)
		}
	}
	names := c.Profile.StorageNames()
	place := func(h replicaHead) int {
		if i := slices.Index(names, h.storage); i >= 0 {
			return i
		}
		return len(names)
	}
	slices.SortStableFunc(heads, func(a, b replicaHead) int { return place(a) - place(b) })
	return heads, nil
}
