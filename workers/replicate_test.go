package workers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// replicated is a collection with three storages: the default one, which fails on demand, and two
// others, which do, too.
const replicated = "replicated"

// newReplicatedRig is a faulty rig whose collection has two more storages.
func newReplicatedRig(t *testing.T) (r *rig, first *storagetest.Faulty, others map[string]*storagetest.Faulty, behind map[string]*ocfl.Root) {
	t.Helper()
	r, _, first = newFaultyRig(t)
	others, behind = map[string]*storagetest.Faulty{}, map[string]*ocfl.Root{registry.DefaultStorage: r.objects}
	for _, name := range []string{"b", "c"} {
		kept := storagetest.NewMemory()
		behind[name], others[name] = rootOf(t, kept), storagetest.NewFaulty(kept)
		r.deps.Objects = append(r.deps.Objects, ocfl.Named{Root: rootOf(t, others[name]), Name: name, Address: "place " + name})
	}
	r.profile(replicated, profileOf(registry.DefaultStorage, "b", "c"))
	return r, first, others, behind
}

func profileOf(storages ...string) registry.Profile {
	return registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, Storages: storages}
}

// jobTo submits one file to a collection and returns its job.
func (r *rig) jobTo(collection string, s registry.Spec) string {
	r.t.Helper()
	return r.expand(r.submitTo(collection, s))[0].ID
}

func (r *rig) fileTo(collection, text, localID string) string {
	r.t.Helper()
	return r.jobTo(collection, registry.Spec{
		Type: registry.FileType, URL: r.site.put(text, text), Filename: text, LocalIDs: []string{localID},
	})
}

// inAll checks that storages have an object whole and alike, and that the Registry says so.
func (r *rig) inAll(o registry.Object, versions int, behind map[string]*ocfl.Root, names ...string) {
	r.t.Helper()
	for _, v := range o.Versions {
		var recorded []string
		for _, replica := range v.Replicas {
			recorded = append(recorded, replica.Storage)
			if replica.VerifiedAt.IsZero() {
				r.t.Errorf("version %d in %s was verified never", v.Version, replica.Storage)
			}
		}
		if v.Version > o.Head-versions && !sameNames(recorded, names) {
			r.t.Errorf("version %d is recorded in %v, want %v", v.Version, recorded, names)
		}
	}
	var first map[string]string
	for _, name := range names {
		report, err := behind[name].Verify(r.t.Context(), o.ID, ocfl.ValidateOptions{})
		if err != nil || !report.Valid() || report.Head != fmt.Sprintf("v%d", o.Head) {
			r.t.Fatalf("storage %s: %v %+v, want a valid v%d", name, err, report, o.Head)
		}
		r.evident(behind[name], o, o.Head)
		got := snapshot(r.t.(*testing.T), behind[name].Store())
		if first == nil {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			r.t.Errorf("storage %s differs from %s:\n%s", name, names[0], diff)
		}
	}
}

