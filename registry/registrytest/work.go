package registrytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// Match makes a query of terms in the form FIELD:VALUE.
func Match(words ...string) (q registry.Query) {
	for _, w := range words {
		field, value, _ := strings.Cut(w, ":")
		q.Terms = append(q.Terms, registry.Term{Field: field, Value: value})
	}
	return q
}

// Bulk requests an act on all items that match.
func (f *Fixture) Bulk(act registry.Act, words ...string) registry.WorkItem {
	f.Helper()
	it, err := f.Store.Bulk(f.Context(), registry.BulkRequest{Match: Match(words...), Act: act, Reason: "because", Actor: "admin", Confirmed: true})
	f.Must(err)
	return it
}

// CarriedOut runs all waiting bulk acts, the oldest first.
func (f *Fixture) CarriedOut() (all []registry.BulkProgress) {
	f.Helper()
	for _, it := range f.All(registry.ItemQuery{Action: registry.Bulk, Status: registry.Pending}) {
		all = append(all, f.Apply(it.ID))
	}
	return all
}

// Apply runs a bulk act.
func (f *Fixture) Apply(id string) registry.BulkProgress {
	f.Helper()
	l := f.TakeItem(id).Lease
	for {
		p, err := f.Store.ApplyNext(f.Context(), l)
		f.Must(err)
		if p.Done {
			f.Done(l)
			return p
		}
	}
}

// RefusedCommand requests an act that the state machine must refuse.
func (f *Fixture) RefusedCommand(id string, act registry.Act, stage registry.Stage, from, to registry.State) {
	f.Helper()
	before := f.Item(id)
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: act, From: stage, Actor: "admin"})
	var te *registry.TransitionError
	if !errors.As(err, &te) {
		f.Errorf("%s %s: %v, want a refused transition", act, stage, err)
		return
	}
	if want := fmt.Sprintf("state change (%s -> %s) is not allowed", from, to); !strings.Contains(err.Error(), want) || te.ItemID != id {
		f.Errorf("%s %s: %q, want %q of item %s", act, stage, err, want, id)
	}
	if diff := cmp.Diff(before, f.Item(id)); diff != "" {
		f.Errorf("the refused %s changed the item:\n%s", act, diff)
	}
}

// Announce announces a worker of a stage.
func (f *Fixture) Announce(stage registry.Stage, slots, spare int) {
	f.Helper()
	_, err := f.Store.Renew(f.Context(), registry.RenewRequest{Lease: Lease, Worker: registry.WorkerInfo{
		ID: "worker-1", Capacity: map[registry.Stage]int{stage: slots}, Free: map[registry.Stage]int{stage: slots}, Spare: map[registry.Stage]int{stage: spare},
	}})
	f.Must(err)
}

// WaitingAt brings n jobs of a collection to a stage. own means that they are from an upload.
func (f *Fixture) WaitingAt(stage registry.Stage, collection string, n int, own bool) []string {
	f.Helper()
	return f.WaitingOf(stage, collection, n, own, registry.FileType)
}

// WaitingOf is WaitingAt for jobs of a type.
func (f *Fixture) WaitingOf(stage registry.Stage, collection string, n int, own bool, as registry.PayloadType) []string {
	f.Helper()
	upload := f.Unique("upload")
	if own {
		f.Upload(upload, upload)
	}
	id := f.Submit(func(s *registry.Submission) {
		if s.Collection = collection; own {
			s.Spec.URL = registry.UploadURL(upload)
		}
	})
	c := f.TakeItem(id)
	jobs := NewJobs(n)
	for i := range jobs {
		if jobs[i].Spec.Type = as; own {
			jobs[i].Spec.URL = registry.UploadURL(upload)
		}
	}
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Done(c.Lease)
	made := f.Children(id)
	for _, job := range made {
		f.Bring(job, stage)
	}
	return made
}

