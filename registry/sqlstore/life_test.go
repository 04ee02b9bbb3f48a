package sqlstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// life is everything that a store is asked to write from a batch's submission to its updated
// report, call by call. Each call may be made again after an error; what it needs to know of the
// calls before it stands in the struct.
type life struct {
	s        *sqlstore.Store
	clock    *clock
	batch    string
	lease    registry.Lease
	at       registry.Stage // of the lease
	ark      string
	jobs     []string
	wakes    []registry.Wake
	incoming registry.Incoming
	calls    int
	graph    registry.PreparedGraph
}

// clock is a store's only source of time.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

type call struct {
	name     string
	run      func(context.Context) error
	portions []string // tables that it changes before, in transactions of their own
}

func (l *life) claim(stage registry.Stage) call {
	l.calls++
	r := registry.ClaimRequest{
		RequestID: fmt.Sprintf("request-%d", l.calls), Stage: stage, Worker: fmt.Sprintf("w-%d", l.calls), Lease: 30 * time.Second, MaxAttempts: 5,
	}
	return l.call("claim "+string(stage), func(ctx context.Context) error {
		c, err := l.s.Claim(ctx, r)
		l.lease, l.at = c.Lease, stage
		return err
	})
}

func (l *life) settle(name string, s registry.Settlement) call {
	return l.call("settle "+name, func(ctx context.Context) error {
		s.Lease, s.MaxAttempts = l.lease, 5
		if l.at == registry.Expand || l.at == registry.Estimate {
			s.Events = []registry.NewEvent{{Type: "manifest-warnings"}}
		}
		_, err := l.s.Settle(ctx, s)
		return err
	})
}

func (l *life) done() call {
	return l.settle("done", registry.Settlement{Outcome: registry.OutcomeDone})
}

// goOn settles an attempt whose item continues in the next stage.
func (l *life) goOn(stage registry.Stage) call {
	l.calls++
	r := registry.ClaimRequest{
		RequestID: fmt.Sprintf("request-%d", l.calls), Stage: stage, Worker: fmt.Sprintf("w-%d", l.calls), Lease: 30 * time.Second, MaxAttempts: 5,
	}
	return l.call("continue at "+string(stage), func(ctx context.Context) error {
		_, c, err := l.s.SettleAndClaim(ctx, registry.Settlement{Lease: l.lease, Outcome: registry.OutcomeDone, MaxAttempts: 5}, r)
		if err == nil && c == nil {
			err = errors.New("the item did not continue")
		}
		if err != nil {
			return err
		}
		l.lease, l.at = c.Lease, stage
		return nil
	})
}

func (l *life) call(name string, run func(context.Context) error) call {
	return call{name: name, run: run}
}

func (l *life) command(name string, job int, c registry.Command) call {
	return l.call(name, func(ctx context.Context) error {
		c.ItemID, c.Actor = l.batch, "admin"
		if job >= 0 {
			c.ItemID = l.jobs[job]
		}
		_, err := l.s.Command(ctx, c)
		return err
	})
}

