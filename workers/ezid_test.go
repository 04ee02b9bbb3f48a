package workers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/ezid/ezidtest"
	"github.com/holdfast/holdfast/registry"
)

// named is a rig whose collection keeps its names at EZID.
type named struct {
	*rig
	ezid *ezidtest.Server
}

func newNamed(t *testing.T) *named {
	t.Helper()
	n := &named{rig: newRig(t, nil), ezid: ezidtest.New(t)}
	n.account(n.ezid.URL())
	n.profile(collection, registry.Profile{
		Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, Minting: registry.MintEZID, NOIDTemplate: "fk9{.reeeeeeeek}",
	})
	return n
}

// account makes the workers ask EZID at this address.
func (n *named) account(address string) {
	n.t.Helper()
	c, err := ezid.New(ezid.Options{URL: address, Target: "https://example.org/m/{ark}", Wait: time.Millisecond})
	must(n.t, err)
	n.t.Cleanup(c.Close)
	n.deps.EZID = c
}

func (n *named) file(s registry.Spec) string {
	n.t.Helper()
	s.Type, s.Filename = registry.FileType, "f"
	s.URL = n.site.put("f", "content "+strings.Join(s.LocalIDs, " ")+s.Title)
	return n.job(s)
}

func (n *named) why(id string) registry.Why {
	n.t.Helper()
	w, err := n.registry.Why(n.t.Context(), id)
	must(n.t, err)
	return w
}

// wantNames checks which names EZID has, and that each is known there by the item that it was
// chosen for.
func (n *named) wantNames(want map[string]string) {
	n.t.Helper()
	got := map[string]string{}
	for _, name := range n.ezid.Names() {
		ark, status, _ := strings.Cut(name, " ")
		got[ark] = status + " " + n.ezid.Name(ark)["holdfast.item"]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		n.t.Errorf("names at EZID (-want +got):\n%s", diff)
	}
}

// A name is reserved before the version is announced and made public when it is recorded; its
// metadata follow updates.
func TestEZID_NameFollowsItsObject(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	job := n.file(registry.Spec{LocalIDs: []string{"x"}, Title: "Bears: 50%", Creator: "Ω"})
	n.advance(job, registry.Record)
	ark := n.ark(job)
	if !strings.HasPrefix(ark, "ark:/99999/fk9") {
		t.Errorf("%s is not of the collection's shoulder", ark)
	}
	n.wantNames(map[string]string{ark: "reserved " + job})
	o := n.complete(job)
	n.valid(o, 1)
	n.wantNames(map[string]string{ark: "public " + job})
	want := map[string]string{
		"erc.who": "Ω", "erc.what": "Bears: 50%", "erc.when": "(:unas)", "_target": "https://example.org/m/" + strings.NewReplacer(":", "%3A", "/", "%2F").Replace(ark),
	}
	has := func() {
		t.Helper()
		for label, value := range want {
			if got := n.ezid.Name(ark)[label]; got != value {
				t.Errorf("%s is %q, want %q", label, got, value)
			}
		}
	}
	has()
	o = n.complete(n.file(registry.Spec{Mode: registry.Update, LocalIDs: []string{"x"}, Title: "Bears", Date: "1920"}))
	n.valid(o, 2)
	want["erc.what"], want["erc.when"] = "Bears", "1920"
	has()
	n.wantNames(map[string]string{ark: "public " + job})
	if got := n.item(job).Results["ark"]; !strings.Contains(string(got), `"ezid_item":"`+job) {
		t.Errorf("the item's identity is %s", got)
	}
}

// A supplied ARK belongs to its depositor: it is neither made nor changed at EZID, as in Merritt.
// Another collection's ARK is unchanged.
func TestEZID_OnlyNamesThatAreOurs(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	o := n.complete(n.file(registry.Spec{PrimaryID: "ark:/99999/fk9given", LocalIDs: []string{"x"}}))
	n.complete(n.file(registry.Spec{Mode: registry.Update, LocalIDs: []string{"x"}, Title: "new"}))
	n.profile(collection, registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, Minting: registry.MintLocally})
	n.complete(n.file(registry.Spec{Title: "local"}))
	if asked := n.ezid.Asked(); len(asked) > 0 || o.ID != "ark:/99999/fk9given" {
		t.Errorf("%s: EZID was asked for %v", o.ID, asked)
	}
}

// doomed is a process that dies at one of its calls: from then on none has an effect. Calls are
// counted over the Registry and EZID, in their order.
type doomed struct {
	registry.ForWorkers

	mu    sync.Mutex
	left  int  // calls until death; 0: immortal
	after bool // it dies when the call was done, before its answer
	dead  bool
}

func (m *doomed) arm(n int, after bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left, m.after, m.dead = n, after, false
}

