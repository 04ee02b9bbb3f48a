package workers_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/rebuild"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// copied returns a copy of the rig's database as it is now.
func (r *rig) copied(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registry.db")
	must(t, sqldb.Copy(t.Context(), "sqlite:"+r.path, path))
	return path
}

// restoredOf opens a copy of a database that a copy was made of, as one that was restored.
func (r *rig) restoredOf(t *testing.T, backup string) *sqlstore.Store {
	t.Helper()
	return r.restoredTo(t, backup, filepath.Join(t.TempDir(), "registry.db"))
}

func (r *rig) restoredTo(t *testing.T, backup, path string) *sqlstore.Store {
	t.Helper()
	must(t, sqldb.Copy(t.Context(), "sqlite:"+backup, path))
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{
		URL: "sqlite:" + path, Now: func() time.Time { return time.Now().Add(time.Duration(r.later.Load())) },
		ReceiptKey: sqlstoretest.ReceiptKey(t), Mail: true,
	})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	_, err = s.MarkRestored(t.Context())
	must(t, err)
	return s
}

// on lets the rig go on with another Registry.
func (r *rig) on(s *sqlstore.Store) {
	r.registry, r.deps.Registry, r.sources.Registry = s, s, s
	r.deps.Source = r.sources.Of
}

// found collects what a comparison says, by object.
type found map[string]rebuild.Finding

func (f found) add(one rebuild.Finding) error {
	f[one.ID] = one
	return nil
}

func (f found) text(id string) string {
	return strings.Join(slices.Concat(f[id].Adopted, f[id].Disagrees, f[id].Faults), "; ")
}

