package outboundtest

import (
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func subscriptionTests() tests {
	return tests{
		"what_is_kept":                                     subscriptionsKept,
		"what_is_refused":                                  subscriptionsRefused,
		"begins_where_it_is_asked_to":                      subscriptionsBegin,
		"taken_by_one":                                     subscriptionTaken,
		"R16_many_take_and_one_has_each":                   subscriptionsContended,
		"a_failing_one_goes_on_failing_elsewhere":          subscriptionFails,
		"tried_at_once_with_other_credentials":             subscriptionRetried,
		"R17_a_rewind_is_not_undone_by_what_was_under_way": subscriptionRewound,
		"paused_and_resumed":                               subscriptionPaused,
		"removed_with_its_secrets":                         subscriptionRemoved,
		"acts_are_audited_and_deliveries_no_events":        subscriptionAudited,
		"behind":                       subscriptionBehind,
		"an_events_state_is_the_items": eventStates,
		"filters_take_what_they_say":   filtersTake,
	}
}

const forwarder = "forwarder-1"

// subscribe adds a subscription from the first event.
func (f *fixture) subscribe(name string) registry.Subscription {
	f.Helper()
	s, err := f.Store.PutSubscription(f.Context(), registry.SubscriptionRequest{Name: name, Target: "nsq:" + name, Actor: "admin"})
	f.Must(err)
	return s
}

func (f *fixture) subscription(name string) registry.Subscription {
	f.Helper()
	all, err := f.Store.Subscriptions(f.Context())
	f.Must(err)
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	f.Fatalf("no subscription %s among %+v", name, all)
	return registry.Subscription{}
}

// forwards leases what a process can get.
func (f *fixture) forwards(owner string) []registry.SubscriptionTurn {
	f.Helper()
	turns, err := f.Store.TakeSubscriptions(f.Context(), owner, registrytest.Lease)
	f.Must(err)
	return turns
}

// forwardsOne leases the only subscription that a process can get.
func (f *fixture) forwardsOne(owner string) registry.SubscriptionTurn {
	f.Helper()
	turns := f.forwards(owner)
	if len(turns) != 1 {
		f.Fatalf("%s has %d subscriptions, want 1", owner, len(turns))
	}
	return turns[0]
}

func (f *fixture) forwarded(t registry.SubscriptionTurn, cursor, told int64) error {
	return f.Store.NoteForwarded(f.Context(), registry.SubscriptionProgress{ID: t.ID, Turn: t.Turn, Cursor: cursor, Told: told})
}

func (f *fixture) end() int64 {
	f.Helper()
	end, err := f.Store.FeedEnd(f.Context())
	f.Must(err)
	return end
}

func subscriptionsKept(f *fixture) {
	begin := f.end()
	r := registry.SubscriptionRequest{
		Name: "b", Target: "https://h.test/secret-path", From: registry.FeedNow, Actor: "admin",
		Filter: registry.FeedFilter{
			Types: []string{"complete"}, Collections: []string{registrytest.Mnemonic}, Actions: []registry.Action{registry.Ingest}, States: []registry.State{"completed"},
		},
	}
	made, err := f.Store.PutSubscription(f.Context(), r)
	f.Must(err)
	want := registry.Subscription{
		ID: made.ID, Name: "b", Target: r.Target, Filter: r.Filter, Cursor: begin, Turn: made.Turn, CreatedBy: "admin", CreatedAt: f.Clock.Now(),
	}
	if diff := cmp.Diff(want, made, cmpopts.EquateEmpty()); diff != "" || made.ID == "" {
		f.Errorf("made (-want +got):\n%s", diff)
	}
	end := f.end()
	again, err := f.Store.PutSubscription(f.Context(), r)
	f.Must(err)
	if diff := cmp.Diff(made, again); diff != "" || f.end() != end {
		f.Errorf("a repeat changed it:\n%s", diff)
	}
	turn := f.forwardsOne(forwarder)
	f.Must(f.Store.NoteUnforwarded(f.Context(), registry.SubscriptionFailure{ID: made.ID, Turn: turn.Turn, Error: "down", Wait: time.Hour}))
	r.Target, r.Filter, r.From, r.Actor = "nsq:topic", registry.FeedFilter{}, 0, "boss"
	changed, err := f.Store.PutSubscription(f.Context(), r)
	f.Must(err)
	if changed.ID != made.ID || changed.Target != "nsq:topic" || changed.Cursor != begin || changed.Tries != 0 || changed.FailingSince != nil ||
		changed.NextTry != nil || changed.CreatedBy != "admin" {
		f.Errorf("changed to %+v", changed)
	}
	f.Is(f.forwarded(turn, begin+1, 1), registry.ErrSubscriptionLost)
	f.subscribe("a")
	all, err := f.Store.Subscriptions(f.Context())
	f.Must(err)
	if len(all) != 2 || all[0].Name != "a" || all[1].Name != "b" {
		f.Errorf("listed %+v, want a and b", all)
	}
}

func subscriptionsRefused(f *fixture) {
	for _, r := range []registry.SubscriptionRequest{
		{Name: "", Target: "nsq:t"},
		{Name: "a/b", Target: "nsq:t"},
		{Name: "a b", Target: "nsq:t"},
		{Name: strings.Repeat("a", 65), Target: "nsq:t"},
		{Name: "a", Target: ""},
		{Name: "a", Target: "nsq:"},
		{Name: "a", Target: "nsq:a b"},
		{Name: "a", Target: "nsq:ingest.download"},
		{Name: "a", Target: "ftp://h.test/"},
		{Name: "a", Target: "https:///x"},
		{Name: "a", Target: "https://u:p@h.test/"},
		{Name: "a", Target: "https://h.test/?token=x"},
		{Name: "a", Target: "nsq:t", From: f.end() + 1},
		{Name: "a", Target: "nsq:t", From: -2},
		{Name: "a", Target: "nsq:t", Filter: registry.FeedFilter{Types: []string{""}}},
		{Name: "a", Target: "nsq:t", Filter: registry.FeedFilter{Actions: []registry.Action{"swim"}}},
		{Name: "a", Target: "nsq:t", Filter: registry.FeedFilter{States: []registry.State{"Wet"}}},
		{Name: "a", Target: "nsq:t", Filter: registry.FeedFilter{States: []registry.State{registry.StateHeld}}},
	} {
		_, err := f.Store.PutSubscription(f.Context(), r)
		f.Is(err, registry.ErrInvalid)
		if strings.Contains(err.Error(), "u:p@") || strings.Contains(err.Error(), "token") {
			f.Errorf("the error tells a secret: %v", err)
		}
	}
	_, err := f.Store.RewindSubscription(f.Context(), "a", 0, "", "admin")
	f.Is(err, registry.ErrNotFound)
	_, err = f.Store.PauseSubscription(f.Context(), "a", "", "admin")
	f.Is(err, registry.ErrNotFound)
	_, err = f.Store.ResumeSubscription(f.Context(), "a", "admin")
	f.Is(err, registry.ErrNotFound)
	f.Is(f.Store.RemoveSubscription(f.Context(), "a", "admin"), registry.ErrNotFound)
	f.subscribe("a")
	for _, cursor := range []int64{f.end() + 1, -2} {
		_, err = f.Store.RewindSubscription(f.Context(), "a", cursor, "", "admin")
		f.Is(err, registry.ErrInvalid)
	}
	_, err = f.Store.TakeSubscriptions(f.Context(), "", registrytest.Lease)
	f.Is(err, registry.ErrInvalid)
	if s := f.subscription("a"); s.Cursor != 0 || s.Rewinds != 0 {
		f.Errorf("what was refused changed it: %+v", s)
	}
}

func subscriptionsBegin(f *fixture) {
	f.Submit()
	for name, from := range map[string]int64{"first": 0, "second": 1, "now": registry.FeedNow} {
		want := from
		if from == registry.FeedNow {
			want = f.end()
		}
		s, err := f.Store.PutSubscription(f.Context(), registry.SubscriptionRequest{Name: name, Target: "nsq:t", From: from, Actor: "admin"})
		f.Must(err)
		if s.Cursor != want {
			f.Errorf("%s begins after %d, want %d", name, s.Cursor, want)
		}
	}
}

func subscriptionTaken(f *fixture) {
	if turns := f.forwards(forwarder); len(turns) != 0 {
		f.Errorf("took %+v where there is nothing", turns)
	}
	f.subscribe("s")
	first := f.forwardsOne(forwarder)
	if first.Owner != forwarder || !strings.HasPrefix(first.Source, "urn:uuid:") || first.Wait != 0 {
		f.Errorf("took %+v", first)
	}
	if turns := f.forwards("other"); len(turns) != 0 {
		f.Errorf("taken twice: %+v", turns)
	}
	f.Clock.Pass(registrytest.Lease / 2)
	if again := f.forwardsOne(forwarder); again.Turn != first.Turn || again.Source != first.Source {
		f.Errorf("renewed %+v, want turn %d", again, first.Turn)
	}
	f.Clock.Pass(registrytest.Lease)
	if turns := f.forwards("other"); len(turns) != 0 {
		f.Errorf("taken before the lease ran out: %+v", turns)
	}
	f.Must(f.forwarded(first, 1, 1))
	f.Clock.Pass(time.Second)
	f.Must(f.forwarded(first, 2, 1)) // late, but nobody has taken it (R15)
	second := f.forwardsOne("other")
	if second.Turn <= first.Turn || second.Cursor != 2 || second.Source != first.Source {
		f.Errorf("the other has %+v", second)
	}
	f.Is(f.forwarded(first, 3, 1), registry.ErrSubscriptionLost)
	f.Is(f.Store.NoteUnforwarded(f.Context(), registry.SubscriptionFailure{ID: first.ID, Turn: first.Turn}), registry.ErrSubscriptionLost)
	if turns := f.forwards(forwarder); len(turns) != 0 {
		f.Errorf("the first one has it back: %+v", turns)
	}
	if s := f.subscription("s"); s.Cursor != 2 || s.Told != 2 || s.Tries != 0 || s.Owner != "other" {
		f.Errorf("it is %+v", s)
	}
	f.Must(f.Store.ReleaseSubscriptions(f.Context(), "other"))
	f.Is(f.forwarded(second, 3, 1), registry.ErrSubscriptionLost)
	f.forwardsOne(forwarder)
}

// subscriptionRetried: new credentials make a failing subscription retry at once; those of others
// do not.
func subscriptionRetried(f *fixture) {
	f.subscribe("s")
	f.subscribe("other")
	key := func(owner string) registry.Credential {
		c := registrytest.Credential("signing:one", registry.CredentialSigning)
		c.Collection = owner
		return c
	}
	mine, theirs := key(registry.SubscriptionOwner("s")), key(registry.SubscriptionOwner("other"))
	turns := func() (s, other registry.SubscriptionTurn) {
		f.Helper()
		all := f.forwards(forwarder) // by name
		if len(all) != 2 {
			f.Fatalf("%d turns, want 2", len(all))
		}
		return all[1], all[0]
	}
	fail := func() registry.SubscriptionTurn {
		f.Helper()
		turn, _ := turns()
		f.Must(f.Store.NoteUnforwarded(f.Context(), registry.SubscriptionFailure{ID: turn.ID, Turn: turn.Turn, Error: "401", Wait: time.Hour}))
		return turn
	}
	for _, tt := range []struct {
		name   string
		change func() error
		tried  bool
	}{
		{"another's key", func() error { return f.Store.PutCredential(f.Context(), theirs) }, false},
		{"a collection's key", func() error { return f.Store.PutCredential(f.Context(), key(registrytest.Mnemonic)) }, false},
		{"its key", func() error { return f.Store.PutCredential(f.Context(), mine) }, true},
		{"its key removed", func() error { return f.Store.RemoveCredential(f.Context(), mine.Collection, mine.Origin, "admin") }, true},
	} {
		before := fail()
		_, undisturbed := turns()
		f.Must(tt.change())
		s, other := turns()
		if tried := s.Wait == 0 && s.Tries == 0 && s.FailingSince == nil && s.Turn > before.Turn; tried != tt.tried {
			f.Errorf("%s: tried at once %t, want %t: %+v", tt.name, tried, tt.tried, s)
		}
		if other.Turn != undisturbed.Turn {
			f.Errorf("%s: one that is not failing was disturbed", tt.name)
		}
	}
}

// subscriptionsContended: many processes at once lease the subscriptions that one of them dropped.
func subscriptionsContended(f *fixture) {
	const processes, each = 8, 5
	for i := range each {
		f.subscribe("s" + string(rune('a'+i)))
	}
	var mu sync.Mutex
	owners := map[string][]string{}
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			turns, err := f.Store.TakeSubscriptions(f.Context(), "p"+string(rune('a'+i)), registrytest.Lease)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				f.Errorf("take: %v", err)
			}
			for _, turn := range turns {
				owners[turn.Name] = append(owners[turn.Name], turn.Owner)
			}
		})
	}
	all.Wait()
	if len(owners) != each {
		f.Errorf("taken are %v, want %d", owners, each)
	}
	for name, by := range owners {
		if len(by) != 1 || f.subscription(name).Owner != by[0] {
			f.Errorf("%s is forwarded by %v, and says %s", name, by, f.subscription(name).Owner)
		}
	}
}