// call carries one call out, or not.
func (m *doomed) call(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errTest
	}
	m.dead = m.left == 1
	if m.left > 0 {
		m.left--
	}
	if m.dead && !m.after {
		return errTest
	}
	err := do()
	if m.dead {
		return errTest
	}
	return err
}

func (m *doomed) Identify(ctx context.Context, l registry.Lease, r registry.IdentifyRequest) (id registry.Identity, err error) {
	return id, m.call(func() (e error) { id, e = m.ForWorkers.Identify(ctx, l, r); return e })
}

func (m *doomed) Intend(ctx context.Context, l registry.Lease, in registry.Intent) (out registry.Intent, err error) {
	return out, m.call(func() (e error) { out, e = m.ForWorkers.Intend(ctx, l, in); return e })
}

func (m *doomed) RecordVersion(ctx context.Context, l registry.Lease, v registry.VersionRecord) error {
	return m.call(func() error { return m.ForWorkers.RecordVersion(ctx, l, v) })
}

// request is an ezidtest.Fault.
func (m *doomed) request(w http.ResponseWriter, _ *http.Request, serve func(http.ResponseWriter)) bool {
	if err := m.call(func() error { serve(w); return nil }); err != nil {
		panic(http.ErrAbortHandler)
	}
	return true
}

// R8: a worker killed before or after any call leaves one name for one object, which EZID has under
// the item, and which is public in the end.
func TestR08_EZIDKilledAtEachCall(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	m := &doomed{ForWorkers: n.deps.Registry}
	n.deps.Registry = m
	n.ezid.Fail(m.request)
	want := map[string]string{}
	calls := 0
	for survived := false; !survived; calls++ {
		for _, after := range []bool{false, true} {
			id := n.file(registry.Spec{LocalIDs: []string{fmt.Sprint(calls, after)}})
			n.advance(id, registry.Process)
			m.arm(calls+1, after)
			var err error
			for err == nil && !n.item(id).Status.Settled() {
				_, err = n.run(id)
			}
			m.arm(0, false)
			survived = err == nil
			if it := n.item(id); it.Status == registry.Failed {
				t.Fatalf("death at call %d failed the item: %s", calls+1, it.Note)
			}
			n.wait(2 * time.Hour)
			o := n.complete(id)
			n.valid(o, 1)
			want[o.ID] = "public " + id
		}
	}
	n.wantNames(want)
	if calls < 7 { // identify, PUT, intend, record, GET, POST, and once to the end
		t.Errorf("died at %d calls only", calls)
	}
}

// A name that somebody else has at EZID is never stored under: another one is proposed, and nothing
// keeps the first.
func TestR08_EZIDNameIsAnothers(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	var first string
	n.ezid.Fail(func(_ http.ResponseWriter, r *http.Request, _ func(http.ResponseWriter)) bool {
		if r.Method == http.MethodPut && first == "" {
			first = strings.TrimPrefix(r.URL.Path, "/id/")
			n.ezid.Put(first, map[string]string{"_owner": "somebody", "_status": "public"})
		}
		return false
	})
	job := n.file(registry.Spec{LocalIDs: []string{"x"}})
	o := n.complete(job)
	n.valid(o, 1)
	if first == "" || o.ID == first {
		t.Fatalf("stored under %s, which is another's", o.ID)
	}
	n.wantNames(map[string]string{first: "public ", o.ID: "public " + job})
	if diff := cmp.Diff(map[string]string{"_owner": "somebody", "_status": "public"}, n.ezid.Name(first)); diff != "" {
		t.Errorf("the other's name was changed (-was +is):\n%s", diff)
	}
	for _, key := range keys(t, n.storage, "") {
		if strings.Contains(key, strings.TrimPrefix(first, "ark:/99999/")) {
			t.Errorf("%s was stored", key)
		}
	}
	if again := n.complete(n.file(registry.Spec{LocalIDs: []string{"x"}, Title: "2"})); again.ID != o.ID {
		t.Errorf("the local id leads to %s", again.ID)
	}
}

// A job that failed after its name was reserved leaves it to the next one with its local id, which
// makes it public.
func TestR08_EZIDNameOfAFailedJob(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	failed := n.file(registry.Spec{LocalIDs: []string{"x"}})
	n.advance(failed, registry.Process)
	m := &doomed{ForWorkers: n.deps.Registry}
	n.deps.Registry = m
	for range 3 {
		m.arm(2, false) // at the announcement
		_, _ = n.run(failed)
		n.wait(2 * time.Hour)
	}
	m.arm(0, false)
	if it := n.item(failed); it.Status != registry.Failed {
		t.Fatalf("status %s", it.Status)
	}
	o := n.complete(n.file(registry.Spec{LocalIDs: []string{"x"}, Title: "another job"}))
	n.wantNames(map[string]string{o.ID: "public " + failed})
	_, err := n.registry.Command(t.Context(), registry.Command{ItemID: failed, Act: registry.ActRequeue, Actor: "tester"})
	must(t, err)
	o = n.complete(failed)
	n.valid(o, 2)
	n.wantNames(map[string]string{o.ID: "public " + failed})
}