// Unconfirmed requests an act without a confirmation and returns its consequences.
func (f *Fixture) Unconfirmed(id string, act registry.Act) string {
	f.Helper()
	before := f.Item(id)
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: act, Reason: "because", Actor: "admin"})
	var needed *registry.ConfirmationNeeded
	if !errors.As(err, &needed) || needed.ItemID != id || needed.Act != act || len(needed.Consequences) == 0 {
		f.Fatalf("%s of item %s without a confirmation: %v", act, id, err)
	}
	if got := f.Item(id).Status; got != before.Status {
		f.Errorf("it is %s, was %s", got, before.Status)
	}
	return strings.Join(needed.Consequences, "\n")
}

// Says checks that a text contains all words.
func (f *Fixture) Says(text string, words ...string) {
	f.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			f.Errorf("%q does not say %q", text, w)
		}
	}
}

// TidyOf returns the only item that tidies up after another one.
func (f *Fixture) TidyOf(id string) registry.WorkItem {
	f.Helper()
	var found []registry.WorkItem
	for _, it := range f.All(registry.ItemQuery{Action: registry.Tidy}) {
		if strings.Contains(string(it.Spec), id) {
			found = append(found, it)
		}
	}
	if len(found) != 1 {
		f.Fatalf("%d items tidy up after %s", len(found), id)
	}
	return found[0]
}

// Node returns a node that requires others by key. "KEY:settled" is a requirement with that wait.
func Node(key string, requires ...string) registry.Node {
	n := registry.Node{Key: key, Submission: Submission()}
	n.Submission.Name = key
	for _, r := range requires {
		name, wait, _ := strings.Cut(r, ":")
		n.Submission.Requires = append(n.Submission.Requires, registry.Requirement{Key: name, WaitFor: registry.WaitFor(wait)})
	}
	return n
}

// Prepare makes a graph and returns its id, and its items by key.
func (f *Fixture) Prepare(graph string, nodes ...registry.Node) (string, map[string]string) {
	f.Helper()
	p, err := f.Store.Prepare(f.Context(), registry.Graph{ID: graph, Nodes: nodes, Actor: "depositor"})
	f.Must(err)
	if len(p.Items) != len(nodes) {
		f.Fatalf("%d items of %d nodes", len(p.Items), len(nodes))
	}
	return p.GraphID, p.Items
}

// HeldBy checks which hold an item shows. Scope "" means none.
func (f *Fixture) HeldBy(id string, scope registry.HoldScope, key string) {
	f.Helper()
	got := f.Item(id).HeldBy
	switch {
	case scope == "" && got != nil:
		f.Errorf("held by %+v, want by nothing", *got)
	case scope != "" && got == nil:
		f.Errorf("held by nothing, want by %s %s", scope, key)
	case scope != "" && (got.Scope != scope || got.Key != key || got.Reason != "look at it" || got.Actor != "admin" || got.CreatedAt.IsZero()):
		f.Errorf("held by %+v, want by %s %s", *got, scope, key)
	}
}

// Renewal renews leases for a worker that announces its slots of a stage.
func (f *Fixture) Renewal(worker string, stage registry.Stage, slots int, beats ...registry.Beat) registry.Renewal {
	f.Helper()
	r, err := f.Store.Renew(f.Context(), registry.RenewRequest{
		Worker: registry.WorkerInfo{ID: worker, Capacity: map[registry.Stage]int{stage: slots}, Free: map[registry.Stage]int{stage: slots}},
		Lease:  Lease, Beats: beats,
	})
	f.Must(err)
	return r
}

// Hold adds a hold.
func (f *Fixture) Hold(scope registry.HoldScope, key string) {
	f.Helper()
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: scope, Key: key, Reason: "look at it", Actor: "admin"}))
}

// Release removes a hold.
func (f *Fixture) Release(scope registry.HoldScope, key string) {
	f.Helper()
	f.Must(f.Store.RemoveHold(f.Context(), scope, key, "admin"))
}

