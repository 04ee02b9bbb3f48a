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

// leastPart is the number of bytes of a request after which an upload is saved; for very large
// uploads it is more.
const leastPart = 16 << 20

// received is the state of an incoming upload that the Registry stores.
type received struct {
	Stored  storage.Checkpoint `json:"stored"`
	Digests fixity.State       `json:"digests"`
}

// receiver writes the bytes of one upload. It stays open between the requests of a sender, so that
// resuming costs nothing. A receiver that takes over another process's upload copies the bytes
// within the store (R3). It belongs to the request that holds the upload.
type receiver struct {
	in      registry.Incoming // as last saved
	out     storage.Writer
	digests *fixity.Digester // of all bytes; nil if the saved state could not be decoded (R27)
	size    int64            // bytes written
	before  *storage.Checkpoint
	saved   bool // the Registry has recorded bytes of this writer
}

// digester returns the digester of the bytes of an upload that were saved; nil if their state cannot
// be decoded (R27). The digest is then computed when the upload is read back.
func (r received) digester(in registry.Incoming) (*fixity.Digester, error) {
	digests, err := fixity.NewDigester(algorithmsOf(in.Digest)...)
	if err != nil {
		return nil, fmt.Errorf("receive upload %s: %w", in.ID, err)
	}
	if !digests.Restore(r.Digests) || digests.Size() != in.Offset {
		return nil, nil //nolint:nilnil // nil is an answer
	}
	return digests, nil
}

// sumsOf returns the digests that the saved bytes of an upload had when they arrived, if known.
func sumsOf(in registry.Incoming) (map[string]string, error) {
	var was received
	_ = json.Unmarshal(in.State, &was) // the zero value has no state to continue from
	digests, err := was.digester(in)
	if digests == nil {
		return nil, err
	}
	return digests.Sums(), nil
}

// algorithmsOf returns the digest algorithms for an upload.
func algorithmsOf(announced *registry.Digest) []string {
	wanted := []string{uploadAlgorithm}
	if announced != nil {
		wanted = append(wanted, announced.Algorithm)
	}
	return wanted
}

// newReceiver returns the receiver of a new upload.
func (s *Service) newReceiver(ctx context.Context, in registry.Incoming) (*receiver, error) {
	digests, err := fixity.NewDigester(algorithmsOf(in.Digest)...)
	if err != nil {
		return nil, fmt.Errorf("receive upload %s: %w", in.ID, err)
	}
	// The receiver outlives the request.
	out, err := s.Staging.Create(context.WithoutCancel(ctx), source.UploadKey(in.ID))
	if err != nil {
		return nil, fmt.Errorf("store upload %s: %w", in.ID, err)
	}
	return &receiver{in: in, out: out, digests: digests}, nil
}

// errBytesGone says that staging has lost acknowledged bytes.
var errBytesGone = errors.New("bytes that were received are missing in staging; the upload was removed; send the file again")

// resumeReceiver returns a receiver that continues after the saved bytes, or errBytesGone if they
// are lost.
func (s *Service) resumeReceiver(ctx context.Context, in registry.Incoming) (*receiver, error) {
	if in.Offset == 0 {
		return s.newReceiver(ctx, in)
	}
	var was received
	if err := json.Unmarshal(in.State, &was); err != nil || was.Stored.Size != in.Offset {
		return nil, fmt.Errorf("resume upload %s: its state does not match its %d bytes: %w", in.ID, in.Offset, errBytesGone)
	}
	digests, err := was.digester(in)
	if err != nil {
		return nil, err
	}
	out, err := s.Staging.Resume(context.WithoutCancel(ctx), source.UploadKey(in.ID), was.Stored)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("resume upload %s: %w: %w", in.ID, errBytesGone, err)
	} else if err != nil {
		return nil, fmt.Errorf("resume upload %s: %w", in.ID, err)
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

// save makes the written bytes durable and then records them, in this order (R4). size is the size
// of the whole upload, -1 if unknown. registry.ErrClaimLost says that another process has taken the
// upload.
func (s *Service) save(ctx context.Context, rc *receiver, size int64) error {
	// The bytes count even if the sender has disconnected.
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
	if rc.in.SizeBytes < 0 { // its size was unknown when it started
		if part.Limits, part.Room, err = s.limitsOf(ctx, rc.in); err != nil {
			return err
		}
	}
	in, err := s.Registry.SaveUpload(ctx, part)
	if err != nil {
		// Unless it was refused, it is unknown whether it was saved.
		refused := errors.Is(err, registry.ErrClaimLost) || errors.As(err, new(*registry.QuotaError)) || errors.As(err, new(*registry.NoSpaceError))
		rc.saved = rc.saved || !refused
		return err
	}
	rc.in, rc.saved = in, true
	if rc.before != nil {
		// Nothing refers to the predecessor's bytes any more.
		if err := s.Staging.Discard(ctx, *rc.before); err != nil {
			s.Log.WarnContext(ctx, "removing the copied bytes of an upload failed; they are removed with the upload", "upload", in.ID, "err", err)
		}
		rc.before = nil
	}
	return nil
}

// release ends the receiver. Recorded bytes stay for a successor.
func (rc *receiver) release() {
	if rc.saved {
		_ = rc.out.Close() // what was saved is durable
		return
	}
	_ = rc.out.Abort() // bytes that it leaves are removed with the upload
}

// part is the number of bytes after which the upload is saved.
func (rc *receiver) part() int64 {
	const parts = 10_000
	return max(leastPart, rc.in.SizeBytes/parts)
}

// Limits on receivers that are kept open between requests. Each holds an open file, or up to 5 MiB
// of memory.
const (
	parkedFor  = 10 * time.Minute
	mostParked = 16
)
