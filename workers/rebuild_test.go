package workers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/rebuild"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// seen is all that people see of an object, but for what is listed in docs/evidence.md as lost.
func seen(t *testing.T, r *sqlstore.Store, id string) string {
	t.Helper()
	o, err := r.Object(t.Context(), id)
	must(t, err)
	o.CheckedAt, o.Unchecked = time.Time{}, "" // how long ago differs by the seconds of the deposit
	var files []registry.File
	var receipts []registry.DepositReceipt
	var events registry.Page[registry.Premis]
	if o.Gone == "" {
		files, err = r.FileHistory(t.Context(), id, registry.FilePlace{}, 500)
		must(t, err)
		for _, v := range o.Versions {
			kept, err := r.DepositReceipt(t.Context(), id, v.Version)
			must(t, err)
			receipts = append(receipts, kept)
		}
		events, err = r.PremisEvents(t.Context(), id, "", 500)
		must(t, err)
	}
	text, err := json.MarshalIndent([]any{o, files, receipts, events.Rows}, "", " ")
	must(t, err)
	return string(text)
}

// rebuilding is a Registry that a test rebuilds.
func (r *rig) rebuilding(t *testing.T) *sqlstore.Store {
	t.Helper()
	to, err := sqlstore.Open(t.Context(), sqlstore.Options{
		URL: sqlstoretest.SQLiteAt(t, filepath.Join(t.TempDir(), "registry.db")), ReceiptKey: sqlstoretest.ReceiptKey(t),
	})
	must(t, err)
	t.Cleanup(func() { must(t, to.Close()) })
	return to
}

// TestRebuild: of storages alone a new Registry knows of every object what the old one knew.
func TestRebuild(t *testing.T) {
	t.Parallel()
	r, first, _, _ := newReplicatedRig(t)
	var ids []string
	for i := range 4 {
		local := fmt.Sprint("local ", i)
		ids = append(ids, r.complete(r.fileTo(replicated, fmt.Sprint("text ", i), local)).ID)
		if i == 1 { // a file more, and later one less
			r.complete(r.jobTo(replicated, registry.Spec{
				Type: registry.FileType, Mode: registry.Update, URL: r.site.put("more", "more"), Filename: "more", LocalIDs: []string{local},
			}))
			r.complete(r.jobTo(replicated, registry.Spec{
				Type: registry.FileType, Mode: registry.Add, URL: r.site.put("other", "other"), Filename: "other", LocalIDs: []string{local},
			}))
		}
	}
	gone := r.complete(r.fileTo(replicated, "text of a deleted one", "deleted"))
	if it := r.advance(r.deletion(gone), ""); it.Status != registry.Completed {
		t.Fatalf("the deletion is %s: %s", it.Status, it.Note)
	}
	want := map[string]string{}
	for _, id := range ids {
		want[id] = seen(t, r.registry, id)
	}
	options := rebuild.Options{Roots: r.deps.Objects, Now: time.Now}
	t.Run("whole", func(t *testing.T) {
		options := options
		options.To = r.rebuilding(t)
		options.Fault = func(o rebuild.Object) error { t.Errorf("faults: %+v", o); return nil }
		var told []int64
		options.Progress = func(r rebuild.Report) { told = append(told, r.Objects) }
		report, err := rebuild.Run(t.Context(), options)
		must(t, err)
		for n := range int64(5) { // after each object, not only after each portion
			if !slices.Contains(told, n) {
				t.Errorf("%d objects were not told of: %d", n, told)
			}
		}
		if report != (rebuild.Report{Objects: 4, Deleted: 1}) {
			t.Errorf("report %+v", report)
		}
		for _, id := range ids {
			if diff := cmp.Diff(want[id], seen(t, options.To.(*sqlstore.Store), id)); diff != "" {
				t.Errorf("object %s (-want +got):\n%s", id, diff)
			}
		}
		was, err := r.registry.Object(t.Context(), gone.ID)
		must(t, err)
		is, err := options.To.(*sqlstore.Store).Object(t.Context(), gone.ID)
		must(t, err)
		// Of the tombstone: it does not say when it was carried out.
		was.Deletion.DeletedAt, is.Deletion.DeletedAt = nil, nil
		if diff := cmp.Diff(was.Deletion, is.Deletion); diff != "" || is.Gone != was.Gone || is.Head != was.Head || is.Owner != was.Owner ||
			is.Collection != was.Collection || len(was.LocalIDs) != 1 || !cmp.Equal(is.LocalIDs, was.LocalIDs) {
			t.Errorf("the deleted object is %+v (-want +got):\n%s", is, diff)
		}
		want[gone.ID] = seen(t, options.To.(*sqlstore.Store), gone.ID)
		if _, err := rebuild.Run(t.Context(), options); !errors.Is(err, registry.ErrRebuilt) {
			t.Errorf("a second rebuild: %v", err)
		}
	})
	t.Run("killed anywhere", func(t *testing.T) {
		options := options
		killedAnywhere(t, 1, func() *sqlstore.Store { return r.rebuilding(t) }, func(to registry.Reconciling) error {
			options.To = to
			report, err := rebuild.Run(t.Context(), options)
			report.Before = 0
			if want := (rebuild.Report{Objects: 4, Deleted: 1}); err == nil && report != want {
				t.Errorf("all runs together report %+v, want %+v", report, want)
			}
			if state, stateErr := to.RebuildState(t.Context()); errors.Is(err, registry.ErrRebuilt) && stateErr == nil && !state.Ended.IsZero() {
				return nil // the run before died when it had noted its end
			}
			return err
		}, func(s *sqlstore.Store) {
			for id, want := range want { // with the deleted one, as the unbroken rebuild made it
				if diff := cmp.Diff(want, seen(t, s, id)); diff != "" {
					t.Errorf("object %s (-want +got):\n%s", id, diff)
				}
			}
		})
	})
	t.Run("damaged copy", func(t *testing.T) {
		options := options
		options.To = r.rebuilding(t)
		o, err := evidence.In(r.objects, ids[1], registry.Place{})
		must(t, err)
		must(t, first.Delete(t.Context(), o.Key(evidence.File{Version: 2})))
		must(t, first.Replace(t.Context(), o.Folder+"/v1/inventory.json", []byte("{}")))
		var faults []rebuild.Object
		options.Fault = func(o rebuild.Object) error { faults = append(faults, o); return nil }
		report, err := rebuild.Run(t.Context(), options)
		must(t, err)
		if report != (rebuild.Report{Objects: 4, Deleted: 1, Damaged: 1}) || len(faults) != 1 || len(faults[0].Copies[0].Faults) != 2 {
			t.Errorf("report %+v, faults %+v", report, faults)
		}
		got, err := options.To.(*sqlstore.Store).Object(t.Context(), ids[1])
		must(t, err)
		if got.Head != 3 || len(got.Versions[0].Replicas) != 2 || len(got.Versions[1].Replicas) != 3 {
			t.Errorf("object %+v", got)
		}
	})
	t.Run("no receipt", func(t *testing.T) {
		options := options
		options.Roots = options.Roots[:1]
		options.To = r.rebuilding(t)
		o, err := evidence.In(r.objects, ids[2], registry.Place{})
		must(t, err)
		must(t, first.Delete(t.Context(), o.Key(evidence.File{Version: 1})))
		var faults []string
		options.Fault = func(o rebuild.Object) error {
			if o.ID == ids[2] {
				faults = o.Faults
			}
			return nil
		}
		_, err = rebuild.Run(t.Context(), options)
		must(t, err)
		to := options.To.(*sqlstore.Store)
		was, err := r.registry.Object(t.Context(), ids[2])
		must(t, err)
		got, err := to.Object(t.Context(), ids[2])
		must(t, err)
		if len(faults) != 1 || got.Owner != was.Owner || got.Collection != was.Collection || got.Files != was.Files || got.SizeBytes != was.SizeBytes ||
			!cmp.Equal(got.LocalIDs, was.LocalIDs) || got.Versions[0].ItemID != was.Versions[0].ItemID {
			t.Errorf("faults %q\nwas %+v\nis  %+v", faults, was, got)
		}
	})
}

