package workers_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers"
)

const week = 7 * 24 * time.Hour

// orphans runs a search to its end.
func (r *rig) orphans(s registry.OrphanSearch) (report registry.OrphanReport) {
	r.t.Helper()
	it, err := r.registry.SearchOrphans(r.t.Context(), registry.OrphanRequest{Search: s, Actor: "admin"})
	must(r.t, err)
	if v, err := r.run(it.ID); err != nil || v.Status != registry.Completed {
		r.t.Fatalf("%+v, %v", v, err)
	}
	must(r.t, json.Unmarshal(r.item(it.ID).Results[registry.ResultOrphans], &report))
	return report
}

// tidy carries out what sees to given-up items.
func (r *rig) tidy() {
	r.t.Helper()
	r.wait(3 * time.Minute)
	page, err := r.registry.Items(r.t.Context(), registry.ItemQuery{Action: registry.Tidy, Status: registry.Pending})
	must(r.t, err)
	if len(page.Rows) == 0 {
		r.t.Fatal("nobody tidies up")
	}
	slices.Reverse(page.Rows) // the oldest first
	for _, it := range page.Rows {
		if v, err := r.run(it.ID); err != nil || v.Status != registry.Completed {
			r.t.Fatalf("%+v, %v", v, err)
		}
	}
}

// names lists what was found.
func names(report registry.OrphanReport) (out []string) {
	for _, o := range report.Found {
		out = append(out, string(o.Kind)+" "+o.Name)
	}
	slices.Sort(out)
	return out
}

// uploaded makes an upload that has ended.
func (r *rig) uploaded(id string) {
	r.t.Helper()
	_, err := r.registry.BeginUpload(r.t.Context(), registry.NewUpload{ID: id, SizeBytes: 0, Keep: time.Hour})
	must(r.t, err)
	must(r.t, r.registry.FinishUpload(r.t.Context(), registry.Upload{ID: id, Digest: registry.Digest{Algorithm: "sha256", Value: sha256Of("late")}}))
	put(r.t, r.staging, "uploads/"+id+"/payload")
}

// purged makes an item that was there.
func (r *rig) purged() string {
	r.t.Helper()
	batch := r.submit(registry.Spec{Type: registry.FileType, URL: r.site.put("purged", "x"), Filename: "purged"})
	r.command(batch, registry.ActAbort, "")
	r.command(batch, registry.ActDelete, "")
	r.command(batch, registry.ActPurge, "")
	return batch
}

// noted makes interim data of an item.
func (r *rig) noted(id string) {
	r.t.Helper()
	must(r.t, r.interim.Put(r.t.Context(), interim.Attempt{ItemID: id, N: 99}, map[string][]byte{"k": []byte("v")}))
}

// recordless is a Registry that has lost the records of an object.
type recordless struct {
	registry.ForWorkers
	object string
}

func (f recordless) KnowsObject(ctx context.Context, id string) (bool, error) {
	if id == f.object {
		return false, nil
	}
	return f.ForWorkers.KnowsObject(ctx, id)
}

