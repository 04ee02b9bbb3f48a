package catalog

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// BatchSafety implements registry.Mailing. It adds rows up where they lie: nothing of them is held.
// One statement does it, so that all of it was so at one moment: a purge in portions that came
// between two would take what is damaged with it, after it was counted as stored.
func (s *Catalog) BatchSafety(ctx context.Context, batchID string) (out registry.Safety, err error) {
	batch, err := s.work.Item(ctx, batchID)
	if err != nil {
		return out, err
	}
	if batch.Action != registry.Batch {
		return out, fmt.Errorf("item %s is no batch: %w", batchID, registry.ErrNotFound)
	}
	spec, err := work.SpecOf(batch)
	if err != nil {
		return out, err
	}
	out.Storages = spec.Profile.StorageNames()
	// The objects are what the jobs made by themselves: a version is found by the job that recorded
	// it.
	const jobs = ` FROM work_item j WHERE j.parent_id = $1 AND j.status = 'completed'`
	const made = ` FROM work_item j JOIN object_version v ON v.item_id = j.id WHERE j.parent_id = $1 AND j.status = 'completed'`
	var w sqldb.Where
	w.Bind("? ?", batchID, sqldb.Micros(s.db.Now()))
	var there int64
	var verified *int64
	err = s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*), MIN(r.verified_at), (SELECT COUNT(*)`+jobs+`),
			(SELECT COUNT(*)`+made+` AND EXISTS (SELECT 1 FROM object o WHERE o.id = v.object_id AND o.gone <> '')),
			(SELECT COUNT(*)`+made+` AND EXISTS (SELECT 1 FROM deletion d WHERE d.object_id = v.object_id AND `+deletionOpen+`)),
			(SELECT COUNT(*)`+made+` AND EXISTS (SELECT 1 FROM stored_file f WHERE f.object_id = v.object_id AND f.damaged_at IS NOT NULL))
		FROM work_item j JOIN object_version v ON v.item_id = j.id AND v.status = 'recorded'
		JOIN replica r ON r.object_id = v.object_id AND r.version = v.version
		WHERE j.parent_id = $1 AND j.status = 'completed' AND r.verified_at > 0 AND `+w.In("r.storage", out.Storages), w.Args...).
		Scan(&there, &verified, &out.Objects, &out.Gone, &out.Leaving, &out.Damaged)
	if err != nil {
		return out, fmt.Errorf("look at what batch %s stored: %w", batchID, err)
	}
	out.Missing = out.Objects*int64(len(out.Storages)) - there
	if verified != nil {
		out.VerifiedAt = sqldb.FromMicros(*verified)
	}
	return out, nil
}

// deletionOpen is what tx.openDeletion asks, as a condition on a deletion d that was not begun; $2
// is the time.
const deletionOpen = `(d.status = 'asked' AND d.expires_at > $2 OR d.status = 'approved' AND EXISTS (
	SELECT 1 FROM work_item i WHERE i.id = d.item_id AND i.status NOT IN ('aborted', 'deleted', 'completed')))`