func subscriptionFails(f *fixture) {
	f.subscribe("s")
	begun := f.Clock.Now()
	turn := f.forwardsOne(forwarder)
	for range 3 {
		f.Must(f.Store.NoteUnforwarded(f.Context(), registry.SubscriptionFailure{ID: turn.ID, Turn: turn.Turn, Error: "it is down", Wait: time.Hour}))
		f.Clock.Pass(time.Minute)
	}
	s := f.subscription("s")
	if s.Tries != 3 || s.Error != "it is down" || s.FailingSince == nil || !s.FailingSince.Equal(begun) || s.NextTry == nil ||
		!s.NextTry.Equal(f.Clock.Now().Add(59*time.Minute)) || s.Cursor != 0 {
		f.Errorf("it is %+v", s)
	}
	if q := f.Queue(); len(q.Failing) != 1 || q.Failing[0].Name != "s" || q.Failing[0].Behind != f.end() {
		f.Errorf("the queue tells of %+v", q.Failing)
	}
	f.Must(f.Store.ReleaseSubscriptions(f.Context(), forwarder))
	turn = f.forwardsOne("other")
	if turn.Wait != 59*time.Minute || turn.Tries != 3 {
		f.Errorf("elsewhere it waits for %v after %d tries", turn.Wait, turn.Tries)
	}
	f.Must(f.forwarded(turn, 1, 1))
	if s := f.subscription("s"); s.Tries != 0 || s.Error != "" || s.FailingSince != nil || s.NextTry != nil || s.ToldAt == nil {
		f.Errorf("after a success it is %+v", s)
	}
	if q := f.Queue(); len(q.Failing) != 0 {
		f.Errorf("the queue still tells of %+v", q.Failing)
	}
	f.Must(f.Store.NoteUnforwarded(f.Context(), registry.SubscriptionFailure{ID: turn.ID, Turn: turn.Turn, Error: "\x00 again", Wait: time.Hour}))
	resumed, err := f.Store.ResumeSubscription(f.Context(), "s", "admin")
	f.Must(err)
	if resumed.Tries != 0 || resumed.NextTry != nil || f.forwardsOne("other").Wait != 0 {
		f.Errorf("resumed it is %+v", resumed)
	}
}