// TestReconcile: after a restore from an older backup the Registry learns from the storages what it had
// known, and jobs that were done do not store anything twice.
func TestReconcile(t *testing.T) {
	t.Parallel()
	r, _, _, _ := newReplicatedRig(t)
	updated, dropped, same := r.complete(r.fileTo(replicated, "one", "id 1")), r.complete(r.fileTo(replicated, "two", "id 2")), r.complete(r.fileTo(replicated, "three", "id 3"))
	more := registry.Spec{Type: registry.FileType, Mode: registry.Update, URL: r.site.put("more", "more"), Filename: "more", LocalIDs: []string{"id 1"}}
	announced := r.fileTo(replicated, "six", "id 6")
	r.advance(announced, registry.Record)
	open := r.fileTo(replicated, "seven", "id 7")
	r.advance(open, registry.Replicate)
	waiting := r.fileTo(replicated, "four", "id 4")
	unnamed := r.jobTo(replicated, registry.Spec{Type: registry.FileType, URL: r.site.put("five", "five"), Filename: "five"})
	backup := r.copied(t)

	must(t, r.registry.AddHold(t.Context(), registry.Hold{Scope: registry.HoldItem, Key: open, Reason: "x", Actor: "admin"}))
	var ids []string
	for _, job := range []string{announced, waiting, unnamed} {
		ids = append(ids, r.complete(job).ID)
	}
	r.complete(r.jobTo(replicated, more))
	if it := r.advance(r.deletion(dropped), ""); it.Status != registry.Completed {
		t.Fatalf("the deletion is %s: %s", it.Status, it.Note)
	}
	fresh := r.complete(r.fileTo(replicated, "eight", "id 8"))
	ids = append(ids, updated.ID, same.ID, fresh.ID)
	want := map[string]string{}
	for _, id := range ids {
		want[id] = seen(t, r.registry, id)
	}
	agrees := func(t *testing.T, s *sqlstore.Store) {
		t.Helper()
		for _, id := range ids {
			if diff := cmp.Diff(want[id], seen(t, s, id)); diff != "" {
				t.Errorf("object %s (-want +got):\n%s", id, diff)
			}
		}
		for _, job := range []string{announced, waiting, unnamed} {
			it, err := s.Item(t.Context(), job)
			must(t, err)
			if it.Stage != registry.Notify || it.Status != registry.Pending || it.Commitment != registry.Preserved {
				t.Errorf("the job is %s at %s, %s", it.Status, it.Stage, it.Commitment)
			}
		}
		o, err := s.Object(t.Context(), dropped.ID)
		must(t, err)
		if o.Gone != registry.DeletionDeleting || o.Deletion.ApprovedBy != "approver" {
			t.Errorf("the deleted object is %+v", o)
		}
	}
	options := rebuild.ReconcileOptions{Roots: r.deps.Objects, Now: time.Now}
	counts := rebuild.Comparison{Objects: 7, Adopted: 5, Versions: 5, Deleted: 1, Open: 1}
	t.Run("without apply", func(t *testing.T) {
		options, said := options, found{}
		path := filepath.Join(t.TempDir(), "registry.db")
		s := r.restoredTo(t, backup, path)
		options.To, options.Found = s, said.add
		before := r.everything(t, path)
		for range 2 {
			got, err := rebuild.Reconcile(t.Context(), options)
			must(t, err)
			if got != counts {
				t.Errorf("comparison %+v, want %+v", got, counts)
			}
		}
		if diff := cmp.Diff(before, r.everything(t, path)); diff != "" {
			t.Errorf("it changed the Registry or a storage (-before +after):\n%s", diff)
		}
		if text := said.text(updated.ID); !strings.Contains(text, "version 2, which the Registry did not know: it had version 1") {
			t.Errorf("said %q", text)
		}
	})
	t.Run("killed anywhere", func(t *testing.T) {
		options := options
		options.Apply = true
		killedAnywhere(t, 3, func() *sqlstore.Store { return r.restoredOf(t, backup) }, func(to registry.Reconciling) error {
			options.To = to
			_, err := rebuild.Reconcile(t.Context(), options)
			return err
		}, func(s *sqlstore.Store) { agrees(t, s) })
	})
	t.Run("apply, and go on", func(t *testing.T) {
		options, said := options, found{}
		s := r.restoredOf(t, backup)
		options.To, options.Apply, options.Found = s, true, said.add
		got, err := rebuild.Reconcile(t.Context(), options)
		must(t, err)
		if got != counts {
			t.Errorf("comparison %+v, want %+v: %v", got, counts, said)
		}
		agrees(t, s)
		again, err := rebuild.Reconcile(t.Context(), options)
		must(t, err)
		if want := (rebuild.Comparison{Objects: 7, Open: 1}); again != want || !again.Agree() {
			t.Errorf("a second comparison %+v, want %+v", again, want)
		}
		must(t, s.Reconciled(t.Context(), "", "admin"))
		mark, err := s.Restored(t.Context())
		must(t, err)
		if holds, err := s.Holds(t.Context()); err != nil || len(holds) > 0 || mark.Open() {
			t.Errorf("holds %v, %v, mark %+v", holds, err, mark)
		}
		was := r.registry
		defer r.on(was)
		r.on(s)
		for _, job := range []string{announced, waiting, unnamed} {
			if o := r.complete(job); o.Head != 1 {
				t.Errorf("the job stored version %d of %s", o.Head, o.ID)
			}
		}
		if o := r.complete(open); o.Head != 1 {
			t.Errorf("the open job stored version %d", o.Head)
		}
		d, err := s.Object(t.Context(), dropped.ID)
		must(t, err)
		if it := r.advance(d.Deletion.ItemID, ""); it.Status != registry.Completed {
			t.Errorf("the deletion is %s: %s", it.Status, it.Note)
		}
		r.deleted(dropped)
		if o := r.complete(r.jobTo(replicated, more)); o.ID != updated.ID || o.Head != 3 {
			t.Errorf("an update made version %d of %s", o.Head, o.ID)
		}
		if o := r.complete(r.fileTo(replicated, "eight again", "id 8")); o.ID != fresh.ID || o.Head != 2 {
			t.Errorf("a known local id got version %d of %s", o.Head, o.ID)
		}
	})
}

