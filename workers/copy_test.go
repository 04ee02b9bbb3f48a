package workers_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/evidence/keep"
	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage/storagetest"
	"github.com/holdfast/holdfast/workers"
)

// change carries out an act on a storage.
func (r *rig) change(c registry.StorageChange) registry.StorageChanged {
	r.t.Helper()
	c.Actor, c.Reason = "tester", "a test"
	done, err := r.registry.ChangeStorage(r.t.Context(), c)
	must(r.t, err)
	return done
}

// align lets the Registry queue copies once, and returns the items of copies that can start.
func (r *rig) align() []string {
	r.t.Helper()
	_, err := r.registry.Align(r.t.Context(), registry.AlignRequest{Outstanding: 100, Keep: time.Hour})
	must(r.t, err)
	page, err := r.registry.Items(r.t.Context(), registry.ItemQuery{Action: registry.CopyObject, Status: registry.Pending, Limit: 500})
	must(r.t, err)
	ids := make([]string, len(page.Rows))
	for i, it := range page.Rows {
		ids[len(ids)-1-i] = it.ID // the oldest first, which is the next
	}
	return ids
}

// settleStorages copies whatever is to be copied, until nothing is.
func (r *rig) settleStorages() {
	r.t.Helper()
	for range 50 {
		ids := r.align()
		if len(ids) == 0 {
			r.align() // it counts, and ends what can end
			return
		}
		for _, id := range ids {
			_, _ = r.run(id) // what became of it is asked of the Registry
		}
		r.wait(2 * time.Hour)
	}
	r.t.Fatal("objects do not come to their storages")
}

// storageNow is what the Registry says of a storage.
func (r *rig) storageNow(name string) registry.Storage {
	r.t.Helper()
	r.wait(time.Hour) // counts are used again for a while
	report, err := r.registry.Storages(r.t.Context(), nil)
	must(r.t, err)
	i := slices.IndexFunc(report.Storages, func(s registry.Storage) bool { return s.Name == name })
	if i < 0 {
		r.t.Fatalf("storage %s is not listed: %+v", name, report.Storages)
	}
	return report.Storages[i]
}

// objectNow reads an object anew.
func (r *rig) objectNow(o registry.Object) registry.Object {
	r.t.Helper()
	o, err := r.registry.Object(r.t.Context(), o.ID)
	must(r.t, err)
	return o
}

// grown stores an object with several versions in the collection of tests.
func (r *rig) grown(name string, versions int) (o registry.Object) {
	r.t.Helper()
	for range versions {
		o = r.complete(r.job(registry.Spec{Type: registry.FileType, URL: r.site.put(name, name+strings.Repeat("x", o.Head)), Filename: name, LocalIDs: []string{name}}))
	}
	return o
}

// newFolderRig is a rig with a second storage that no profile names, in a folder.
func newFolderRig(t *testing.T, change func(d *workers.Deps)) (r *rig, behind map[string]*ocfl.Root) {
	t.Helper()
	r = newRig(t, change)
	behind = map[string]*ocfl.Root{first: r.objects, second: rootOf(t, openDir(t, filepath.Join(r.folder, second)))}
	r.deps.Objects = append(r.deps.Objects, ocfl.Named{Root: behind[second], Name: second, Address: "another place"})
	return r, behind
}

