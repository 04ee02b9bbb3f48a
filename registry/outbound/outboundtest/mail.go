package outboundtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func mailTests() tests {
	return tests{
		"of_a_batch_that_is_taken_in":               queuedMailed,
		"of_a_graph_goes_out_when_it_is_sealed":     sealedMailed,
		"R22_of_a_report_is_made_with_it_once":      reportMailed,
		"of_an_update_is_another_message":           updateMailed,
		"one_with_a_deleted_job_is_not_called_safe": deletedNotSafe,
		"is_suppressed_by_no_failure":               failuresMailed,
		"of_a_batch_that_cannot_be_read":            unreadMailed,
		"of_a_batch_that_is_ended_for_good":         stoppedMailed,
		"is_asked_for_again":                        mailedAgain,
		"of_others_need_leave":                      mailOfOthers,
		"of_others_are_limited_a_day":               mailDaily,
		"safe_needs_every_replica":                  safety,
		"goes_with_its_batch_and_leaves_no_address": mailPurged,
		"digest_is_made_once_a_period":              digestOnce,
		"digest_refuses_what_is_no_address":         digestRefused,
		"digest_tells_at_once_of_lasting_damage":    digestOfDamage,
		"attention_tells_what_was_not_delivered":    attention,
	}
}

func (f *fixture) mailed(id string, want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.Mails(id)); diff != "" {
		f.Errorf("mails (-want +got):\n%s", diff)
	}
}

// mailRules sets the collection's mail rules.
func (f *fixture) mailRules(m registry.MailRules) {
	f.Helper()
	f.Collection(registrytest.Mnemonic, registry.Profile{Owner: registrytest.Owner, Mail: &m})
}

// report brings a batch with settled jobs through its report.
func (f *fixture) report(id string) {
	f.Helper()
	l := f.Take(registry.Report, id).Lease
	failed := f.CloseReport(l).Failed
	if failed == 0 {
		f.Done(l)
		return
	}
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
}

func queuedMailed(f *fixture) {
	f.mailRules(registry.MailRules{To: []string{"curator@example.org"}, Queued: true})
	r, err := f.Store.Submit(f.Context(), func() registry.Submission {
		s := registrytest.Submission()
		registrytest.Notifying("Ann <ann@Example.org>", "ann@example.org", "curator@EXAMPLE.org")(&s)
		s.IdempotencyKey = f.Unique("key")
		return s
	}())
	f.Must(err)
	if r.NoMail {
		f.Errorf("%+v", r)
	}
	f.mailed(r.BatchID, "queued ann@Example.org", "queued curator@example.org")
	f.mailRules(registry.MailRules{To: []string{"curator@example.org"}})
	f.mailed(f.Submit(func(s *registry.Submission) { s.Force = true }))
	for _, it := range f.DeliveryItems() {
		if it.Collection != registrytest.Mnemonic || strings.Contains(it.Name, "@") {
			f.Errorf("item %+v", it)
		}
	}
}

// mailing submits under mail terms and names addresses.
func (f *fixture) mailing(terms registry.MailTerms, to ...string) (registry.Submitted, error) {
	s := registrytest.Submission()
	s.Force, s.Mails, s.Spec.Notify = true, &terms, to
	return f.Store.Submit(f.Context(), s)
}