// script lists the calls in order. Two good jobs, of which one fails at first, and a bad row.
func (l *life) script() []call {
	var all []call
	add := func(cs ...call) { all = append(all, cs...) }
	add(l.beginning()...)
	add(l.claim(registry.Expand), l.call("add jobs", func(ctx context.Context) error {
		_, err := l.s.AddJobs(ctx, l.lease, []registry.NewJob{{Line: 1, Name: "a"}, {Line: 2, Name: "b"}, {Line: 3, Name: "c", Fault: "bad"}})
		return err
	}), l.done(), l.call("look", func(ctx context.Context) error {
		page, err := l.s.Items(ctx, registry.ItemQuery{ParentID: l.batch})
		l.jobs = nil
		for _, it := range page.Rows {
			l.jobs = append(l.jobs, it.ID)
		}
		return err
	}))
	first := -1
	add(l.command("priority", 0, registry.Command{Act: registry.ActPriority, Priority: &first}))
	for range 2 {
		add(l.claim(registry.Estimate), l.done())
	}
	add(l.claim(registry.Provision), l.call("reserve", func(ctx context.Context) error {
		return l.s.Reserve(ctx, l.lease, registry.Reservation{Volume: "v", Bytes: 10, Total: 100, Threshold: 1})
	}), l.done())
	add(l.claim(registry.Provision), l.settle("snooze", registry.Settlement{Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Delay: time.Minute}),
		l.call("wait", func(context.Context) error { l.clock.pass(time.Minute); return nil }))
	add(l.claim(registry.Provision), l.settle("release", registry.Settlement{Outcome: registry.OutcomeReleased}))
	add(l.claim(registry.Provision), l.done())
	add(l.claim(registry.Download), l.beat(), l.goOn(registry.Process), l.settle("release", registry.Settlement{Outcome: registry.OutcomeReleased}))
	add(append([]call{l.claim(registry.Download)}, l.lose()...)...)
	add(l.claim(registry.Download), l.settle("fail", registry.Settlement{Outcome: registry.OutcomeFailed, Class: registry.ContentFault}))
	add(l.preserve()...)
	add(l.deliveries()...)
	add(l.reportOn()...)
	add(l.command("requeue", 1, registry.Command{Act: registry.ActRequeue, From: registry.Estimate, IdempotencyKey: "k2"}),
		l.command("cancel", 1, registry.Command{Act: registry.ActCancel}),
		l.command("update report", -1, registry.Command{Act: registry.ActUpdateReport}))
	add(l.reportOn()...)
	add(l.checks()...)
	add(l.restores()...)
	add(l.acts()...)
	add(l.graphs()...)
	add(l.retention()...)
	add(l.subscriptions()...)
	return append(all, l.deletion()...)
}

// subscriptions is one from its making to its end.
func (l *life) subscriptions() []call {
	var turn registry.SubscriptionTurn
	r := registry.SubscriptionRequest{Name: "s", Target: "https://receiver.test/", Actor: "admin"}
	r.Credentials = []registry.Credential{{
		Collection: registry.SubscriptionOwner("s"), Origin: "signing:a", Kind: registry.CredentialSigning, Sealed: "sealed", CreatedBy: "admin",
	}}
	put := l.call("put a subscription", func(ctx context.Context) error {
		_, err := l.s.PutSubscription(ctx, r)
		return err
	})
	take := l.call("take it", func(ctx context.Context) error {
		turns, err := l.s.TakeSubscriptions(ctx, "forwarder", time.Minute)
		if len(turns) > 0 {
			turn = turns[0]
		}
		return err
	})
	return []call{
		put, take,
		l.call("note a failure", func(ctx context.Context) error {
			return l.s.NoteUnforwarded(ctx, registry.SubscriptionFailure{ID: turn.ID, Turn: turn.Turn, Error: "down", Wait: time.Minute})
		}),
		l.call("note progress", func(ctx context.Context) error {
			return l.s.NoteForwarded(ctx, registry.SubscriptionProgress{ID: turn.ID, Turn: turn.Turn, Cursor: 3, Told: 3})
		}),
		l.call("change what it is told", func(context.Context) error { r.Target = "nsq:topic"; return nil }), put,
		l.call("rewind it", func(ctx context.Context) error {
			_, err := l.s.RewindSubscription(ctx, "s", 0, "again", "admin")
			return err
		}),
		l.call("pause it", func(ctx context.Context) error {
			_, err := l.s.PauseSubscription(ctx, "s", "wait", "admin")
			return err
		}),
		l.call("resume it", func(ctx context.Context) error {
			_, err := l.s.ResumeSubscription(ctx, "s", "admin")
			return err
		}),
		take,
		l.call("release it", func(ctx context.Context) error { return l.s.ReleaseSubscriptions(ctx, "forwarder") }),
		l.call("remove it", func(ctx context.Context) error { return l.s.RemoveSubscription(ctx, "s", "admin") }),
	}
}

// deletion is the end of the object: asked for and withdrawn, asked for again, approved by somebody
// else and carried out.
func (l *life) deletion() []call {
	ask := l.call("ask for the deletion", func(ctx context.Context) error {
		_, err := l.s.AskDeletion(ctx, l.ark, "because", "asker")
		return err
	})
	return []call{
		ask,
		l.call("withdraw it", func(ctx context.Context) error {
			_, err := l.s.WithdrawDeletion(ctx, l.ark, "other")
			return err
		}),
		ask,
		l.call("approve the deletion", func(ctx context.Context) error {
			_, err := l.s.ApproveDeletion(ctx, l.ark, "approver")
			return err
		}),
		l.claim(registry.Delete),
		l.call("lock what is deleted", func(ctx context.Context) error {
			_, err := l.s.LockObject(ctx, l.lease, l.ark)
			return err
		}),
		l.call("mark as being deleted", func(ctx context.Context) error {
			_, err := l.s.MarkDeleting(ctx, l.lease, l.ark, registry.Remains{Version: 1, Files: "sha256:ab"})
			return err
		}),
		{name: "record the deletion", portions: []string{"stored_file"}, run: func(ctx context.Context) error {
			return l.s.RecordDeletion(ctx, l.lease, l.ark, []registry.Premis{{ID: "deletion", ObjectID: l.ark, ItemID: l.lease.ItemID, Type: "deletion", Agent: "Holdfast"}})
		}},
		l.done(),
	}
}

