package node

import (
	"context"
	"net"

	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/source"
)

// RegistryOptions says what a Registry's process works on. All must be set, but ReceiptKey, and
// that one of the fields of NSQ is enough.
type RegistryOptions struct {
	Common
	Work // which workers are to be expected: their leases and topics
	Places
	NSQ
	Web
	Database   string
	ReceiptKey *receipt.Key // signs receipts; nil: none are signed
}

// Registry runs API, pages, relay and sweep over a database. On PostgreSQL there may be many such
// processes; a SQLite file is one process's. The error joins a *[NeedError] for everything that is
// wrong or does not answer.
func Registry(ctx context.Context, o RegistryOptions) (*Node, error) {
	return start(ctx, o.Common, func(n *Node) error {
		var listener net.Listener
		d := &desk{
			template: o.Template,
			prefix:   o.TopicPrefix, lease: o.longestLease(), recheck: o.FixityEvery, uploads: o.UploadKeep, limits: o.Uploads, mails: o.Mail.Limits, digest: o.Mail.Digest, unpack: o.Unpack, tempDir: o.TempDir, gate: o.gate(), keys: o.Sources.Keys,
			guard: source.Guard{Allow: o.Sources.Allow}, web: o.Web,
		}
		needs := []need{n.listening(&listener, func(ctx context.Context) (net.Listener, error) { return n.listenWeb(ctx, o.Web) }), {
			"HOLDFAST_DATABASE_URL", o.Database, "the Registry's database", "start it, correct the address, or prepare it by holdfast migrate",
			func(ctx context.Context) (err error) {
				d.registry, err = n.openDatabase(ctx, o.Database, o.ReceiptKey, o.Mail.On)
				return err
			},
		}}
		var found foundRoots
		needs = append(needs, o.Places.needs(n, &d.staging, o.StagingReserve, &found)...)
		needs = append(needs, o.NSQ.needs(n, limits{})...)
		if err := n.meet(ctx, needs); err != nil {
			return err
		}
		if err := found.judge(ctx, n, d.registry); err != nil {
			return err
		}
		var err error
		if d.objects, err = found.complete(ctx, n, d.registry.HasReplicas); err != nil {
			return err
		}
		// Workers are processes of their own and may be at work, so that only their leases tell.
		if err := d.prepare(ctx, n.Log, false); err != nil {
			return err
		}
		return n.runDesk(ctx, d, listener, o.producer())
	})
}