// Exactly the orphaned data is found. What may be removed is removed, and all other items continue
// with their data.
func TestOrphans(t *testing.T) {
	r := newRig(t, nil)
	file := func(name string) registry.Spec {
		return registry.Spec{Type: registry.FileType, URL: r.site.put(name, "text of "+name), Filename: name}
	}
	strange, gone := uuid.Must(uuid.NewV7()).String(), r.purged()
	done, kept, waits, failed := r.job(file("done")), r.job(file("kept")), r.job(file("waits")), r.job(file("failed"))
	lost := r.complete(done)
	r.advance(kept, registry.Record) // its version is announced and written, and not recorded
	r.advance(waits, registry.Process)
	r.advance(failed, registry.Process)
	r.command(failed, registry.ActCancel, "")
	for _, id := range []string{strange, gone, done} {
		put(t, r.staging, "items/"+id+"/7/late")
	}
	for _, id := range []string{strange, gone, done, waits, failed} {
		r.noted(id)
	}
	for _, id := range []string{"forgotten", "used", "given-up", "broken"} {
		r.uploaded(id)
	}
	put(t, r.staging, "uploads/unknown/payload")
	_, err := r.registry.BeginUpload(t.Context(), registry.NewUpload{ID: "coming", SizeBytes: 9, Keep: 1000 * time.Hour})
	must(t, err)
	put(t, r.staging, "uploads/coming/payload")
	from := func(id string) string {
		return r.submit(registry.Spec{Type: registry.FileType, URL: registry.UploadURL(id), Filename: id})
	}
	broken := from("broken")
	for _, job := range r.expand(broken) {
		r.command(job.ID, registry.ActCancel, "") // it may be sent back, and then needs the upload
	}
	r.command(broken, registry.ActAbort, "")
	used, givenUp := from("used"), from("given-up")
	r.command(givenUp, registry.ActAbort, "")
	r.tidy()
	put(t, r.staging, "uploads/given-up/late")
	put(t, r.staging, "notes.txt")
	put(t, r.staging, "itemsx/y")
	r.deps.Registry = recordless{r.registry, lost.ID}

	all := registry.OrphanSearch{Older: week, Storages: true}
	if report := r.orphans(all); report.Total() != 1 || report.Found[0].Kind != registry.OrphanObject {
		t.Errorf("found %v, although nothing is old enough", names(report))
	}
	r.wait(8 * 24 * time.Hour)
	want := []string{
		"foreign itemsx/y", "foreign notes.txt",
		// Of these the Registry has never heard: another one's, or its own before it was brought
		// back from a backup.
		"foreign items/" + strange, "foreign " + strange, "foreign uploads/unknown",
		"interim " + gone, "interim " + done,
		"object " + lost.ID,
		"staged items/" + gone, "staged items/" + done,
		"upload uploads/forgotten", "upload uploads/given-up",
	}
	slices.Sort(want)
	before := keys(t, r.staging, "")
	report := r.orphans(all)
	if got := names(report); !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if now := keys(t, r.staging, ""); !slices.Equal(now, before) {
		t.Errorf("the search removed something: %q, before %q", now, before)
	}
	if c := report.Counts[registry.OrphanStaged]; c.Found != 2 || c.Files != 2 || c.SizeBytes != int64(2*len("late")) || c.Removed != 0 {
		t.Errorf("%+v", c)
	}
	all.Storages = false
	if got := names(r.orphans(all)); slices.Contains(got, "object "+lost.ID) || len(got) != len(want)-1 {
		t.Errorf("found %q without the storages", got)
	}

	all.Storages, all.Remove = true, true
	report = r.orphans(all)
	for _, o := range report.Found {
		if o.Removed != o.Kind.Removable() || o.Error != "" || o.Why == "" {
			t.Errorf("%+v", o)
		}
	}
	left := slices.DeleteFunc(before, func(key string) bool {
		return slices.ContainsFunc([]string{"items/" + gone, "items/" + done, "uploads/forgotten/", "uploads/given-up/"},
			func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	if now := keys(t, r.staging, ""); !slices.Equal(now, left) {
		t.Errorf("left are %q, want %q", now, left)
	}
	for id, want := range map[string]bool{strange: true, gone: false, done: false, waits: true, failed: true} {
		n, err := r.interim.Count(t.Context(), interim.Attempt{ItemID: id, N: 99}, "")
		if must(t, err); n > 0 != want {
			t.Errorf("%d interim entries of %s, want some: %v", n, id, want)
		}
	}
	r.valid(lost, 1)
	r.deps.Registry = r.registry
	r.valid(r.complete(kept), 1)
	r.complete(waits)
	r.command(failed, registry.ActRequeue, "")
	r.complete(failed)
	for _, job := range append(r.expand(used), r.jobs(broken)...) {
		if job.Status == registry.Cancelled {
			r.command(job.ID, registry.ActRequeue, registry.Estimate)
		}
		r.advance(job.ID, registry.Process) // it downloads what was uploaded
	}
}

// stubborn does not remove one folder.
type stubborn struct {
	storage.Store
	folder string
}

func (s stubborn) DeletePrefix(ctx context.Context, prefix string) error {
	if prefix == s.folder {
		return errors.New("the folder is in use")
	}
	return s.Store.DeletePrefix(ctx, prefix)
}

// Data that cannot be removed is reported, and removed by the next search.
func TestOrphans_NotRemoved(t *testing.T) {
	var folder string
	r := newRig(t, func(d *workers.Deps) {
		folder = "uploads/a"
		d.Staging = stubborn{d.Staging, folder}
	})
	for _, id := range []string{"a", "b"} {
		r.uploaded(id)
	}
	r.wait(2 * time.Hour)
	search := registry.OrphanSearch{Older: time.Hour, Remove: true}
	report := r.orphans(search)
	c := report.Counts[registry.OrphanUpload]
	if c.Found != 2 || c.Removed != 1 || !strings.Contains(report.Found[0].Error, "the folder is in use") {
		t.Errorf("%+v", report)
	}
	r.deps.Staging = r.staging
	if report := r.orphans(search); report.Total() != 1 || !report.Found[0].Removed || len(keys(t, r.staging, "")) != 0 {
		t.Errorf("%+v", report)
	}
}

// cutDown is a staging volume whose worker is killed when it has removed something.
type cutDown struct {
	storage.Store
	removed func(ctx context.Context)
}

func (d cutDown) DeletePrefix(ctx context.Context, prefix string) error {
	err := d.Store.DeletePrefix(ctx, prefix)
	d.removed(ctx)
	return err
}

// A killed search continues and reports earlier removals, except perhaps the one during which it
// was killed.
func TestOrphans_Killed(t *testing.T) {
	r := newRig(t, nil)
	for _, id := range []string{"a", "b", "c", "d"} {
		r.uploaded(id)
	}
	r.wait(2 * time.Hour)
	it, err := r.registry.SearchOrphans(t.Context(), registry.OrphanRequest{Search: registry.OrphanSearch{Older: time.Hour, Remove: true}, Actor: "admin"})
	must(t, err)
	staging, removals := r.staging, 0
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	r.deps.Staging = cutDown{staging, func(ctx context.Context) {
		if removals++; removals == 3 {
			kill()
			<-ctx.Done() // the step hears of it a moment later
		}
	}}
	if v, err := r.runAs(ctx, it.ID); err == nil || v.Status != registry.Pending {
		t.Fatalf("%+v, %v", v, err)
	}
	r.deps.Staging = staging
	r.wait(time.Hour)
	if v, err := r.run(it.ID); err != nil || v.Status != registry.Completed {
		t.Fatalf("%+v, %v", v, err)
	}
	var report registry.OrphanReport
	must(t, json.Unmarshal(r.item(it.ID).Results[registry.ResultOrphans], &report))
	if got := names(report); len(got) < 3 || report.Counts[registry.OrphanUpload].Removed != int64(len(got)) || len(slices.Compact(got)) != len(got) || len(keys(t, r.staging, "uploads/")) != 0 {
		t.Errorf("%q are told of four, left are %q", got, keys(t, r.staging, "uploads/"))
	}
	r.nothingStaged(it.ID)
}

// submitting is a Registry in which an upload is submitted just when it has been found that nobody
// did.
type submitting struct {
	registry.ForWorkers
	submit func()
}

func (s submitting) ReleaseUpload(ctx context.Context, l registry.Lease, uploadID string) (bool, error) {
	s.submit()
	return s.ForWorkers.ReleaseUpload(ctx, l, uploadID)
}

// An upload submitted during the check stays; a removed one can no longer be submitted.
func TestOrphans_SubmittedMeanwhile(t *testing.T) {
	r := newRig(t, nil)
	r.uploaded("u")
	r.wait(2 * time.Hour)
	var batch string
	spec := registry.Spec{Type: registry.FileType, URL: registry.UploadURL("u"), Filename: "u"}
	r.deps.Registry = submitting{r.registry, func() { batch = r.submit(spec) }}
	search := registry.OrphanSearch{Older: time.Hour, Remove: true}
	if report := r.orphans(search); len(report.Found) != 1 || report.Found[0].Removed || !strings.Contains(report.Found[0].Error, "submitted meanwhile") {
		t.Errorf("%+v", report)
	}
	r.deps.Registry = r.registry
	r.complete(r.expand(batch)[0].ID)

	r.uploaded("v")
	r.wait(2 * time.Hour)
	if report := r.orphans(search); len(report.Found) != 1 || !report.Found[0].Removed {
		t.Errorf("%+v", report)
	}
	spec.URL = registry.UploadURL("v")
	_, err := r.registry.Submit(t.Context(), registry.Submission{Collection: collection, Spec: spec, Force: true})
	if !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("submitted without its bytes: %v", err)
	}
}

// An upload is removed with its batch when that is aborted or deleted for good and no job can need
// it again.
func TestCleanup_Uploads(t *testing.T) {
	for _, tt := range []struct {
		name string
		act  func(r *rig, batch string)
		gone bool
	}{
		{"aborted before it began", func(r *rig, batch string) { r.command(batch, registry.ActAbort, "") }, true},
		{"aborted with a job that may be sent back", func(r *rig, batch string) {
			r.command(r.expand(batch)[0].ID, registry.ActCancel, "")
			r.command(batch, registry.ActAbort, "")
		}, false},
		{"deleted with its jobs", func(r *rig, batch string) {
			r.command(r.expand(batch)[0].ID, registry.ActCancel, "")
			r.command(batch, registry.ActAbort, "")
			r.command(batch, registry.ActDelete, "")
			bulk := r.only(registry.Bulk)
			if v, err := r.run(bulk.ID); err != nil || v.Status != registry.Completed {
				r.t.Fatalf("%+v, %v", v, err)
			}
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.uploaded("u")
			batch := r.submit(registry.Spec{Type: registry.FileType, URL: registry.UploadURL("u"), Filename: "u"})
			tt.act(r, batch)
			r.tidy()
			if left := keys(t, r.staging, "uploads/"); len(left) == 0 != tt.gone {
				t.Errorf("left are %q", left)
			}
		})
	}
}

// It waits, but not forever, for the jobs of a deleted batch, which are deleted by an act of their
// own.
func TestCleanup_UploadsWaitForJobs(t *testing.T) {
	r := newRig(t, nil)
	r.uploaded("u")
	batch := r.submit(registry.Spec{Type: registry.FileType, URL: registry.UploadURL("u"), Filename: "u"})
	r.command(r.expand(batch)[0].ID, registry.ActCancel, "")
	r.command(batch, registry.ActAbort, "")
	r.tidy()
	r.command(batch, registry.ActDelete, "")
	r.wait(3 * time.Minute)
	page, err := r.registry.Items(t.Context(), registry.ItemQuery{Action: registry.Tidy, Status: registry.Pending})
	must(t, err)
	if len(page.Rows) != 1 {
		t.Fatalf("%d items tidy up", len(page.Rows))
	}
	id := page.Rows[0].ID
	if v, err := r.run(id); err == nil || v.Status != registry.Pending || v.Tries != 0 {
		t.Errorf("its job is not deleted: %+v, %v", v, err)
	}
	r.wait(24 * time.Hour)
	if v, err := r.run(id); err != nil || v.Status != registry.Completed {
		t.Errorf("a day later: %+v, %v", v, err)
	}
	if left := keys(t, r.staging, "uploads/"); len(left) != 1 {
		t.Errorf("left are %q, want the upload that the job may need", left)
	}
}
