package object

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
)

// evidenceWrong is the code of evidence that is not right.
const evidenceWrong = "R008"

// recordSource is the record that evidence is compared with. Its errors are those of the record.
type recordSource struct{ all All }

func errRecord[T any](out T, err error) (T, error) {
	if err != nil {
		err = &recordError{err}
	}
	return out, err
}

// DepositReceipt implements evidence.Source.
func (r recordSource) DepositReceipt(ctx context.Context, objectID string, version int) (registry.DepositReceipt, error) {
	return errRecord(r.all.DepositReceipt(ctx, objectID, version))
}

// PremisEvents implements evidence.Source.
func (r recordSource) PremisEvents(ctx context.Context, objectID, after string, limit int) (registry.Page[registry.Premis], error) {
	return errRecord(r.all.PremisEvents(ctx, objectID, after, limit))
}

// Files implements evidence.Source.
func (r recordSource) Files(ctx context.Context, objectID string, version int, after string, limit int) ([]registry.File, error) {
	return errRecord(r.all.Files(ctx, objectID, version, after, limit))
}

// compareEvidence compares the evidence beside the bytes with the record, as fixity checks do.
func (v *replicaVerification) compareEvidence(ctx context.Context) error {
	all, err := v.service.All.EvidencePlaces(ctx, v.object.ID)
	if err != nil {
		return &recordError{err}
	}
	in, err := evidence.In(v.root, v.object.ID, v.object.Place)
	if err != nil {
		return err
	}
	for _, p := range all.Places {
		if p.Storage != v.storage {
			continue
		}
		v.judge.Known = all
		found, err := v.judge.Of(ctx, evidence.Place{Object: in, Head: p.Version, Kept: p.Seq})
		if errors.Is(err, evidence.ErrChanged) {
			v.fault(evidenceWrong, "", "the record does not agree with its own receipts, so the evidence cannot be compared with it: holdfast object audit %s says more", v.object.ID)
			return nil
		} else if err != nil {
			return err
		}
		for f, what := range found.Wrong() {
			if f.Version == p.Version {
				if recording, err := v.recording(ctx, p.Version); err != nil {
					return err
				} else if recording {
					continue
				}
			}
			v.fault(evidenceWrong, ocfl.EvidenceFolder+"/"+f.String(), "it is %s", what)
		}
	}
	return nil
}

// recording reports whether the job of a version is at the step that writes its receipt into the storages.
func (v *replicaVerification) recording(ctx context.Context, version int) (bool, error) {
	o, err := v.service.All.Object(ctx, v.object.ID) // which may be newer
	if err != nil {
		return false, &recordError{err}
	}
	for _, of := range o.Versions {
		if of.Version != version {
			continue
		}
		it, err := v.service.All.Item(ctx, of.ItemID)
		if errors.Is(err, registry.ErrNotFound) {
			return false, nil
		} else if err != nil {
			return false, &recordError{err}
		}
		return it.Stage == registry.Record, nil
	}
	return false, nil
}