// retention is of a batch that is kept for a day.
func (l *life) retention() []call {
	days := 1
	return []call{
		l.call("look for orphans", func(ctx context.Context) error {
			_, err := l.s.SearchOrphans(ctx, registry.OrphanRequest{Search: registry.OrphanSearch{Older: time.Hour}, Actor: "admin", IdempotencyKey: "orphans"})
			return err
		}), l.claim(registry.Cleanup), l.done(),
		l.call("keep for a day", func(ctx context.Context) error {
			return l.s.PutCollection(ctx, registry.Collection{Mnemonic: "short", Profile: registry.Profile{RetentionDays: &days, DuplicateDays: new(int)}}, "admin")
		}),
		l.call("submit what is kept for a day", func(ctx context.Context) error {
			_, err := l.s.Submit(ctx, registry.Submission{Collection: "short", IdempotencyKey: "short"})
			return err
		}),
		l.claim(registry.Expand), l.call("add a job that is kept for a day", func(ctx context.Context) error {
			_, err := l.s.AddJobs(ctx, l.lease, []registry.NewJob{{Line: 1}})
			return err
		}), l.done(),
		l.claim(registry.Estimate), l.done(), l.claim(registry.Provision), l.done(), l.claim(registry.Download), l.done(),
		l.claim(registry.Process), l.done(), l.claim(registry.Record), l.done(), l.claim(registry.Notify), l.done(),
		l.claim(registry.Report), l.closeReport(), l.done(),
		l.call("wait", func(context.Context) error { l.clock.pass(25 * time.Hour); return nil }),
		l.call("purge expired", func(ctx context.Context) error {
			_, err := l.s.PurgeExpired(ctx)
			return err
		}),
	}
}

// told is a profile of a collection that has a callback.
func told(p registry.Profile) registry.Profile {
	p.Callback = &registry.Callback{URL: "https://receiver.test/", GoesOn: true}
	return p
}

// deliveries are of the job that failed, by its own item, and of the one that completes, which
// passes its message on.
func (l *life) deliveries() []call {
	var m registry.DeliverySpec
	note := func(status int, text string) call {
		return l.call("note a delivery", func(ctx context.Context) error {
			_, err := l.s.NoteDelivery(ctx, l.lease, registry.DeliveryTry{Message: m, Status: status, Error: text})
			return err
		})
	}
	read := l.call("look at the message", func(ctx context.Context) error {
		it, err := l.s.Item(ctx, l.lease.ItemID)
		m, _ = registry.DeliverySpecIn(it.Spec)
		return err
	})
	return []call{
		l.claim(registry.Deliver), read, note(200, ""), l.done(), // of the bad row
		l.claim(registry.Deliver), read, note(503, "not now"), note(200, ""), l.done(),
		l.claim(registry.Notify), l.call("think of a message", func(context.Context) error {
			m = registry.DeliverySpec{Subject: l.lease.ItemID, State: registry.StateCompleted, Callback: *told(registry.Profile{}).Callback}
			return nil
		}), note(503, "not now"), l.call("pass on", func(ctx context.Context) error { return l.s.PassOn(ctx, l.lease, m) }), l.done(),
		l.claim(registry.Deliver), read, note(200, ""), l.done(),
	}
}

