package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/holdfast/holdfast/backup"
	interimsql "github.com/holdfast/holdfast/interim/sqlstore"
	"github.com/holdfast/holdfast/periodic/forward"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage/dir"
)

// UpOptions has the options of Up. Dir must be set.
type UpOptions struct {
	Common
	Work
	Web
	Dir string // made if missing; has all data except that in Storages
	// Paused, unless it is "", pauses everything with this reason before any step begins.
	Paused string
	// Storages are further preservation storages. The folder's own is called
	// registry.DefaultStorage; none of these may be.
	Storages []Storage
	// NSQ receives the events of subscriptions to topics, and never wake-ups. Without it such
	// events are not sent: the embedded broker is private to this process.
	NSQ NSQ
	// Database is the Registry's address; "" is a SQLite file in Dir, private to this process.
	Database string
	// SecretKey has keys for encrypting credentials, as secret.Parse reads them. They take
	// precedence over the folder's own key, which is made only if there are none. The keys in Work
	// are ignored.
	SecretKey string
	// ReceiptKey signs receipts; nil: the folder's own key, made at the first start.
	ReceiptKey *receipt.Key
	Backups    BackupPlan
}

// Up opens or makes the folder and runs everything in it: Registry, broker, workers, API and pages.
// It resumes the work of an earlier process. Errors name the setting at fault: [ErrInUse] if
// another process has the folder, syscall.EADDRINUSE for the address. If it fails, nothing is left
// running.
func Up(ctx context.Context, o UpOptions) (*Node, error) {
	return start(ctx, o.Common, func(n *Node) error { return n.up(ctx, o) })
}

func (n *Node) up(ctx context.Context, o UpOptions) error {
	folder, err := openFolder(o.Dir)
	if err != nil {
		return err
	}
	n.onClose(folder.Close)
	o.ACME.Cache = cmp.Or(o.ACME.Cache, filepath.Join(o.Dir, "acme"))
	folder.tighten(ctx, n.Log)
	// Bind the address first: it is taken most often, and then nothing should have started.
	listener, err := n.listenWeb(ctx, o.Web)
	if err != nil {
		return err
	}
	if o.Sources.Keys, err = folder.keys(o.SecretKey); err != nil {
		return err
	}
	if o.ReceiptKey == nil {
		if o.ReceiptKey, err = folder.receiptKey(); err != nil {
			return err
		}
	}
	if o.TempDir == "" {
		if o.TempDir, err = folder.temporary(); err != nil {
			return err
		}
	}
	server := &registryServer{
		template: o.Template, prefix: o.TopicPrefix, lease: o.longestLease(), recheck: o.FixityEvery, within: o.EvidenceWithin, uploads: o.UploadKeep, limits: o.Uploads, mails: o.Mail.Limits, digest: o.Mail.Digest, unpack: o.Unpack, tempDir: o.TempDir, gate: o.gate(), keys: o.Sources.Keys,
		guard: source.Guard{Allow: o.Sources.Allow}, web: o.Web, backups: o.Backups,
	}
	if server.topics, err = n.topics(ctx, o.NSQ); err != nil {
		return err
	}
	pool := &workerPool{Work: o.Work, gate: server.gate}
	if err := n.openUp(ctx, o, server, pool); err != nil {
		return err
	}
	if err := server.prepare(ctx, n.Log, o.Database == ""); err != nil {
		return err
	}
	n.store = server.registry
	if o.Paused != "" {
		if err := server.registry.AddHold(ctx, registry.Hold{Scope: registry.HoldAll, Reason: o.Paused, Actor: "up"}); err != nil {
			return err
		}
	}
	if n.token, err = folder.client(ctx, server.registry, Client{URL: n.url, CA: absolute(o.TLSCert)}); err != nil {
		return err
	}
	// Other users of this machine can reach the port, so it asks for a secret that stays in this
	// process.
	own := NSQ{AuthSecret: rand.Text()}
	b, err := broker.New(broker.Options{Log: n.Log, AuthSecret: own.AuthSecret})
	if err != nil {
		return err
	}
	n.onClose(b.Close)
	if err := b.Listen("127.0.0.1:0"); err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	own.Addrs = []string{b.Addr()}
	n.Log.DebugContext(ctx, "the broker of this process listens", "nsqd", b.Addr())
	if err := n.runRegistry(ctx, server, listener, own.producer()); err != nil {
		return err
	}
	pool.queue = own.consumer()
	_, err = n.runWorkers(pool, registry.Stages()) // the broker is embedded, so listening is not needed
	return err
}

// topics returns the producer of events for topics.
func (n *Node) topics(ctx context.Context, q NSQ) (forward.Queue, error) {
	if len(q.Addrs)+len(q.LookupAddrs) == 0 {
		return noTopics{}, nil
	}
	cfg := q.producer()
	cfg.Log = n.Log
	p, err := queue.OpenProducer(context.WithoutCancel(ctx), cfg)
	if err != nil {
		return nil, err
	}
	n.onClose(func() error { p.Close(); return nil })
	return p, nil
}

// noTopics is the producer without an nsqd that others can read from.
type noTopics struct{}

// Send implements forward.Queue.
func (noTopics) Send(context.Context, string, ...[]byte) error {
	return errors.New("topics need an nsqd: set HOLDFAST_NSQD_ADDR or HOLDFAST_NSQLOOKUPD_ADDRS, and start again")
}

// DatabaseIn returns the address of the Registry's database in a folder of up.
func DatabaseIn(dir string) string { return "sqlite:" + filepath.Join(dir, backup.DatabaseName) }

// openUp opens everything in the folder.
func (n *Node) openUp(ctx context.Context, o UpOptions, d *registryServer, c *workerPool) error {
	database := cmp.Or(o.Database, DatabaseIn(o.Dir))
	// Nobody else uses an empty database, so up makes its tables. An older schema may serve processes of
	// the version before: `holdfast migrate` migrates it.
	r, err := n.openDatabase(ctx, sqlstore.Options{URL: database, MakeSchema: true, ReceiptKey: o.ReceiptKey, Mail: o.Mail.Sender != nil, FixityEvery: o.FixityEvery})
	if err != nil {
		return err
	}
	d.registry, c.registry = r, r
	path := filepath.Join(o.Dir, "interim.db")
	TightenDatabase(ctx, n.Log, "sqlite:"+path)
	i, err := interimsql.Open(ctx, path, n.Log)
	if err != nil {
		return err
	}
	n.onClose(i.Close)
	TightenDatabase(ctx, n.Log, "sqlite:"+path) // again: Open may have replaced a damaged file
	c.interim = i
	path = filepath.Join(o.Dir, "staging")
	staging, err := dir.Create(path)
	if err != nil {
		return err
	}
	tighten(ctx, n.Log, path, privateFolder)
	n.onClose(staging.Close)
	reserve(staging, o.StagingReserve)
	d.staging, c.staging = staging, staging
	own := filepath.Join(absolute(o.Dir), "storage")
	if err := os.MkdirAll(own, 0o755); err != nil {
		return fmt.Errorf("make the folder of preservation storage: %w", err)
	}
	all := append([]Storage{{Name: registry.DefaultStorage, Address: (&url.URL{Scheme: "file", Path: own}).String()}}, o.Storages...)
	var found foundRoots
	if err := n.meet(ctx, found.find(n, all)); err != nil {
		return err
	}
	if err := found.judge(ctx, n, r); err != nil {
		return err
	}
	roots, err := found.complete(ctx, n, o.TempDir, r.HasReplicas)
	d.objects, c.objects = roots, roots
	return err
}

func absolute(path string) string {
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