func mailOfOthers(f *fixture) {
	f.mailRules(registry.MailRules{
		To: []string{"curator@example.org"}, Allow: []string{"Editor@press.example", "museum.example", "*.uni.example"}, Queued: true,
	})
	terms := registry.MailTerms{Token: "ann", Own: "ann@home.example", Domains: []string{"library.example"}}
	for _, to := range []string{
		"ann@Home.example", "Editor@press.example", "anybody@museum.example", "x@law.uni.example", "x@a.b.Uni.example", "x@Library.example",
	} {
		r, err := f.mailing(terms, "Somebody <"+to+">", "curator@EXAMPLE.org")
		f.Must(err)
		want := []string{"queued curator@example.org", "queued " + to}
		slices.Sort(want)
		f.mailed(r.BatchID, want...)
	}
	for _, to := range []string{
		"curator@example.org.evil.example", "eve@example.org", "eve@home.example", "editor@press.example", "x@sub.museum.example", "x@uni.example", "x@eviluni.example",
		"x@library.example.evil.example", `"eve@evil.example"@library.example`, `"eve%evil.example"@library.example`, "eve%evil.example@library.example",
		"x@[127.0.0.1]",
	} {
		_, err := f.mailing(terms, "ann@home.example", to, "x@library.example")
		var refused *registry.MailRefusedError
		if address, _ := registry.MailAddress(to); !errors.As(err, &refused) || refused.Collection != registrytest.Mnemonic || !slices.Equal(refused.Addresses, []string{address}) {
			f.Errorf("%s: %v, want that it alone is refused", to, err)
		}
	}
	_, err := f.mailing(registry.MailTerms{Token: "bob"}, "ann@home.example")
	if !errors.As(err, new(*registry.MailRefusedError)) {
		f.Errorf("an address of somebody else: %v, want that it is refused", err)
	}
	node := registry.Node{Key: "a", Submission: registrytest.Submission()}
	node.Submission.Mails, node.Submission.Spec.Notify = &terms, []string{"eve@example.org"}
	if _, err := f.Store.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{node}, Actor: "ann"}); !errors.As(err, new(*registry.MailRefusedError)) {
		f.Errorf("in a graph: %v, want that it is refused", err)
	}
	page, err := f.Store.Items(f.Context(), registry.ItemQuery{Action: registry.Batch})
	f.Must(err)
	if len(page.Rows) != 6 {
		f.Errorf("%d batches, want the 6 that were not refused", len(page.Rows))
	}
}

func mailDaily(f *fixture) {
	f.mailRules(registry.MailRules{To: []string{"curator@example.org"}, Allow: []string{"museum.example"}})
	terms := registry.MailTerms{Token: "ann", Own: "ann@home.example", Daily: 10}
	full := func(err error, used, need int64) {
		f.Helper()
		var limit *registry.MailLimitError
		if !errors.As(err, &limit) || limit.Token != "ann" || limit.Daily != 10 || limit.Used != used || limit.Need != need {
			f.Fatalf("%v (%+v), want a limit of which %d is used, and %d more", err, limit, used, need)
		}
		if next := f.Clock.Now().Truncate(24 * time.Hour).Add(24 * time.Hour); !limit.Until.Equal(next) {
			f.Errorf("until %v, want %v", limit.Until, next)
		}
	}
	// Its own and the collection's people count nothing, and nobody counts twice.
	_, err := f.mailing(terms, "a@museum.example", "A <a@MUSEUM.example>", "b@museum.example", "ann@home.example", "curator@example.org")
	f.Must(err)
	_, err = f.mailing(terms, append(several("c", 8), "d@museum.example")...)
	full(err, 2, 9)
	// What was refused, and what is no new submission, count nothing.
	key := f.Unique("key")
	keyed := registrytest.Submission()
	keyed.Force, keyed.Mails, keyed.IdempotencyKey, keyed.Spec.Notify = true, &terms, key, several("k", 2)
	for range 3 {
		_, err = f.Store.Submit(f.Context(), keyed)
		f.Must(err)
	}
	wrong := registrytest.Submission()
	wrong.Mails, wrong.Spec.Notify, wrong.Requires = &terms, several("k", 2), []registry.Requirement{{ItemID: "nothing"}}
	_, err = f.Store.Submit(f.Context(), wrong)
	f.Is(err, registry.ErrNotFound)
	node := func(key string, n int) registry.Node {
		s := registrytest.Submission()
		s.Mails, s.Spec.Notify = &terms, several(key, n)
		return registry.Node{Key: key, Submission: s}
	}
	_, err = f.Store.Prepare(f.Context(), registry.Graph{Nodes: []registry.Node{node("x", 3), node("y", 4)}, Actor: "ann"})
	full(err, 7, 4) // and nothing of the graph counts
	// Of many at once as many are taken as fit.
	var all sync.WaitGroup
	var taken atomic.Int64
	for range 20 {
		all.Go(func() {
			switch _, err := f.mailing(terms, "a@museum.example"); {
			case err == nil:
				taken.Add(1)
			case !errors.As(err, new(*registry.MailLimitError)):
				f.Error(err)
			}
		})
	}
	all.Wait()
	if taken.Load() != 6 {
		f.Errorf("%d submissions were taken, want the 6 that fit", taken.Load())
	}
	_, err = f.mailing(terms, "a@museum.example")
	full(err, 10, 1)
	_, err = f.mailing(terms, "ann@home.example")
	f.Must(err)
	others := terms
	others.Token = "bob"
	_, err = f.mailing(others, "a@museum.example")
	f.Must(err)
	f.Clock.Pass(12*time.Hour - time.Second) // the clock begins at noon
	_, err = f.mailing(terms, "a@museum.example")
	full(err, 10, 1)
	f.Clock.Pass(time.Second)
	_, err = f.mailing(terms, several("e", 10)...)
	f.Must(err)
}

