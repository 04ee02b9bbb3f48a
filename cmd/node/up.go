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

	interimsql "github.com/holdfast/holdfast/interim/sqlstore"
	"github.com/holdfast/holdfast/periodic/forward"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage/dir"
)

// UpOptions says what to run in one process, and how. Dir must be set.
type UpOptions struct {
	Common
	Work
	Web
	Dir string // made when it is missing; everything of this Holdfast lies in it, but what goes to Storages
	// Paused, unless it is "", pauses everything for this reason before any step begins.
	Paused string
	// Storages are preservation storages beside the folder's own, which is called
	// registry.DefaultStorage: none here may be called so.
	Storages []Storage
	// NSQ is where events go that are for topics. Wake-ups never do. Without it there are none:
	// nobody else would find the broker in this process, which keeps what nobody reads in memory.
	NSQ NSQ
	// Database is the Registry's address; "" is a SQLite file in Dir, which is nobody else's.
	Database string
	// SecretKey are the texts of keys that seal credentials, as secret.Parse takes them. They go
	// before the folder's own key, which is made only when there are none; the keys in Work are not
	// looked at.
	SecretKey string
	// ReceiptKey signs receipts; nil: the folder's own key, which is made at the first start.
	ReceiptKey *receipt.Key
}

// Up opens or makes the folder and runs everything in it: Registry, broker, workers, API and pages.
// What an earlier process left under way goes on. The errors say what is wrong with which setting:
// [ErrInUse] when another process has the folder, syscall.EADDRINUSE for the address. When it
// fails, nothing is left running.
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
	// The address first: it is what most often is taken, and nothing should have started then.
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
	desk := &desk{
		template: o.Template, prefix: o.TopicPrefix, lease: o.longestLease(), recheck: o.FixityEvery, uploads: o.UploadKeep, limits: o.Uploads, mails: o.Mail.Limits, digest: o.Mail.Digest, unpack: o.Unpack, tempDir: o.TempDir, gate: o.gate(), keys: o.Sources.Keys,
		guard: source.Guard{Allow: o.Sources.Allow}, web: o.Web,
	}
	if desk.topics, err = n.topics(ctx, o.NSQ); err != nil {
		return err
	}
	crew := &crew{Work: o.Work, gate: desk.gate}
	if err := n.openUp(ctx, o, desk, crew); err != nil {
		return err
	}
	if err := desk.prepare(ctx, n.Log, o.Database == ""); err != nil {
		return err
	}
	n.store = desk.registry
	if o.Paused != "" {
		if err := desk.registry.AddHold(ctx, registry.Hold{Scope: registry.HoldAll, Reason: o.Paused, Actor: "up"}); err != nil {
			return err
		}
	}
	if n.token, err = folder.client(ctx, desk.registry, Client{URL: n.url, CA: absolute(o.TLSCert)}); err != nil {
		return err
	}
	// Other users of this machine reach it, too; the secret is told to this process's own clients
	// alone.
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
	if err := n.runDesk(ctx, desk, listener, own.producer()); err != nil {
		return err
	}
	crew.queue = own.consumer()
	_, err = n.runCrew(crew, registry.Stages()) // the broker is in this process
	return err
}

// topics is what sends to topics that others read.
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

// noTopics is where there is no nsqd that others can read from.
type noTopics struct{}

// Send implements forward.Queue.
func (noTopics) Send(context.Context, string, ...[]byte) error {
	return errors.New("there is no nsqd that others can read from: set HOLDFAST_NSQD_ADDR or HOLDFAST_NSQLOOKUPD_ADDRS, and start again")
}

// openUp opens everything that lies in the folder.
func (n *Node) openUp(ctx context.Context, o UpOptions, d *desk, c *crew) error {
	database := cmp.Or(o.Database, "sqlite:"+filepath.Join(o.Dir, "registry.db"))
	r, err := n.openDatabase(ctx, database, o.ReceiptKey, o.Mail.Sender != nil)
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
	TightenDatabase(ctx, n.Log, "sqlite:"+path) // a damaged one was set aside, and another made
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
	roots, err := found.complete(ctx, n, r.HasReplicas)
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
