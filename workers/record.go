package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	filenames "github.com/holdfast/holdfast/pathset"
	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/identity"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/room"
)

// filesAtATime is how many inventory rows are written in one transaction (R25).
const filesAtATime = 500

// Record writes a stored version and its preservation events into the inventory, and makes the
// object's name public. It may be repeated. Nothing is visible until its last, fenced transaction,
// and a repeat of that changes nothing. After that transaction it writes the receipt beside the bytes
// in each storage of the item, before the item goes on.
type Record struct {
	base.Worker
	Registry interface {
		registry.Preserving
		evidence.Source
	}
	Staging storage.Store
	Names   identity.Names
	Objects ocfl.Roots
	Version string
}

// Stage implements base.Handler.
func (w *Record) Stage() registry.Stage { return registry.Record }

// Work implements base.Handler.
func (w *Record) Work(ctx context.Context, item *base.Item) error {
	p, err := result.PlanOf(item)
	if err != nil {
		return err
	}
	got, err := result.DownloadOf(item)
	if err != nil {
		return err
	}
	if again, err := item.Result(registry.ResultChanges, &p.List); err != nil {
		return err
	} else if again {
		p.ListDigest = ""
	}
	if _, err := item.Result(registry.ResultChangesDigest, &p.ListDigest); err != nil {
		return err
	}
	where, missing, err := result.ReplicasOf(item)
	if err == nil && len(missing) > 0 {
		err = w.backForReplicas(item, p, missing)
	}
	if err != nil {
		return err
	}
	var renamed []result.Planned
	if !p.Small { // the announcement has brought the files of a small version
		if renamed, err = w.files(ctx, item, p); err != nil {
			return err
		}
	}
	err = w.Registry.RecordVersion(ctx, item.Lease(), registry.VersionRecord{
		ObjectID: p.ObjectID, Version: p.Version, Collection: item.Collection, Owner: item.Spec().Profile.Owner,
		Title: p.Title, Creator: p.Creator, Date: p.Date, Files: p.Files, SizeBytes: p.Bytes,
		CreatedAt: p.Created, Replicas: where, Inventory: p.Algorithm + ":" + p.Digest, Padding: p.Padding, Events: append(w.events(item, p, got, where), w.renamings(item, p, renamed)...),
	})
	if err == nil {
		err = w.keepEvidence(ctx, item, p)
	}
	if err != nil || p.EZID == nil {
		return err
	}
	return w.Names.Publish(ctx, item, *p.EZID)
}

// keepEvidence writes the version's receipt beside its bytes, in each storage of the item, and the
// receipts of earlier versions that a storage lacks.
func (w *Record) keepEvidence(ctx context.Context, item *base.Item, p result.Plan) error {
	in := make([]evidence.Object, len(item.Storages))
	for i, name := range item.Storages {
		root, err := w.Objects.Of(name)
		if err != nil {
			return err
		}
		if in[i], err = evidence.In(root.Root, p.ObjectID, p.Place); err != nil {
			return err
		}
	}
	if err := item.Writable(ctx); err != nil {
		return err
	}
	err := evidence.KeepReceipts(ctx, w.Registry, p.Version, in...)
	if errors.Is(err, evidence.ErrChanged) {
		return base.Fatal(err) // another try reads the same rows; object audit says which
	}
	return room.Wait(err)
}

// backForReplicas sends an item back to the stage that makes the missing replicas.
func (w *Record) backForReplicas(item *base.Item, p result.Plan, missing []string) error {
	err := fmt.Errorf("version %d of %s is not in the storages %s yet", p.Version, p.ObjectID, strings.Join(missing, ", "))
	if route, _ := item.Route(); slices.Contains(route.UpTo(item.Stage), registry.Replicate) && !slices.Contains(missing, item.Storages[0]) {
		return base.Back(registry.Replicate, err)
	}
	return base.Back(registry.Process, err)
}

// noteRecorded is the interim entry for the number of recorded files.
const noteRecorded = "recorded"

// recorded says how many files of a list, from the first, are in the inventory.
type recorded struct {
	List  string `json:"list"`
	Files int64  `json:"files"`
}

