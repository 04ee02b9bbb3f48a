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

// Item is one attempt of a WorkItem, as its worker sees it. The embedded WorkItem is as claimed and
// does not change; read results with [Item.Result].
//
// All methods may be called concurrently by the goroutines of the step. Methods that could write
// return [registry.ErrClaimLost] and write nothing once the claim is lost, or the step has ended or
// was abandoned.
type Item struct {
	registry.WorkItem

	// RoomWait is how long the item had waited for room when it was claimed.
	RoomWait time.Duration

	lease   registry.Lease
	spec    registry.Spec
	fence   *fence
	over    atomic.Bool // the step has ended or was abandoned
	stores  stores
	track   *track
	adopted adoption
	notary  notary
	log     logLines

	mu      sync.Mutex
	results map[string]json.RawMessage // all durable results: as claimed, or set since
	pending map[string]json.RawMessage // set by SetResult; written with the settlement
	once    map[string]ctxMutex        // one lock for each name that Once was called with
	found   registry.Settlement        // sizes, priority and events that the settlement will write
}

// stores are the services that an item writes to, with the timeout of a call.
type stores struct {
	registry registry.Working
	interim  interim.Store
	timeout  time.Duration // of one call, shorter than the lease

	registryTrouble, interimTrouble *outage
}

// newItem returns the item of a claim. With an error it also returns the item: its spec has a
// format that this worker does not know (R27).
func newItem(c registry.Claim, f *fence, s stores) (*Item, error) {
	it := &Item{
		WorkItem: c.Item, RoomWait: c.RoomWait, lease: c.Lease, fence: f, stores: s, track: newTrack(),
		results: maps.Clone(c.Item.Results), once: map[string]ctxMutex{},
		adopted: adoption{mu: newCtxMutex()}, notary: newNotary(c.NoteKey, c.Lease.N),
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

// decodeSpec reads the spec of a batch or job. It returns a zero spec for other actions, whose
// workers read their own specs.
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

// Spec returns the submission and the collection's profile of that time. It is zero for actions
// other than batch and ingest. The slices are shared: do not change them.
func (it *Item) Spec() registry.Spec { return it.spec }

// Repeats reports whether an earlier attempt of this step failed or was lost, so that it may have
// left something unfinished.
func (it *Item) Repeats() bool { return it.Note != "" }

// Lease returns the attempt's fencing token, for fenced calls to the Registry and for names that
// belong to this attempt.
func (it *Item) Lease() registry.Lease { return it.lease }

// Now returns the time by the Registry's clock, whatever this machine's clock says (R15): the time
// of the claim plus the time that has passed since. Use it for recorded times; waits and deadlines
// are durations.
func (it *Item) Now() time.Time { return it.UpdatedAt.Add(time.Since(it.track.started)) }

// Parents returns the items that the item requires, with what their functions returned. It is an
// error if the Registry serves no functions.
func (it *Item) Parents(ctx context.Context) (all []registry.Parent, err error) {
	serving, ok := it.stores.registry.(registry.Serving)
	if !ok {
		return nil, errors.New("read what the item requires: the Registry serves no functions")
	}
	err = it.callUntilAnswered(ctx, it.stores.registryTrouble, func(ctx context.Context) (err error) {
		all, err = serving.Parents(ctx, it.lease)
		return err
	})
	return all, err
}

// ProcessOf returns the process of the item, which is a step of it, with a range of its history. It is
// an error if the Registry has no processes.
func (it *Item) ProcessOf(ctx context.Context, r registry.HistoryRange) (p registry.ProcessInfo, err error) {
	stepping, ok := it.stores.registry.(registry.Stepping)
	if !ok {
		return p, errors.New("read the item's process: the Registry has no processes")
	}
	err = it.callUntilAnswered(ctx, it.stores.registryTrouble, func(ctx context.Context) (err error) {
		p, err = stepping.ProcessOf(ctx, it.lease, r)
		return err
	})
	return p, err
}

// Writable returns nil while the claim is held and the step is wanted. Call it right before a write
// outside SQL under a name that others read. Otherwise it returns ErrClaimLost, or the cause of
// ctx.
func (it *Item) Writable(ctx context.Context) error {
	if err := it.writable(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// writable is Writable for writes that are still allowed while the worker is stopping.
func (it *Item) writable() error {
	if it.over.Load() || !it.fence.held() {
		return fmt.Errorf("attempt %d of item %s: %w", it.lease.N, it.lease.ItemID, errLost)
	}
	return nil
}

// Progress returns the step's measure of a title. The same title gives the same measure, with the
// unit of the first call: "bytes", "files", "rows".
func (it *Item) Progress(title, unit string) *Progress { return it.track.measure(title, unit) }

// Transfer returns the two measures that become the item's done_bytes and done_files.
func (it *Item) Transfer() (bytes, files *Progress) {
	return it.Progress(TransferredBytes, "bytes").Kept(), it.Progress(TransferredFiles, "files").Kept()
}

// SetSize sets the item's size as it is known now, -1 for unknown. The settlement of a completed or
// failed step writes it. The last call counts.
func (it *Item) SetSize(bytes, files int64) {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.found.SizeBytes, it.found.Files = &bytes, &files
}

// SetDone sets the item's transferred bytes and files, in place of the two measures of
// [Item.Transfer]. The settlement writes them.
func (it *Item) SetDone(bytes, files int64) {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.found.DoneBytes, it.found.DoneFiles = &bytes, &files
}

// AddPriority adds n to the item's priority number (a higher number means later). Several calls add
// up. The settlement of a completed or failed step applies the sum once.
func (it *Item) AddPriority(n int) {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.found.PriorityAdd += n
}

// Event records an event, with data that encodes to a JSON object. Any settlement writes it, unless
// the claim is lost. It is meant for a few events a step.
func (it *Item) Event(kind string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", kind, err)
	}
	it.mu.Lock()
	defer it.mu.Unlock()
	it.found.Events = append(it.found.Events, registry.NewEvent{Type: kind, Data: text})
	return nil
}

// end marks the step as ended or abandoned: from now on the item refuses writes, also those of
// goroutines that the step left behind.
func (it *Item) end() { it.over.Store(true) }

// settlement adds to s what the step found out. Results, sizes and priority are written only if the
// step is completed or failed: a later attempt would count them twice or read them too early.
func (it *Item) settlement(s registry.Settlement) registry.Settlement {
	it.mu.Lock()
	defer it.mu.Unlock()
	s.Progress = it.track.snapshot()
	s.DoneBytes, s.DoneFiles = positionOrNil(s.Progress, TransferredBytes), positionOrNil(s.Progress, TransferredFiles)
	if it.found.DoneBytes != nil {
		s.DoneBytes, s.DoneFiles = it.found.DoneBytes, it.found.DoneFiles
	}
	s.Events, s.Log = it.found.Events, it.log.all()
	if s.Outcome == registry.OutcomeDone || s.Outcome == registry.OutcomeFailed {
		s.Results, s.PriorityAdd = maps.Clone(it.pending), it.found.PriorityAdd
		s.SizeBytes, s.Files = it.found.SizeBytes, it.found.Files
	}
	return s
}

func positionOrNil(measures []registry.Progress, title string) *int64 {
	if pos := position(measures, title); pos >= 0 {
		return &pos
	}
	return nil
}

// beat returns the attempt's part of a renewal, and the number of moves that it covers. Once the
// renewal is answered, the caller passes that number as sent, and forgets the lines of the log.
func (it *Item) beat(sent int64) (b registry.Beat, moves int64) {
	moves = it.track.moves.Load()
	b = registry.Beat{Lease: it.lease, DoneBytes: -1, DoneFiles: -1, Advanced: moves != sent, Log: it.log.some()}
	if b.Advanced {
		b.Progress = it.track.snapshot()
		b.DoneBytes, b.DoneFiles = position(b.Progress, TransferredBytes), position(b.Progress, TransferredFiles)
	}
	return b, moves
}

// callContext returns a context for one write of the item. While the worker is stopping,
// checkpoints and durable results can still be written: the grace period is for that.
func (it *Item) callContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if errors.Is(context.Cause(ctx), ErrStopping) {
		ctx = context.WithoutCancel(ctx)
	}
	return context.WithTimeout(ctx, it.stores.timeout)
}
