package workers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// breaks has a job announce a version and write some of it, up to a file below the version's folder
// that ends so, and then fail.
func (r *rig) breaks(id string, objects *storagetest.Faulty, version int, file string) {
	r.t.Helper()
	r.advance(id, registry.Process)
	written := func() bool {
		return r.item(id).Commitment == registry.Announced && slices.ContainsFunc(keys(r.t, r.storage, r.versionFolder(id, version)), func(key string) bool {
			return strings.HasSuffix(key, file)
		})
	}
	for at := 1; !written(); at++ {
		objects.DieAt(at)
		_, err := r.run(id)
		objects.Heal()
		if err == nil {
			r.t.Fatal("it was not stopped")
		}
		r.wait(2 * time.Hour)
	}
	c, err := r.registry.Claim(r.t.Context(), registry.ClaimRequest{
		RequestID: id + "fails", Stage: registry.Process, Hint: id, Worker: "w", Lease: time.Hour, MaxAttempts: 5, StuckAfter: time.Hour,
	})
	must(r.t, err)
	_, err = r.registry.Settle(r.t.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	must(r.t, err)
}

// wantAbandoned has one person ask for an announced version to be abandoned, and another one agree.
func (r *rig) wantAbandoned(id string) {
	r.t.Helper()
	for _, person := range []string{"one", "another"} {
		agrees := ""
		if a, asked := r.item(id).Abandonment(); person == "another" && asked {
			agrees = a.Request()
		}
		_, err := r.registry.Command(r.t.Context(), registry.Command{ItemID: id, Act: registry.ActAbandon, Reason: "the source is lost", Actor: person, Confirmed: true, AgreesTo: agrees})
		must(r.t, err)
	}
}

// abandoned checks that nothing is left of a job's version, and that the job says so.
func (r *rig) abandoned(it registry.WorkItem, version int) {
	r.t.Helper()
	if a, _ := it.Abandonment(); a.DoneAt == nil || it.Commitment != registry.Uncommitted || !slices.Contains(it.AllowedActs, registry.ActDelete) {
		r.t.Errorf("%+v, commitment %q, allows %v: %s", a, it.Commitment, it.AllowedActs, it.Note)
	}
	key, err := r.objects.ObjectKey(r.ark(it.ID))
	must(r.t, err)
	folder := key + "/"
	if version > 1 {
		folder = fmt.Sprintf("%s/v%d/", key, version)
	}
	if left := keys(r.t, r.storage, folder); len(left) > 0 {
		r.t.Errorf("left in storage: %v", left)
	}
}

// Two people abandon a version that its job has announced and can never store. Wherever the worker
// is killed, it leaves nothing of the version and removes nothing else. The job is run again or
// deleted, and its object is free for others.
func TestR01_AbandonDiesAnywhere(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"staging", "storage"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			r, staging, objects := newFaultyRig(t)
			store := map[string]*storagetest.Faulty{"staging": staging, "storage": objects}[where]
			update := true // of an object that has a version, every other time
			survived := false
			for n := range looptest.Steps(t) {
				if survived {
					break
				}
				update = !update
				local := []string{fmt.Sprint(n)}
				version, before := 1, registry.Object{}
				if update {
					before = r.complete(r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("f", "first"), Filename: "first", LocalIDs: local}))
					version = 2
				}
				id, want := r.zipJobOf(n, local)
				r.breaks(id, objects, version, "")
				r.wantAbandoned(id)
				store.DieAt(n)
				_, _ = r.run(id) // what became of it is asked of the Registry
				store.Heal()
				survived = r.item(id).Status == registry.Failed && n > 3
				r.abandoned(r.fails(id), version)
				if update {
					r.valid(before, 1)
				}
				if n%2 == 0 {
					r.command(id, registry.ActDelete, "")
					o := r.complete(r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("g", "other"), Filename: "other", LocalIDs: local}))
					r.valid(o, version)
					continue
				}
				r.command(id, registry.ActRequeue, "")
				o := r.complete(id)
				r.valid(o, version)
				for name, text := range want {
					if got := r.producer(o, version)[name]; got != text {
						t.Errorf("death at %d: %s is %q, want %q", n, name, got, text)
					}
				}
				r.nothingStaged(id)
			}
		})
	}
}

func (r *rig) zipJobOf(n int, local []string) (string, map[string]string) {
	files := sample()
	files["which.txt"] = fmt.Sprint(n)
	return r.job(registry.Spec{
		Type: registry.AutoType, URL: r.site.put("c.zip", zipOf(r.t, files)), Filename: "c.zip", LocalIDs: local,
	}), files
}