// everything returns all rows of a database, by table, and all files of the storages.
func (r *rig) everything(t *testing.T, path string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	db, err := sqldb.OpenReader("sqlite:" + path)
	must(t, err)
	defer func() { must(t, db.Close()) }()
	column := func(query string) (all []string) {
		rows, err := db.QueryContext(t.Context(), query)
		must(t, err)
		defer rows.Close()
		for rows.Next() {
			var text string
			must(t, rows.Scan(&text))
			all = append(all, text)
		}
		must(t, rows.Err())
		return all
	}
	for _, table := range column(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name`) {
		columns := column(fmt.Sprintf(`SELECT 'quote("' || name || '")' FROM pragma_table_info('%s')`, table))
		out[table] = column(fmt.Sprintf(`SELECT %s FROM "%s"`, strings.Join(columns, ` || ' ' || `), table))
		slices.Sort(out[table])
	}
	if len(out["object"]) == 0 || len(out["work_item"]) == 0 {
		t.Fatal("the database has no objects or items")
	}
	for _, root := range r.deps.Objects {
		for info, err := range root.Store().List(t.Context(), "") {
			must(t, err)
			out[root.Name] = append(out[root.Name], fmt.Sprint(info.Key, " ", info.Size, " ", info.Modified))
		}
	}
	return out
}

// TestReconcile_Disagreements: what contradicts the record is named, and stays as it is in both.
func TestReconcile_Disagreements(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	unsealed := r.complete(r.fileTo(collection, "nought", "id 0"))
	lost, older, alive, forked, left := r.complete(r.fileTo(collection, "one", "id 1")), r.complete(r.fileTo(collection, "two", "id 2")),
		r.complete(r.fileTo(collection, "three", "id 3")), r.complete(r.fileTo(collection, "four", "id 4")), r.complete(r.fileTo(collection, "five", "id 5"))
	update := func(local string) registry.Object {
		return r.complete(r.jobTo(collection, registry.Spec{
			Type: registry.FileType, Mode: registry.Update, URL: r.site.put("more of "+local, local), Filename: "more", LocalIDs: []string{local},
		}))
	}
	backup := r.copied(t)
	update("id 4")
	second := r.complete(r.fileTo(collection, "six", "id 6"))
	s := r.restoredOf(t, backup)

	// As if somebody had released the holds.
	first := r.registry
	r.on(s)
	for _, stage := range registry.RestoredStages() {
		must(t, s.RemoveHold(t.Context(), registry.HoldStage, string(stage), "admin"))
	}
	must(t, s.SetTerms(t.Context(), forked.ID, registry.Terms{PreservationLevel: "full"}, "x", "admin"))
	again := r.complete(r.fileTo(collection, "seven", "id 6"))
	update("id 2")
	key, err := r.objects.ObjectKey(older.ID)
	must(t, err)
	saved := map[string][]byte{}
	for info, err := range r.storage.List(t.Context(), key+"/") {
		must(t, err)
		text, err := storage.ReadAll(t.Context(), r.storage, info.Key, 1<<20)
		must(t, err)
		saved[info.Key] = text
	}
	if it := r.advance(r.deletion(alive), ""); it.Status != registry.Completed {
		t.Fatalf("the deletion is %s: %s", it.Status, it.Note)
	}
	r.on(first)
	// The storage is older than the Registry.
	must(t, r.objects.Remove(t.Context(), lost.ID))
	must(t, r.storage.Delete(t.Context(), r.objects.TombstoneKey(alive.ID)))
	aliveKey, err := r.objects.ObjectKey(alive.ID)
	must(t, err)
	for name, text := range saved { // an object with the files of another one is one that cannot be read
		_, err := storage.Put(t.Context(), r.storage, strings.Replace(name, key, aliveKey, 1), []byte(strings.ReplaceAll(string(text), older.ID, alive.ID)))
		must(t, err)
	}
	for name := range saved {
		if strings.HasPrefix(name, key+"/v2/") || name == key+"/inventory.json" || strings.Contains(name, "v2.receipt") {
			must(t, r.storage.Delete(t.Context(), name))
		}
	}
	for _, name := range []string{"inventory.json", "inventory.json.sha256"} {
		text := saved[key+"/v1/"+name]
		must(t, r.storage.Replace(t.Context(), key+"/"+name, text))
	}
	leftKey, err := r.objects.ObjectKey(left.ID)
	must(t, err)
	_, err = storage.Put(t.Context(), r.storage, leftKey+"/v2/content/system/x", []byte("x"))
	must(t, err)

	unsealedKey, err := r.objects.ObjectKey(unsealed.ID)
	must(t, err)
	_, err = storage.Put(t.Context(), r.storage, unsealedKey+"/v2/inventory.json", []byte("{}"))
	must(t, err)

	said := found{}
	options := rebuild.ReconcileOptions{Roots: r.deps.Objects, To: s, Now: time.Now, Apply: true, Found: said.add}
	for range 2 { // what was left is found again
		got, err := rebuild.Reconcile(t.Context(), options)
		must(t, err)
		if got.Disagree < 5 || got.Agree() {
			t.Errorf("comparison %+v: %+v", got, said)
		}
		for id, want := range map[string]string{
			lost.ID: "version 1 is recorded, and no storage has the object", older.ID: "version 2 is recorded, and no storage has its inventory right",
			alive.ID: "no storage has its tombstone", forked.ID: "is another one in the storages", second.ID: fmt.Sprintf("belongs to %s, too", again.ID),
			left.ID: "v2/content/system/x is of a version that was not finished", unsealed.ID: fmt.Sprintf("is there without its sidecar, since its job was killed between the two, and is in the way of the next version: to take it over, write the digest %x", sha256.Sum256([]byte("{}"))),
		} {
			if !strings.Contains(said.text(id)+fmt.Sprint(said[id].Copies), want) {
				t.Errorf("of %s it said %q, not %q: %+v", id, said.text(id), want, said[id].Copies)
			}
		}
	}
	o, err := s.Object(t.Context(), forked.ID)
	must(t, err)
	if o.Head != 1 {
		t.Errorf("version %d of an object with another chain was adopted", o.Head)
	}
	must(t, s.Reconciled(t.Context(), "the disk is lost", "admin"))
	mark, err := s.Restored(t.Context())
	must(t, err)
	if mark.Open() || mark.Accepted != "the disk is lost" {
		t.Errorf("mark %+v", mark)
	}
}

// TestReconcile_PostgreSQL: a Registry on PostgreSQL that was made of an older copy of the storage learns
// from a bucket what is newer.
func TestReconcile_PostgreSQL(t *testing.T) {
	s3test.Setenv(t)
	r := newRig(t, nil)
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: sqlstoretest.Postgres(t), ReceiptKey: sqlstoretest.ReceiptKey(t)})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	updated, dropped := r.complete(r.fileTo(collection, "one", "id 1")), r.complete(r.fileTo(collection, "two", "id 2"))
	_, err = rebuild.Run(t.Context(), rebuild.Options{Roots: r.deps.Objects, To: s, Now: time.Now})
	must(t, err)
	_, err = s.MarkRestored(t.Context())
	must(t, err)

	r.complete(r.jobTo(collection, registry.Spec{
		Type: registry.FileType, Mode: registry.Update, URL: r.site.put("more", "more"), Filename: "more", LocalIDs: []string{"id 1"},
	}))
	if it := r.advance(r.deletion(dropped), ""); it.Status != registry.Completed {
		t.Fatalf("the deletion is %s: %s", it.Status, it.Note)
	}
	fresh := r.complete(r.fileTo(collection, "three", "id 3"))
	bucket, err := s3.Open(t.Context(), s3test.Start(t).Address("objects"))
	must(t, err)
	t.Cleanup(func() { must(t, bucket.Close()) })
	for info, err := range r.storage.List(t.Context(), "") {
		must(t, err)
		text, err := storage.ReadAll(t.Context(), r.storage, info.Key, 1<<20)
		must(t, err)
		_, err = storage.Put(t.Context(), bucket, info.Key, text)
		must(t, err)
	}
	root, err := ocfl.OpenRoot(t.Context(), bucket, "", nil)
	must(t, err)
	got, err := rebuild.Reconcile(t.Context(), rebuild.ReconcileOptions{Roots: roots(root), To: s, Now: time.Now, Apply: true})
	must(t, err)
	if want := (rebuild.Comparison{Objects: 2, Adopted: 2, Versions: 2, Deleted: 1}); got != want {
		t.Errorf("comparison %+v, want %+v", got, want)
	}
	for _, id := range []string{updated.ID, fresh.ID} {
		if diff := cmp.Diff(seen(t, r.registry, id), seen(t, s, id)); diff != "" {
			t.Errorf("object %s (-want +got):\n%s", id, diff)
		}
	}
	must(t, s.Reconciled(t.Context(), "", "admin"))
}

// killedAnywhere lets a reading of the storages die at each step-th call that writes, and then go on to
// its end: each time the Registry is right.
func killedAnywhere(t *testing.T, step int, fresh func() *sqlstore.Store, read func(registry.Reconciling) error, check func(*sqlstore.Store)) {
	t.Helper()
	for n := 0; ; n += step {
		s := fresh()
		mortal := &mortalRegistry{Reconciling: s}
		mortal.left.Store(int64(n))
		if read(mortal) == nil {
			if n < 10 {
				t.Errorf("it makes only %d calls", n)
			}
			return
		}
		if err := read(s); err != nil {
			t.Fatalf("after death at call %d: %v", n, err)
		}
		if check(s); t.Failed() {
			t.Fatalf("after death at call %d", n)
		}
	}
}

var errDead = errors.New("killed")

// callsLeft lets some calls that write happen, and no more.
type callsLeft struct{ left atomic.Int64 }

// mortalRegistry is a Registry that is gone after some calls that write.
type mortalRegistry struct {
	registry.Reconciling
	callsLeft
}

// mortalAdopting is that for an adoption.
type mortalAdopting struct {
	registry.Adopting
	callsLeft
}

func (d *mortalAdopting) SaveAdopt(ctx context.Context, s registry.RebuildState) error {
	return d.each(func() error { return d.Adopting.SaveAdopt(ctx, s) })
}

func (d *mortalAdopting) NameAdopted(ctx context.Context, o registry.Object, storage string) (ark string, err error) {
	err = d.each(func() error {
		ark, err = d.Adopting.NameAdopted(ctx, o, storage)
		return err
	})
	return ark, err
}

func (d *mortalAdopting) Enter(ctx context.Context, e registry.Entered) (taken []registry.TakenID, err error) {
	err = d.each(func() error {
		taken, err = d.Adopting.Enter(ctx, e)
		return err
	})
	return taken, err
}

func (d *mortalAdopting) RecordAdopted(ctx context.Context, o registry.AdoptedObject) error {
	return d.each(func() error { return d.Adopting.RecordAdopted(ctx, o) })
}

// each lets a call happen, with its answer or without it, or not at all.
func (d *callsLeft) each(call func() error) error {
	switch left := d.left.Add(-1); {
	case left < -1:
		return errDead
	case left == -1:
		return errors.Join(call(), errDead)
	}
	return call()
}

func (d *mortalRegistry) SaveRebuild(ctx context.Context, s registry.RebuildState) error {
	return d.each(func() error { return d.Reconciling.SaveRebuild(ctx, s) })
}

func (d *mortalRegistry) SaveReconcile(ctx context.Context, s registry.RebuildState) error {
	return d.each(func() error { return d.Reconciling.SaveReconcile(ctx, s) })
}

func (d *mortalRegistry) EnterKeys(ctx context.Context, keys []registry.ReceiptKey) error {
	return d.each(func() error { return d.Reconciling.EnterKeys(ctx, keys) })
}

func (d *mortalRegistry) Enter(ctx context.Context, e registry.Entered) (taken []registry.TakenID, err error) {
	err = d.each(func() error {
		taken, err = d.Reconciling.Enter(ctx, e)
		return err
	})
	return taken, err
}

func (d *mortalRegistry) WithdrawVersion(ctx context.Context, id string) error {
	return d.each(func() error { return d.Reconciling.WithdrawVersion(ctx, id) })
}

func (d *mortalRegistry) EnterDeletion(ctx context.Context, deletion registry.Deletion) error {
	return d.each(func() error { return d.Reconciling.EnterDeletion(ctx, deletion) })
}