// checks are of what the batch stored: of one file by schedule, and of all that are left when
// somebody asks.
func (l *life) checks() []call {
	recheck := func(most int) call {
		return l.call("recheck", func(ctx context.Context) error {
			_, err := l.s.Recheck(ctx, registry.RecheckRequest{Every: time.Minute, Outstanding: most, Keep: time.Minute})
			return err
		})
	}
	wait := l.call("wait", func(context.Context) error { l.clock.pass(time.Hour); return nil })
	check := func() []call {
		return []call{l.claim(registry.Fixity), l.call("lock object", func(ctx context.Context) error {
			_, err := l.s.LockObject(ctx, l.lease, l.ark)
			return err
		}), l.call("look at the file", func(ctx context.Context) error {
			_, err := l.s.StoredFile(ctx, l.lease)
			return err
		}), l.call("damaged", func(ctx context.Context) error {
			return l.s.RecordCheck(ctx, l.lease, registry.CheckRecord{Replicas: []registry.ReplicaCheck{{Storage: "s", Outcome: registry.CheckMissing}}})
		}), l.call("mended", func(ctx context.Context) error {
			return l.s.RecordCheck(ctx, l.lease, registry.CheckRecord{
				Replicas: []registry.ReplicaCheck{{Storage: "s", Outcome: registry.CheckRepaired}},
				Events:   []registry.Premis{{ID: fmt.Sprint("check", l.lease.ItemID), ObjectID: l.ark, Version: 1, ItemID: l.lease.ItemID, Type: "fixity check", Agent: "Holdfast"}},
			})
		}), l.done()}
	}
	all := []call{wait, recheck(1)}
	all = append(all, check()...)
	all = append(all, l.call("ask for a check", func(ctx context.Context) error {
		return l.s.AskForCheck(ctx, registry.CheckRequest{ObjectID: l.ark, Reason: "r", Actor: "admin"})
	}), recheck(1))
	all = append(all, check()...)
	return append(all, wait, recheck(0))
}

// restores are of what the batch stored: asked for, recorded and asked for again.
func (l *life) restores() []call {
	ask := l.call("ask for a restore", func(ctx context.Context) error {
		_, err := l.s.RequestObject(ctx, registry.ObjectRequest{Action: registry.RestoreObject, Spec: registry.ObjectSpec{ObjectID: l.ark}, Actor: "d"})
		return err
	})
	return []call{ask, l.claim(registry.Restore), l.call("record what was restored", func(ctx context.Context) error {
		_, err := l.s.RecordRestoration(ctx, l.lease, registry.RestorationRecord{
			RestoredParcel: registry.RestoredParcel{Name: "n", Place: registry.RestoredKey(l.lease, "n"), SizeBytes: 1, SHA256: strings.Repeat("0", 64)}, Keep: time.Hour,
			Events: []registry.Premis{{ID: "restored " + l.lease.ItemID, ObjectID: l.ark, Version: 1, ItemID: l.lease.ItemID, Type: "dissemination", Agent: "Holdfast"}},
		})
		return err
	}), l.done(), ask, l.call("list restores", func(ctx context.Context) error {
		_, err := l.s.Restorations(ctx, l.ark, 9, 10)
		return err
	})}
}

// graphs lists what is asked of graphs: b and e wait for the success of a, c for that of b, d until
// a has settled. a fails first and is sent back; b is given up, and c with it.
func (l *life) graphs() []call {
	requires := func(key string, wait registry.WaitFor) registry.Submission {
		return registry.Submission{Collection: "c", Name: key, Requires: []registry.Requirement{{Key: key, WaitFor: wait}}}
	}
	prepare := func(name string, nodes ...registry.Node) call {
		return l.call(name, func(ctx context.Context) error {
			p, err := l.s.Prepare(ctx, registry.Graph{ID: l.graph.GraphID, Nodes: nodes, IdempotencyKey: name, Actor: "depositor"})
			if err != nil {
				return err
			}
			if l.graph.Items == nil {
				l.graph.Items = map[string]string{}
			}
			l.graph.GraphID = p.GraphID
			maps.Copy(l.graph.Items, p.Items)
			return nil
		})
	}
	command := func(name, key string, act registry.Act) call {
		return l.call(name, func(ctx context.Context) error {
			_, err := l.s.Command(ctx, registry.Command{ItemID: l.graph.Items[key], Act: act, Actor: "admin", Confirmed: true})
			return err
		})
	}
	return []call{
		prepare("prepare",
			registry.Node{Key: "a", Submission: registry.Submission{Collection: "c"}},
			registry.Node{Key: "b", Submission: requires("a", registry.WaitSuccess)}),
		prepare("prepare more",
			registry.Node{Key: "c", Submission: requires("b", registry.WaitSuccess)},
			registry.Node{Key: "d", Submission: requires("a", registry.WaitSettled)},
			registry.Node{Key: "e", Submission: requires("a", registry.WaitSuccess)}),
		l.call("seal", func(ctx context.Context) error { return l.s.Seal(ctx, l.graph.GraphID, "depositor") }),
		l.call("submit after", func(ctx context.Context) error {
			_, err := l.s.Submit(ctx, registry.Submission{
				Collection: "c", IdempotencyKey: "after", Requires: []registry.Requirement{{ItemID: l.graph.Items["b"]}, {ItemID: l.batch, WaitFor: registry.WaitSettled}},
			})
			return err
		}),
		l.claim(registry.Expand), l.settle("fail a", registry.Settlement{Outcome: registry.OutcomeFailed, Class: registry.SystemFault}),
		command("requeue a", "a", registry.ActRequeue),
		l.claim(registry.Expand), l.done(), l.claim(registry.Report), l.done(),
		command("abort b", "b", registry.ActAbort),
	}
}