func sameNames(a, b []string) bool {
	seen := map[string]int{}
	for _, s := range a {
		seen[s]++
	}
	for _, s := range b {
		seen[s]--
	}
	for _, n := range seen {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestReplicate(t *testing.T) {
	t.Parallel()
	r, _, _, behind := newReplicatedRig(t)
	o := r.complete(r.fileTo(replicated, "one", "x"))
	r.inAll(o, 1, behind, registry.DefaultStorage, "b", "c")
	events, err := r.registry.PremisEvents(t.Context(), o.ID, "", 500)
	must(t, err)
	found := false
	for _, e := range events.Rows {
		found = found || e.Type == string(premis.Replication) && strings.Contains(e.Detail, "place b, place c")
	}
	if !found {
		t.Errorf("no event tells of the replication: %+v", events.Rows)
	}
	// Without further storages nothing is replicated.
	id := r.fileTo(collection, "single", "y")
	r.advance(id, registry.Process)
	if v, err := r.run(id); err != nil || v.Stage != registry.Record {
		t.Errorf("after process: %+v %v, want record", v, err)
	}
}

// A failing storage is retried alone: storages that have the version are not touched again.
// Meanwhile the item waits with the reason and is not recorded, and then it continues.
func TestReplicate_RetriesWhatFailed(t *testing.T) {
	t.Parallel()
	r, _, others, behind := newReplicatedRig(t)
	id := r.fileTo(replicated, "one", "x")
	r.advance(id, registry.Replicate)
	others["b"].DieAt(1)
	if _, err := r.run(id); err == nil {
		t.Fatal("it went on without a replica")
	}
	it := r.item(id)
	if it.Stage != registry.Replicate || it.Status != registry.Pending || it.Tries != 1 || it.State != registry.StateReplicating {
		t.Errorf("stage=%s status=%s state=%s tries=%d, want it to wait at replicate", it.Stage, it.Status, it.State, it.Tries)
	}
	wantClass(t, it, registry.SystemFault, `storage "b"`, "process is dead")
	if strings.Contains(it.Note, `"c"`) {
		t.Errorf("note %q blames c", it.Note)
	}
	touched := func() (n int) {
		for _, op := range []storagetest.Op{storagetest.Create, storagetest.Copy, storagetest.Open, storagetest.Stat, storagetest.Replace} {
			n += others["c"].Count(op)
		}
		return n
	}
	before := touched()
	others["b"].Heal()
	r.wait(2 * time.Hour)
	if v, err := r.run(id); err != nil || v.Stage != registry.Record {
		t.Fatalf("verdict %+v, error %v", v, err)
	}
	if after := touched(); after != before || before == 0 {
		t.Errorf("storage c was asked %d times by the retry, %d before", after-before, before)
	}
	r.inAll(r.complete(id), 1, behind, registry.DefaultStorage, "b", "c")
}

// A storage that stays unavailable fails the item; an admin requeues it later.
func TestReplicate_NeedsAdminReview(t *testing.T) {
	t.Parallel()
	r, _, others, behind := newReplicatedRig(t)
	r.deps.Policy = fewTries
	id := r.fileTo(replicated, "one", "x")
	r.advance(id, registry.Replicate)
	others["c"].DieAt(1)
	it := r.fails(id)
	if it.Stage != registry.Replicate || !it.NeedsAdminReview {
		t.Errorf("failed at %s, review %v", it.Stage, it.NeedsAdminReview)
	}
	wantClass(t, it, registry.SystemFault, `storage "c"`)
	if o, err := r.registry.Object(t.Context(), r.ark(id)); err == nil && o.Head > 0 {
		t.Errorf("version %d is recorded without its replicas", o.Head)
	}
	others["c"].Heal()
	_, err := r.registry.Command(t.Context(), registry.Command{ItemID: id, Act: registry.ActRequeue, Actor: "admin"})
	must(t, err)
	r.inAll(r.complete(id), 1, behind, registry.DefaultStorage, "b", "c")
}

func TestReplicate_DiskFull(t *testing.T) {
	t.Parallel()
	r, _, others, behind := newReplicatedRig(t)
	id := r.fileTo(replicated, "one", "x")
	r.advance(id, registry.Replicate)
	others["b"].Quota(2000)
	if _, err := r.run(id); err == nil {
		t.Error("it went on without a replica")
	}
	it := r.item(id)
	waits(t, it)
	if !strings.Contains(it.Note, `storage "b"`) || !strings.Contains(it.Note, "no space") {
		t.Errorf("note %q", it.Note)
	}
	others["b"].Quota(-1)
	r.wait(2 * time.Hour)
	r.inAll(r.complete(id), 1, behind, registry.DefaultStorage, "b", "c")
}

// A storage added to the collection gets all versions with the next one, also if it is added as the
// first.
func TestReplicate_StorageAddedLater(t *testing.T) {
	t.Parallel()
	r, _, _, behind := newReplicatedRig(t)
	r.complete(r.fileTo(collection, "one", "x"))
	r.profile(collection, profileOf(registry.DefaultStorage, "b"))
	o := r.complete(r.fileTo(collection, "two", "x"))
	r.inAll(o, 2, behind, registry.DefaultStorage, "b")
	r.profile(collection, profileOf("c", registry.DefaultStorage))
	o = r.complete(r.fileTo(collection, "three", "x"))
	if o.Head != 3 {
		t.Fatalf("version %d", o.Head)
	}
	o.Versions = o.Versions[2:]
	r.inAll(o, 1, behind, registry.DefaultStorage, "c")
}

func TestReplicate_UnknownStorage(t *testing.T) {
	t.Parallel()
	r, _, _, _ := newReplicatedRig(t)
	r.profile(collection, profileOf(registry.DefaultStorage, "nowhere"))
	r.deps.Policy = fewTries
	it := r.fails(r.fileTo(collection, "one", "x"))
	wantClass(t, it, registry.SystemFault, `"nowhere"`, "there are storage, b, c")
}

func TestR02_ReplicateDiesAnywhere(t *testing.T) {
	for _, name := range []string{registry.DefaultStorage, "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, first, others, behind := newReplicatedRig(t)
			store := others[name]
			if name == registry.DefaultStorage {
				store = first
			}
			diesEverywhere(t, r, registry.Replicate, store, func(n int) (string, map[string]string) {
				files := map[string]string{"which": fmt.Sprint(n), "other": "same"}
				return r.jobTo(replicated, registry.Spec{
					Type: registry.ContainerType, URL: r.site.put("c.zip", zipOf(t, files)), Filename: "c.zip", LocalIDs: []string{fmt.Sprint(n)},
				}), files
			})
			for storage, root := range behind {
				if diff := cmp.Diff(snapshot(t, r.storage), snapshot(t, root.Store())); diff != "" {
					t.Errorf("storage %s differs from the first:\n%s", storage, diff)
				}
			}
		})
	}
}