// TestStorage_Migrate fills a new storage with all objects, versions and evidence, and retires the old
// one when everything is there and not before. Afterwards objects are read, checked, updated and deleted
// without the old one.
func TestStorage_Migrate(t *testing.T) {
	t.Parallel()
	r, behind := newFolderRig(t, nil)
	one, two := r.grown("one", 2), r.grown("two", 1)
	waits := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("c", "c"), Filename: "c"})

	would, err := r.registry.ChangeStorage(t.Context(), registry.StorageChange{Name: first, Act: registry.ActRetire, To: second, DryRun: true, Actor: "tester"})
	must(t, err)
	if would.State != registry.StorageRetiring || would.Copies.Objects != 2 || len(would.Profiles) != 1 || would.Profiles[0].After[0] != second {
		t.Errorf("it would do %+v", would)
	}
	if s := r.storageNow(first); s.State != registry.StorageInUse || s.Objects != 2 {
		t.Errorf("after a dry run: %+v", s)
	}
	r.change(registry.StorageChange{Name: first, Act: registry.ActRetire, To: second})
	if s := r.storageNow(second); s.State != registry.StorageFilling || s.Missing.Objects != 2 {
		t.Errorf("the new storage: %+v", s)
	}
	ids := r.align()
	if len(ids) != 2 {
		t.Fatalf("%d copies, want 2", len(ids))
	}
	r.advance(ids[0], "")
	if s := r.storageNow(first); s.State != registry.StorageRetiring || s.Waits.Lacking.Objects != 1 || s.Waits.Items != 1 {
		t.Errorf("with one object left: %+v, %+v", s, s.Waits)
	}
	r.settleStorages()
	if s := r.storageNow(first); s.State != registry.StorageRetiring || s.Waits.Lacking.Objects != 0 || s.Waits.Items != 1 {
		t.Errorf("with a job left that writes there: %+v, %+v", s, s.Waits)
	}
	three := r.complete(waits)
	r.settleStorages()
	if s := r.storageNow(first); s.State != registry.StorageRetired || s.Objects != 0 {
		t.Fatalf("in the end: %+v, %+v", s, s.Waits)
	}
	if s := r.storageNow(second); s.State != registry.StorageInUse || s.Objects != 3 || s.Missing.Objects != 0 {
		t.Errorf("the new storage in the end: %+v", s)
	}
	for _, o := range []registry.Object{one, two, three} {
		o = r.objectNow(o)
		r.inAll(o, o.Head, behind, second)
		r.replicated(o)
	}

	r.deps.Objects = r.deps.Objects[1:]
	r.objects, r.storage = behind[second], behind[second].Store()
	must(t, os.RemoveAll(filepath.Join(r.folder, "storage")))
	must(t, (&keep.Keeper{Registry: r.registry, Objects: r.deps.Objects}).Make(t.Context()))
	later := r.grown("one", 1)
	if later.ID != one.ID || later.Head != 3 {
		t.Errorf("an update made %s, version %d", later.ID, later.Head)
	}
	r.valid(later, 3)
	must(t, r.registry.AskForCheck(t.Context(), registry.CheckRequest{ObjectID: one.ID, Actor: "tester"}))
	_, err = r.registry.Recheck(t.Context(), registry.RecheckRequest{Outstanding: 100})
	must(t, err)
	checks, err := r.registry.Items(t.Context(), registry.ItemQuery{Action: registry.FixityCheck, Limit: 500})
	must(t, err)
	if len(checks.Rows) == 0 {
		t.Error("nothing is checked")
	}
	slices.Reverse(checks.Rows) // the oldest first, which is the next
	for _, it := range checks.Rows {
		if end := r.advance(it.ID, ""); end.Status != registry.Completed {
			t.Errorf("a check: %s, %s", end.Status, end.Note)
		}
	}
	_, err = r.registry.ChangeStorage(t.Context(), registry.StorageChange{Name: first, Act: registry.ActFill, Actor: "tester"})
	if err == nil {
		t.Error("a retired storage is used again")
	}
}

// replicated checks that an object's events tell of a copy.
func (r *rig) replicated(o registry.Object) {
	r.t.Helper()
	events, err := r.registry.PremisEvents(r.t.Context(), o.ID, "", 500)
	must(r.t, err)
	if !slices.ContainsFunc(events.Rows, func(e registry.Premis) bool { return e.Type == string(premis.Replication) && e.Outcome == "success" }) {
		r.t.Errorf("no event tells of a copy of %s: %+v", o.ID, events.Rows)
	}
}