// acts are what admins do to other batches: what runs is cancelled, aborted and told of, a batch is
// deleted with its jobs by a bulk act, what it left is tidied up, and it is purged.
func (l *life) acts() []call {
	var batch string
	var jobs []string
	ask := func(name string, item func() string, c registry.Command) call {
		return l.call(name, func(ctx context.Context) error {
			c.ItemID, c.Actor, c.Confirmed = item(), "admin", true
			_, err := l.s.Command(ctx, c)
			return err
		})
	}
	job := func(n int) func() string { return func() string { return jobs[n] } }
	whole := func() string { return batch }
	apply := func(name string) []call {
		return []call{l.claim(registry.Apply), l.call("apply "+name, func(ctx context.Context) error {
			_, err := l.s.ApplyNext(ctx, l.lease)
			return err
		}), l.done()}
	}
	var all []call
	add := func(cs ...call) { all = append(all, cs...) }
	add(l.call("submit more", func(ctx context.Context) error {
		r, err := l.s.Submit(ctx, registry.Submission{Collection: "c", IdempotencyKey: "k3"})
		batch = r.BatchID
		return err
	}), l.claim(registry.Expand), l.call("add more jobs", func(ctx context.Context) error {
		_, err := l.s.AddJobs(ctx, l.lease, []registry.NewJob{{Line: 1}, {Line: 2}, {Line: 3, Fault: "bad"}})
		return err
	}), l.done(), l.call("look at more", func(ctx context.Context) error {
		page, err := l.s.Items(ctx, registry.ItemQuery{ParentID: batch})
		jobs = nil
		for _, it := range page.Rows {
			jobs = append(jobs, it.ID)
		}
		return err
	}))
	add(l.claim(registry.Estimate), ask("cancel what runs", job(0), registry.Command{Act: registry.ActCancel, IdempotencyKey: "k4"}))
	add(l.claim(registry.Estimate), l.settle("fail for now", registry.Settlement{Outcome: registry.OutcomeRetry, Delay: time.Hour, Error: "down", MaxAttempts: 5}))
	add(ask("retry at once", job(1), registry.Command{Act: registry.ActRetryNow, IdempotencyKey: "k6"}))
	add(l.claim(registry.Estimate), ask("abort what runs", job(1), registry.Command{Act: registry.ActAbort, Reason: "because"}))
	add(l.call("bulk", func(ctx context.Context) error {
		_, err := l.s.Bulk(ctx, registry.BulkRequest{
			Match: registry.Query{Terms: []registry.Term{{Field: "batch", Value: batch}}}, Act: registry.ActRequeue, Actor: "admin", IdempotencyKey: "k5",
		})
		return err
	}))
	add(apply("requeue")...)
	var delayed string
	add(l.call("bulk after a grace", func(ctx context.Context) error {
		it, err := l.s.Bulk(ctx, registry.BulkRequest{
			Match: registry.Query{Terms: []registry.Term{{Field: "batch", Value: batch}}}, Act: registry.ActDelete, Actor: "admin", IdempotencyKey: "k7",
			GraceSeconds: registry.MostGrace,
		})
		delayed = it.ID
		return err
	}), ask("withdraw it", func() string { return delayed }, registry.Command{Act: registry.ActCancel, IdempotencyKey: "k8"}))
	add(ask("cancel the batch", whole, registry.Command{Act: registry.ActCancel}))
	add(apply("cancel")...)
	add(l.reportOn()...)
	add(ask("delete the batch", whole, registry.Command{Act: registry.ActDelete}))
	add(apply("delete")...)
	add(l.call("wait", func(context.Context) error { l.clock.pass(time.Hour); return nil }))
	for range 3 { // of the two jobs that were claimed, and of the batch
		add(l.claim(registry.Cleanup), l.done())
	}
	return append(all, ask("purge the batch", whole, registry.Command{Act: registry.ActPurge}), l.call("it is gone", func(ctx context.Context) error {
		if it, err := l.s.Item(ctx, batch); !errors.Is(err, registry.ErrNotFound) {
			return fmt.Errorf("batch %+v is still there: %w", it, err)
		}
		return nil
	}))
}