// Gone checks that items do not exist.
func (f *Fixture) Gone(ids ...string) {
	f.Helper()
	for _, id := range ids {
		_, err := f.Store.Item(f.Context(), id)
		f.Is(err, registry.ErrNotFound)
	}
}

// Queue returns the state of the queue.
func (f *Fixture) Queue() registry.QueueStatus {
	f.Helper()
	q, err := f.Store.QueueStatus(f.Context())
	f.Must(err)
	return q
}

// Beat returns the renewal of a lease without news.
func Beat(l registry.Lease) registry.Beat {
	return registry.Beat{Lease: l, DoneBytes: -1, DoneFiles: -1}
}

// Renew renews leases and returns the lost ones.
func (f *Fixture) Renew(beats ...registry.Beat) (lost []registry.Lease) {
	f.Helper()
	answer, err := f.Store.Renew(f.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{ID: "worker-1"}, Lease: Lease, Beats: beats})
	f.Must(err)
	return answer.Lost
}

// Room returns a request for room on a volume of 1000 bytes with a threshold of 80 %.
func Room(bytes, used int64) registry.Reservation {
	return registry.Reservation{Volume: "v", Bytes: bytes, Used: used, Total: 1000, Threshold: 0.8}
}

// NoRoom requests room, which must be refused.
func (f *Fixture) NoRoom(l registry.Lease, r registry.Reservation) *registry.NoSpaceError {
	f.Helper()
	err := f.Store.Reserve(f.Context(), l, r)
	var full *registry.NoSpaceError
	if !errors.As(err, &full) {
		f.Fatalf("reserve %d: %v, want that there is no room", r.Bytes, err)
	}
	return full
}

// Provisioning makes n jobs and claims each at provision, in the order of submission.
func (f *Fixture) Provisioning(n int) []registry.Claim {
	f.Helper()
	_, jobs := f.Batch(n)
	var claims []registry.Claim
	for _, job := range jobs {
		f.Bring(job, registry.Provision)
	}
	for _, job := range jobs {
		claims = append(claims, f.TakeItem(job))
	}
	return claims
}

// Purged checks that an item's row is gone and its events are not (R28).
func (f *Fixture) Purged(id string) {
	f.Helper()
	_, err := f.Store.Item(f.Context(), id)
	f.Is(err, registry.ErrNotFound)
	if len(f.Events(id)) == 0 {
		f.Errorf("the events of %s went with it", id)
	}
}

// applyAll runs the waiting bulk acts to their end.
func (f *Fixture) applyAll() {
	f.Helper()
	for {
		c, err := f.Store.Claim(f.Context(), f.Request(registry.Apply, ""))
		var none *registry.NotClaimable
		if errors.As(err, &none) {
			return
		}
		f.Must(err)
		for done := false; !done; {
			p, err := f.Store.ApplyNext(f.Context(), c.Lease)
			f.Must(err)
			done = p.Done
		}
		f.Done(c.Lease)
	}
}

// ConfirmAndApply requests and confirms an act, and runs the bulk acts that it adds.
func (f *Fixture) ConfirmAndApply(id string, act registry.Act) {
	f.Helper()
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: act, Reason: "because", Actor: "admin", Confirmed: true})
	f.Must(err)
	f.applyAll()
}

// Retry settles a try of an item as a failure to be retried, up to most times.
func (f *Fixture) Retry(id string, most int) registry.Verdict {
	f.Helper()
	v, err := f.Store.Settle(f.Context(), registry.Settlement{
		Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Error: "again", MaxAttempts: most,
	})
	f.Must(err)
	return v
}

// RawJSON returns a text as JSON.
func RawJSON(s string) json.RawMessage { return json.RawMessage(s) }

