package result

import (
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
)

// Replica is the durable result [registry.ResultReplica].
type Replica struct {
	VerifiedAt time.Time `json:"verified_at"`
}

// ReplicasOf returns the replicas of an item's version. missing are the storages that do not have
// it yet.
func ReplicasOf(item *base.Item) (all []registry.Replica, missing []string, err error) {
	for _, name := range item.Storages {
		var r Replica
		ok, err := item.Result(registry.ResultReplica(name), &r)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			missing = append(missing, name)
			continue
		}
		all = append(all, registry.Replica{Storage: name, VerifiedAt: r.VerifiedAt})
	}
	return all, missing, nil
}