// several returns addresses in one domain.
func several(name string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d@museum.example", name, i))
	}
	return out
}

func sealedMailed(f *fixture) {
	f.mailRules(registry.MailRules{To: []string{"curator@example.org"}, Queued: true})
	s := registrytest.Submission()
	graph, items := f.Prepare("", registry.Node{Key: "a", Submission: s})
	f.mailed(items["a"])
	for range 2 {
		f.Must(f.Store.Seal(f.Context(), graph, "depositor"))
	}
	f.mailed(items["a"], "queued curator@example.org")
}

func reportMailed(f *fixture) {
	id, jobs := f.Batch(2, registrytest.Notifying("ann@example.org", "bob@example.org"))
	f.Finish(jobs[0])
	f.FailItem(jobs[1], registry.ContentFault)
	f.mailed(id)
	// The worker dies behind the report: the mails are made, and the next attempt makes no others.
	l := f.Take(registry.Report, id).Lease
	f.CloseReport(l)
	want := []string{"report ann@example.org 1 Failed", "report bob@example.org 1 Failed"}
	f.mailed(id, want...)
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	f.report(id)
	f.mailed(id, want...)
	ids := map[string]bool{}
	for _, d := range f.Deliveries(id) {
		ids[d.ID] = true
		if strings.Contains(d.ID, "@") || strings.Contains(d.ID, "ann") {
			f.Errorf("the id tells the address: %s", d.ID)
		}
	}
	if len(ids) != 2 || len(f.DeliveryItems()) != 2 {
		f.Errorf("%d messages by %d items, want one an address", len(ids), len(f.DeliveryItems()))
	}
	// Nobody is told of one that names nobody.
	quiet, jobs := f.Batch(1, func(s *registry.Submission) { s.Force = true })
	f.Finish(jobs[0])
	f.report(quiet)
	f.mailed(quiet)
}

func updateMailed(f *fixture) {
	f.mailRules(registry.MailRules{To: []string{"ann@example.org"}, FailuresOnly: true, Safe: true})
	id, jobs := f.Reportable()
	f.report(id)
	f.Command(jobs[1], registry.ActRequeue, registry.Estimate)
	f.Finish(jobs[1])
	f.Command(id, registry.ActUpdateReport, "")
	f.report(id)
	// Those who were told of the failure are told that it is over, although a batch that went well
	// is not told of.
	f.mailed(id, "report ann@example.org 1 Failed", "report ann@example.org 2 Completed", "safe ann@example.org 2 Completed")
	ids := map[string]bool{}
	for _, d := range f.Deliveries(id) {
		ids[d.ID] = true
	}
	if len(ids) != 3 {
		f.Errorf("ids %v, want one a message", ids)
	}
}

// deletedNotSafe: the report of a batch leaves out a deleted job, and no mail says that the batch
// is safe.
func deletedNotSafe(f *fixture) {
	f.mailRules(registry.MailRules{To: []string{"ann@example.org"}, FailuresOnly: true, Safe: true})
	id, jobs := f.Reportable()
	f.report(id)
	f.DeleteItem(jobs[1])
	f.Command(id, registry.ActUpdateReport, "")
	f.report(id)
	f.State(id, registry.StateCompleted)
	f.mailed(id, "report ann@example.org 1 Failed", "report ann@example.org 2 Completed")
}

func failuresMailed(f *fixture) {
	f.mailRules(registry.MailRules{To: []string{"ann@example.org"}, FailuresOnly: true})
	id, jobs := f.Batch(1)
	f.Finish(jobs[0])
	f.report(id)
	f.mailed(id)
	id, jobs = f.Batch(2, func(s *registry.Submission) { s.Force = true })
	f.Finish(jobs[0])
	f.Command(jobs[1], registry.ActCancel, "") // what did not complete counts, whoever stopped it
	f.report(id)
	f.mailed(id, "report ann@example.org 1 Failed")
}

