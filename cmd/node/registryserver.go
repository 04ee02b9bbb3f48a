package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/evidence/keep"
	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/periodic"
	"github.com/holdfast/holdfast/periodic/fixityschedule"
	"github.com/holdfast/holdfast/periodic/forward"
	"github.com/holdfast/holdfast/periodic/relay"
	"github.com/holdfast/holdfast/periodic/schedule"
	"github.com/holdfast/holdfast/periodic/staging"
	"github.com/holdfast/holdfast/periodic/sweep"
	"github.com/holdfast/holdfast/periodic/throughput"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/checkpoint"
	"github.com/holdfast/holdfast/web/api/redact"
	"github.com/holdfast/holdfast/web/api/submission"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/ui"
	"github.com/holdfast/holdfast/web/ui/page"
)

// registryServer is the Registry's part of a process: API, pages, relay, forwarder, sweep and the
// other periodic jobs, over the database.
type registryServer struct {
	registry *sqlstore.Store
	source   string // the Registry's permanent identifier
	staging  storage.Store
	objects  ocfl.Roots
	keys     *secret.Keys  // encrypt credentials; nil: none can be set
	unpack   unpack.Limits // limits on the unpacked size of an upload
	tempDir  string
	gate     *gate.Gate             // admits judgements of uploads
	template noid.Template          // of new names
	prefix   string                 // of topics
	lease    time.Duration          // the longest lease of workers
	within   time.Duration          // how long routine events may wait before they are written into the storages
	recheck  time.Duration          // the longest time between two checks of a stored file; 0: no schedule
	digest   registry.DigestRequest // of what waits for operators; without addressees no digest is sent
	limits   upload.Limits
	mails    submission.MailLimits
	uploads  time.Duration // how long unfinished uploads are kept; 0: the API's default
	guard    source.Guard  // checks the addresses of webhooks
	web      Web           // TLS, sessions and sign-in
	topics   forward.Queue // carries events for topics; nil: the nsqds of the wake-ups
	backups  BackupPlan
}

// DefaultCollection is the collection of submissions that name none.
const DefaultCollection = "default"

// prepare reads the Registry's identifier, makes waiting items due again and makes sure that the default collection exists. alone
// says that no worker of an earlier process is left: it then takes their items back at once.
func (d *registryServer) prepare(ctx context.Context, log *slog.Logger, alone bool) error {
	if err := d.rebuilt(ctx); err != nil {
		return err
	}
	// First of all: with the first claim a step may begin that gives a second name to a stored object.
	restored, err := d.registry.HoldRestored(ctx)
	if err != nil {
		return err
	}
	if restored.Open() {
		log.WarnContext(ctx, "this Registry was restored from a backup, and its record was not compared with the storages since: what would name or write objects is held; stop it and run holdfast reconcile (docs/receipt.md, After a backup was restored)",
			"backup_at", restored.BackupAt, "restored_at", restored.RestoredAt, "backup", restored.From)
	}
	if alone {
		lost, err := d.registry.Reclaim(ctx)
		if err != nil {
			return err
		}
		for _, l := range lost {
			log.InfoContext(ctx, "resuming an item of an earlier process", "item", l.ItemID, "attempt", l.N)
		}
	}
	// Messages may be lost: a new broker has none, and a killed process may not have sent its last.
	if err := d.registry.Reoffer(ctx); err != nil {
		return err
	}
	if d.source, err = d.registry.Source(ctx); err != nil {
		return err
	}
	_, err = d.registry.Collection(ctx, DefaultCollection)
	if !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	return d.registry.PutCollection(ctx, registry.Collection{Mnemonic: DefaultCollection, Profile: registry.Profile{
		Name:  "Default collection",
		Owner: "ark:/" + d.template.NAAN + "/owner", Collections: []string{"ark:/" + d.template.NAAN + "/default"},
	}}, "holdfast")
}