func subscriptionRewound(f *fixture) {
	f.Submit()
	f.subscribe("s")
	turn := f.forwardsOne(forwarder)
	f.Must(f.forwarded(turn, 2, 2))
	f.Must(f.Store.NoteUnforwarded(f.Context(), registry.SubscriptionFailure{ID: turn.ID, Turn: turn.Turn, Error: "down", Wait: time.Hour}))
	s, err := f.Store.RewindSubscription(f.Context(), "s", 0, "they lost it", "admin")
	f.Must(err)
	if s.Cursor != 0 || s.Rewinds != 1 || s.Tries != 0 {
		f.Errorf("rewound to %+v", s)
	}
	f.Is(f.forwarded(turn, 3, 1), registry.ErrSubscriptionLost)
	if s := f.subscription("s"); s.Cursor != 0 {
		f.Errorf("what was under way moved it to %d", s.Cursor)
	}
	again := f.forwardsOne(forwarder)
	if again.Turn == turn.Turn || again.Cursor != 0 || again.Wait != 0 {
		f.Errorf("after the rewind it has %+v", again)
	}
	end := f.end()
	s, err = f.Store.RewindSubscription(f.Context(), "s", registry.FeedNow, "", "admin")
	f.Must(err)
	if s.Cursor != end || s.Rewinds != 2 {
		f.Errorf("moved on to %d, want %d", s.Cursor, end)
	}
}

