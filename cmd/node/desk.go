package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/periodic"
	"github.com/holdfast/holdfast/periodic/fixityschedule"
	"github.com/holdfast/holdfast/periodic/forward"
	"github.com/holdfast/holdfast/periodic/relay"
	"github.com/holdfast/holdfast/periodic/staging"
	"github.com/holdfast/holdfast/periodic/sweep"
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
)

// desk is the Registry's part of a process: API and pages, relay, forwarder and sweep, over the
// database.
type desk struct {
	registry *sqlstore.Store
	staging  storage.Store
	objects  ocfl.Roots
	keys     *secret.Keys  // seal credentials; nil: none can be set
	unpack   unpack.Limits // on what an upload may unpack to
	tempDir  string
	gate     *gate.Gate             // that judgements of uploads go through
	template noid.Template          // that names are drawn from
	prefix   string                 // of topics
	lease    time.Duration          // the longest that workers are given
	recheck  time.Duration          // how old the check of a stored file may get; 0: no schedule
	digest   registry.DigestRequest // whom to tell what waits for operators; to nobody: nobody is
	limits   upload.Limits
	mails    submission.MailLimits
	uploads  time.Duration // how long uploads are kept that nobody goes on with; 0: the API's default
	guard    source.Guard  // judges the addresses of webhooks
	web      Web           // how browsers sign in, and what serves them
	topics   forward.Queue // where events go that are for topics; nil: to the nsqds of the wake-ups
}

// DefaultCollection is the collection of submissions that name none.
const DefaultCollection = "default"

// prepare takes back what an earlier process had in hand, and sees to it that there is a
// collection. alone says that no worker of an earlier process can be left.
func (d *desk) prepare(ctx context.Context, log *slog.Logger, alone bool) error {
	if alone {
		lost, err := d.registry.Reclaim(ctx)
		if err != nil {
			return err
		}
		for _, l := range lost {
			log.InfoContext(ctx, "goes on with an item of an earlier process", "item", l.ItemID, "attempt", l.N)
		}
	}
	// Messages may be gone: a new broker has none, and a process that was killed may not have sent
	// its last.
	if err := d.registry.Reoffer(ctx); err != nil {
		return err
	}
	_, err := d.registry.Collection(ctx, DefaultCollection)
	if !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	return d.registry.PutCollection(ctx, registry.Collection{Mnemonic: DefaultCollection, Profile: registry.Profile{
		Name:  "Default collection",
		Owner: "ark:/" + d.template.NAAN + "/owner", Collections: []string{"ark:/" + d.template.NAAN + "/default"},
	}}, "holdfast")
}

// runDesk serves requests and runs what the Registry does by itself.
func (n *Node) runDesk(ctx context.Context, d *desk, l net.Listener, q queue.ProducerConfig) error {
	handler, err := n.handler(d) //nolint:contextcheck // every request brings its own
	if err != nil {
		return err
	}
	q.Log = n.Log
	changed := make(chan struct{}, 1)
	q.OnChange = func(string) {
		select {
		case changed <- struct{}{}:
		default: // one is waiting already
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
	n.run(periodic.Job{
		Do: func(ctx context.Context) error { return d.purgeExpired(ctx, n.Log) }, Every: purgeEvery, Log: n.Log,
		Fails: "batches cannot be purged whose retention is over", Works: "batches are purged again whose retention is over",
	}.Run)
	if len(d.digest.To) > 0 {
		n.run(periodic.Job{
			Do: func(ctx context.Context) error { return d.makeDigest(ctx, n.Log) }, Every: digestEvery, Log: n.Log,
			Fails: "the operators' digest cannot be made", Works: "the operators' digest can be made again",
		}.Run)
	}
	n.run(periodic.Job{
		Do: (&checkpoint.Checkpointer{Registry: d.registry, Objects: d.objects}).Make, Every: checkpointEvery, Log: n.Log,
		Fails: "no checkpoint of the events can be made; holdfast object audit --all says more", Works: "checkpoints of the events are made again",
	}.Run)
	n.run((&staging.Sweeper{Registry: d.registry, Staging: d.staging, Log: n.Log}).Run)
	n.serve(l, handler)
	return nil
}

// checkpointEvery is between two looks whether a day's checkpoint is due.
const checkpointEvery = 10 * time.Minute

// digestEvery is between two looks whether a digest is due.
const digestEvery = 30 * time.Second

func (d *desk) makeDigest(ctx context.Context, log *slog.Logger) error {
	made, err := d.registry.MakeDigest(ctx, d.digest)
	if made > 0 {
		log.InfoContext(ctx, "operators are told what waits for them", "mails", made)
	}
	return err
}

// purgeEvery is between two looks for what was kept for its time, which is told in days.
const purgeEvery = time.Minute

func (d *desk) purgeExpired(ctx context.Context, log *slog.Logger) error {
	batches, err := d.registry.PurgeExpired(ctx)
	if batches > 0 {
		log.InfoContext(ctx, "purged batches whose retention is over", "batches", batches)
	}
	return err
}

// reoffer rings again for what waits whenever an nsqd went away or came back: the messages that it
// held may be gone, and without this they would be missed until each is repeated by itself (R19).
func (d *desk) reoffer(ctx context.Context, log *slog.Logger, changed <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		if err := d.registry.Reoffer(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "what was offered cannot be offered again yet; it will be repeated by itself", "err", err)
		}
	}
}

// handler is the API and the pages beside it. Streams end when the server is about to stop.
func (n *Node) handler(d *desk) (http.Handler, error) {
	browsers := signin.New(signin.Options{Store: d.registry, Log: n.Log, Lifetime: d.web.Lifetime, Provider: d.web.Provider})
	pages := func(p api.ForPages) (http.Handler, error) {
		return ui.New(ui.Options{Registry: p.Registry, Forms: p.Forms, Account: p.Account, Uploads: p.Uploads, Log: n.Log, Version: n.Version})
	}
	handler, err := api.New(api.Options{
		Registry: d.registry, Staging: d.staging, Objects: d.objects, Chains: d.registry, Template: d.template, Keys: d.keys, Log: n.Log, Version: n.Version, Unpack: d.unpack, TempDir: d.tempDir, Gate: d.gate, UI: pages, SignIn: browsers, Done: n.streams,
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