// LoseOnce claims an item, renews it with some beats, and then loses its worker.
func (f *Fixture) LoseOnce(id string, meanwhile ...registry.Beat) {
	f.Helper()
	f.Clock.Pass(2 * time.Hour) // whatever its backoff
	l := f.TakeItem(id).Lease
	for _, b := range meanwhile {
		b.Lease = l
		f.Renew(b)
	}
	f.Sweep(0) // after the gap it is quiet
	if lost := f.Sweep(2 * Lease); !slices.Contains(lost, l) {
		f.Fatalf("lost %v, want %v", lost, l)
	}
}

// Committed makes a job with an announced or recorded version and a callback, pending at a stage.
func (f *Fixture) Committed(at registry.Stage, how registry.Commitment) string {
	f.Helper()
	id := f.JobWithCallback(Receiver(), registry.Process)
	l := f.TakeItem(id).Lease
	ark := f.Named(l, f.Unique("object")).ARK
	if how == registry.Preserved {
		f.Preserve(l, ark, 1, File(FilePath))
	} else {
		f.Intend(l, ark, 1, `{}`)
	}
	route, _ := f.Item(id).Route()
	if at != registry.Process && slices.Contains(route.UpTo(registry.Process), at) {
		f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
		f.Command(id, registry.ActRequeue, at)
		return id
	}
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased})
	f.Bring(id, at)
	return id
}

// Confirm requests and confirms an act, which must be allowed.
func (f *Fixture) Confirm(id string, act registry.Act) registry.WorkItem {
	f.Helper()
	it, err := f.Store.Command(f.Context(), registry.Command{
		ItemID: id, Act: act, Priority: new(int), Reason: "because", Actor: "admin", Confirmed: true,
	})
	f.Must(err)
	return it
}

// Collections creates collections and returns their names.
func (f *Fixture) Collections(names ...string) []string {
	f.Helper()
	for _, name := range names {
		f.Collection(name, registry.Profile{Name: name, Owner: Owner})
	}
	return names
}

// Offer returns the wakes of due items, with a window of n.
func (f *Fixture) Offer(n int) []registry.Wake {
	f.Helper()
	wakes, err := f.Store.Due(f.Context(), registry.DueRequest{Window: n, Renudge: 30 * time.Second, RenudgeMax: 10 * time.Minute})
	f.Must(err)
	return wakes
}

// Offered returns the ids of Offer.
func (f *Fixture) Offered(n int) []string {
	f.Helper()
	var ids []string
	for _, w := range f.Offer(n) {
		ids = append(ids, w.ItemID)
	}
	return ids
}

// Request returns a new claim request for a stage.
func (f *Fixture) Request(stage registry.Stage, hint string) registry.ClaimRequest {
	return registry.ClaimRequest{
		RequestID: f.Unique("request-"), Stage: stage, Hint: hint, Worker: "worker-1", Version: "v1",
		Lease: Lease, MaxAttempts: Attempts,
	}
}

// Take claims the stage's best item.
func (f *Fixture) Take(stage registry.Stage, hint string) registry.Claim {
	f.Helper()
	c, err := f.Store.Claim(f.Context(), f.Request(stage, hint))
	f.Must(err)
	return c
}

// Refused claims the hinted item, which must be refused, and returns the refusal.
func (f *Fixture) Refused(stage registry.Stage, hint string) *registry.NotClaimable {
	f.Helper()
	c, err := f.Store.Claim(f.Context(), f.Request(stage, hint))
	var refused *registry.NotClaimable
	if !errors.As(err, &refused) {
		f.Fatalf("claim of %s: %+v, %v; want a refusal", hint, c.Lease, err)
	}
	if refused.ItemID != hint {
		f.Errorf("refused item %q, want %q", refused.ItemID, hint)
	}
	return refused
}

// ReasonOf returns the reason of a refused claim.
func (f *Fixture) ReasonOf(err error) registry.Reason {
	f.Helper()
	var refused *registry.NotClaimable
	if !errors.As(err, &refused) {
		f.Fatalf("claim: %v, want a refusal", err)
	}
	return refused.Reason
}