// A version that a storage has complete is not abandoned: the job fails and says so, and a requeue
// rolls it forward.
func TestAbandon_RefusesWhatIsVisible(t *testing.T) {
	t.Parallel()
	r, _, objects := newFaultyRig(t)
	id, want := r.zipJob(1)
	r.breaks(id, objects, 1, "/inventory.json")
	r.wantAbandoned(id)
	it := r.fails(id)
	wantClass(t, it, registry.SystemFault, "is complete in storage", "requeue the item")
	if it.Commitment != registry.Announced {
		t.Errorf("commitment %q", it.Commitment)
	}
	r.command(id, registry.ActRequeue, "")
	o := r.complete(id)
	r.valid(o, 1)
	for name, text := range want {
		if got := r.producer(o, 1)[name]; got != text {
			t.Errorf("%s is %q, want %q", name, got, text)
		}
	}
}

// versionFolder is the folder of a version of a job's object in storage; "/" before it has a name.
func (r *rig) versionFolder(id string, version int) string {
	r.t.Helper()
	if r.item(id).Results["ark"] == nil {
		return "/"
	}
	return fmt.Sprintf("%s/v%d/", r.folderOf(id), version)
}

func (r *rig) folderOf(id string) string {
	r.t.Helper()
	key, err := r.objects.ObjectKey(r.ark(id))
	must(r.t, err)
	return key
}

// Files that are not of the announced version are not removed: the job names them and changes
// nothing. It also changes nothing if staging no longer has the version's inventory.
func TestAbandon_LeavesForeignFiles(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(r *rig, id string){
		"another file": func(r *rig, id string) { put(r.t, r.storage, r.folderOf(id)+"/v1/content/foreign") },
		"other bytes": func(r *rig, id string) {
			key := keys(r.t, r.storage, r.folderOf(id)+"/v1/content/")[0]
			must(r.t, r.storage.Replace(r.t.Context(), key, []byte("other bytes")))
		},
		"no staged plan": func(r *rig, id string) { must(r.t, r.staging.DeletePrefix(r.t.Context(), "items/"+id)) },
		"a forged staged plan": func(r *rig, id string) {
			for _, key := range keys(r.t, r.staging, "items/"+id) {
				if strings.HasSuffix(key, ".inventory.json") {
					must(r.t, r.staging.Replace(r.t.Context(), key, []byte(`{"id":"x"}`)))
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, objects := newFaultyRig(t)
			title := ""
			if strings.Contains(name, "staged") {
				title = longTitle
			}
			id, _ := r.zipJobs(title)(1)
			r.breaks(id, objects, 1, "")
			spoil(r, id)
			before := keys(t, r.storage, r.folderOf(id))
			r.wantAbandoned(id)
			it := r.fails(id)
			wantClass(t, it, registry.SystemFault, "was not abandoned", "/v1 holds files")
			if after := keys(t, r.storage, r.folderOf(id)); !slices.Equal(before, after) || it.Commitment != registry.Announced {
				t.Errorf("%q, left %v of %v", it.Commitment, after, before)
			}
			must(t, r.storage.DeletePrefix(t.Context(), r.folderOf(id))) // a person moves them out
			r.wantAbandoned(id)
			r.abandoned(r.fails(id), 1)
		})
	}
}

// A superseded worker writes its inventory after its version was abandoned: that makes no version.
// The next one is refused before it is announced, and says so.
func TestAbandon_LateVersionIsNotTakenForOurs(t *testing.T) {
	t.Parallel()
	r, _, objects := newFaultyRig(t)
	id, _ := r.zipJob(1)
	r.breaks(id, objects, 1, "")
	r.wantAbandoned(id)
	r.abandoned(r.fails(id), 1)
	late := r.folderOf(id) + "/v1/inventory.json"
	_, err := storage.Put(t.Context(), r.storage, late, []byte("{}"))
	must(t, err)
	r.command(id, registry.ActRequeue, "")
	it := r.fails(id)
	if wantClass(t, it, registry.SystemFault, "later version"); it.Commitment != registry.Uncommitted {
		t.Errorf("commitment %q", it.Commitment)
	}
	must(t, r.storage.Delete(t.Context(), late))
	r.command(id, registry.ActRequeue, "")
	o := r.complete(id)
	if report, err := r.objects.Verify(t.Context(), o.ID, ocfl.ValidateOptions{}); err != nil || !report.Valid() {
		t.Errorf("%+v, %v", report, err)
	}
}
