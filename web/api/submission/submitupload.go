package submission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/web/wire"
)

// submitUpload judges an upload and submits it. An upload belongs to one batch and is removed with
// it. A refused upload, and one whose content was submitted before, is removed at once.
func (s *Service) submitUpload(ctx context.Context, id string, folder bool, sub *registry.Submission) (registry.Submitted, error) {
	// While an upload is taken, nobody else can submit or remove it.
	done, err := s.Uploads.Take(ctx, id)
	if err != nil {
		return registry.Submitted{}, err
	}
	defer done()
	u, err := s.uploadFor(ctx, id, folder, sub)
	if err != nil {
		return registry.Submitted{}, err
	}
	_, err = s.Staging.Stat(ctx, source.UploadKey(id))
	if errors.Is(err, storage.ErrNotFound) {
		return s.repeated(ctx, u, sub)
	} else if err != nil {
		return registry.Submitted{}, fmt.Errorf("find upload %s: %w", id, err)
	}
	if err := s.accept(ctx, u, sub); err != nil {
		return registry.Submitted{}, err
	}
	r, err := s.Registry.Submit(ctx, *sub)
	if err == nil && r.Duplicate {
		s.Uploads.Remove(ctx, u)
	}
	return r, err
}

// uploadFor finds an upload and sets its name and size in a submission.
func (s *Service) uploadFor(ctx context.Context, id string, folder bool, sub *registry.Submission) (registry.Upload, error) {
	u, err := s.Registry.UploadByID(ctx, id)
	if errors.Is(err, registry.ErrNotFound) {
		if in, err := s.Registry.IncomingByID(ctx, id); err == nil {
			return u, wire.NewProblem(http.StatusConflict, wire.CodeConflict, upload.StillToCome(in))
		}
		return u, endpoint.NotFound("upload %q was not found; send the file to POST %s and use the id of its answer", id, upload.Path)
	} else if err != nil {
		return u, err
	}
	if sub.Spec.Filename == "" {
		sub.Spec.Filename, sub.Name = u.Filename, shownName(u.Filename, folder)
	}
	sub.Spec.SizeBytes = u.SizeBytes
	return u, nil
}

// accept judges an upload. If it must be refused, accept removes it.
func (s *Service) accept(ctx context.Context, u registry.Upload, sub *registry.Submission) error {
	v, err := s.judge(ctx, u, sub)
	_, refused := intake.AsRefusal(err)
	if err == nil && sub.Spec.UpdatesUnnamed() && !v.NamesObject() {
		err, refused = endpoint.Invalid("nothing was submitted", updatesNothing()), true
	}
	var wrong *wire.Problem
	if refused || errors.As(err, &wrong) && wrong.Code == wire.CodeDigestMismatch {
		s.Uploads.Remove(ctx, u)
	}
	return err
}

// judge determines the type of an upload and returns the verdict. An *intake.Refusal or a problem
// says that the upload is refused.
func (s *Service) judge(ctx context.Context, u registry.Upload, sub *registry.Submission) (v intake.Report, err error) {
	spec := &sub.Spec
	if d := spec.Digest; d != nil && d.Algorithm == u.Digest.Algorithm && d.Value != u.Digest.Value {
		p := endpoint.Unprocessable(wire.CodeDigestMismatch, "upload %s (%s) has the %s %s, not %s, and was removed; send it again, or correct the digest",
			u.ID, u.Filename, d.Algorithm, u.Digest.Value, d.Value)
		p.Faults = []wire.Fault{{Location: "body.digest", Message: "differs from the digest of the upload", Expected: d.Value, Found: u.Digest.Value}}
		return v, p
	}
	c, err := lookup.Collection(ctx, s.Registry, sub.Collection)
	if err != nil {
		return v, err
	}
	sub.Limits = []registry.UploadLimit{s.Uploads.CollectionLimit(c)}
	if v, err = s.verdict(ctx, u, spec.Type, c); err != nil {
		return v, err
	}
	if err = v.RefusalFor(c.Profile); err != nil {
		return v, fmt.Errorf("judge upload %s: %w", u.ID, err)
	}
	spec.Type = registry.PayloadType(v.Type)
	return v, nil
}

// repeated answers for an upload whose bytes are gone. If the same request made a batch of it
// before, repeated returns that batch: the depositor may have missed the first answer.
func (s *Service) repeated(ctx context.Context, u registry.Upload, sub *registry.Submission) (registry.Submitted, error) {
	batch, found, err := s.Uploads.BatchOf(ctx, u)
	if err != nil {
		return registry.Submitted{}, err
	}
	if found {
		if found, err = s.Uploads.Sees(ctx, batch); err != nil {
			return registry.Submitted{}, err
		}
	}
	if !found {
		return registry.Submitted{}, endpoint.NotFound("upload %s (%s) is no longer stored; send the file again", u.ID, u.Filename)
	}
	var before registry.Spec
	if err := json.Unmarshal(batch.Spec, &before); err != nil {
		return registry.Submitted{}, fmt.Errorf("decode spec of item %s: %w", batch.ID, err)
	}
	now := sub.Spec
	if now.Type == registry.AutoType {
		now.Type = before.Type
	}
	// Fields that the Registry set, and fields that do not describe the payload.
	now.Profile, now.RouteVersion, now.SubmittedAt, now.UserAgent = before.Profile, before.RouteVersion, before.SubmittedAt, before.UserAgent
	now.ProfileVersion, now.Force, now.Received = before.ProfileVersion, before.Force, before.Received
	if batch.Collection != sub.Collection || !sameJSON(now, before) {
		return registry.Submitted{}, wire.NewProblem(http.StatusConflict, wire.CodeConflict, fmt.Sprintf(
			"batch %s used upload %s with other arguments; send the file again", batch.ID, u.ID))
	}
	sub.Spec.Type = before.Type
	return registry.Submitted{BatchID: batch.ID, Duplicate: true}, nil
}

func sameJSON(a, b registry.Spec) bool {
	first, errA := json.Marshal(a)
	second, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(first, second)
}