// files writes the list's files into the inventory, starting where an earlier attempt stopped. It
// returns the files whose names were not UTF-8.
func (w *Record) files(ctx context.Context, item *base.Item, p result.Plan) (renamed []result.Planned, err error) {
	done := recorded{List: p.List}
	noted := p.Files > filesAtATime // most jobs have fewer, for which an entry would cost more than it saves
	if noted {
		before, ok, err := base.Get[recorded](ctx, item, noteRecorded)
		if err != nil {
			return nil, err
		}
		if ok && before.List == p.List {
			done = before
		}
	}
	progress := item.Progress("files recorded", "files").Kept()
	progress.SetEnd(p.Files)
	progress.Set(done.Files)
	rows := make([]registry.File, 0, min(p.Files, filesAtATime))
	flush := func() error {
		err := w.Registry.RecordFiles(ctx, item.Lease(), p.ObjectID, p.Version, rows)
		progress.Add(int64(len(rows)))
		done.Files += int64(len(rows))
		rows = rows[:0]
		return err
	}
	skip := done.Files
	for e, err := range staging.ReadList[result.Planned](ctx, w.Staging, p.Changes()) {
		if err != nil {
			return nil, backIfLost(err)
		}
		if e.Encoding != "" {
			renamed = append(renamed, e)
		}
		if skip > 0 {
			skip--
			continue
		}
		rows = append(rows, e.Row(p.Version))
		if len(rows) == filesAtATime {
			if err := flush(); err != nil {
				return nil, err
			}
			if !noted {
				continue
			}
			if err := base.Put(ctx, item, noteRecorded, done); err != nil {
				return nil, err
			}
		}
	}
	return renamed, flush()
}

// backIfLost sends the item back to Process if the list of stored files is missing or damaged:
// Process makes it again.
func backIfLost(err error) error {
	err = fmt.Errorf("read the list of stored files: %w", err)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, staging.ErrDamaged) {
		return base.Back(registry.Process, err)
	}
	return err
}

// renamings returns an event for each file whose name was not UTF-8, with the original bytes.
// unpack.MaxDecoded limits their number.
func (w *Record) renamings(item *base.Item, p result.Plan, renamed []result.Planned) []registry.Premis {
	events := make([]registry.Premis, 0, len(renamed))
	for _, f := range renamed {
		kind := string(premis.FilenameChange)
		events = append(events, registry.Premis{
			ID: premis.EventID(item.ID, kind, fmt.Sprint(p.Version), f.Path).Value, ObjectID: p.ObjectID, Version: p.Version,
			ItemID: item.ID, Type: kind, At: p.Created, Agent: "Holdfast " + w.Version, Outcome: "success",
			Detail: fmt.Sprintf("the name in the container, %s, was read as %s: %s", filenames.Escape(string(f.Raw)), f.Encoding, f.Path),
		})
	}
	return events
}

// events returns the PREMIS events of the version: one event per run over all files, with ids that
// a repeat gives again.
func (w *Record) events(item *base.Item, p result.Plan, got result.Downloaded, where []registry.Replica) []registry.Premis {
	var events []registry.Premis
	by := func(agent string, at time.Time, kind premis.EventType, detail string) {
		events = append(events, registry.Premis{
			ID: premis.EventID(item.ID, string(kind), fmt.Sprint(p.Version)).Value, ObjectID: p.ObjectID, Version: p.Version,
			ItemID: item.ID, Type: string(kind), At: at, Agent: agent, Outcome: "success", Detail: detail,
		})
	}
	add := func(kind premis.EventType, detail string) { by("Holdfast "+w.Version, p.Created, kind, detail) }
	if p.Minted {
		add(premis.IdentifierAssignment, p.ObjectID)
	}
	algorithm := p.Algorithm
	add(premis.MessageDigestCalculation, fmt.Sprintf("%s of %d received files", algorithm, p.Files))
	if got.Checked > 0 {
		add(premis.FixityCheck, fmt.Sprintf("%d of %d files had a digest stated by the depositor, and match it", got.Checked, got.Files))
	}
	if p.Bag {
		add(premis.Validation, "valid as a BagIt bag: complete, every digest verified")
	}
	if p.NoZone > 0 {
		add(premis.MetadataExtraction, fmt.Sprintf("the container states no time zone for the times of %d files; UTC is assumed, and they may be wrong by up to 14 hours", p.NoZone))
	}
	if s := p.Scan; s != nil {
		by(s.Engine, s.At, premis.VirusCheck, s.Detail())
	}
	if terms := item.Spec().TermsInForce(); !terms.IsZero() {
		add(premis.PolicyAssignment, terms.String())
	}
	if f := p.Formats; f != nil && f.Files > 0 {
		by(f.Agent, f.At, premis.FormatIdentification, f.Detail())
	}
	add(premis.Ingestion, fmt.Sprintf("version %d stored in %s, every new file read back and verified by %s",
		p.Version, w.address(where[0].Storage), algorithm))
	if len(where) > 1 {
		copies := make([]string, 0, len(where)-1)
		for _, r := range where[1:] {
			copies = append(copies, w.address(r.Storage))
		}
		add(premis.Replication, fmt.Sprintf("version %d copied to %s, every new file read back and verified by %s",
			p.Version, strings.Join(copies, ", "), algorithm))
	}
	return events
}

// address returns the address of a storage, or its name if this worker does not know the address.
func (w *Record) address(name string) string {
	if root, err := w.Objects.Of(name); err == nil && root.Address != "" {
		return root.Address
	}
	return name
}