// If an earlier program's worker passed the item on without replicating, record sends it back.
func TestReplicate_IsNotPassedBy(t *testing.T) {
	t.Parallel()
	r, _, others, behind := newReplicatedRig(t)
	id := r.fileTo(replicated, "one", "x")
	r.advance(id, registry.Replicate)
	c, err := r.registry.Claim(t.Context(), registry.ClaimRequest{RequestID: "old", Stage: registry.Replicate, Hint: id, Worker: "old", Lease: time.Minute})
	must(t, err)
	_, err = r.registry.Settle(t.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
	must(t, err)
	if it := r.item(id); it.Stage != registry.Record {
		t.Fatalf("stage %s", it.Stage)
	}
	if _, err := r.run(id); err == nil {
		t.Error("it was recorded")
	}
	if it := r.item(id); it.Stage != registry.Replicate {
		t.Errorf("sent to %s, want replicate", it.Stage)
	}
	if n := others["b"].Count(storagetest.Commit); n != 0 {
		t.Errorf("%d files in b", n)
	}
	r.inAll(r.complete(id), 1, behind, registry.DefaultStorage, "b", "c")
}

func fewTries(registry.Stage) base.Worker { return base.Worker{Attempts: 3} }

// A step that is killed while it writes a file may leave parts of it that nobody goes on with. The
// attempt that completes the version deletes them; a first attempt looks for none.
func TestR02_DropsWhatAKilledAttemptLeft(t *testing.T) {
	t.Parallel()
	for _, stage := range []registry.Stage{registry.Process, registry.Replicate} {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			r, first, others, behind := newReplicatedRig(t)
			written, name := first, registry.DefaultStorage
			if stage == registry.Replicate {
				written, name = others["b"], "b"
			}
			o := r.complete(r.fileTo(replicated, "one", "x"))
			if n := written.Count(storagetest.DeleteUnfinished); n != 0 {
				t.Errorf("first attempts looked %d times for what earlier ones left", n)
			}
			id := r.fileTo(replicated, "two", "x")
			r.advance(id, stage)
			written.DieAt(1)
			if _, err := r.run(id); err == nil {
				t.Fatal("the step survived")
			}
			written.Heal()
			key, err := behind[name].ObjectKey(o.ID)
			must(t, err)
			key += "/v2/content/producer/two"
			w, err := behind[name].Store().Create(t.Context(), key)
			must(t, err)
			_, err = w.Write([]byte("tw"))
			must(t, err)
			left, err := w.Checkpoint(t.Context())
			must(t, err)
			r.wait(2 * time.Hour)
			r.inAll(r.complete(id), 1, behind, registry.DefaultStorage, "b", "c")
			if _, err := behind[name].Store().Resume(t.Context(), key, left); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("what the killed attempt left is there: err = %v, want ErrNotFound", err)
			}
		})
	}
}