func (l *life) beginning() []call {
	return []call{
		l.call("collection", func(ctx context.Context) error {
			return l.s.PutCollection(ctx, registry.Collection{Mnemonic: "c", Profile: told(registry.Profile{ReleaseOneByOne: true, Owner: "o"})}, "admin")
		}),
		l.call("token", func(ctx context.Context) error {
			return l.s.AddToken(ctx, registry.Token{ID: "t", Hash: "h", Name: "n", Role: registry.RoleWorker})
		}),
		l.call("begin upload", func(ctx context.Context) error {
			_, err := l.s.BeginUpload(ctx, registry.NewUpload{ID: "u", SizeBytes: 1, Keep: time.Hour})
			return err
		}),
		l.call("take upload", func(ctx context.Context) error {
			var err error
			l.incoming, err = l.s.TakeUpload(ctx, "u", 0)
			return err
		}),
		l.call("save upload", func(ctx context.Context) error {
			_, err := l.s.SaveUpload(ctx, registry.UploadPart{ID: "u", N: l.incoming.N, Offset: 1, SizeBytes: 1, Keep: time.Hour})
			return err
		}),
		l.call("upload", func(ctx context.Context) error { return l.s.FinishUpload(ctx, registry.Upload{ID: "u"}) }),
		l.call("begin another upload", func(ctx context.Context) error {
			_, err := l.s.BeginUpload(ctx, registry.NewUpload{ID: "v", SizeBytes: 1, Keep: time.Hour})
			return err
		}),
		l.call("give upload up", func(ctx context.Context) error { return l.s.DropUpload(ctx, "v") }),
		l.call("look for what was given up", func(ctx context.Context) error {
			_, err := l.s.DroppedUploads(ctx)
			return err
		}),
		l.call("forget upload", func(ctx context.Context) error { return l.s.ForgetUpload(ctx, "v") }),
		l.call("submit", func(ctx context.Context) error {
			r, err := l.s.Submit(ctx, registry.Submission{
				Collection: "c", Spec: registry.Spec{URL: registry.UploadURL("u")}, IdempotencyKey: "k1",
			})
			l.batch = r.BatchID
			return err
		}),
		l.call("take the callback from later batches", func(ctx context.Context) error {
			return l.s.PutCollection(ctx, registry.Collection{Mnemonic: "c", Profile: registry.Profile{ReleaseOneByOne: true, Owner: "o"}, Version: registry.AnyVersion}, "admin")
		}),
		l.call("hold", func(ctx context.Context) error {
			return l.s.AddHold(ctx, registry.Hold{Scope: registry.HoldBatch, Key: l.batch, Actor: "admin"})
		}),
		l.call("claim what is held", func(ctx context.Context) error {
			_, err := l.s.Claim(ctx, registry.ClaimRequest{RequestID: "held", Stage: registry.Expand, Hint: l.batch, Worker: "w"})
			var refused *registry.NotClaimable
			if errors.As(err, &refused) && refused.Reason == registry.ReasonHeld {
				return nil
			}
			return fmt.Errorf("a held item was not refused: %w", err)
		}),
		l.call("release", func(ctx context.Context) error {
			return l.s.RemoveHold(ctx, registry.HoldBatch, l.batch, "admin")
		}),
		l.call("hold collection", func(ctx context.Context) error {
			return l.s.AddHold(ctx, registry.Hold{Scope: registry.HoldCollection, Key: "c", Actor: "admin"})
		}),
		l.call("release one by one", func(ctx context.Context) error {
			return l.s.RemoveHold(ctx, registry.HoldCollection, "c", "admin")
		}),
		l.call("release item", func(ctx context.Context) error {
			return l.s.RemoveHold(ctx, registry.HoldItem, l.batch, "admin")
		}),
		l.call("hold worker", func(ctx context.Context) error {
			return l.s.AddHold(ctx, registry.Hold{Scope: registry.HoldWorker, Key: "w", Actor: "admin"})
		}),
		l.call("release worker", func(ctx context.Context) error {
			return l.s.RemoveHold(ctx, registry.HoldWorker, "w", "admin")
		}),
		l.call("accept", func(ctx context.Context) error {
			return l.s.SetAccepting(ctx, registry.Accepting{On: true, Reason: "r", Actor: "admin"})
		}),
		l.call("due", func(ctx context.Context) error {
			var err error
			l.wakes, err = l.s.Due(ctx, registry.DueRequest{Window: 2, Renudge: time.Second, RenudgeMax: time.Minute})
			return err
		}),
		l.call("reoffer", func(ctx context.Context) error { return l.s.Reoffer(ctx) }),
		l.call("undo", func(ctx context.Context) error { return l.s.Undo(ctx, l.wakes) }),
	}
}