// LockedBy returns the holder that a refused identification names.
func (f *Fixture) LockedBy(err error) string {
	f.Helper()
	var locked *registry.LockedError
	if !errors.As(err, &locked) {
		f.Fatalf("identify: %v, want that it is locked", err)
	}
	return locked.ItemID
}

// TakeItem claims exactly this item. It releases items that come before it.
func (f *Fixture) TakeItem(id string) registry.Claim {
	f.Helper()
	stage := f.Item(id).Stage
	var others []registry.Lease
	for {
		c := f.Take(stage, id)
		if c.Item.ID == id {
			for _, o := range others {
				f.Settle(registry.Settlement{Lease: o, Outcome: registry.OutcomeReleased})
			}
			return c
		}
		others = append(others, c.Lease)
	}
}

// Settle settles an attempt.
func (f *Fixture) Settle(s registry.Settlement) registry.Verdict {
	f.Helper()
	if s.MaxAttempts == 0 {
		s.MaxAttempts = Attempts
	}
	v, err := f.Store.Settle(f.Context(), s)
	f.Must(err)
	return v
}

// Done settles an attempt as done.
func (f *Fixture) Done(l registry.Lease) registry.Verdict {
	f.Helper()
	return f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
}

// Item returns an item as it is now.
func (f *Fixture) Item(id string) registry.WorkItem {
	f.Helper()
	it, err := f.Store.Item(f.Context(), id)
	f.Must(err)
	return it
}

// State checks the state that people see.
func (f *Fixture) State(id string, want registry.State) {
	f.Helper()
	if got := f.Item(id).State; got != want {
		f.Errorf("state=%s, want %s", got, want)
	}
}

// NewJobs returns the rows of a manifest of n files.
func NewJobs(n int) []registry.NewJob {
	jobs := make([]registry.NewJob, n)
	for i := range jobs {
		jobs[i] = registry.NewJob{
			Line: int64(i + 1), Row: int64(i + 1), Name: fmt.Sprintf("job-%d", i+1), Priority: 5,
			Spec: registry.Spec{Type: registry.FileType, URL: fmt.Sprintf("https://example.org/%d", i+1)},
		}
	}
	return jobs
}

// Children returns the ids of a batch's jobs, in row order.
func (f *Fixture) Children(batch string) []string {
	f.Helper()
	var ids []string
	for _, it := range f.All(registry.ItemQuery{ParentID: batch}) {
		ids = append(ids, it.ID)
	}
	return ids
}

// All returns all pages of a list.
func (f *Fixture) All(q registry.ItemQuery) []registry.WorkItem {
	f.Helper()
	return list(f, f.Store, q)
}

// Batch submits a batch, expands it into n jobs, and returns their ids.
func (f *Fixture) Batch(n int, change ...func(*registry.Submission)) (id string, jobs []string) {
	f.Helper()
	id = f.Submit(change...)
	c := f.TakeItem(id)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, NewJobs(n))
	f.Must(err)
	f.Done(c.Lease)
	return id, f.Children(id)
}

// Job makes a batch of one job and brings the job to a stage.
func (f *Fixture) Job(at registry.Stage) string {
	f.Helper()
	_, jobs := f.Batch(1, func(s *registry.Submission) {
		route, _ := registry.RouteOf(registry.Ingest)
		if step, _ := route.Step(at); step.Optional {
			s.Collection = f.EveryStep()
		}
	})
	f.Bring(jobs[0], at)
	return jobs[0]
}

// TaskFunction is the function of [Fixture.Task].
var TaskFunction = registry.Function{Name: "link-check"}

// Task adds a task of TaskFunction and returns its id.
func (f *Fixture) Task() string {
	f.Helper()
	f.Must(f.Store.Announce(f.Context(), []registry.Function{TaskFunction}))
	it, err := f.Store.AddTask(f.Context(), registry.NewTask{Function: TaskFunction.Name, Actor: "curator"})
	f.Must(err)
	return it.ID
}

