package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// finish completes an upload whose bytes are all saved: it makes them visible under their key,
// reads them back, and records the digest of what it read. Nobody can change the bytes any more, so
// repeated calls commit the same (R0). rc, which may be nil, is at its end and is used up. finish
// goes on if the sender disconnects. With a *wire.Problem or errDamagedUpload, the upload was
// dropped. The caller holds the upload (acquire).
func (s *Service) finish(ctx context.Context, in registry.Incoming, rc *receiver) (registry.Upload, error) {
	ctx = context.WithoutCancel(ctx)
	u, err := s.finished(ctx, in, rc)
	var wrong *wire.Problem
	if errors.As(err, &wrong) || errors.Is(err, errDamagedUpload) || errors.Is(err, errBytesGone) {
		return u, errors.Join(err, s.giveUp(ctx, in.ID))
	}
	return u, err
}

// errDamagedUpload says that staging does not hold the bytes that were written.
var errDamagedUpload = errors.New("the stored bytes differ from the received ones; the upload was removed; send the file again")

func (s *Service) finished(ctx context.Context, in registry.Incoming, rc *receiver) (registry.Upload, error) {
	u := registry.Upload{ID: in.ID, Filename: in.Filename, SizeBytes: in.Offset, CreatedBy: in.CreatedBy, CreatedAt: s.Now().UTC()}
	passed, err := s.commit(ctx, in, rc)
	if err != nil {
		return u, err
	}
	sums, err := s.readBack(ctx, in)
	if err != nil {
		return u, err
	}
	for algorithm, sum := range passed {
		if sums[algorithm] != sum {
			return u, fmt.Errorf("upload %s (%s): its %s was %s when received and is %s in staging: %w", in.ID, in.Filename, algorithm, sum, sums[algorithm], errDamagedUpload)
		}
	}
	u.Digest = registry.Digest{Algorithm: uploadAlgorithm, Value: sums[uploadAlgorithm]}
	if d := in.Digest; d != nil && sums[d.Algorithm] != d.Value {
		p := endpoint.Unprocessable(wire.CodeDigestMismatch, "the %d bytes of %q do not have the digest that was given, and were dropped; send the file again, or correct the digest",
			u.SizeBytes, u.Filename)
		p.Faults = []wire.Fault{{
			Location: "header." + wire.DigestHeader, Message: "the " + d.Algorithm + " differs", Expected: d.Value, Found: sums[d.Algorithm],
		}}
		return u, p
	}
	err = s.Registry.FinishUpload(ctx, u)
	if errors.Is(err, registry.ErrNotFound) {
		return u, errors.Join(endpoint.NotFound("upload %s (%s) was removed meanwhile; send the file again", in.ID, in.Filename), s.removeBytes(ctx, in.ID))
	} else if err != nil {
		return u, err
	}
	s.Log.InfoContext(ctx, "upload stored", "upload", u.ID, "size_bytes", u.SizeBytes, "actor", u.CreatedBy)
	return u, nil
}

// commit makes the bytes visible, unless they are. It returns the digests computed while receiving,
// if known.
func (s *Service) commit(ctx context.Context, in registry.Incoming, rc *receiver) (map[string]string, error) {
	if rc == nil {
		_, err := s.Staging.Stat(ctx, source.UploadKey(in.ID))
		if err == nil { // an earlier call has committed the bytes, and may have died before they were durable
			passed, err := sumsOf(in)
			return passed, errors.Join(err, storage.Rely(ctx, s.Staging, source.UploadKey(in.ID)))
		} else if !errors.Is(err, storage.ErrNotFound) {
			return nil, fmt.Errorf("find upload %s: %w", in.ID, err)
		}
		if rc, err = s.resumeReceiver(ctx, in); err != nil {
			return nil, err
		}
	}
	if _, err := rc.out.Commit(ctx); err != nil && !errors.Is(err, storage.ErrExists) {
		rc.release()
		return nil, fmt.Errorf("store upload %s: %w", in.ID, err)
	}
	_ = rc.out.Abort() // after Commit it does nothing; if another process was first, these bytes are not needed
	if rc.digests == nil {
		return nil, nil
	}
	return rc.digests.Sums(), nil
}

// readBack computes the digests of the stored bytes.
func (s *Service) readBack(ctx context.Context, in registry.Incoming) (map[string]string, error) {
	digests, err := fixity.NewDigester(algorithmsOf(in.Digest)...)
	if err != nil {
		return nil, fmt.Errorf("read upload %s back: %w", in.ID, err)
	}
	r, err := s.Staging.Open(ctx, source.UploadKey(in.ID), 0, -1)
	if err != nil {
		return nil, fmt.Errorf("read upload %s back: %w", in.ID, err)
	}
	defer r.Close()
	if _, err := io.CopyBuffer(struct{ io.Writer }{digests}, struct{ io.Reader }{r}, make([]byte, copyBuffer)); err != nil {
		return nil, fmt.Errorf("read upload %s back: %w", in.ID, err)
	}
	if digests.Size() != in.Offset {
		return nil, fmt.Errorf("upload %s (%s) has %d bytes, not %d: %w", in.ID, in.Filename, digests.Size(), in.Offset, errDamagedUpload)
	}
	return digests.Sums(), nil
}

// complete finishes an upload whose bytes have all come, if the request that was to finish it could
// not. It waits for a request that is finishing it.
func (s *Service) complete(ctx context.Context, id string) (registry.Upload, error) {
	done, err := s.acquire(ctx, id, nil)
	if err != nil {
		return registry.Upload{}, err
	}
	defer done()
	in, err := s.Registry.IncomingByID(ctx, id)
	if errors.Is(err, registry.ErrNotFound) {
		return s.Registry.UploadByID(ctx, id) // another request has finished it
	} else if err != nil {
		return registry.Upload{}, err
	}
	if !in.Whole() {
		return registry.Upload{}, wire.NewProblem(http.StatusConflict, wire.CodeConflict, StillToCome(in))
	}
	return s.finish(ctx, in, nil)
}

// StillToCome says how much of an upload is missing, and where to send it.
func StillToCome(in registry.Incoming) string {
	return fmt.Sprintf("upload %s (%s) is incomplete: %d of %s bytes were received; send the rest by PATCH %s/%s", in.ID, in.Filename, in.Offset, numberOr(in.SizeBytes), Path, in.ID)
}