// TestRebuild_Bucket: a bucket with a copy of a storage is as good, also after a kill between portions.
func TestRebuild_Bucket(t *testing.T) {
	s3test.Setenv(t)
	bucket, err := s3.Open(t.Context(), s3test.Start(t).Address("objects"))
	must(t, err)
	t.Cleanup(func() { must(t, bucket.Close()) })
	r := newRig(t, nil)
	want := map[string]string{}
	for i := range 3 {
		o := r.complete(r.fileTo(collection, fmt.Sprint("text ", i), fmt.Sprint("local ", i)))
		want[o.ID] = seen(t, r.registry, o.ID)
	}
	for info, err := range r.storage.List(t.Context(), "") {
		must(t, err)
		text, err := storage.ReadAll(t.Context(), r.storage, info.Key, 1<<20)
		must(t, err)
		_, err = storage.Put(t.Context(), bucket, info.Key, text)
		must(t, err)
	}
	root, err := ocfl.OpenRoot(t.Context(), bucket, "", nil)
	must(t, err)
	to := r.rebuilding(t)
	report, err := rebuild.Run(t.Context(), rebuild.Options{Roots: roots(root), To: to, Now: time.Now})
	must(t, err)
	if report != (rebuild.Report{Objects: 3}) {
		t.Errorf("report %+v", report)
	}
	var folders []string
	for id := range want {
		if diff := cmp.Diff(want[id], seen(t, to, id)); diff != "" {
			t.Errorf("object %s (-want +got):\n%s", id, diff)
		}
		folder, err := root.ObjectKey(id)
		must(t, err)
		folders = append(folders, folder)
	}
	slices.Sort(folders)
	for i, folder := range folders {
		var after []string
		for name, err := range root.Folders(t.Context(), folder) {
			must(t, err)
			after = append(after, name)
		}
		if !slices.Equal(after, folders[i+1:]) {
			t.Errorf("after %s: %q, want %q", folder, after, folders[i+1:])
		}
	}
}