// runRegistry serves requests and runs the periodic jobs.
func (n *Node) runRegistry(ctx context.Context, d *registryServer, l net.Listener, q queue.ProducerConfig) error {
	handler, err := n.handler(d) //nolint:contextcheck // each request has its own
	if err != nil {
		return err
	}
	q.Log = n.Log
	changed := make(chan struct{}, 1)
	q.OnChange = func(string) {
		select {
		case changed <- struct{}{}:
		default: // one is pending
		}
	}
	producer, err := queue.OpenProducer(context.WithoutCancel(ctx), q)
	if err != nil {
		return err
	}
	n.onClose(func() error { producer.Close(); return nil })
	r := relay.New(d.registry, producer, n.Log)
	r.Prefix = d.prefix
	n.run(r.Run)
	n.run(func(ctx context.Context) { d.reoffer(ctx, n.Log, changed) })
	webhooks := callback.New(callback.Options{Guard: d.guard, UserAgent: "Holdfast/" + n.Version})
	n.onClose(func() error { webhooks.Close(); return nil })
	topics := d.topics
	if topics == nil {
		topics = producer
	}
	n.run(forward.New(forward.Options{
		Registry: d.registry, Queue: topics, Webhooks: webhooks, Keys: d.keys, Redact: redact.Events, Prefix: d.prefix,
		Owner: workerID(), Log: n.Log,
	}).Run)
	n.run(sweep.New(d.registry, d.lease, n.Log).Run)
	n.run(fixityschedule.New(d.registry, d.recheck, n.Log).Run)
	n.run((&schedule.Timer{Registry: d.registry, Log: n.Log}).Run)
	n.run((&throughput.Counter{Registry: d.registry, Log: n.Log}).Run)
	n.run(periodic.Job{
		Do: d.registry.NoteTokenUses, Every: tokenUsesEvery, Log: n.Log,
		Fails: "noting when tokens were used failed; will retry", Works: "uses of tokens are noted again",
	}.Run)
	n.run(periodic.Job{
		Do: func(ctx context.Context) error { return d.purgeExpired(ctx, n.Log) }, Every: purgeEvery, Log: n.Log,
		Fails: "purging batches after their retention failed; will retry", Works: "purging batches after their retention works again",
	}.Run)
	if len(d.digest.To) > 0 {
		n.run(periodic.Job{
			Do: func(ctx context.Context) error { return d.makeDigest(ctx, n.Log) }, Every: digestEvery, Log: n.Log,
			Fails: "making the operators' digest failed; will retry", Works: "making the operators' digest works again",
		}.Run)
	}
	n.run(periodic.Job{
		Do: d.makeCheckpoints, Every: checkpointEvery, Log: n.Log,
		Fails: "writing a checkpoint failed; holdfast object audit --all has the details", Works: "writing checkpoints works again",
	}.Run)
	n.run(periodic.Job{
		Do: d.keepEvidence, Every: evidenceEvery, Log: n.Log,
		Fails: "writing events beside the bytes of their objects failed; will retry", Works: "writing events beside the bytes of their objects works again",
	}.Run)
	n.run(periodic.Job{
		Do: func(ctx context.Context) error { return d.alignObjects(ctx, n.Log) }, Every: alignEvery, Log: n.Log,
		Fails: "queueing copies for storages that are filled or retired failed; will retry", Works: "copies for storages are queued again",
	}.Run)
	n.runBackups(d.backups, d.registry, d.source)
	n.run((&staging.Sweeper{Registry: d.registry, Staging: d.staging, Log: n.Log}).Run)
	n.serve(l, handler)
	return nil
}

// tokenUsesEvery is the interval at which the uses of tokens are written. Those since the last time
// are lost when the process dies.
const tokenUsesEvery = time.Minute

// checkpointEvery is the interval of checks whether the day's checkpoint is due.
const checkpointEvery = 10 * time.Minute

// evidenceEvery is the interval at which events that wait are looked for.
const evidenceEvery = 10 * time.Second

// alignEvery is the interval at which objects are looked for that lack a copy, while a storage is filled or
// retired. aligning bounds what is queued in it.
const alignEvery = time.Second

