package ocfl

import (
	"context"
	"slices"
	"strings"
)

// checkpoints is the folder of the storage root with the signed ends of the event chains.
const checkpoints = extensionsFolder + "/holdfast-checkpoints"

// CheckpointKey returns the key of a checkpoint in the store. With an empty name it returns the
// prefix of all checkpoints.
func (r *Root) CheckpointKey(name string) string { return r.prefix + checkpoints + "/" + name }

// Checkpoints lists the names of the checkpoints in the storage, oldest first.
func (r *Root) Checkpoints(ctx context.Context) (names []string, err error) {
	for info, err := range r.Store().List(ctx, r.CheckpointKey("")) {
		if err != nil {
			return nil, err
		}
		if name := strings.TrimPrefix(info.Key, r.CheckpointKey("")); strings.HasSuffix(name, ".jsonl") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