func subscriptionPaused(f *fixture) {
	f.subscribe("s")
	turn := f.forwardsOne(forwarder)
	s, err := f.Store.PauseSubscription(f.Context(), "s", "they migrate", "admin")
	f.Must(err)
	if s.Paused == nil || s.Paused.Reason != "they migrate" || s.Paused.Actor != "admin" || !s.Paused.At.Equal(f.Clock.Now()) || s.Owner != "" {
		f.Errorf("paused it is %+v", s)
	}
	f.Is(f.forwarded(turn, 1, 1), registry.ErrSubscriptionLost)
	if turns := f.forwards(forwarder); len(turns) != 0 {
		f.Errorf("forwards what is paused: %+v", turns)
	}
	at := f.Clock.Now()
	f.Clock.Pass(time.Hour)
	s, err = f.Store.PauseSubscription(f.Context(), "s", "still", "boss")
	f.Must(err)
	if s.Paused.Reason != "still" || s.Paused.Actor != "boss" || !s.Paused.At.Equal(at) {
		f.Errorf("paused again it is %+v", s.Paused)
	}
	s, err = f.Store.ResumeSubscription(f.Context(), "s", "admin")
	f.Must(err)
	if s.Paused != nil || s.Cursor != 0 {
		f.Errorf("resumed it is %+v", s)
	}
	end := f.end()
	_, err = f.Store.ResumeSubscription(f.Context(), "s", "admin")
	f.Must(err)
	if f.end() != end {
		f.Error("a repeat is an event")
	}
	f.forwardsOne(forwarder)
}