func unreadMailed(f *fixture) {
	f.mailRules(registry.MailRules{To: []string{"ann@example.org"}, FailuresOnly: true})
	id := f.Submit()
	for range 2 {
		l := f.TakeItem(id).Lease
		s := registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no rows"}
		f.Settle(s)
		f.Settle(s) // answered with the recorded verdict (R9)
		f.Command(id, registry.ActRequeue, registry.Expand)
	}
	f.mailed(id, "failed ann@example.org", "failed ann@example.org")
	all := f.Deliveries(id)
	if all[0].ID == all[1].ID || all[0].State != registry.StateFailed {
		f.Errorf("messages %+v, want one a failure", all)
	}
}

func mailedAgain(f *fixture) {
	f.mailRules(registry.MailRules{To: []string{"curator@example.org"}})
	id, jobs := f.Batch(2, registrytest.Notifying("ann@example.org"))
	f.Finish(jobs[0])
	f.FailItem(jobs[1], registry.ContentFault)
	ask := func() (registry.WorkItem, error) {
		return f.Store.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: id, Reason: "it was lost", Actor: "admin"})
	}
	_, err := ask()
	f.Is(err, registry.ErrInvalid)
	f.report(id)
	f.mailRules(registry.MailRules{To: []string{"new@example.org"}, FailuresOnly: true})
	before := f.Deliveries(id)
	it, err := ask()
	f.Must(err)
	spec, _ := registry.DeliverySpecIn(it.Spec)
	if !spec.Again || spec.Reason != "it was lost" || spec.Closing != 1 || spec.To != "new@example.org" {
		f.Errorf("it tells %+v", spec)
	}
	f.mailed(id, "report ann@example.org 1 Failed", "report curator@example.org 1 Failed", "report new@example.org 1 Failed")
	for _, d := range f.Deliveries(id) {
		i := slices.IndexFunc(before, func(b registry.Delivery) bool { return b.ID == d.ID })
		if moved := i >= 0 && before[i].ItemID != d.ItemID; moved != (d.Target == "ann@example.org") {
			f.Errorf("%+v goes on with another item: %v", d, moved)
		}
	}
	f.mailRules(registry.MailRules{})
	quiet, jobs := f.Batch(1, func(s *registry.Submission) { s.Force = true })
	f.Finish(jobs[0])
	f.report(quiet)
	_, err = f.Store.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: quiet, Actor: "admin"})
	f.Is(err, registry.ErrNoMail)
}

