package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry/catalog"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/open"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/protocol"
)

const (
	// probeFolder has the probes in storages and in staging. In a storage root OCFL leaves the
	// folders below extensions to programs, and in both places nothing else of Holdfast uses it.
	probeFolder = "extensions/holdfast-doctor/"
	// probeAge is the age from which a probe belongs to no running doctor. The next doctor removes
	// it.
	probeAge  = time.Hour
	probeSize = 64 << 10
)

const fixStore = "it must be an existing folder or bucket that this process may write to; correct the address, mount the volume, or give this process's user the permission"

// probe writes an object, reads it back, compares and deletes it. It first removes what killed
// doctors left.
func probe(ctx context.Context, s storage.Store, now time.Time) error {
	for info, err := range s.List(ctx, probeFolder) {
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if now.Sub(info.Modified) > probeAge {
			if err := s.Delete(ctx, info.Key); err != nil {
				return fmt.Errorf("remove an old probe: %w", err)
			}
		}
	}
	key := probeFolder + uuid.NewString()
	content := make([]byte, probeSize)
	_, _ = rand.Read(content) // it never fails
	want := sha256.Sum256(content)
	if _, err := storage.Put(ctx, s, key, content); err != nil {
		return errors.Join(fmt.Errorf("write: %w", err), s.DeletePrefix(context.WithoutCancel(ctx), key))
	}
	back, err := storage.ReadAll(ctx, s, key, probeSize)
	if err != nil {
		err = fmt.Errorf("read back: %w", err)
	} else if got := sha256.Sum256(back); !bytes.Equal(got[:], want[:]) {
		err = fmt.Errorf("read back: it returned %d bytes with SHA-256 %x, and %d with %x were written", len(back), got, probeSize, want)
	}
	if gone := s.Delete(context.WithoutCancel(ctx), key); gone != nil {
		err = errors.Join(err, fmt.Errorf("delete: %w", gone))
	}
	return err
}

// openReady opens the store at an address and reports what it lacks. It returns nil after a fault.
func openReady(ctx context.Context, r *report, address string) open.Store {
	s, err := node.OpenStore(ctx, address)
	if err != nil {
		r.fault(err.Error(), fixStore)
		return nil
	}
	remarks, err := s.Ready(ctx)
	if err != nil {
		r.fault(err.Error(), fixStore)
		_ = s.Close()
		return nil
	}
	for _, remark := range remarks {
		r.warn(remark, "use a service that keeps conditional writes (docs/operating.md#storage-addresses)")
	}
	return s
}

// tryOut probes an opened store and reports its room.
func (s *site) tryOut(ctx context.Context, r *report, store open.Store) {
	if err := probe(ctx, store, s.now()); err != nil {
		r.fault(err.Error(), fixStore)
		return
	}
	space, err := store.Space(ctx)
	switch {
	case err == nil:
		r.ok("wrote, read back and deleted a probe; %s free", terminal.SizeText(space.Total-space.Used))
		judgeRoom(r, space)
	case errors.Is(err, storage.ErrUnlimited):
		r.ok("wrote, read back and deleted a probe")
	default:
		r.warn("it does not tell its room: "+err.Error(), "see whether the volume works")
	}
}

// Room of a volume that is reported, as a share and in bytes.
const (
	roomLow     = 0.10
	roomNone    = 0.02
	bytesLow    = 1 << 30
	fixRoom     = "make room or enlarge the volume before it is full"
	bytesNone   = 64 << 20
	roomPercent = 100
)

func judgeRoom(r *report, s storage.Space) {
	free := s.Total - s.Used
	if s.Total <= 0 {
		return
	}
	share := float64(free) / float64(s.Total)
	text := fmt.Sprintf("%s of %s are free, %.1f %%", terminal.SizeText(free), terminal.SizeText(s.Total), share*roomPercent)
	switch {
	case free < bytesNone || share < roomNone:
		r.add(Fault, text, fixRoom, exit.NoSpace)
	case free < bytesLow || share < roomLow:
		r.warn(text, fixRoom)
	}
}

// checkStaging probes the staging volume.
func checkStaging(ctx context.Context, s *site, r *report) {
	address := s.staging()
	if address == "" {
		return
	}
	r.about = node.StorageName(address)
	if store := openReady(ctx, r, address); store != nil {
		s.tryOut(ctx, r, store)
		_ = store.Close()
	}
}

// checkStorages probes each preservation storage, and compares it with what the Registry knows.
func checkStorages(ctx context.Context, s *site, r *report) {
	var all []Finding
	for _, st := range s.storages() {
		own := &report{about: st.Name + " at " + node.StorageName(st.Address)}
		if store := openReady(ctx, own, st.Address); store != nil {
			s.compareRoot(ctx, own, st.Name, store)
			s.tryOut(ctx, own, store)
			_ = store.Close()
		}
		all = append(all, own.list...)
	}
	r.list = all
}

// compareRoot checks that a storage that has objects by the Registry's records has a storage root.
func (s *site) compareRoot(ctx context.Context, r *report, name string, store storage.Store) {
	has, err := ocfl.HasRoot(ctx, store, "")
	if err != nil {
		r.fault(err.Error(), fixStore)
		return
	}
	if has {
		return
	}
	known, err := s.hasReplicas(ctx, name)
	switch {
	case err != nil:
		r.warn("there is no storage root, and whether the Registry knows objects here could not be asked: "+err.Error(), "mount its volume, or correct the address; the first start makes a root in a new storage")
	case known:
		r.fault("there is no storage root, although the Registry knows objects in this storage", "mount its volume, or correct the address; if its bytes are lost, see docs/operating.md")
	}
}

// hasReplicas asks the database, or as a worker the Registry, whether it knows objects in a storage.
func (s *site) hasReplicas(ctx context.Context, name string) (bool, error) {
	if address := s.database(); address != "" {
		return catalog.HasReplicasIn(ctx, address, name)
	}
	c := protocol.NewClient(client.New(s.service.URL, s.service.Token, client.Options{UserAgent: "holdfast/" + s.version, Roots: s.roots()})) //nolint:contextcheck // it lives until it is closed
	has, err := c.HasReplicas(ctx, name)
	return has, errors.Join(err, c.Close())
}