// TestStorage_FillDiesAnywhere kills the copy of an object of two versions at each call of the new storage.
// The next attempt goes on, and the copy counts only when all of it is there and right.
func TestStorage_FillDiesAnywhere(t *testing.T) {
	t.Parallel()
	r, _, _ := newFaultyRig(t)
	kept := storagetest.NewMemory()
	behind := map[string]*ocfl.Root{registry.DefaultStorage: r.objects, second: rootOf(t, kept)}
	to := storagetest.NewFaulty(kept)
	r.deps.Objects = append(r.deps.Objects, ocfl.Named{Root: rootOf(t, to), Name: second, Address: "another place"})
	whole := 0
	for n := range looptest.Steps(t) {
		if whole == 2 { // after the last call, before and after
			break
		}
		r.profile(collection, profileOf(registry.DefaultStorage))
		o := r.grown(strings.Repeat("o", n), 2)
		r.change(registry.StorageChange{Name: second, Act: registry.ActFill, Collections: []string{collection}})
		ids := r.align()
		if len(ids) != 1 {
			t.Fatalf("%d copies, want one: those of before are there", len(ids))
		}
		[]func(int){to.DieAt, to.DieAfter}[n%2](1 + n/2)
		_, err := r.run(ids[0])
		to.Heal()
		if err == nil {
			whole++
		} else if has := len(r.objectNow(o).Versions[1].Replicas); has != 1 {
			t.Errorf("death at %d: %d copies are recorded", n, has)
		}
		r.wait(2 * time.Hour)
		if it := r.advance(ids[0], ""); it.Status != registry.Completed {
			t.Fatalf("death at %d: %s, %s", n, it.Status, it.Note)
		}
		r.inAll2(r.objectNow(o), behind)
	}
}

// inAll2 checks that both storages have an object whole.
func (r *rig) inAll2(o registry.Object, behind map[string]*ocfl.Root) {
	r.t.Helper()
	for name, root := range behind {
		report, err := root.Verify(r.t.Context(), o.ID, ocfl.ValidateOptions{})
		if err != nil || !report.Valid() || report.Head != "v2" {
			r.t.Errorf("in %s: %v, %+v", name, err, report)
		}
		r.evident(root, o, o.Head)
	}
	for _, v := range o.Versions {
		if len(v.Replicas) != len(behind) {
			r.t.Errorf("version %d is recorded in %+v", v.Version, v.Replicas)
		}
	}
}

// TestStorage_FillFromDamaged fills a third storage while each of the two others has another file wrong:
// each file is taken from where it is right, and the damage is looked for soon.
func TestStorage_FillFromDamaged(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.addVersions(1)
	third := rootOf(t, openDir(t, filepath.Join(p.folder, "third")))
	p.deps.Objects = append(p.deps.Objects, ocfl.Named{Root: third, Name: "third", Address: "a third place"})
	all := slices.Sorted(func(yield func(string) bool) {
		for path := range p.contents(first) {
			if strings.Contains(path, "/content/") && !yield(path) {
				return
			}
		}
	})
	must(t, os.WriteFile(p.file(first, all[0]), []byte("not what was stored"), 0o644))
	must(t, os.WriteFile(p.file(second, all[len(all)-1]), []byte("nor this"), 0o644))
	p.change(registry.StorageChange{Name: "third", Act: registry.ActFill})
	p.settleStorages()
	report, err := third.Verify(t.Context(), p.object.ID, ocfl.ValidateOptions{})
	if err != nil || !report.Valid() {
		t.Errorf("the new copy: %v, %+v", err, report)
	}
	o := p.objectNow(p.object)
	if len(o.Versions[0].Replicas) != 3 || o.CheckAsked == nil {
		t.Errorf("copies %+v, a check was asked for at %v", o.Versions[0].Replicas, o.CheckAsked)
	}
	if s := p.storageNow("third"); s.State != registry.StorageInUse || s.Objects != 1 {
		t.Errorf("the new storage: %+v", s)
	}
}

