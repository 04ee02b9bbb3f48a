package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	filenames "github.com/holdfast/holdfast/pathset"
	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/identity"
	"github.com/holdfast/holdfast/workers/result"
)

// filesAtATime is how many inventory rows go into one transaction (R25).
const filesAtATime = 500

// Record enters a stored version into the inventory with its preservation events, and has its
// object's name made public. It may be repeated: nothing is visible until its last, fenced
// transaction, and that changes nothing the second time.
type Record struct {
	base.Worker
	Registry registry.Preserving
	Staging  storage.Store
	Names    identity.Names
	Objects  ocfl.Roots
	Version  string
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
	if again, err := item.Result(result.NameChanges, &p.List); err != nil {
		return err
	} else if again {
		p.ListDigest = ""
	}
	if _, err := item.Result(result.NameChangesDigest, &p.ListDigest); err != nil {
		return err
	}
	where, missing, err := result.ReplicasOf(item)
	if err == nil && len(missing) > 0 {
		err = w.tooEarly(item, p, missing)
	}
	if err != nil {
		return err
	}
	renamed, err := w.files(ctx, item, p)
	if err != nil {
		return err
	}
	err = w.Registry.RecordVersion(ctx, item.Lease(), registry.VersionRecord{
		ObjectID: p.ObjectID, Version: p.Version, Collection: item.Collection, Owner: item.Spec().Profile.Owner,
		LocalIDs: p.LocalIDs, Title: p.Title, Creator: p.Creator, Date: p.Date, Files: p.Files, SizeBytes: p.Bytes,
		CreatedAt: p.Created, Replicas: where, Inventory: p.Algorithm + ":" + p.Digest, Events: append(w.events(item, p, got, where), w.renamings(item, p, renamed)...),
	})
	if err != nil || p.EZID == nil {
		return err
	}
	return w.Names.Publish(ctx, item, *p.EZID)
}

// tooEarly sends an item to where the replicas are made that it should have by now.
func (w *Record) tooEarly(item *base.Item, p result.Plan, missing []string) error {
	err := fmt.Errorf("version %d of %s is not in the storages %s yet", p.Version, p.ObjectID, strings.Join(missing, ", "))
	if route, _ := item.Route(); slices.Contains(route.UpTo(item.Stage), registry.Replicate) && !slices.Contains(missing, item.Storages[0]) {
		return base.Back(registry.Replicate, err)
	}
	return base.Back(registry.Process, err)
}

// noteRecorded is the name under which an attempt notes how many files it has recorded.
const noteRecorded = "recorded"

// recorded is how many of a list's files, from the first on, are in the inventory.
type recorded struct {
	List  string `json:"list"`
	Files int64  `json:"files"`
}

// files enters the list's files, from where an earlier attempt stopped, and returns those whose
// names were not UTF-8.
func (w *Record) files(ctx context.Context, item *base.Item, p result.Plan) (renamed []result.Planned, err error) {
	done := recorded{List: p.List}
	noted := p.Files > filesAtATime // most jobs have fewer, for which a note would cost more than it saves
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
	rows := make([]registry.File, 0, filesAtATime)
	flush := func() error {
		err := w.Registry.RecordFiles(ctx, item.Lease(), p.ObjectID, p.Version, rows)
		progress.Add(int64(len(rows)))
		done.Files += int64(len(rows))
		rows = rows[:0]
		return err
	}
	skip := done.Files
	for e, err := range staging.ReadList[result.Planned](ctx, w.Staging, p.List, p.ListDigest) {
		if err != nil {
			return nil, lost(err)
		}
		if e.Encoding != "" {
			renamed = append(renamed, e)
		}
		if skip > 0 {
			skip--
			continue
		}
		rows = append(rows, registry.File{
			Path: e.Path, Version: p.Version, ContentPath: e.Content, SizeBytes: e.Size, Digests: e.Digests,
			MIMEType: e.MIME, Format: e.Format, Deleted: e.Deleted, Modified: e.Modified,
		})
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

// lost sends the item back when the list of what was stored is not there any more as it was
// written: Process makes it anew.
func lost(err error) error {
	err = fmt.Errorf("read what was stored: %w", err)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, staging.ErrDamaged) {
		return base.Back(registry.Process, err)
	}
	return err
}

// renamings are an event for each file whose name was not UTF-8, with the bytes that it was.
// unpack.MaxDecoded bounds them.
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

// events are what PREMIS wants to know of the version: one event a run over all files, with ids
// that a repeat has too.
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
	add(premis.MessageDigestCalculation, fmt.Sprintf("%s of %d files as they came in", algorithm, p.Files))
	if got.Checked > 0 {
		add(premis.FixityCheck, fmt.Sprintf("%d of %d files came with a digest that the depositor gave, and have it", got.Checked, got.Files))
	}
	if p.Bag {
		add(premis.Validation, "valid as a BagIt bag: complete, every digest verified")
	}
	if p.NoZone > 0 {
		add(premis.MetadataExtraction, fmt.Sprintf("the container tells no time zone of the times of %d files; they are taken for UTC, and may be off by 14 hours", p.NoZone))
	}
	if s := p.Scan; s != nil {
		by(s.Engine, s.At, premis.VirusCheck, s.Detail())
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

// address is where a storage is, or its name where this worker knows no more.
func (w *Record) address(name string) string {
	if root, err := w.Objects.Of(name); err == nil && root.Address != "" {
		return root.Address
	}
	return name
}
