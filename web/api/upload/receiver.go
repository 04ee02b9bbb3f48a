package upload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
)

// leastPart is after how many bytes of a request an upload is saved, or more for very large ones.
const leastPart = 16 << 20

// received is what the Registry keeps for us of an upload on its way.
type received struct {
	Stored  storage.Checkpoint `json:"stored"`
	Digests fixity.State       `json:"digests"`
}

// receiver writes the bytes of one upload. It stays open between the requests of a sender, so that
// going on costs nothing; what another one wrote is taken over by a copy inside the store (R3). It
// belongs to whoever has the upload's turn.
type receiver struct {
	in      registry.Incoming // as it was saved last
	out     storage.Writer
	digests *fixity.Digester // of all bytes; nil when the saved state could not be understood (R27)
	size    int64            // bytes written
	before  *storage.Checkpoint
	saved   bool // the Registry knows bytes of this writer
}

// algorithmsOf are the digests that are taken of an upload.
func algorithmsOf(announced *registry.Digest) []string {
	wanted := []string{uploadAlgorithm}
	if announced != nil {
		wanted = append(wanted, announced.Algorithm)
	}
	return wanted
}

// newReceiver begins the bytes of an upload.
func (s *Service) newReceiver(ctx context.Context, in registry.Incoming) (*receiver, error) {
	digests, err := fixity.NewDigester(algorithmsOf(in.Digest)...)
	if err != nil {
		return nil, fmt.Errorf("receive upload %s: %w", in.ID, err)
	}
	// It outlives the request.
	out, err := s.Staging.Create(context.WithoutCancel(ctx), source.UploadKey(in.ID))
	if err != nil {
		return nil, fmt.Errorf("store upload %s: %w", in.ID, err)
	}
	return &receiver{in: in, out: out, digests: digests}, nil
}

// errBytesGone says that staging has lost what was acknowledged.
var errBytesGone = errors.New("what had come is not in staging any more")

// resumeReceiver goes on after what was saved: errBytesGone when that is lost.
func (s *Service) resumeReceiver(ctx context.Context, in registry.Incoming) (*receiver, error) {
	if in.Offset == 0 {
		return s.newReceiver(ctx, in)
	}
	var was received
	if err := json.Unmarshal(in.State, &was); err != nil || was.Stored.Size != in.Offset {
		return nil, fmt.Errorf("go on with upload %s: its state does not say where its %d bytes are: %w", in.ID, in.Offset, errBytesGone)
	}
	digests, err := fixity.NewDigester(algorithmsOf(in.Digest)...)
	if err != nil {
		return nil, fmt.Errorf("receive upload %s: %w", in.ID, err)
	}
	if !digests.Restore(was.Digests) || digests.Size() != in.Offset {
		digests = nil // the digest is that of what is read back
	}
	out, err := s.Staging.Resume(context.WithoutCancel(ctx), source.UploadKey(in.ID), was.Stored)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("go on with upload %s: %w: %w", in.ID, errBytesGone, err)
	} else if err != nil {
		return nil, fmt.Errorf("go on with upload %s: %w", in.ID, err)
	}
	return &receiver{in: in, out: out, digests: digests, size: in.Offset, before: &was.Stored}, nil
}

// Write implements io.Writer.
func (rc *receiver) Write(p []byte) (int, error) {
	n, err := rc.out.Write(p)
	rc.size += int64(n)
	if rc.digests != nil {
		_, _ = rc.digests.Write(p[:n]) // it never fails
	}
	if err != nil {
		return n, fmt.Errorf("store upload %s: %w", rc.in.ID, err)
	}
	return n, nil
}

// save makes what was written durable and then acknowledged, in this order (R4). size is that of
// the whole, -1 when it is not known. registry.ErrClaimLost says that the upload is not ours any
// more.
func (s *Service) save(ctx context.Context, rc *receiver, size int64) error {
	// A sender who has gone has brought these bytes all the same.
	ctx = context.WithoutCancel(ctx)
	stored, err := rc.out.Checkpoint(ctx)
	if err != nil {
		return fmt.Errorf("store upload %s: %w", rc.in.ID, err)
	}
	now := received{Stored: stored}
	if rc.digests != nil {
		if now.Digests, err = rc.digests.State(); err != nil {
			return fmt.Errorf("save upload %s: %w", rc.in.ID, err)
		}
	}
	state, err := json.Marshal(now)
	if err != nil {
		return fmt.Errorf("save upload %s: %w", rc.in.ID, err)
	}
	part := registry.UploadPart{ID: rc.in.ID, N: rc.in.N, Offset: stored.Size, SizeBytes: size, State: state, Keep: s.Keep}
	if rc.in.SizeBytes < 0 { // what it came to was not known when it began
		if part.Limits, part.Room, err = s.limited(ctx, rc.in); err != nil {
			return err
		}
	}
	in, err := s.Registry.SaveUpload(ctx, part)
	if err != nil {
		// Unless it was refused, nobody knows whether it was saved.
		refused := errors.Is(err, registry.ErrClaimLost) || errors.As(err, new(*registry.QuotaError)) || errors.As(err, new(*registry.NoSpaceError))
		rc.saved = rc.saved || !refused
		return err
	}
	rc.in, rc.saved = in, true
	if rc.before != nil {
		// Nothing leads to the predecessor's bytes any more.
		if err := s.Staging.Discard(ctx, *rc.before); err != nil {
			s.Log.WarnContext(ctx, "bytes of an upload that were taken over could not be removed; they go with it", "upload", in.ID, "err", err)
		}
		rc.before = nil
	}
	return nil
}

// letGo ends the receiver. What the Registry knows of stays for a successor.
func (rc *receiver) letGo() {
	if rc.saved {
		_ = rc.out.Close() // what was saved is durable
		return
	}
	_ = rc.out.Abort() // what it misses goes with the upload
}

// part is after how many bytes the upload is saved.
func (rc *receiver) part() int64 {
	const parts = 10_000
	return max(leastPart, rc.in.SizeBytes/parts)
}

// How long receivers are kept open between requests, and how many: each holds a file, or up to 5
// MiB of memory.
const (
	parkedFor  = 10 * time.Minute
	mostParked = 16
)