var aligning = registry.AlignRequest{Outstanding: 200, Keep: 24 * time.Hour}

// alignObjects has objects copied to where they belong. After a restore from a backup it waits as
// makeCheckpoints does: the storages may have newer versions.
func (d *registryServer) alignObjects(ctx context.Context, log *slog.Logger) error {
	held, err := d.registry.RestoredHeld(ctx)
	if err != nil || held {
		return err
	}
	done, err := d.registry.Align(ctx, aligning)
	for _, s := range done.Ended {
		log.InfoContext(ctx, "a storage has all that belongs there, or is not needed any more", "storage", s.Name, "state", string(s.State))
	}
	return err
}

// digestEvery is the interval of checks whether a digest is due.
const digestEvery = 30 * time.Second

// makeCheckpoints writes the checkpoints that are due. After a restore from a backup it waits until an
// admin has released the holds: a checkpoint of the older record would make it look whole, and hide what
// it has lost.
func (d *registryServer) makeCheckpoints(ctx context.Context) error {
	held, err := d.registry.RestoredHeld(ctx)
	if err != nil || held {
		return err
	}
	return (&checkpoint.Checkpointer{Registry: d.registry, Objects: d.objects}).Make(ctx)
}

// keepEvidence writes events that wait beside the bytes of their objects. After a restore from a backup
// it waits as makeCheckpoints does: the storages may have other events of the same numbers.
func (d *registryServer) keepEvidence(ctx context.Context) error {
	held, err := d.registry.RestoredHeld(ctx)
	if err != nil || held {
		return err
	}
	return (&keep.Keeper{Registry: d.registry, Objects: d.objects, Within: d.within}).Make(ctx)
}

func (d *registryServer) makeDigest(ctx context.Context, log *slog.Logger) error {
	made, err := d.registry.MakeDigest(ctx, d.digest)
	if made > 0 {
		log.InfoContext(ctx, "queued the operators' digest", "mails", made)
	}
	return err
}

// purgeEvery is the interval of checks for batches whose retention, counted in days, is over.
const purgeEvery = time.Minute

func (d *registryServer) purgeExpired(ctx context.Context, log *slog.Logger) error {
	batches, err := d.registry.PurgeExpired(ctx)
	if batches > 0 {
		log.InfoContext(ctx, "purged batches whose retention is over", "batches", batches)
	}
	return err
}

// reoffer makes waiting items due again whenever an nsqd went away or came back. Its messages may
// be lost, and each would otherwise be repeated only by its own timer (R19).
func (d *registryServer) reoffer(ctx context.Context, log *slog.Logger, changed <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		if err := d.registry.Reoffer(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "re-offering items failed; each is repeated by its own timer", "err", err)
		}
	}
}

// handler returns the API and the pages. Streams end when the server is about to stop.
func (n *Node) handler(d *registryServer) (http.Handler, error) {
	browsers := signin.New(signin.Options{Store: d.registry, Log: n.Log, Lifetime: d.web.Lifetime, Provider: d.web.Provider})
	pages := func(p api.ForPages) (http.Handler, error) {
		return ui.New(page.Options{
			Transport: p.API, May: p.May, Caller: p.Caller, UploadUse: p.UploadUse, Changes: p.Changes, Specification: p.Specification,
			Log: n.Log, Version: n.Version,
		})
	}
	handler, err := api.New(api.Options{
		Registry: d.registry, Staging: d.staging, Objects: d.objects, Chains: d.registry, Template: d.template, Keys: d.keys, Log: n.Log, Version: n.Version, Source: d.source, Unpack: d.unpack, TempDir: d.tempDir, Gate: d.gate, UI: pages, SignIn: browsers, Done: n.streams,
		UploadKeep: d.uploads, Uploads: d.limits, Mails: d.mails,
	})
	if err != nil {
		return nil, err
	}
	handler = d.web.Proxies.Handler(handler, d.web.HSTS)
	if n.proxied {
		handler = d.web.Proxies.Only(handler, n.Log)
	}
	return handler, nil
}
