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

// Work says how workers work. Template must be set.
type Work struct {
	Sources  Sources
	Template noid.Template // with its NAAN
	EZID     *ezid.Client  // of collections that keep their names there; nil: none do

	StagingFull, StagingFullUnestimated float64 // shares, 0 to 1
	StagingReserve                      int64   // bytes of its volume that staging leaves alone; below 0: by the volume's size
	Uploads                             upload.Limits
	UnknownSize                         int64 // bytes that a file may have whose size nobody tells; 0: any number
	Unpack                              unpack.Limits
	JudgeMemory                         int64             // bytes that the Registry's judging of large uploads may hold in all; 0: gate.DefaultMemory
	TempDir                             string            // of temporary files; "": of Up "temp" in its folder, else that of os.TempDir
	UnpackMemory                        int64             // bytes of windows that this process's workers may decompress containers in; 0: gate.DefaultMemory
	ClamdAddr                           string            // "": items that are to be scanned fail
	Siegfried                           siegfried.Options // URL "": formats are known by media type only
	TopicPrefix                         string
	FixityEvery                         time.Duration // how old the check of a stored file may get; 0: no schedule
	FixityBytes                         int64         // a second that checks read in this process; 0: no limit
	UploadKeep                          time.Duration // how long the Registry keeps uploads that nobody goes on with; 0: 7 days
	RestoreKeep                         time.Duration // how long what was restored can be fetched; 0: a week
	Mail                                Mail

	Policy func(s registry.Stage) base.Worker // nil: defaults
}

// Mail says whether and how people are told by mail. The zero value is a Holdfast without mail.
type Mail struct {
	On        bool            // a Registry that is a process of its own makes mails; one in `up` does when there is a Sender
	Sender    *mail.Sender    // of this process's worker; nil: it can send none
	Templates *mail.Templates // nil: ours
	Link      string          // the address of the pages, for people; "": mails have no links
	Digest    registry.DigestRequest
	Limits    submission.MailLimits // on what depositors can have mailed
}

// mails is what the workers of a process tell people by.
func (c *crew) mails() (*delivery.Mails, error) {
	templates := c.Mail.Templates
	if templates == nil {
		var err error
		if templates, err = mail.LoadTemplates(""); err != nil {
			return nil, err
		}
	}
	return &delivery.Mails{Registry: c.registry, Sender: c.Mail.Sender, Templates: templates, Link: c.Mail.Link}, nil
}

// Sources says how what depositors name is fetched.
type Sources struct {
	Allow []netip.Prefix // addresses that sources may have although the guard refuses them
	// PerHost, RequestsPerSecond and BytesPerSecond limit what this process asks of one server; 0
	// is the default of source.HTTPOptions.
	PerHost           int
	RequestsPerSecond float64
	BytesPerSecond    int
	LeastRate         int          // bytes a second below which a source counts as stalled; 0: it never does
	Keys              *secret.Keys // open the credentials of collections; nil: what needs one fails
}

func (w Work) policy(s registry.Stage) base.Worker {
	if w.Policy == nil {
		return base.Worker{}
	}
	return w.Policy(s)
}

// longestLease is the longest lease that a worker of any stage is given.
func (w Work) longestLease() (longest time.Duration) {
	for _, s := range registry.Stages() {
		p := w.policy(s)
		longest = max(longest, p.Lease())
	}
	return longest
}

// mostSlots is the most items that a worker of these stages works on at once.
func (w Work) mostSlots(stages []registry.Stage) (most int) {
	for _, s := range stages {
		p := w.policy(s)
		most = max(most, p.Concurrency()+workers.Spare(s, p.Concurrency()))
	}
	return most
}

// gate is what judging and unpacking in a process go through.
func (w Work) gate() *gate.Gate {
	return gate.New(gate.Options{Memory: w.JudgeMemory, UnpackMemory: w.UnpackMemory})
}

// crew is the workers' part of a process.
type crew struct {
	Work
	gate     *gate.Gate
	registry registry.ForWorkers
	interim  interim.Store
	staging  storage.Store
	objects  ocfl.Roots
	buckets  []string // that staging and storage are in
	queue    queue.ConsumerConfig
}

// identifier is what finds the formats of files; nil without an address.
func (n *Node) identifier(o siegfried.Options) (format.Identifier, error) {
	if o.URL == "" {
		return nil, nil //nolint:nilnil // none is an answer
	}
	c, err := siegfried.New(o)
	if err != nil {
		return nil, err
	}
	n.onClose(c.Close)
	return c, nil
}

// scanner is what looks for viruses; nil without an address.
func scanner(addr string) *clamd.Client {
	if addr == "" {
		return nil
	}
	return clamd.New(addr)
}

// runCrew runs the workers of some stages. What it returns says whether they hear of work.
func (n *Node) runCrew(c *crew, stages []registry.Stage) (listening func(context.Context) error, err error) {
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
		StagingFull: c.StagingFull, StagingFullUnestimated: c.StagingFullUnestimated, UnknownSize: c.UnknownSize, Unpack: c.Unpack, Gate: c.gate, TempDir: c.TempDir, FixityBytes: c.FixityBytes, RestoreKeep: c.RestoreKeep, Policy: c.policy,
		Identifier: identifier, Clamd: scanner(c.ClamdAddr),
		Source:    sources.Of,
		Callbacks: &delivery.Callbacks{Registry: c.registry, HTTP: receivers, Wallet: sources.Wallet, Now: time.Now},
		Mails:     mails,
	})
	all = slices.DeleteFunc(all, func(h base.Handler) bool { return !slices.Contains(stages, h.Stage()) })
	c.queue.Log = n.Log
	n.worker = workerID()
	ears := &ears{}
	runner := &base.Runner{
		Registry: c.registry, Interim: c.interim, WorkerID: n.worker, Version: n.Version, Log: n.Log, Grace: n.Grace,
		Connect: ears.of(base.Queue(c.queue, c.TopicPrefix)),
	}
	n.run(func(ctx context.Context) {
		if err := runner.Run(ctx, all...); err != nil {
			n.fail(fmt.Errorf("workers: %w", err))
		}
	})
	return ears.check, nil
}

// ears are the subscriptions of a process's workers.
type ears struct {
	mu   sync.Mutex
	each map[registry.Stage]interface{ Connections() int }
}

// of notes the subscriptions that are made.
func (e *ears) of(connect base.ConnectFunc) base.ConnectFunc {
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

// check is an error while a stage has no nsqd that it hears of work by.
func (e *ears) check(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.each) == 0 {
		return errors.New("not subscribed yet")
	}
	for stage, c := range e.each {
		if c.Connections() == 0 {
			return fmt.Errorf("stage %s is subscribed at no nsqd", stage)
		}
	}
	return nil
}

// workerID is unique for each start of a process (R9), and tells people where to look. Forwarders
// have one, too.
func workerID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:6]))
}