// safety: a batch is not safe if a storage lacks a version, a file is damaged, an object is
// deleted, or a deletion is open.
func safety(f *fixture) {
	id, jobs := f.Batch(2)
	look := func() registry.Safety {
		f.Helper()
		s, err := f.Store.BatchSafety(f.Context(), id)
		f.Must(err)
		return s
	}
	if s := look(); s.Safe() {
		f.Errorf("nothing is stored: %+v", s)
	}
	for i, job := range jobs {
		f.Bring(job, registry.Process)
		l := f.TakeItem(job).Lease
		ark := f.Named(l, f.Unique("object")).ARK
		if i == 0 {
			f.Preserve(l, ark, 1, registrytest.File("producer/a"))
		}
		f.Done(l)
		f.Finish(job)
	}
	if s := look(); s.Safe() || s.Objects != 2 || s.Missing != 1 {
		f.Errorf("one of two is stored: %+v", s)
	}
	id, jobs = f.Batch(1, func(s *registry.Submission) { s.Force = true })
	f.Bring(jobs[0], registry.Process)
	l := f.TakeItem(jobs[0]).Lease
	ark := f.Named(l, f.Unique("object")).ARK
	f.Preserve(l, ark, 1, registrytest.File("producer/a"))
	f.Done(l)
	if s := look(); s.Safe() {
		f.Errorf("its job has not completed: %+v", s)
	}
	f.Finish(jobs[0])
	s := look()
	if !s.Safe() || s.Objects != 1 || !slices.Equal(s.Storages, []string{registrytest.Storage}) || s.VerifiedAt.IsZero() {
		f.Errorf("all is stored: %+v", s)
	}
	f.Clock.Pass(time.Hour)
	f.Must(f.Store.AskForCheck(f.Context(), registry.CheckRequest{ObjectID: ark, Actor: "admin"}))
	f.Recheck(10)
	check, _ := f.TakeCheck()
	f.RecordCheck(check, registry.CheckDamaged)
	if s := look(); s.Safe() || s.Damaged != 1 {
		f.Errorf("a file is damaged: %+v", s)
	}
	f.RecordCheck(check, registry.CheckGood)
	if s := look(); !s.Safe() {
		f.Errorf("it was mended: %+v", s)
	}
	f.Done(check)
	for { // the object's other files
		c, err := f.Store.Claim(f.Context(), f.Request(registry.Fixity, ""))
		if err != nil {
			break
		}
		f.RecordCheck(c.Lease, registry.CheckGood)
		f.Done(c.Lease)
	}

	leaving := func(what string, want int64) {
		f.Helper()
		if s := look(); s.Leaving != want || s.Gone != 0 || s.Safe() != (want == 0) {
			f.Errorf("%s: %+v, want %d that may go", what, s, want)
		}
	}
	_, err := f.By(registrytest.Asker).AskDeletion(f.Context(), ark, "because", registrytest.Asker)
	f.Must(err)
	leaving("somebody asks to delete the object", 1)
	_, err = f.By(registrytest.Asker).WithdrawDeletion(f.Context(), ark, registrytest.Asker)
	f.Must(err)
	leaving("it was withdrawn", 0)
	f.Clock.Pass(time.Second)
	_, err = f.By(registrytest.Asker).AskDeletion(f.Context(), ark, "because", registrytest.Asker)
	f.Must(err)
	f.Clock.Pass(registry.AskingLasts - time.Second)
	leaving("nobody has approved it yet", 1)
	f.Clock.Pass(time.Second)
	leaving("it has expired", 0)
	given := f.ApprovedDeletion(ark)
	leaving("it is approved", 1)
	_, err = f.Store.Command(f.Context(), registry.Command{ItemID: given.ID, Act: registry.ActAbort, Actor: "admin", Confirmed: true})
	f.Must(err)
	leaving("its item was given up", 0)
	f.Clock.Pass(time.Second)
	deletion := f.ApprovedDeletion(ark)
	c := f.TakeItem(deletion.ID)
	_, err = f.Store.LockObject(f.Context(), c.Lease, ark)
	f.Must(err)
	leaving("its worker has the object", 1)
	_, err = f.Store.MarkDeleting(f.Context(), c.Lease, ark, registry.Remains{Version: 1, Files: "sha256:ab"})
	f.Must(err)
	if s := look(); s.Safe() || s.Gone != 1 || s.Leaving != 0 {
		f.Errorf("the object is being deleted: %+v", s)
	}
	_, err = f.Store.BatchSafety(f.Context(), jobs[0])
	f.Is(err, registry.ErrNotFound)
	_, err = f.Store.BatchSafety(f.Context(), "none")
	f.Is(err, registry.ErrNotFound)
}

func mailPurged(f *fixture) {
	f.mailRules(registry.MailRules{Queued: true}) // a collection's own addresses stand in the history of its profile
	id, jobs := f.Batch(1, registrytest.Notifying("secretary@example.org"))
	f.Finish(jobs[0])
	f.report(id)
	c := f.Take(registry.Deliver, "")
	m, _ := registry.DeliverySpecIn(c.Item.Spec)
	f.NoteDelivery(c.Lease, m, 0, "550 <secretary@example.org> is nobody here")
	if d := f.NoteDelivery(c.Lease, m, 0, ""); d.Target != "secretary@example.org" {
		f.Errorf("%+v", d)
	}
	f.Done(c.Lease)
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActPurge, Actor: "admin"})
	f.Must(err)
	if d := f.Deliveries(id); len(d) != 0 {
		f.Errorf("deliveries %+v of a batch that was purged", d)
	}
	f.Gone(c.Item.ID)
	if left := f.DeliveryItems(); len(left) != 1 || left[0].Status != registry.Pending {
		f.Errorf("items %+v, want the one that has not ended", left)
	}
	c = f.Take(registry.Deliver, "")
	m, _ = registry.DeliverySpecIn(c.Item.Spec)
	if d := f.NoteDelivery(c.Lease, m, 0, "451 later"); d.Error != "451 later" || d.SentAt != nil {
		f.Errorf("of a purged batch it notes %+v", d)
	}
	if d := f.Deliveries(id); len(d) != 0 {
		f.Errorf("deliveries %+v are there again, with the address", d)
	}
	events, err := f.Store.Events(f.Context(), "", 0, 500)
	f.Must(err)
	told := 0
	for _, e := range events {
		if strings.Contains(string(e.Data), "secretary") {
			f.Errorf("event %s keeps the address: %s", e.Type, e.Data)
		}
		if strings.Contains(string(e.Data), "s***@example.org") {
			told++
		}
	}
	if told < 5 {
		f.Errorf("%d events name the receiver, want those of both items and the three tries", told)
	}
}

