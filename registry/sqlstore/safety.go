package sqlstore

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// BatchSafety implements registry.Mailing. It adds rows up where they lie: nothing of them is held. What is known to be damaged
// is looked at last, so that damage found meanwhile counts.
func (s *Store) BatchSafety(ctx context.Context, batchID string) (out registry.Safety, err error) {
	batch, err := s.Item(ctx, batchID)
	if err != nil {
		return out, err
	}
	if batch.Action != registry.Batch {
		return out, fmt.Errorf("item %s is no batch: %w", batchID, registry.ErrNotFound)
	}
	spec, err := batchSpec(batch)
	if err != nil {
		return out, err
	}
	out.Storages = spec.Profile.StorageNames()
	// The objects are what the jobs made by themselves: a version is found by the job that recorded it.
	const jobs = ` FROM work_item j WHERE j.parent_id = $1 AND j.status = 'completed'`
	const made = ` FROM work_item j JOIN object_version v ON v.item_id = j.id WHERE j.parent_id = $1 AND j.status = 'completed'`
	if err := s.read.QueryRowContext(ctx, `SELECT COUNT(*)`+jobs, batchID).Scan(&out.Objects); err != nil {
		return out, fmt.Errorf("count what batch %s stored: %w", batchID, err)
	}
	for _, storage := range out.Storages {
		var there int64
		var verified *int64
		err := s.read.QueryRowContext(ctx, `SELECT COUNT(*), MIN(r.verified_at) FROM work_item j JOIN object_version v ON v.item_id = j.id AND v.status = 'recorded'
			JOIN replica r ON r.object_id = v.object_id AND r.version = v.version
			WHERE j.parent_id = $1 AND j.status = 'completed' AND r.storage = $2 AND r.verified_at > 0`, batchID, storage).Scan(&there, &verified)
		if err != nil {
			return out, fmt.Errorf("look for the replicas of batch %s in %s: %w", batchID, storage, err)
		}
		out.Missing += out.Objects - there
		if at := verified; at != nil && (out.VerifiedAt.IsZero() || fromMicros(*at).Before(out.VerifiedAt)) {
			out.VerifiedAt = fromMicros(*at)
		}
	}
	err = s.read.QueryRowContext(ctx, `SELECT
			(SELECT COUNT(*)`+made+` AND EXISTS (SELECT 1 FROM object o WHERE o.id = v.object_id AND o.gone <> '')),
			(SELECT COUNT(*)`+made+` AND EXISTS (SELECT 1 FROM stored_file f WHERE f.object_id = v.object_id AND f.damaged_at IS NOT NULL))`,
		batchID).Scan(&out.Gone, &out.Damaged)
	if err != nil {
		return out, fmt.Errorf("look for damage of batch %s: %w", batchID, err)
	}
	return out, nil
}