// ProcessStep creates a process and returns the item of its first step.
func (f *Fixture) ProcessStep() string {
	f.Helper()
	f.Must(f.Store.AnnounceNamespaces(f.Context(), []registry.Namespace{{Name: "states"}}))
	a, err := f.Store.InitProcess(f.Context(), registry.NewProcess{ProcessKey: registry.ProcessKey{Namespace: "states", ProcessID: "p"}, Actor: "curator"})
	f.Must(err)
	return a.ItemID
}

// EveryStep creates a collection whose jobs take every optional stage.
func (f *Fixture) EveryStep() (name string) {
	f.Helper()
	name = "every_step"
	f.Collection(name, registry.Profile{
		Name: "Every step", Owner: Owner, Scan: true, Storages: []string{registry.DefaultStorage, "second", "third"},
	})
	return name
}

// Bring completes an item's steps until it is at a stage.
func (f *Fixture) Bring(id string, at registry.Stage) {
	f.Helper()
	for it := f.Item(id); it.Stage != at; it = f.Item(id) {
		if it.Status.Settled() {
			f.Fatalf("item is %s at %s before it got to %s", it.Status, it.Stage, at)
		}
		f.Done(f.TakeItem(id).Lease)
	}
}

// Finish completes an item.
func (f *Fixture) Finish(id string) {
	f.Helper()
	for !f.Item(id).Status.Settled() {
		f.Done(f.TakeItem(id).Lease)
	}
	if got := f.Item(id).Status; got != registry.Completed {
		f.Fatalf("status=%s, want completed", got)
	}
}

// FailItem fails an item at its present stage.
func (f *Fixture) FailItem(id string, class registry.ErrorClass) {
	f.Helper()
	f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeFailed, Class: class, Error: "it is broken"})
}

// Command requests an act that must be allowed.
func (f *Fixture) Command(id string, act registry.Act, from registry.Stage) registry.WorkItem {
	f.Helper()
	it, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: act, From: from, Reason: "because", Actor: "admin"})
	f.Must(err)
	return it
}

// AttemptsOf lists an item's attempts.
func (f *Fixture) AttemptsOf(id string) []registry.Attempt {
	f.Helper()
	as, err := f.Store.Attempts(f.Context(), id)
	f.Must(err)
	return as
}

// Invariants calls CheckInvariants.
func (f *Fixture) Invariants() {
	f.Helper()
	CheckInvariants(f, f.Store)
}

// Events returns the kinds of an item's events, the oldest first.
func (f *Fixture) Events(id string) []string {
	f.Helper()
	es, err := f.Store.Events(f.Context(), id, 0, 500)
	f.Must(err)
	types := make([]string, len(es))
	for i, e := range es {
		types[i] = e.Type
	}
	return types
}

// Sweep passes the time d in small steps and sweeps between them, so that the store sees no gap in
// its sweeps. It returns the lost leases.
func (f *Fixture) Sweep(d time.Duration) []registry.Lease {
	f.Helper()
	var all []registry.Lease
	for left := d; ; left -= Lease / 8 {
		lost, err := f.Store.Sweep(f.Context(), Lease)
		f.Must(err)
		all = append(all, lost...)
		if left <= 0 {
			return all
		}
		f.Clock.Pass(min(left, Lease/8))
	}
}

// Namespace is the namespace of [Fixture.Step].
var Namespace = registry.Namespace{Name: TaskFunction.Name}

// Step starts a process of Namespace and returns the id of its first step.
func (f *Fixture) Step() string {
	f.Helper()
	f.Must(f.Store.AnnounceNamespaces(f.Context(), []registry.Namespace{Namespace}))
	a, err := f.Store.InitProcess(f.Context(), registry.NewProcess{ProcessKey: registry.ProcessKey{Namespace: Namespace.Name, ProcessID: f.Unique("process")}, Actor: "curator"})
	f.Must(err)
	return a.ItemID
}