func digestOnce(f *fixture) {
	r := registry.DigestRequest{To: []string{"ops@example.org", "duty@example.org"}, Every: 24 * time.Hour, Offset: 6 * time.Hour}
	begin, end := r.Period(f.Clock.Now())
	if begin.After(f.Clock.Now()) || !end.After(f.Clock.Now()) || begin.Hour() != 6 || end.Sub(begin) != r.Every {
		f.Errorf("period from %v to %v", begin, end)
	}
	make := func() int {
		f.Helper()
		n, err := f.Store.MakeDigest(f.Context(), r)
		f.Must(err)
		return n
	}
	if first, again := make(), make(); first != 2 || again != 0 {
		f.Errorf("%d and %d digests, want 2 and none", first, again)
	}
	f.Clock.Pass(end.Sub(f.Clock.Now()) - time.Second)
	if n := make(); n != 0 {
		f.Errorf("%d more in the same period", n)
	}
	f.Clock.Pass(time.Second)
	if n := make(); n != 2 {
		f.Errorf("%d in the next period, want 2", n)
	}
	ids := map[string]bool{}
	for _, it := range f.DeliveryItems() {
		spec, ok := registry.DeliverySpecIn(f.Item(it.ID).Spec)
		d := f.Deliveries(it.ID)
		if !ok || spec.Subject != it.ID || spec.Mail != registry.MailDigest || len(d) != 1 || d[0].Target != spec.To || d[0].Kind != "mail-digest" {
			f.Errorf("item %+v tells %+v, deliveries %+v", it, spec, d)
		}
		ids[spec.ID()] = true
	}
	if len(ids) != 4 {
		f.Errorf("%d messages, want 4", len(ids))
	}
	// A clock that was wrong once keeps nobody from being told when it is right again.
	f.Clock.Pass(10 * 365 * 24 * time.Hour)
	if n := make(); n != 2 {
		f.Errorf("%d while the clock is years ahead, want 2", n)
	}
	for range f.DeliveryItems() { // what was made in the future is told there
		c := f.Take(registry.Deliver, "")
		m, _ := registry.DeliverySpecIn(c.Item.Spec)
		f.NoteDelivery(c.Lease, m, 0, "")
		f.Done(c.Lease)
	}
	f.Clock.Pass(-10 * 365 * 24 * time.Hour)
	if first, again := make(), make(); first != 2 || again != 0 {
		f.Errorf("%d and %d when it is right again, want 2 and none", first, again)
	}
	c := f.Take(registry.Deliver, "")
	m, _ := registry.DeliverySpecIn(c.Item.Spec)
	f.NoteDelivery(c.Lease, m, 0, "")
	f.Done(c.Lease)
	f.State(c.Item.ID, registry.StateCompleted)
}

