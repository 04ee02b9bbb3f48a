package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/clamd"
	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/format/siegfried"
	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/mail"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/s3source"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/submission"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/workers"
	"github.com/holdfast/holdfast/workers/delivery"
	"github.com/holdfast/holdfast/workers/payload"
)

// Work has the options of workers. Template must be set.
type Work struct {
	Sources  Sources
	Template noid.Template // with its NAAN
	EZID     *ezid.Client  // for collections that keep their names at EZID; nil: none do

	StagingFull, StagingFullUnestimated float64 // shares, 0 to 1
	StagingReserve                      int64   // bytes of its volume that staging leaves free; negative: by the volume's size
	Uploads                             upload.Limits
	UnknownSize                         int64 // the most bytes of a file of unknown size; 0: any number
	Unpack                              unpack.Limits
	JudgeMemory                         int64             // bytes of memory for judging large uploads; 0: gate.DefaultMemory
	TempDir                             string            // for temporary files; "": with Up "temp" in its folder, else os.TempDir
	UnpackMemory                        int64             // bytes of memory for this process's decompression windows; 0: gate.DefaultMemory
	ClamdAddr                           string            // "": items that need a scan fail
	Siegfried                           siegfried.Options // without URL formats are known by media type only
	TopicPrefix                         string
	FixityEvery                         time.Duration // the longest time between two checks of a stored file; 0: no schedule
	EvidenceWithin                      time.Duration // how long routine events may wait before they are written into the storages
	CopyBytes                           int64         // bytes a second that copies to other storages read in this process; 0: no limit
	FixityBytes                         int64         // bytes a second that checks of this process read; 0: no limit
	UploadKeep                          time.Duration // how long the Registry keeps unfinished uploads; 0: 7 days
	RestoreKeep                         time.Duration // how long a restored tar can be fetched; 0: a week
	Mail                                Mail

	Policy func(s registry.Stage) base.Worker // nil: defaults
}

// Mail has the options for mail. The zero value sends none.
type Mail struct {
	On        bool            // whether the role registry makes mails; `up` does if there is a Sender
	Sender    *mail.Sender    // for this process's worker; nil: it sends none
	Templates *mail.Templates // nil: Holdfast's own
	Link      string          // the address of the pages; "": mails have no links
	Digest    registry.DigestRequest
	Limits    submission.MailLimits // limits on mails that depositors request
}

// mails returns what the workers of a process send mails with.
func (c *workerPool) mails() (*delivery.Mails, error) {
	templates := c.Mail.Templates
	if templates == nil {
		var err error
		if templates, err = mail.LoadTemplates(""); err != nil {
			return nil, err
		}
	}
	return &delivery.Mails{Registry: c.registry, Sender: c.Mail.Sender, Templates: templates, Link: c.Mail.Link}, nil
}

// Sources has the options for fetching from sources.
type Sources struct {
	Allow []netip.Prefix // addresses inside your network that sources may have
	// PerHost, RequestsPerSecond and BytesPerSecond limit this process's requests to one server; 0
	// is the default of source.HTTPOptions.
	PerHost           int
	RequestsPerSecond float64
	BytesPerSecond    int
	LeastRate         int          // a source with fewer bytes a second counts as stalled; 0: no limit
	Keys              *secret.Keys // decrypt the credentials of collections; nil: items that need one fail
}

func (w Work) policy(s registry.Stage) base.Worker {
	if w.Policy == nil {
		return base.Worker{}
	}
	return w.Policy(s)
}

// longestLease returns the longest lease of all stages.
func (w Work) longestLease() (longest time.Duration) {
	for _, s := range registry.Stages() {
		p := w.policy(s)
		longest = max(longest, p.Lease())
	}
	return longest
}

// mostSlots returns the most items that a worker of these stages has under way.
func (w Work) mostSlots(stages []registry.Stage) (most int) {
	for _, s := range stages {
		p := w.policy(s)
		most = max(most, p.Concurrency()+workers.Spare(s, p.Concurrency()))
	}
	return most
}

// gate returns the gate for judging and unpacking in a process.
func (w Work) gate() *gate.Gate {
	return gate.New(gate.Options{Memory: w.JudgeMemory, UnpackMemory: w.UnpackMemory})
}

// workerPool is the workers' part of a process.
type workerPool struct {
	Work
	gate     *gate.Gate
	registry registry.ForWorkers
	interim  interim.Store
	staging  storage.Store
	objects  ocfl.Roots
	buckets  []string // of staging and storage
	queue    queue.ConsumerConfig
}

// identifier returns the client of siegfried; nil without an address.
func (n *Node) identifier(o siegfried.Options) (format.Identifier, error) {
	if o.URL == "" {
		return nil, nil //nolint:nilnil // none is configured
	}
	c, err := siegfried.New(o)
	if err != nil {
		return nil, err
	}
	n.onClose(c.Close)
	return c, nil
}