func subscriptionRemoved(f *fixture) {
	f.subscribe("s")
	f.subscribe("other")
	for _, name := range []string{"s", "other"} {
		c := registrytest.Credential("signing:one", registry.CredentialSigning)
		c.Collection = registry.SubscriptionOwner(name)
		f.Must(f.Store.PutCredential(f.Context(), c))
	}
	unknown := registrytest.Credential("signing:one", registry.CredentialSigning)
	unknown.Collection = registry.SubscriptionOwner("unknown")
	f.Is(f.Store.PutCredential(f.Context(), unknown), registry.ErrNotFound)
	var old registry.SubscriptionTurn
	for _, turn := range f.forwards(forwarder) {
		if turn.Name == "s" {
			old = turn
		}
	}
	f.Must(f.Store.RemoveSubscription(f.Context(), "s", "admin"))
	f.Is(f.Store.RemoveSubscription(f.Context(), "s", "admin"), registry.ErrNotFound)
	f.Is(f.forwarded(old, 1, 1), registry.ErrSubscriptionLost)
	for name, want := range map[string]int{"s": 0, "other": 1} {
		left, err := f.Store.Credentials(f.Context(), registry.SubscriptionOwner(name))
		f.Must(err)
		if len(left) != want {
			f.Errorf("%s has %d credentials, want %d", name, len(left), want)
		}
	}
	f.subscribe("s")
	f.Is(f.forwarded(old, 1, 1), registry.ErrSubscriptionLost)
	if s := f.subscription("s"); s.Cursor != 0 || s.Told != 0 {
		f.Errorf("one of the same name has gone on: %+v", s)
	}
}

func subscriptionAudited(f *fixture) {
	_, err := f.Store.PutSubscription(f.Context(), registry.SubscriptionRequest{Name: "s", Target: "https://h.test/secret-path", Actor: "one"})
	f.Must(err)
	_, err = f.Store.PauseSubscription(f.Context(), "s", "because", "two")
	f.Must(err)
	_, err = f.Store.ResumeSubscription(f.Context(), "s", "three")
	f.Must(err)
	_, err = f.Store.RewindSubscription(f.Context(), "s", 1, "again", "four")
	f.Must(err)
	end := f.end()
	turn := f.forwardsOne(forwarder)
	f.Must(f.forwarded(turn, 2, 1))
	f.Must(f.Store.NoteUnforwarded(f.Context(), registry.SubscriptionFailure{ID: turn.ID, Turn: turn.Turn, Error: "down"}))
	f.Must(f.Store.ReleaseSubscriptions(f.Context(), forwarder))
	if f.end() != end {
		f.Error("forwarding writes events, which would be forwarded")
	}
	f.Must(f.Store.RemoveSubscription(f.Context(), "s", "five"))
	page, err := f.Store.Audit(f.Context(), registry.AuditQuery{})
	f.Must(err)
	var told []string
	for _, e := range page.Rows {
		if e.ItemID != registry.SubscriptionOwner("s") {
			continue
		}
		told = append(told, e.Type+" by "+e.Actor)
		if strings.Contains(string(e.Data), "secret-path") || e.Collection != "" {
			f.Errorf("event %s in collection %q tells %s", e.Type, e.Collection, e.Data)
		}
	}
	want := []string{
		"subscription-removed by five", "subscription-rewound by four", "subscription-resumed by three", "subscription-paused by two", "subscription-set by one",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		f.Errorf("audit, newest first (-want +got):\n%s", diff)
	}
}