// What a check mended is for the next digest; what it could not mend is told at once, at most once an
// hour.
func digestOfDamage(f *fixture) {
	const files = 4
	for range files {
		f.Object()
	}
	f.Clock.Pass(registrytest.CheckEvery)
	f.Recheck(files)
	r := registry.DigestRequest{To: []string{"ops@example.org", "duty@example.org"}, Every: 1000 * registrytest.Day}
	made := 0
	makes := func(when string, want int) {
		f.Helper()
		n, err := f.Store.MakeDigest(f.Context(), r)
		f.Must(err)
		if made += n; n != want {
			f.Errorf("%s: %d digests, want %d", when, n, want)
		}
	}
	makes("in a new period", 2)
	damaged := func() registry.Lease {
		f.Helper()
		l, _ := f.TakeCheck()
		f.RecordCheck(l, registry.CheckDamaged)
		makes("while a check may mend it", 0)
		return l
	}
	lasting := func() {
		f.Helper()
		f.Settle(registry.Settlement{Lease: damaged(), Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no storage has it right"})
	}
	l := damaged()
	f.RecordCheck(l, registry.CheckRepaired)
	f.Done(l)
	makes("when it was mended", 0)
	lasting()
	makes("when one could not be mended", 2)
	makes("again", 0)
	f.Clock.Pass(time.Minute)
	lasting()
	makes("when a second could not be mended within the hour", 0)
	f.Clock.Pass(time.Hour)
	makes("an hour later", 2)
	f.Clock.Pass(time.Hour)
	makes("when nothing is new", 0)
	lasting()
	makes("when a third could not be mended", 2)
	ids := map[string]bool{}
	for _, it := range f.DeliveryItems() {
		spec, _ := registry.DeliverySpecIn(f.Item(it.ID).Spec)
		ids[spec.ID()] = true
	}
	if len(ids) != made {
		f.Errorf("%d messages, want %d", len(ids), made)
	}
}

func digestRefused(f *fixture) {
	for _, r := range []registry.DigestRequest{
		{To: []string{"nobody"}, Every: time.Hour},
		{To: []string{"Ops <ops@example.org>"}, Every: time.Hour},
		{To: []string{"ops@example.org"}},
		{To: []string{"ops@example.org"}, Every: time.Second},
		{To: []string{"ops@example.org"}, Every: time.Hour, Offset: -time.Hour},
	} {
		n, err := f.Store.MakeDigest(f.Context(), r)
		f.Is(err, registry.ErrInvalid)
		if n != 0 {
			f.Errorf("%+v: %d", r, n)
		}
	}
	if n := len(f.DeliveryItems()); n != 0 {
		f.Errorf("%d items came of it", n)
	}
}

func attention(f *fixture) {
	look := func() registry.Attention {
		f.Helper()
		a, err := f.Store.Attention(f.Context())
		f.Must(err)
		return a
	}
	if a := look(); a.Undelivered != 0 || a.Oldest != nil {
		f.Errorf("of nothing: %+v", a)
	}
	f.mailRules(registry.MailRules{To: []string{"ann@example.org"}, Queued: true})
	id := f.Submit(func(s *registry.Submission) { s.Spec.Title = "The harbour" })
	f.Clock.Pass(time.Minute)
	f.Submit(func(s *registry.Submission) { s.Force = true })
	c := f.Take(registry.Deliver, "")
	m, _ := registry.DeliverySpecIn(c.Item.Spec)
	f.NoteDelivery(c.Lease, m, 0, "451 later")
	a := look()
	if a.Undelivered != 1 || len(a.Messages) != 1 || a.Messages[0].Error != "451 later" || a.Messages[0].Target != "ann@example.org" {
		f.Errorf("undelivered %+v", a)
	}
	if a.Oldest == nil || a.Oldest.ID != id || a.Oldest.State != registry.StatePending || a.Oldest.Heading() != "The harbour" {
		f.Errorf("oldest %+v, want %s", a.Oldest, id)
	}
	f.NoteDelivery(c.Lease, m, 0, "")
	if a := look(); a.Undelivered != 0 {
		f.Errorf("when it is delivered: %+v", a)
	}
	f.Done(c.Lease)

	// What is not to be sent any more counts until its item is done, and never again, even when
	// that is purged.
	second := f.Take(registry.Deliver, "")
	m, _ = registry.DeliverySpecIn(second.Item.Spec)
	f.NoteDelivery(second.Lease, m, 0, "not sent: it is too late")
	if a := look(); a.Undelivered != 1 {
		f.Errorf("while its item runs: %+v", a)
	}
	f.Done(second.Lease)
	if a := look(); a.Undelivered != 0 {
		f.Errorf("when its item is done: %+v", a)
	}
	f.Clock.Pass(31 * 24 * time.Hour)
	_, err := f.Store.PurgeExpired(f.Context())
	f.Must(err)
	f.Gone(second.Item.ID)
	if a := look(); a.Undelivered != 0 {
		f.Errorf("when its item is purged: %+v", a)
	}
	// What failed counts until somebody gives it up for good.
	for _, act := range []registry.Act{registry.ActAbort, registry.ActDelete} {
		subject := f.Submit(func(s *registry.Submission) { s.Force = true })
		c := f.Take(registry.Deliver, "")
		m, _ := registry.DeliverySpecIn(c.Item.Spec)
		f.NoteDelivery(c.Lease, m, 0, "550 nobody")
		f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "550 nobody"})
		if a := look(); a.Undelivered != 1 {
			f.Errorf("when it failed: %+v", a)
		}
		_, err := f.Store.Command(f.Context(), registry.Command{ItemID: c.Item.ID, Act: act, Actor: "admin", Confirmed: true})
		f.Must(err)
		if a := look(); a.Undelivered != 0 || len(a.Messages) != 0 {
			f.Errorf("after %s: %+v", act, a)
		}
		if d := f.Deliveries(subject); len(d) != 1 || d[0].Error != "550 nobody" {
			f.Errorf("after %s its batch has %+v", act, d)
		}
	}
}

