package base

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
)

// Item is one attempt of a WorkItem in the hands of a worker. The embedded WorkItem is as it was
// when it was claimed and does not change; read results with [Item.Result].
//
// All methods may be called concurrently by the goroutines of the step. Once the claim is lost, and
// once the step has ended or was abandoned, those that could write return [registry.ErrClaimLost]
// and write nothing.
type Item struct {
	registry.WorkItem

	// RoomWait is how long the item has waited for room, as the claim says.
	RoomWait time.Duration

	lease   registry.Lease
	spec    registry.Spec
	fence   *fence
	over    atomic.Bool // the step has ended, or was given up
	stores  stores
	track   *track
	adopted adoption
	notary  notary

	mu      sync.Mutex
	results map[string]json.RawMessage // all that hold, as claimed or set since
	pending map[string]json.RawMessage // set by SetResult: they go with the settlement
	once    map[string]turn            // names that Once was asked for
	known   registry.Settlement        // sizes, priority and events for the settlement
}

// stores is what an item writes to, and how.
type stores struct {
	registry registry.Working
	interim  interim.Store
	timeout  time.Duration // of one call, shorter than the lease

	registryTrouble, interimTrouble *outage
}

// newItem makes a claim into an item. An error means that its spec is of a format that this worker
// does not know (R27).
func newItem(c registry.Claim, f *fence, s stores) (*Item, error) {
	it := &Item{
		WorkItem: c.Item, RoomWait: c.RoomWait, lease: c.Lease, fence: f, stores: s, track: newTrack(),
		results: maps.Clone(c.Item.Results), once: map[string]turn{},
		adopted: adoption{turn: newTurn()}, notary: newNotary(c.NoteKey, c.Lease.N),
	}
	if it.results == nil {
		it.results = map[string]json.RawMessage{}
	}
	spec, err := decodeSpec(c.Item)
	it.spec = spec
	if upTo, ok := it.results[registry.ResultRecheck]; ok {
		err = errors.Join(err, json.Unmarshal(upTo, &it.notary.after))
	}
	return it, err
}

// decodeSpec reads the spec of a batch or job. Other actions have specs of their own, which their
// workers read.
func decodeSpec(wi registry.WorkItem) (spec registry.Spec, err error) {
	if wi.Action != registry.Batch && wi.Action != registry.Ingest {
		return spec, nil
	}
	if err := json.Unmarshal(wi.Spec, &spec); err != nil {
		return spec, fmt.Errorf("decode spec of item %s: %w", wi.ID, err)
	}
	if route, ok := registry.RouteOf(wi.Action); ok && spec.RouteVersion > route.Version {
		return spec, fmt.Errorf("read item %s: its route has version %d, this worker knows %d", wi.ID, spec.RouteVersion, route.Version)
	}
	return spec, nil
}

// Spec is what was submitted, and the collection's profile as it was then. It is zero for actions
// other than batch and ingest. The slices are shared: do not change them.
func (it *Item) Spec() registry.Spec { return it.spec }

// Lease is the attempt's fencing token, for fenced calls to the Registry and for names that belong
// to this attempt.
func (it *Item) Lease() registry.Lease { return it.lease }

// Now is the time by the Registry's clock, whatever this machine's own says (R15): that of the
// claim and what has passed since. It is for what is written down; waits and deadlines are
// durations.
func (it *Item) Now() time.Time { return it.UpdatedAt.Add(time.Since(it.track.started)) }

// Writable returns nil while the claim is held and the step is wanted. Ask it right before a write
// outside SQL under a name that others read. Otherwise it returns ErrClaimLost, or why ctx ended.
func (it *Item) Writable(ctx context.Context) error {
	if err := it.writable(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// writable is Writable for what may still be written while the worker is stopping.
func (it *Item) writable() error {
	if it.over.Load() || !it.fence.held() {
		return fmt.Errorf("attempt %d of item %s: %w", it.lease.N, it.lease.ItemID, errLost)
	}
	return nil
}

// Progress returns the step's measure of this title, the same one for the same title; its unit is
// that of the first call: "bytes", "files", "rows".
func (it *Item) Progress(title, unit string) *Progress { return it.track.measure(title, unit) }

// Transfer returns the two measures that an item's done_bytes and done_files are taken from.
func (it *Item) Transfer() (bytes, files *Progress) {
	return it.Progress(TransferredBytes, "bytes").Kept(), it.Progress(TransferredFiles, "files").Kept()
}

// SetSize notes the item's size as it is now known, -1 for unknown. It is written with the
// settlement when the step is done; the last call counts.
func (it *Item) SetSize(bytes, files int64) {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.known.SizeBytes, it.known.Files = &bytes, &files
}

// SetDone notes what of the item was transferred, in place of the two measures of [Item.Transfer];
// it is written with the settlement.
func (it *Item) SetDone(bytes, files int64) {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.known.DoneBytes, it.known.DoneFiles = &bytes, &files
}

// AddPriority adds n to the item's priority number (more is later). It counts once, with the
// settlement of a step that is done; several calls add up.
func (it *Item) AddPriority(n int) {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.known.PriorityAdd += n
}

// Event notes that something happened, with data that encodes to a JSON object. It is written with
// the settlement, whatever that is, unless the claim is lost; it is meant for a few events a step.
func (it *Item) Event(kind string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", kind, err)
	}
	it.mu.Lock()
	defer it.mu.Unlock()
	it.known.Events = append(it.known.Events, registry.NewEvent{Type: kind, Data: text})
	return nil
}

// end is called when the step has ended or was given up: nothing that it left behind may write any
// more.
func (it *Item) end() { it.over.Store(true) }

// settlement adds to s what the step found out. What would be counted twice or read too early by a
// later attempt goes only with an outcome that ends the step.
func (it *Item) settlement(s registry.Settlement) registry.Settlement {
	it.mu.Lock()
	defer it.mu.Unlock()
	s.Progress = it.track.snapshot()
	s.DoneBytes, s.DoneFiles = reached(s.Progress, TransferredBytes), reached(s.Progress, TransferredFiles)
	if it.known.DoneBytes != nil {
		s.DoneBytes, s.DoneFiles = it.known.DoneBytes, it.known.DoneFiles
	}
	s.Events = it.known.Events
	if s.Outcome == registry.OutcomeDone || s.Outcome == registry.OutcomeFailed {
		s.Results, s.PriorityAdd = maps.Clone(it.pending), it.known.PriorityAdd
		s.SizeBytes, s.Files = it.known.SizeBytes, it.known.Files
	}
	return s
}

func reached(measures []registry.Progress, title string) *int64 {
	if pos := position(measures, title); pos >= 0 {
		return &pos
	}
	return nil
}

// beat is the attempt's news for a renewal. moves goes back to sent once the renewal was answered.
func (it *Item) beat(sent int64) (b registry.Beat, moves int64) {
	moves = it.track.moves.Load()
	b = registry.Beat{Lease: it.lease, DoneBytes: -1, DoneFiles: -1, Advanced: moves != sent}
	if b.Advanced {
		b.Progress = it.track.snapshot()
		b.DoneBytes, b.DoneFiles = position(b.Progress, TransferredBytes), position(b.Progress, TransferredFiles)
	}
	return b, moves
}

// call returns a context for one write of the item. While the worker is stopping, a checkpoint or a
// durable result can still be written, for a moment: that is what the grace is for.
func (it *Item) call(ctx context.Context) (context.Context, context.CancelFunc) {
	if errors.Is(context.Cause(ctx), ErrStopping) {
		ctx = context.WithoutCancel(ctx)
	}
	return context.WithTimeout(ctx, it.stores.timeout)
}
