package workers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
	"github.com/holdfast/holdfast/workers"
	"github.com/holdfast/holdfast/workers/tidy"
)

// killedList is a store whose listings break off after a number of names, as when the process dies;
// it counts those that it lists.
type killedList struct {
	storage.Store
	after, listed int
}

var errSweepKilled = errors.New("killed while listing")

func (k *killedList) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return k.ListAfter(ctx, prefix, "")
}

func (k *killedList) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		n := 0
		for info, err := range storage.ListAfter(ctx, k.Store, prefix, after) {
			if n++; k.after > 0 && n > k.after {
				yield(storage.Info{}, errSweepKilled)
				return
			}
			k.listed++
			if !yield(info, err) {
				return
			}
		}
	}
}

// TestSweep_Strays: the Registry's scheduled search finds exactly the files of a folder or bucket
// that belong to no object. It continues after a kill and after each pause without repeating a
// finding. It fails so that people notice, and completes when the files are gone.
func TestSweep_Strays(t *testing.T) {
	for _, driver := range []string{"folder", "S3"} {
		t.Run(driver, func(t *testing.T) {
			r := newRig(t, func(d *workers.Deps) { d.Sweep = tidy.SweepBounds{Note: 3, Rest: 10} })
			store := &killedList{}
			if driver == "S3" {
				s3test.Setenv(t)
				s, err := s3.Open(t.Context(), s3test.Start(t).Address("objects"))
				must(t, err)
				t.Cleanup(func() { _ = s.Close() })
				store.Store = s
			} else {
				store.Store = openDir(t, filepath.Join(r.folder, "second"))
			}
			root := rootOf(t, store)
			r.deps.Objects = append(r.deps.Objects, ocfl.Named{Root: root, Name: second, Address: "another place"})
			r.profile("pair", profileOf(first, second))
			var object registry.Object
			for i := range 3 {
				name := fmt.Sprintf("f%d", i)
				object = r.complete(r.jobTo("pair", registry.Spec{Type: registry.FileType, URL: r.site.put(name, "text of "+name), Filename: name}))
			}
			announced := r.jobTo("pair", registry.Spec{Type: registry.FileType, URL: r.site.put("late", "late"), Filename: "late"})
			r.advance(announced, registry.Replicate) // its first version is in one storage
			folder, err := root.ObjectKey(object.ID)
			must(t, err)
			want := []string{"!first", "README", "abc/def/planted.txt", "zzz/notes/last", strings.Split(folder, "/")[0] + "/beside"}
			slices.Sort(want)
			for _, key := range want {
				put(t, store, key)
			}
			// These are the root's own, an object's, or one's that is being written.
			ours := []string{
				"ocfl_1.1.md", "0004-hashed-n-tuple-storage-layout.md", "extensions/holdfast-checkpoints/2026-08-01.jsonl", "extensions/theirs/x", folder + "/!foreign", folder + "/logs/x",
				"fff/fff/fff/unfinished/v1/content/a",
			}
			for _, key := range ours {
				put(t, store, key)
			}

			// The first look only notes when the schedule begins.
			recheck := func() {
				t.Helper()
				_, err := r.registry.Recheck(t.Context(), registry.RecheckRequest{Every: 90 * 24 * time.Hour, Outstanding: 1, Keep: time.Hour})
				must(t, err)
			}
			sweeps := func() []registry.WorkItem {
				t.Helper()
				page, err := r.registry.Items(t.Context(), registry.ItemQuery{Action: registry.Tidy, Text: "belong to no object"})
				must(t, err)
				return page.Rows
			}
			recheck()
			if got := sweeps(); len(got) > 0 {
				t.Fatalf("at once there are %+v", got)
			}
			r.wait(91 * 24 * time.Hour)
			recheck()
			recheck()
			if got := sweeps(); len(got) != 1 {
				t.Fatalf("there are %d searches, want 1", len(got))
			}
			id := sweeps()[0].ID

			attempts, killed := 0, false
			for it := r.item(id); !it.Status.Settled(); it = r.item(id) {
				if attempts++; attempts > 100 {
					t.Fatal("it never ends")
				}
				store.after = 0
				if attempts == 2 || attempts == 4 {
					store.after, killed = 4, true // behind a note, before the next
				}
				_, _ = r.run(id)
				r.wait(time.Hour)
			}
			store.after = 0
			if !killed || attempts < 4 {
				t.Errorf("it took %d attempts", attempts)
			}
			it := r.item(id)
			var report registry.OrphanReport
			must(t, json.Unmarshal(it.Results[registry.ResultOrphans], &report))
			got := make([]string, len(report.Found))
			for i, o := range report.Found {
				got[i] = o.Name
				if o.Storage != second || o.Kind != registry.OrphanForeign || !strings.Contains(it.Note, fmt.Sprintf("%q in storage second", o.Name)) {
					t.Errorf("%+v is told as: %s", o, it.Note)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) || report.Total() != int64(len(want)) {
				t.Errorf("found %q, want %q", got, want)
			}
			if it.Status != registry.Failed || it.ErrorClass != registry.SystemFault {
				t.Errorf("it is %s: %s", it.Status, it.Note)
			}
			names := 0
			for range store.Store.List(t.Context(), "") {
				names++
			}
			if store.listed > 2*names {
				t.Errorf("%d names were listed of %d: it does not go on where it was", store.listed, names)
			}

			// While it waits for a person there is no other; then it looks at everything again.
			r.wait(91 * 24 * time.Hour)
			recheck()
			if got := sweeps(); len(got) != 1 {
				t.Errorf("there are %d searches, want 1", len(got))
			}
			for _, key := range want {
				must(t, store.Delete(t.Context(), key))
			}
			r.command(id, registry.ActRequeue, "")
			for range 20 {
				if _, _ = r.run(id); r.item(id).Status.Settled() {
					break
				}
				r.wait(time.Hour)
			}
			if it := r.item(id); it.Status != registry.Completed {
				t.Errorf("with the files gone it is %s: %s", it.Status, it.Note)
			}
			recheck()
			if got := sweeps(); len(got) != 2 {
				t.Errorf("after it there are %d searches, want 2", len(got))
			}
		})
	}
}