func (l *life) beat() call {
	return l.call("renew", func(ctx context.Context) error {
		_, err := l.s.Renew(ctx, registry.RenewRequest{
			Worker: registry.WorkerInfo{ID: "w", Capacity: map[registry.Stage]int{registry.Download: 1}}, Lease: 30 * time.Second,
			Beats: []registry.Beat{{Lease: l.lease, Advanced: true, DoneBytes: 5, DoneFiles: 1, Progress: []registry.Progress{{Title: "x"}}}},
		})
		return err
	})
}

// lose lets a lease run out and the sweep take the item away. The sweep's first look after the gap
// is a quiet one.
func (l *life) lose() []call {
	look := func(ctx context.Context) error {
		_, err := l.s.Sweep(ctx, 30*time.Second)
		return err
	}
	all := []call{l.call("sweep", look)}
	for range 4 {
		all = append(all, l.call("wait", func(context.Context) error { l.clock.pass(14 * time.Second); return nil }), l.call("sweep", look))
	}
	return all
}

func (l *life) preserve() []call {
	return []call{
		l.claim(registry.Process),
		l.call("save result", func(ctx context.Context) error {
			_, err := l.s.SaveResult(ctx, l.lease, "r", json.RawMessage(`1`))
			return err
		}),
		l.call("identify", func(ctx context.Context) error {
			id, err := l.s.Identify(ctx, l.lease, registry.IdentifyRequest{Owner: "o", LocalIDs: []string{"x"}, Proposed: "ark:/99999/p"})
			l.ark = id.ARK
			return err
		}),
		l.call("intend", func(ctx context.Context) error {
			_, err := l.s.Intend(ctx, l.lease, registry.Intent{ObjectID: l.ark, Version: 1, Plan: json.RawMessage(`{}`)})
			return err
		}),
		l.done(),
		l.claim(registry.Record),
		l.call("record files", func(ctx context.Context) error {
			return l.s.RecordFiles(ctx, l.lease, l.ark, 1, []registry.File{{Path: "a", ContentPath: "v1/content/a"}, {Path: "b", ContentPath: "v1/content/b"}})
		}),
		l.call("record version", func(ctx context.Context) error {
			return l.s.RecordVersion(ctx, l.lease, registry.VersionRecord{
				ObjectID: l.ark, Version: 1, Collection: "c", Owner: "o", Files: 2,
				Replicas: []registry.Replica{{Storage: registry.DefaultStorage, VerifiedAt: time.Now()}},
				Events:   []registry.Premis{{ID: "e", ObjectID: l.ark, Version: 1, ItemID: l.lease.ItemID, Type: "ingestion", Agent: "Holdfast"}},
			})
		}),
		l.done(),
	}
}

func (l *life) reportOn() []call {
	return []call{l.claim(registry.Report), l.closeReport(), l.done()}
}

// closeReport copies the jobs in transactions of their own; nobody sees that before the last one.
func (l *life) closeReport() call {
	return call{name: "close report", portions: []string{"report_draft", "report_job"}, run: func(ctx context.Context) error {
		_, err := l.s.CloseReport(ctx, l.lease)
		return err
	}}
}
