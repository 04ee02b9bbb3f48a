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
	"github.com/holdfast/holdfast/registry"
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

// The settings with the addresses of stores.
const (
	settingStaging = "HOLDFAST_STAGING_URL"
	settingStorage = "HOLDFAST_STORAGE_URL"
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

// openReady opens the store at an address, which is in the setting, and reports what it lacks. It
// returns nil after a fault.
func openReady(ctx context.Context, r *report, address, setting string) open.Store {
	s, err := node.OpenStore(ctx, address)
	if err != nil {
		r.failed(err, setting, fixStore)
		return nil
	}
	remarks, err := s.Ready(ctx)
	if err != nil {
		r.failed(err, setting, fixStore)
		_ = s.Close()
		return nil
	}
	for _, remark := range remarks {
		r.warn(remark, "use a service that keeps conditional writes (docs/operating.md#storage-addresses)")
	}
	return s
}

// tryOut probes an opened store and reports its room.
func (s *site) tryOut(ctx context.Context, r *report, store open.Store, setting string) {
	if err := probe(ctx, store, s.now()); err != nil {
		r.failed(err, setting, fixStore)
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
	address, setting := s.staging()
	if address == "" {
		return
	}
	r.about = node.StorageName(address)
	if store := openReady(ctx, r, address, setting); store != nil {
		s.tryOut(ctx, r, store, setting)
		_ = store.Close()
	}
}

// checkStorages probes each preservation storage, and compares it with what the Registry knows.
func checkStorages(ctx context.Context, s *site, r *report) {
	var all []Finding
	for _, st := range s.storages() {
		own := &report{about: st.Name + " at " + node.StorageName(st.Address)}
		setting := settingStorage
		if s.role == roleUp && st.Name == registry.DefaultStorage {
			setting = flagDir
		}
		if store := openReady(ctx, own, st.Address, setting); store != nil {
			s.compareRoot(ctx, own, st.Name, store)
			s.tryOut(ctx, own, store, setting)
			_ = store.Close()
		}
		all = append(all, own.list...)
	}
	r.list = all
}

// fixAbsent is the advice about a storage that does not have what is recorded there.
const fixAbsent = node.FixAbsent + "see \"A storage was lost\" in docs/operating.md"

// compareRoot compares the storage root, or its absence, with what the Registry recorded there.
func (s *site) compareRoot(ctx context.Context, r *report, name string, store storage.Store) {
	has, err := ocfl.HasRoot(ctx, store, "")
	if err != nil {
		r.failed(err, settingStorage, fixStore)
		return
	}
	records, err := s.records() //nolint:contextcheck // the client lives until it is closed
	if err == nil {
		defer func() { _ = records.Close() }() // it only read
	}
	if !has {
		known := false
		if err == nil {
			known, err = records.HasReplicas(ctx, name)
		}
		switch {
		case err != nil:
			r.warn("there is no storage root, and whether the Registry knows objects here could not be asked: "+node.Plain(err), "mount its volume, or correct the address; the first start makes a root in a new storage")
		case known:
			r.fault(node.ErrRootGone.Error(), fixAbsent)
		}
		return
	} else if err != nil {
		r.skip("the Registry's records of it: %s", node.Plain(err))
		return
	}
	root, err := ocfl.OpenRoot(ctx, store, "", nil)
	if err != nil {
		r.failed(err, settingStorage, fixStore)
		return
	}
	b, err := node.Belongs(ctx, root, name, records)
	switch {
	case err != nil:
		r.skip("the Registry's records of it: %s", node.Plain(err))
	case b.Absent():
		r.fault(b.Fault().Error(), fixAbsent)
	case b.Strange != "":
		r.warn("it holds objects that this Registry does not know, such as "+b.Strange, "see whether the address and the database belong together; a Registry that never stored anything here refuses to start, and says how to accept it")
	}
}

// records is what the Registry knows about storages.
type records interface {
	node.Inventory
	HasReplicas(ctx context.Context, storage string) (bool, error)
	Close() error
}

// asked are the records that a worker's token may ask the Registry for: not which objects there are.
type asked struct{ *protocol.Client }

// Replicated implements node.Inventory.
func (asked) Replicated(context.Context, string, int) ([]string, error) { return nil, nil }

// records opens the database, or as a worker the Registry's protocol.
func (s *site) records() (records, error) {
	if address := s.database(); address != "" {
		return catalog.OpenReader(address)
	}
	if s.service.URL == "" {
		return nil, errors.New("set HOLDFAST_URL and HOLDFAST_TOKEN to have them compared")
	}
	return asked{protocol.NewClient(client.New(s.service.URL, s.service.Token, client.Options{UserAgent: "holdfast/" + s.version, Roots: s.roots()}))}, nil
}
