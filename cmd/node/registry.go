package node

import (
	"context"
	"net"

	"github.com/holdfast/holdfast/periodic/cloudwatch"
	"github.com/holdfast/holdfast/periodic/firstworker"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/source"
)

// RegistryOptions has the options of Registry. All must be set, except ReceiptKey, CloudWatch, ECS
// and one of the fields of NSQ.
type RegistryOptions struct {
	Common
	Work // the leases and topics of the workers, which run elsewhere
	Places
	NSQ
	Web
	Database   string
	ReceiptKey *receipt.Key // signs receipts; nil: none are signed
	CloudWatch string       // the namespace for the stages' backlog; "": it is not sent
	ECS        ECS
}

// ECS says where first workers of stages are started, while the backlog is sent.
type ECS struct {
	Cluster string // at Amazon ECS; "": they are not
	Most    map[registry.Stage]int
}

// Registry runs API, pages, relay and sweep over a database. On PostgreSQL several such processes
// may run; a SQLite file serves one. The error joins a *[NeedError] for each need that is wrong or
// does not answer.
func Registry(ctx context.Context, o RegistryOptions) (*Node, error) {
	return start(ctx, o.Common, func(n *Node) error {
		var listener net.Listener
		d := &registryServer{
			template: o.Template,
			prefix:   o.TopicPrefix, lease: o.longestLease(), recheck: o.FixityEvery, within: o.EvidenceWithin, uploads: o.UploadKeep, limits: o.Uploads, mails: o.Mail.Limits, digest: o.Mail.Digest, unpack: o.Unpack, tempDir: o.TempDir, gate: o.gate(), keys: o.Sources.Keys,
			guard: source.Guard{Allow: o.Sources.Allow}, web: o.Web,
		}
		needs := []need{n.listening(&listener, func(ctx context.Context) (net.Listener, error) { return n.listenWeb(ctx, o.Web) }), {
			"HOLDFAST_DATABASE_URL", o.Database, "the Registry's database", "start it, or correct the address",
			func(ctx context.Context) (err error) {
				d.registry, err = n.openDatabase(ctx, sqlstore.Options{URL: o.Database, ReceiptKey: o.ReceiptKey, Mail: o.Mail.On, FixityEvery: o.FixityEvery})
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
		if d.objects, err = found.complete(ctx, n, o.TempDir, d.registry.HasReplicas); err != nil {
			return err
		}
		// Workers of their own processes may be at work, so wait for their leases.
		if err := d.prepare(ctx, n.Log, false); err != nil {
			return err
		}
		if o.CloudWatch != "" {
			p := &cloudwatch.Publisher{Registry: d.registry, Namespace: o.CloudWatch, Log: n.Log}
			if o.ECS.Cluster != "" {
				p.Start = (&firstworker.Services{Cluster: o.ECS.Cluster, Most: o.ECS.Most, Log: n.Log}).Start
			}
			n.run(p.Run)
		}
		return n.runRegistry(ctx, d, listener, o.producer())
	})
}
