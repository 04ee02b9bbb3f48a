package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/wire"
)

// checkpointsKept is the number of checkpoints kept in a storage.
const checkpointsKept = 7

// Chains is the record of events that a [Checkpointer] needs.
type Chains interface {
	Record
	// ChainEnds lists the ends of the chains of events by object, after an object, and how far each
	// lies in a storage.
	ChainEnds(ctx context.Context, storage, after string, limit int) ([]receipt.ChainEnd, error)
	// SignCheckpoint signs a checkpoint. It returns nil if this process has no signing key.
	SignCheckpoint(ctx context.Context, c receipt.Checkpoint) ([]byte, error)
	// NoteLost notes the accepted gaps of checkpoints. A repeat changes nothing.
	NoteLost(ctx context.Context, lost []registry.LostEvents) error
	// AcceptOlder records a request to accept an older record or, with approve, its approval; see
	// sqlstore.Store.
	AcceptOlder(ctx context.Context, a registry.Acceptance, approve bool, agreesTo, actor string) (registry.Acceptance, error)
}

// Record is the record of events that is compared with a checkpoint.
type Record interface {
	PremisEvents(ctx context.Context, objectID, after string, limit int) (registry.Page[registry.Premis], error)
	ReceiptKeys(ctx context.Context) ([]registry.ReceiptKey, error)
	Tombstone(ctx context.Context, objectID string) (string, error)
}

// Checkpointer writes a signed checkpoint of all chains of events into each storage, once a day
// (UTC). It first compares the record with the newest checkpoint in that storage. If they differ,
// it returns an error and writes no newer checkpoint, which would make a rewritten record look
// right. It may run in several processes at once.
type Checkpointer struct {
	Registry Chains
	Objects  ocfl.Roots
	Now      func() time.Time // nil: time.Now
}