// While EZID does not answer, jobs wait, uncounted, and say so; recorded versions are visible
// meanwhile.
func TestEZID_Away(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	away := func(w http.ResponseWriter, _ *http.Request, _ func(http.ResponseWriter)) bool {
		w.Header().Set("Retry-After", "300")
		http.Error(w, "<h1>maintenance</h1>", http.StatusServiceUnavailable)
		return true
	}
	job := n.file(registry.Spec{LocalIDs: []string{"x"}})
	for _, stage := range []registry.Stage{registry.Process, registry.Record} {
		n.ezid.Fail(nil)
		n.advance(job, stage)
		n.ezid.Fail(away)
		for range 20 { // for days, if it must be
			_, _ = n.run(job)
			waits(t, n.item(job))
			if w := n.why(job); w.Reason != registry.ReasonNotDue || !strings.Contains(w.Sentence, "at EZID (127.0.0.1") || !strings.Contains(w.Sentence, "does not answer (503)") ||
				!strings.Contains(w.Act, "check that EZID (127.0.0.1") || !strings.HasSuffix(w.Act, "it is checked again automatically, or at once: retry item "+job) {
				t.Fatalf("%s waits: %+v", stage, w)
			}
			n.wait(4 * time.Minute)
			var refused *registry.NotClaimable
			if _, err := n.run(job); !errors.As(err, &refused) || refused.Reason != registry.ReasonNotDue {
				t.Fatalf("EZID was asked again before its time: %v", err)
			}
			n.wait(4 * time.Minute)
		}
		if stage == registry.Record {
			o := n.object(job)
			n.valid(o, 1)
			n.wantNames(map[string]string{o.ID: "reserved " + job})
			continue
		}
		n.wantNames(map[string]string{})
	}
	n.ezid.Fail(nil)
	n.wantNames(map[string]string{n.complete(job).ID: "public " + job})
}

// An error that only a person can fix is counted, fails as a system fault, and says what to do; a
// requeue then continues.
func TestEZID_NeedsAPerson(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		stage registry.Stage
		wrong func(n *named)
		says  []string
		act   string
		mend  func(n *named)
	}{
		{"wrong password", registry.Process, func(n *named) { n.account(n.ezid.With("apitest", "geheimnis")) }, []string{"denies access (401)"}, "correct the user and password in HOLDFAST_EZID_URL", nil},
		{"no account", registry.Process, func(n *named) { n.deps.EZID = nil }, []string{"no HOLDFAST_EZID_URL"}, "set HOLDFAST_EZID_URL for the workers", nil},
		{"wrong password for publishing", registry.Record, func(n *named) { n.account(n.ezid.With("apitest", "geheimnis")) }, []string{"denies access (401)"}, "correct the user and password in HOLDFAST_EZID_URL", nil},
		{"taken from us", registry.Record, func(n *named) {
			ark, _, _ := strings.Cut(n.ezid.Names()[0], " ")
			n.ezid.Put(ark, map[string]string{"_owner": "somebody", "_status": "public"})
		}, []string{"belongs to somebody else", "holdfast.item"}, "find out who changed", func(n *named) {
			ark, _, _ := strings.Cut(n.ezid.Names()[0], " ")
			n.ezid.Remove(ark)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newNamed(t)
			job := n.file(registry.Spec{LocalIDs: []string{"x"}})
			n.advance(job, tt.stage)
			tt.wrong(n)
			_, _ = n.run(job)
			if w := n.why(job); !strings.Contains(w.Sentence, "attempt 2 of 3") || !strings.HasPrefix(w.Act, tt.act) || !strings.Contains(w.Act, "it is retried automatically, or at once: retry item "+job) {
				t.Errorf("after one try: %+v", w)
			}
			n.wait(time.Hour)
			wantClass(t, n.fails(job), registry.SystemFault, tt.says...)
			if w := n.why(job); !strings.HasPrefix(w.Act, tt.act) || !strings.HasSuffix(w.Act, ", then requeue the item") || strings.Contains(w.Sentence+w.Act, "geheimnis") {
				t.Errorf("failed: %+v", w)
			}
			n.account(n.ezid.URL())
			if tt.mend != nil {
				tt.mend(n)
			}
			_, err := n.registry.Command(t.Context(), registry.Command{ItemID: job, Act: registry.ActRequeue, Actor: "tester"})
			must(t, err)
			n.wantNames(map[string]string{n.complete(job).ID: "public " + job})
		})
	}
}