// stoppedMailed: when an admin ends a batch, its people get one mail, unless they already know that
// nothing more comes.
func stoppedMailed(f *fixture) {
	ann := func(s *registry.Submission) { s.Force, s.Spec.Notify = true, []string{"ann@example.org"} }
	const told = "stopped ann@example.org"
	id, jobs := f.Batch(2, ann)
	f.Finish(jobs[0])
	f.Confirm(id, registry.ActAbort)
	f.mailed(id, told)
	f.mailsSay(id, "because")
	f.Confirm(id, registry.ActDelete)
	f.mailed(id, told)
	_, err := f.Store.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: id, Reason: "again", Actor: "admin"})
	f.Must(err)
	f.mailed(id, told, told) // that it was deleted is news
	f.mailsSay(id, "because")

	// Who was told of a failure, or got a report, is told nothing more when it is aborted, as when
	// it is deleted.
	id = f.Submit(ann)
	f.FailItem(id, registry.ContentFault)
	f.Confirm(id, registry.ActAbort)
	f.mailed(id, "failed ann@example.org")
	id, jobs = f.Batch(1, ann)
	f.FailItem(jobs[0], registry.ContentFault)
	f.report(id)
	reported := f.Mails(id)
	f.Says(f.Unconfirmed(id, registry.ActAbort), "no further message after the last report")
	f.Confirm(id, registry.ActAbort)
	f.mailed(id, reported...)

	for _, leave := range []func(id string){
		func(id string) { f.Confirm(id, registry.ActCancel) },
		func(id string) { f.Hold(registry.HoldBatch, id) },
	} {
		id := f.Submit(ann)
		leave(id)
		f.mailed(id)
		f.Says(f.Unconfirmed(id, registry.ActDelete), "a mail to ann@example.org says that it was deleted")
		f.Confirm(id, registry.ActDelete)
		f.mailed(id, told)
	}
	id = f.Submit(ann)
	f.FailItem(id, registry.ContentFault)
	f.mailed(id, "failed ann@example.org")
	f.Confirm(id, registry.ActDelete)
	f.mailed(id, "failed ann@example.org")

	// What waits for its success ends with it, and its people hear of that, too.
	next, one := registrytest.Submission(), registrytest.Submission()
	ann(&next)
	one.Force = true
	next.Requires = []registry.Requirement{{Key: "a", WaitFor: registry.WaitSuccess}}
	_, items := f.Prepare("", registry.Node{Key: "a", Submission: one}, registry.Node{Key: "b", Submission: next})
	f.Confirm(items["a"], registry.ActAbort)
	f.mailed(items["a"])
	f.mailed(items["b"], told)
	f.mailsSay(items["b"], "an item that it waited for was given up")
}

// mailsSay checks the reason in the mails about an ended batch. They do not say who ended it.
func (f *fixture) mailsSay(id, why string) {
	f.Helper()
	for _, d := range f.Deliveries(id) {
		if spec, _ := registry.DeliverySpecIn(f.Item(d.ItemID).Spec); spec.Mail == registry.MailStopped && spec.Why != why {
			f.Errorf("the mail tells %q, want %q", spec.Why, why)
		}
	}
}