// Make writes the checkpoints that are due. It tries every storage and returns the joined errors.
func (c *Checkpointer) Make(ctx context.Context) error {
	var errs []error
	for _, root := range c.Objects {
		if err := c.make(ctx, root); err != nil {
			errs = append(errs, fmt.Errorf("checkpoint in storage %q: %w", root.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (c *Checkpointer) make(ctx context.Context, root ocfl.Named) error {
	now := time.Now().UTC()
	if c.Now != nil {
		now = c.Now().UTC()
	}
	name := now.Format(time.DateOnly) + ".jsonl"
	there, err := root.Checkpoints(ctx)
	if err != nil || len(there) > 0 && there[len(there)-1] >= name {
		return err
	}
	before, err := Audit(ctx, c.Registry, root, "")
	if err != nil {
		return err
	}
	if !before.Valid {
		return fmt.Errorf("the record differs from checkpoint %s (%s); no checkpoint is written until this is resolved", before.Name, verdictOf(before))
	}
	w := checkpointing{Chains: c.Registry, root: root, from: before.Name}
	if made, err := w.write(ctx, name, now); err != nil || !made {
		return err
	}
	for ; len(there) >= checkpointsKept; there = there[1:] {
		if err := root.Store().Delete(ctx, root.CheckpointKey(there[0])); err != nil {
			return err
		}
	}
	return nil
}

// checkpointing is the state of writing a checkpoint into one storage.
type checkpointing struct {
	Chains
	root   ocfl.Named
	from   string            // name of the newest checkpoint there, which lists earlier acceptances; "": none
	accept *receipt.Accepted // not nil: accept a record that is older than that checkpoint
	lost   wire.Lost         // with accept: the accepted losses
}

// write writes a checkpoint, completely or not at all. Without chains it writes nothing.
func (c *checkpointing) write(ctx context.Context, name string, at time.Time) (made bool, err error) {
	out, err := c.root.Store().Create(ctx, c.root.CheckpointKey(name))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, out.Abort()) }()
	w := receipt.NewCheckpointWriter(out)
	if err := c.carry(ctx, w); err != nil {
		return false, err
	}
	empty := c.accept == nil
	for after := ""; ; {
		ends, err := c.ChainEnds(ctx, c.root.Name, after, endpoint.StreamRows)
		if err != nil {
			return false, err
		}
		for _, e := range ends {
			if err := w.Add(e); err != nil {
				return false, err
			}
			after, empty = e.Object, false
		}
		if len(ends) < endpoint.StreamRows {
			break
		}
	}
	if empty {
		return false, nil
	}
	signed, err := c.SignCheckpoint(ctx, w.End(at, c.root.Name))
	if err != nil || signed == nil {
		return false, err
	}
	if _, err := out.Write(signed); err != nil {
		return false, err
	}
	_, err = out.Commit(ctx)
	if errors.Is(err, storage.ErrExists) { // another process was first
		return false, nil
	}
	return err == nil, err
}

// carry copies earlier acceptances, which are kept permanently, and then writes the new one with
// its gaps. The Registry notes all gaps, also after its database was lost, so that fixity checks know of
// segments that hold accepted losses. The checkpoint c.from is valid.
func (c *checkpointing) carry(ctx context.Context, w *receipt.CheckpointWriter) error {
	if c.from == "" {
		return nil
	}
	var noted []registry.LostEvents
	gap := func(g receipt.Gap) error {
		noted = append(noted, registry.LostEvents{ObjectID: g.Object, After: g.After, To: g.To, Hash: g.Hash})
		if err := w.Gap(g); err != nil || len(noted) < endpoint.StreamRows {
			return err
		}
		err := c.NoteLost(ctx, noted)
		noted = noted[:0]
		return err
	}
	_, err := readCheckpoint(ctx, c.Chains, c.root, c.from, receipt.CheckpointLines{Accepted: w.Accept, Gap: gap})
	if err == nil && c.accept != nil {
		err = c.add(ctx, w, gap)
	}
	if err != nil || len(noted) == 0 {
		return err
	}
	return c.NoteLost(ctx, noted)
}

// add writes the new acceptance with its gaps.
func (c *checkpointing) add(ctx context.Context, w *receipt.CheckpointWriter, gap func(receipt.Gap) error) error {
	if err := w.Accept(*c.accept); err != nil {
		return err
	}
	lost, err := lostSince(ctx, c.Chains, c.root, c.from, gap)
	if err == nil && lost.Digest != c.lost.Digest {
		err = errNotOlder("nothing was accepted, because the record has changed meanwhile; stop everything that writes, and make the request again")
	}
	return err
}

// readCheckpoint reads a checkpoint in a storage and verifies it with all keys that this service
// ever signed with.
func readCheckpoint(ctx context.Context, r Record, root ocfl.Named, name string, lines receipt.CheckpointLines) (receipt.Checkpoint, error) {
	keys, err := trustedKeys(ctx, r)
	if err != nil {
		return receipt.Checkpoint{}, err
	}
	in, err := root.Store().Open(ctx, root.CheckpointKey(name), 0, -1)
	if err != nil {
		return receipt.Checkpoint{}, err
	}
	c, err := receipt.ReadCheckpoint(in, keys, lines)
	return c, errors.Join(err, in.Close())
}

// mostCheckpointFaults is the largest number of objects that a report lists.
const mostCheckpointFaults = 100

// Audit compares the record with the newest checkpoint in a storage; if only is not "", it compares
// that object alone. It holds one line of the checkpoint in memory. An error means that something
// could not be read; it is no verdict.
func Audit(ctx context.Context, r Record, root ocfl.Named, only string) (wire.CheckpointAudit, error) {
	a := wire.CheckpointAudit{Storage: root.Name, Valid: true, Faults: []wire.CheckpointFault{}}
	there, err := root.Checkpoints(ctx)
	if err != nil || len(there) == 0 {
		return a, err
	}
	return a, compareCheckpoint(ctx, r, root, there[len(there)-1], only, &a)
}

// compareCheckpoint compares the record with one checkpoint.
func compareCheckpoint(ctx context.Context, r Record, root ocfl.Named, name, only string, a *wire.CheckpointAudit) error {
	a.Name = name
	selected := func(object string) bool { return only == "" || object == only }
	c, err := readCheckpoint(ctx, r, root, name, receipt.CheckpointLines{
		Accepted: func(g receipt.Accepted) error {
			a.Accepted = append(a.Accepted, wire.AcceptedGap{
				At: g.At, Checkpoint: g.Checkpoint, AskedBy: g.AskedBy, ApprovedBy: g.ApprovedBy, Reason: g.Reason, Gaps: []wire.Gap{},
			})
			return nil
		},
		Gap: func(g receipt.Gap) error {
			if len(a.Accepted) == 0 {
				return fmt.Errorf("%w: a gap without an acceptance", receipt.ErrCheckpoint)
			}
			if at := &a.Accepted[len(a.Accepted)-1]; selected(g.Object) {
				at.Objects++
				if len(at.Gaps) < mostCheckpointFaults {
					at.Gaps = append(at.Gaps, wire.Gap{ObjectID: g.Object, First: g.After + 1, Last: g.To})
				}
			}
			return nil
		},
		End: func(e receipt.ChainEnd) error {
			if !selected(e.Object) {
				return nil
			}
			a.Objects++
			return countEnd(a)(compareEnd(ctx, r, e))
		},
	})
	if errors.Is(err, receipt.ErrCheckpoint) {
		// Nothing in an invalid checkpoint counts.
		*a = wire.CheckpointAudit{Storage: root.Name, Name: name, Damage: err.Error(), Faults: []wire.CheckpointFault{}}
		return nil
	}
	if err == nil && c.Storage != root.Name {
		a.Valid, a.Damage = false, fmt.Sprintf("it was made for storage %q", c.Storage)
	}
	a.At, a.Heads = c.At, c.Heads
	a.Accepted = slices.DeleteFunc(a.Accepted, func(g wire.AcceptedGap) bool { return only != "" && g.Objects == 0 })
	return err
}

// endState is the state of the event that ended a chain when it was signed.
type endState int

const (
	endSame endState = iota
	endMissing
	endRewritten
	endBuried // the object was deleted, and a signed tombstone stands for its chain
)

// compareEnd compares the signed end of a chain with the record and describes a difference. Of a deleted object
// whose events the record lost altogether, as in a rebuild, its signed tombstone is the end.
func compareEnd(ctx context.Context, r Record, e receipt.ChainEnd) (endState, *wire.CheckpointFault, error) {
	page, err := r.PremisEvents(ctx, e.Object, registry.AfterSeq(e.Seq-1), 1)
	fault := &wire.CheckpointFault{ObjectID: e.Object, Event: e.Seq}
	switch {
	case err != nil:
		return 0, nil, err
	case len(page.Rows) == 0 || page.Rows[0].Seq != e.Seq:
		stone, err := buried(ctx, r, e.Object)
		switch {
		case err != nil:
			return 0, nil, err
		case stone == nil:
			fault.Message = "this event is missing: the chain was truncated, or a backup older than the checkpoint was restored"
			return endMissing, fault, nil
		case stone.LastEvent == e.Seq && stone.LastHash != e.Hash:
			fault.Message = "the chain was rewritten: the hash of this event is " + stone.LastHash + " in the object's tombstone, and the checkpoint has " + e.Hash
			fault.Rewritten = true
			return endRewritten, fault, nil
		}
		return endBuried, nil, nil
	case page.Rows[0].Hash != e.Hash:
		fault.Message = "the chain was rewritten: the hash of this event is " + page.Rows[0].Hash + ", and the checkpoint has " + e.Hash
		fault.Rewritten = true
		return endRewritten, fault, nil
	}
	return endSame, nil, nil
}

// buried returns the signed tombstone of a deleted object without any events; nil if there is none. While the
// record has some of its events, the others must be there, too.
func buried(ctx context.Context, r Record, object string) (*receipt.Tombstone, error) {
	page, err := r.PremisEvents(ctx, object, registry.AfterSeq(0), 1)
	if err != nil || len(page.Rows) > 0 {
		return nil, err
	}
	text, err := r.Tombstone(ctx, object)
	if err != nil || text == "" {
		return nil, err
	}
	keys, err := trustedKeys(ctx, r)
	if err != nil {
		return nil, err
	}
	stone, trusted, err := receipt.ReadTombstone([]byte(text), keys)
	if err != nil || !trusted || stone.Object != object {
		return nil, nil //nolint:nilerr,nilnil // what nobody signed stands for nothing
	}
	return &stone, nil
}

// countEnd adds the result for a chain's end to an audit.
func countEnd(a *wire.CheckpointAudit) func(endState, *wire.CheckpointFault, error) error {
	return func(state endState, fault *wire.CheckpointFault, err error) error {
		switch {
		case err != nil || state == endSame:
			return err
		case state == endBuried:
			a.Buried++
			return nil
		case state == endMissing:
			a.Older++
		default:
			a.Rewritten++
		}
		a.Valid = false
		if len(a.Faults) < mostCheckpointFaults {
			a.Faults = append(a.Faults, *fault)
		}
		return nil
	}
}

// verdictOf describes the differences of an audit.
func verdictOf(a wire.CheckpointAudit) string {
	if a.Damage != "" {
		return a.Damage
	}
	return fmt.Sprintf("%d objects end earlier, %d were rewritten", a.Older, a.Rewritten)
}

// trustedKeys returns all keys that this service ever signed with.
func trustedKeys(ctx context.Context, r Record) ([]receipt.PublicKey, error) {
	rows, err := r.ReceiptKeys(ctx)
	if err != nil {
		return nil, err
	}
	return receipt.RecordedKeys(rows)
}

// checkpointInput selects what to compare with the checkpoints.
type checkpointInput struct {
	Object string `query:"object" maxLength:"4096" doc:"Compare this object alone"`
}

// auditCheckpoints compares the record with the newest checkpoint in each storage.
func (s *Service) auditCheckpoints(ctx context.Context, in *checkpointInput) (*endpoint.Output[wire.CheckpointReport], error) {
	only := ""
	if in.Object != "" {
		o, err := lookup.Object(ctx, s.Registry, in.Object)
		if err != nil {
			return nil, err
		}
		only = o.ID
	}
	out := wire.CheckpointReport{Valid: true, Storages: []wire.CheckpointAudit{}}
	for _, root := range s.Objects {
		a, err := Audit(ctx, s.All, root, only)
		if err != nil {
			return nil, fmt.Errorf("read the checkpoints in storage %q: %w", root.Name, err)
		}
		out.Valid = out.Valid && a.Valid
		out.Storages = append(out.Storages, a)
	}
	return &endpoint.Output[wire.CheckpointReport]{Body: out}, nil
}

// auditObject verifies an object's chain of events from its beginning, and compares it with the
// signed receipts of all versions.
func (s *Service) auditObject(ctx context.Context, in *lookup.ObjectID) (*endpoint.Output[wire.AuditReport], error) {
	o, err := lookup.Object(ctx, s.Registry, in.ID)
	if err != nil {
		return nil, err
	}
	report, err := s.auditChain(ctx, o)
	if err == nil && !report.Valid {
		s.Log.ErrorContext(ctx, "a chain of events was tampered with", "object", o.ID, "faults", len(report.Faults), "first", report.Faults[0].Message)
	}
	return &endpoint.Output[wire.AuditReport]{Body: report}, err
}

// auditChain does the same for an object with its versions.
func (s *Service) auditChain(ctx context.Context, o registry.Object) (wire.AuditReport, error) {
	a := &chainAudit{service: s, AuditReport: wire.AuditReport{ObjectID: o.ID, Faults: []wire.AuditFault{}}, ends: map[int64]map[string]int{}}
	if err := a.receipts(ctx, o); err != nil {
		return wire.AuditReport{}, err
	}
	if err := a.follow(ctx); err != nil {
		return wire.AuditReport{}, err
	}
	a.Valid = len(a.Faults) == 0
	return a.AuditReport, nil
}

type chainAudit struct {
	service *Service
	wire.AuditReport
	// ends maps an event's number (0: before the first) to its hashes in receipts, each with the
	// version of the receipt.
	ends map[int64]map[string]int
}

func (a *chainAudit) fault(event int64, format string, args ...any) {
	if len(a.Faults) < mostCheckpointFaults {
		a.Faults = append(a.Faults, wire.AuditFault{Event: event, Message: fmt.Sprintf(format, args...)})
	}
}

// receipts reads the chain ends in the receipts.
func (a *chainAudit) receipts(ctx context.Context, o registry.Object) error {
	keys, err := trustedKeys(ctx, a.service.All)
	if err != nil {
		return err
	}
	for _, v := range o.Versions {
		kept, err := a.service.All.DepositReceipt(ctx, o.ID, v.Version)
		if errors.Is(err, registry.ErrNotFound) {
			continue // the version is older than receipts
		} else if err != nil {
			return err
		}
		if kept.KeyID == "" {
			continue // nobody signed it
		}
		a.Receipts++
		h, err := receipt.VerifyHead(kept.Head, kept.Signature, keys)
		if err != nil {
			a.fault(0, "the receipt of version %d is invalid: %v", v.Version, err)
			continue
		}
		if h.Object != o.ID || h.Version != v.Version {
			a.fault(0, "the receipt of version %d is that of version %d of %s", v.Version, h.Version, h.Object)
			continue
		}
		first, last := h.Events.First-1, h.Events.First+h.Events.Count-1
		for seq, hash := range map[int64]string{first: h.Events.Before, last: h.Events.After} {
			if a.ends[seq] == nil {
				a.ends[seq] = map[string]int{}
			}
			a.ends[seq][hash] = v.Version
		}
	}
	return nil
}

// follow verifies the chain and compares it with the receipts.
func (a *chainAudit) follow(ctx context.Context) error {
	a.compare(0, receipt.Zero)
	err := eachEvent(ctx, a.service.All, a.ObjectID, a.fault, func(seq int64, hash string) {
		a.Events++
		a.compare(seq, hash)
	})
	if err != nil {
		return err
	}
	for end, hashes := range a.ends { // ends that the chain does not reach
		for _, version := range hashes {
			a.fault(end, "this event is missing, but the receipt of version %d ends with it: the chain was truncated", version)
		}
	}
	slices.SortStableFunc(a.Faults, func(x, y wire.AuditFault) int { return int(x.Event - y.Event) })
	return nil
}

// eachEvent reads an object's chain, calls fault for each fault in it, and each for every event.
// After a wrong hash it continues with the recorded one, so that each change is reported once.
func eachEvent(ctx context.Context, r Record, object string, fault func(event int64, format string, args ...any), each func(seq int64, hash string)) error {
	seq, hash := int64(0), receipt.Zero
	for {
		page, err := r.PremisEvents(ctx, object, registry.AfterSeq(seq), endpoint.StreamRows)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			if row.Seq != seq+1 {
				fault(seq+1, "the next event in the chain is number %d: the events between are missing", row.Seq)
			}
			if want := receipt.EventOf(row).Hash(hash); row.Hash != want {
				fault(row.Seq, "this event (%s), or the one before it, was changed: its recorded hash is %s, and its computed hash is %s", row.Type, row.Hash, want)
			}
			seq, hash = row.Seq, row.Hash
			each(seq, hash)
		}
		if len(page.Rows) == 0 {
			return nil
		}
	}
}

// compare compares the hash of an event with the receipts that contain it.
func (a *chainAudit) compare(seq int64, hash string) {
	for signed, version := range a.ends[seq] {
		if signed != hash {
			a.fault(seq, "the chain was rewritten: the hash of this event is %s, and the receipt of version %d has %s", hash, version, signed)
		}
	}
	delete(a.ends, seq)
}
