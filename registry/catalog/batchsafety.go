package catalog

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// BatchSafety implements registry.Mailing. The database adds up the rows, so memory stays constant.
// One statement reads one moment: between two, a purge could remove damaged files after they were
// counted as stored.
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
	// A version belongs to the job that recorded it.
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
		return out, fmt.Errorf("look up what batch %s stored: %w", batchID, err)
	}
	out.Missing = out.Objects*int64(len(out.Storages)) - there
	if verified != nil {
		out.VerifiedAt = sqldb.FromMicros(*verified)
	}
	return out, nil
}

// deletionOpen is tx.openDeletion as a condition on a deletion d that has not begun. $2 is the
// time.
const deletionOpen = `(d.status = 'asked' AND d.expires_at > $2 OR d.status = 'approved' AND EXISTS (
	SELECT 1 FROM work_item i WHERE i.id = d.item_id AND i.status NOT IN ('aborted', 'deleted', 'completed')))`
