package api

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// replicaHead is how far a storage has an object.
type replicaHead struct {
	storage string
	version int // the newest that is recorded there
}

// replicasOf are the storages that an object is recorded in, those of its collection first, in the collection's order.
func (s *server) replicasOf(ctx context.Context, o registry.Object) ([]replicaHead, error) {
	c, err := s.all.Collection(ctx, o.Collection)
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

// verifyReplica reads every byte of an object in one storage, and compares what is there with what was recorded.
func (s *server) verifyReplica(ctx context.Context, o registry.Object, h replicaHead) (wire.VerifyReplica, []wire.VerifyFault, error) {
	v := wire.VerifyReplica{Storage: h.storage, Recorded: h.version}
	var faults []wire.VerifyFault
	fault := func(code, path, message string) {
		faults = append(faults, wire.VerifyFault{Storage: h.storage, Code: code, Path: path, Message: message})
	}
	root, err := s.objects.Of(h.storage)
	if err != nil {
		fault("R003", "", "it is recorded there, and this Registry knows no storage of that name; name it in HOLDFAST_STORAGE_URL")
		return v, faults, nil //nolint:nilerr // it is a finding
	}
	r, err := root.Verify(ctx, o.ID, ocfl.ValidateOptions{})
	switch {
	case errors.Is(err, ocfl.ErrNotFound):
		fault("R001", "", "it is recorded, and storage has nothing of it")
		return v, faults, nil
	case err != nil:
		return v, nil, fmt.Errorf("verify %s in storage %q: %w", o.ID, h.storage, err)
	}
	v.Valid, v.Files, v.Bytes = r.Valid(), r.Files, r.Bytes
	for _, f := range r.Faults {
		fault(f.Code, f.Path, f.Message)
	}
	// A version above the recorded one is on its way to being recorded; one below means that a version is gone.
	if n, ok := versionNumber(r.Head); ok {
		v.Version = n
		if n < h.version {
			v.Valid = false
			fault("R002", "", fmt.Sprintf("version %d is recorded, and the newest in storage is %d", h.version, n))
		}
	}
	return v, faults, nil
}