// scanner returns the client of clamd; nil without an address.
func scanner(addr string) *clamd.Client {
	if addr == "" {
		return nil
	}
	return clamd.New(addr)
}

// runWorkers runs the workers of some stages. listening returns an error while a stage is not
// subscribed at any nsqd.
func (n *Node) runWorkers(c *workerPool, stages []registry.Stage) (listening func(context.Context) error, err error) {
	fetcher := source.NewHTTP(source.HTTPOptions{
		Guard: source.Guard{Allow: c.Sources.Allow}, Log: n.Log, UserAgent: "Holdfast/" + n.Version, PerHost: c.Sources.PerHost,
		RequestsPerSecond: c.Sources.RequestsPerSecond, BytesPerSecond: c.Sources.BytesPerSecond,
		LeastRate: cmp.Or(c.Sources.LeastRate, -1),
	})
	n.onClose(func() error { fetcher.Close(); return nil })
	if c.EZID != nil {
		n.onClose(func() error { c.EZID.Close(); return nil })
	}
	identifier, err := n.identifier(c.Siegfried)
	if err != nil {
		return nil, err
	}
	sources := &payload.Sources{
		Registry: c.registry, Keys: c.Sources.Keys, HTTP: fetcher, S3: s3source.New(fetcher, c.buckets...),
		Uploads: source.NewUploads(c.staging),
	}
	receivers := callback.New(callback.Options{Guard: source.Guard{Allow: c.Sources.Allow}, UserAgent: "Holdfast/" + n.Version})
	n.onClose(func() error { receivers.Close(); return nil })
	mails, err := c.mails()
	if err != nil {
		return nil, err
	}
	all := workers.All(&workers.Deps{
		Registry: c.registry, Interim: c.interim, Staging: c.staging, Volume: "staging", Objects: c.objects,
		Template: c.Template, EZID: c.EZID, Random: rand.Reader, Version: n.Version,
		StagingFull: c.StagingFull, StagingFullUnestimated: c.StagingFullUnestimated, UnknownSize: c.UnknownSize, Unpack: c.Unpack, Gate: c.gate, TempDir: c.TempDir, FixityBytes: c.FixityBytes, CopyBytes: c.CopyBytes, RestoreKeep: c.RestoreKeep, Policy: c.policy,
		Identifier: identifier, Clamd: scanner(c.ClamdAddr),
		Source:    sources.Of,
		Callbacks: &delivery.Callbacks{Registry: c.registry, HTTP: receivers, Wallet: sources.Wallet, Now: time.Now},
		Mails:     mails,
	})
	all = slices.DeleteFunc(all, func(h base.Handler) bool { return !slices.Contains(stages, h.Stage()) })
	if task := protectTask(n.Log); task != nil {
		for i, h := range all {
			all[i] = protecting{h, task}
		}
		n.run(task.run)
	}
	c.queue.Log = n.Log
	n.worker = workerID()
	subscribed := &subscriptions{}
	runner := &base.Runner{
		Registry: c.registry, Interim: c.interim, WorkerID: n.worker, Version: n.Version, Log: n.Log, Grace: n.Grace,
		Connect: subscribed.of(base.Queue(c.queue, c.TopicPrefix)),
	}
	n.run(func(ctx context.Context) {
		if err := runner.Run(ctx, all...); err != nil {
			n.fail(fmt.Errorf("workers: %w", err))
		}
	})
	return subscribed.check, nil
}

// subscriptions are the NSQ consumers of a process's workers.
type subscriptions struct {
	mu   sync.Mutex
	each map[registry.Stage]interface{ Connections() int }
}

// of wraps connect and records its consumers.
func (e *subscriptions) of(connect base.ConnectFunc) base.ConnectFunc {
	return func(ctx context.Context, action registry.Action, stage registry.Stage, free int, handle base.HandleFunc) (base.Consumer, error) {
		c, err := connect(ctx, action, stage, free, handle)
		if err != nil {
			return nil, err
		}
		if counts, ok := c.(interface{ Connections() int }); ok {
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.each == nil {
				e.each = map[registry.Stage]interface{ Connections() int }{}
			}
			e.each[stage] = counts
		}
		return c, nil
	}
}

// check returns an error if a stage has no connection to an nsqd.
func (e *subscriptions) check(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.each) == 0 {
		return errors.New("not subscribed yet")
	}
	for stage, c := range e.each {
		if c.Connections() == 0 {
			return fmt.Errorf("stage %s has no connection to an nsqd", stage)
		}
	}
	return nil
}

// workerID returns an id that is unique for each start of a process (R9) and names host and process
// id. Forwarders use it, too.
func workerID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:6]))
}