// TestStorage_Unknown: a worker that does not know the new storage waits, and says what to do.
func TestStorage_Unknown(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(d *workers.Deps) { d.Policy = func(registry.Stage) base.Worker { return base.Worker{Attempts: 1} } })
	r.grown("one", 1)
	r.change(registry.StorageChange{Name: second, Act: registry.ActFill})
	id := r.align()[0]
	for range 3 {
		_, _ = r.run(id)
		r.wait(2 * time.Hour)
	}
	if it := r.item(id); it.Status != registry.Pending || !strings.Contains(it.Note, "HOLDFAST_STORAGE_URL") {
		t.Errorf("%s: %s", it.Status, it.Note)
	}
	r.deps.Objects = append(r.deps.Objects, ocfl.Named{Root: rootOf(t, storagetest.NewMemory()), Name: second, Address: "another place"})
	r.settleStorages()
	if s := r.storageNow(second); s.State != registry.StorageInUse || s.Objects != 1 {
		t.Errorf("the new storage: %+v", s)
	}
}

// TestStorage_OneFolder: of two objects that would share a folder in a new storage one is copied. Nothing of
// the other is written there, neither meanwhile nor afterwards, until the one is deleted.
func TestStorage_OneFolder(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(d *workers.Deps) { d.Policy = func(registry.Stage) base.Worker { return base.Worker{Attempts: 1} } })
	flat, err := ocfl.OpenRoot(t.Context(), openDir(t, filepath.Join(r.folder, second)), "", ocfl.NewFlatOmitPrefix("/"))
	must(t, err)
	r.deps.Objects = append(r.deps.Objects, ocfl.Named{Root: flat, Name: second, Address: "another place"})
	one, two := r.complete(r.named("ark:/12345/X", "one")), r.complete(r.named("ark:/99999/X", "two"))
	r.change(registry.StorageChange{Name: second, Act: registry.ActFill})
	ids := r.align() // by the objects' identifiers
	// waits sees that an item waits while the copy of an object has the folder.
	waits := func(item, copyOf string, o registry.Object) {
		t.Helper()
		c, err := r.registry.Claim(t.Context(), registry.ClaimRequest{
			RequestID: item, Stage: registry.Copy, Hint: copyOf, Worker: "w", Lease: time.Hour, MaxAttempts: 5, StuckAfter: time.Hour,
		})
		must(t, err)
		if c.Item.ID != copyOf {
			t.Fatalf("claimed %s", c.Item.ID)
		}
		_, err = r.registry.LockObject(t.Context(), c.Lease, o.ID, "folder:"+second+":X")
		must(t, err)
		_, _ = r.run(item) // what became of it is asked of the Registry
		why, err := r.registry.Why(t.Context(), item)
		must(t, err)
		if why.Reason != registry.ReasonLocked || why.Actor != copyOf {
			t.Errorf("beside the copy of %s: %+v, want that it waits for %s", o.ID, why, copyOf)
		}
		_, err = r.registry.Settle(t.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Error: "the worker ended"})
		must(t, err)
		r.wait(2 * time.Hour)
	}
	// ends runs an item and checks what becomes of it.
	ends := func(id string, want registry.Status, note ...string) {
		t.Helper()
		_, _ = r.run(id) // likewise
		it := r.item(id)
		if it.Status != want {
			t.Errorf("%s %s is %s: %s", it.Action, id, it.Status, it.Note)
		}
		for _, part := range note {
			if !strings.Contains(it.Note, part) {
				t.Errorf("%s %s: %q, without %q", it.Action, id, it.Note, part)
			}
		}
	}
	isWhole := func(o registry.Object) {
		t.Helper()
		report, err := flat.Verify(t.Context(), o.ID, ocfl.ValidateOptions{})
		must(t, err)
		if faults := report.Errors(); len(faults) > 0 {
			t.Errorf("the copy of %s has faults: %v", o.ID, faults)
		}
	}

	waits(ids[1], ids[0], one)
	ends(ids[0], registry.Completed)
	ends(ids[1], registry.Failed, "another layout", one.ID)
	isWhole(one)

	deletion := r.deletion(one)
	r.command(ids[1], registry.ActRequeue, "")
	waits(deletion, ids[1], two)
	isWhole(one)
	ends(ids[1], registry.Failed, "another layout") // it came first
	r.wait(2 * time.Hour)
	ends(deletion, registry.Completed)
	r.command(ids[1], registry.ActRequeue, "")
	ends(ids[1], registry.Completed)
	isWhole(two)
}