func subscriptionBehind(f *fixture) {
	f.subscribe("s")
	f.Clock.Pass(time.Minute)
	at := f.Clock.Now()
	begun := f.end()
	f.Submit()
	f.Clock.Pass(time.Minute)
	f.Submit()
	turn := f.forwardsOne(forwarder)
	f.Must(f.forwarded(turn, begun, 0))
	if s := f.subscription("s"); s.Behind != 2 || s.BehindSince == nil || !s.BehindSince.Equal(at) {
		f.Errorf("behind by %d since %v, want 2 since %v", s.Behind, s.BehindSince, at)
	}
	f.Must(f.forwarded(turn, f.end(), 0))
	if s := f.subscription("s"); s.Behind != 0 || s.BehindSince != nil || s.Told != 0 || s.ToldAt != nil {
		f.Errorf("at the end it is %+v", s)
	}
}

// eventStates: at every event of a batch and its job, the event's state is the item's.
func eventStates(f *fixture) {
	compared := 0
	same := func(id string) {
		f.Helper()
		events, err := f.Store.Events(f.Context(), id, 0, 0)
		f.Must(err)
		last := events[len(events)-1]
		p, ok := last.Position()
		it := f.Item(id)
		if !ok || registry.StateOf(p) != it.State || p.Stage != it.Stage || p.Status != it.Status || p.Action != it.Action {
			f.Errorf("event %s tells %s (%+v), the item is %s", last.Type, registry.StateOf(p), p, it.State)
		}
		exactly := registry.FeedFilter{Types: []string{last.Type}, Actions: []registry.Action{p.Action}, States: []registry.State{it.State}}
		if err := exactly.Check(); err != nil || !exactly.Takes(last) {
			f.Errorf("the filter of event %s alone is refused, or does not take it: %v", last.Type, err)
		}
		compared++
	}
	batch := f.Submit()
	same(batch)
	c := f.Take(registry.Expand, batch)
	same(batch)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(1))
	f.Must(err)
	f.Done(c.Lease)
	same(batch)
	job := f.Children(batch)[0]
	same(job)
	for _, stage := range []registry.Stage{registry.Estimate, registry.Provision} {
		l := f.Take(stage, job).Lease
		same(job)
		f.Done(l)
		same(job)
	}
	l := f.Take(registry.Download, job).Lease
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.ContentFault})
	same(job)
	f.Command(job, registry.ActRequeue, registry.Estimate)
	same(job)
	f.Finish(job)
	same(job)
	l = f.TakeItem(batch).Lease
	if it := f.Item(batch); it.State == registry.StateReporting {
		same(batch) // the requeue came in time
	}
	f.CloseReport(l)
	f.Done(l)
	same(batch)
	if compared < 12 {
		f.Errorf("compared %d states", compared)
	}
}

func filtersTake(f *fixture) {
	f.Collection("other", registry.Profile{})
	f.Submit(func(s *registry.Submission) { s.Collection = "other" })
	_, jobs := f.Batch(2)
	f.Finish(jobs[0])
	f.FailItem(jobs[1], registry.ContentFault)
	f.Hold(registry.HoldItem, jobs[1])
	all, err := f.Store.Feed(f.Context(), registry.FeedQuery{Limit: 500})
	f.Must(err)
	name := map[string]string{jobs[0]: "good", jobs[1]: "bad"}
	for _, tt := range []struct {
		name   string
		filter registry.FeedFilter
		want   []string
	}{
		{"an action's ends", registry.FeedFilter{Actions: []registry.Action{registry.Ingest}, States: []registry.State{"completed", "FAILED"}}, []string{"good complete", "bad fail"}},
		{"a type", registry.FeedFilter{Types: []string{"fail", "hold"}}, []string{"bad fail", "bad hold"}},
		{"a collection", registry.FeedFilter{Collections: []string{"other"}, Types: []string{"submit"}}, []string{" submit"}},
		{"nothing of it", registry.FeedFilter{Collections: []string{"other"}, States: []registry.State{registry.StateFailed}}, nil},
	} {
		var got []string
		listed, err := f.Store.Feed(f.Context(), tt.filter.Query(0, 500))
		f.Must(err)
		for _, e := range listed {
			if tt.filter.Takes(e) {
				got = append(got, name[e.ItemID]+" "+e.Type)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			f.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		n := 0
		for _, e := range all {
			if tt.filter.Takes(e) {
				n++
			}
		}
		if n != len(got) {
			f.Errorf("%s: Takes alone takes %d, with the query %d", tt.name, n, len(got))
		}
	}
}
