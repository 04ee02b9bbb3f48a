package workers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers"
)

// command asks for an act that must be allowed.
func (r *rig) command(id string, act registry.Act, from registry.Stage) {
	r.t.Helper()
	_, err := r.registry.Command(r.t.Context(), registry.Command{
		ItemID: id, Act: act, From: from, Reason: "because", Actor: "admin", Confirmed: true,
	})
	must(r.t, err)
}

// only returns the one item of an action.
func (r *rig) only(a registry.Action) registry.WorkItem {
	r.t.Helper()
	page, err := r.registry.Items(r.t.Context(), registry.ItemQuery{Action: a})
	must(r.t, err)
	if len(page.Rows) != 1 {
		r.t.Fatalf("%d items of action %s", len(page.Rows), a)
	}
	return page.Rows[0]
}

// A job's staged data is removed after it was aborted or deleted, but not before its last worker
// must have learned of it.
func TestCleanup(t *testing.T) {
	for _, act := range []registry.Act{registry.ActAbort, registry.ActDelete} {
		t.Run(string(act), func(t *testing.T) {
			r := newRig(t, nil)
			job := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("a", "hello"), Filename: "a"})
			other := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("b", "there"), Filename: "b"})
			r.advance(job, registry.Process)
			r.advance(other, registry.Process)
			if act == registry.ActDelete {
				r.command(job, registry.ActCancel, "")
			}
			r.command(job, act, "")
			tidy := r.only(registry.Tidy)
			if _, err := r.run(tidy.ID); err == nil || len(keys(t, r.staging, "items/"+job)) == 0 {
				t.Errorf("tidied at once: %v", err)
			}
			late := "items/" + job + "/9/late" // of a worker that has not heard of it
			put(t, r.staging, late)
			r.wait(3 * time.Minute)
			if v, err := r.run(tidy.ID); err != nil || v.Status != registry.Completed {
				t.Fatalf("%+v, %v", v, err)
			}
			r.nothingStaged(job)
			r.complete(other)
		})
	}
}

func put(t testing.TB, s storage.Store, key string) {
	t.Helper()
	w, err := s.Create(t.Context(), key)
	must(t, err)
	_, err = w.Write([]byte("late"))
	must(t, err)
	_, err = w.Commit(t.Context())
	must(t, err)
}

// A tidy item whose subject is still needed changes nothing. No command makes one: it would be a
// bug, or a manual change of the database.
func TestCleanup_LeavesWhatIsNeeded(t *testing.T) {
	r := newRig(t, nil)
	job := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("a", "hello"), Filename: "a"})
	other := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("b", "there"), Filename: "b"})
	r.advance(job, registry.Process)
	r.advance(other, registry.Process)
	r.command(other, registry.ActAbort, "")
	tidy := r.only(registry.Tidy)
	r.deps.Registry = misled{r.registry, tidy.ID, job}
	r.wait(3 * time.Minute)
	if v, err := r.run(tidy.ID); err == nil || v.Status != registry.Pending || v.Tries != 0 {
		t.Errorf("its subject waits to be processed: %+v, %v", v, err)
	}
	r.command(job, registry.ActCancel, "")
	r.wait(3 * time.Minute)
	if v, err := r.run(tidy.ID); err == nil || v.Status != registry.Failed {
		t.Errorf("its subject may be requeued: %+v, %v", v, err)
	}
	r.deps.Registry = r.registry
	r.command(job, registry.ActRequeue, "")
	r.complete(job)
}

// misled hands out a tidy item with another subject.
type misled struct {
	registry.ForWorkers
	tidy, subject string
}

func (m misled) Claim(ctx context.Context, c registry.ClaimRequest) (registry.Claim, error) {
	claim, err := m.ForWorkers.Claim(ctx, c)
	if err == nil && claim.Item.ID == m.tidy {
		claim.Item.Spec, err = json.Marshal(registry.TidySpec{Subject: m.subject})
	}
	return claim, err
}

// A killed bulk act continues where it stopped, and does nothing twice.
func TestApply_KilledBetweenPortions(t *testing.T) {
	r := newRig(t, nil)
	rows := make([]checkm.Row, 250)
	for i := range rows {
		rows[i] = checkm.Row{URL: r.site.url + "f", Name: fmt.Sprintf("f%d", i)}
	}
	batch := r.submit(registry.Spec{Type: registry.SingleFileBatch, URL: r.site.manifest("m", checkm.FileBatch, rows...), Filename: "m"})
	jobs := r.expand(batch)
	if len(jobs) != 250 {
		t.Fatalf("%d jobs", len(jobs))
	}
	for _, job := range jobs {
		r.command(job.ID, registry.ActCancel, "")
	}
	it, err := r.registry.Bulk(t.Context(), registry.BulkRequest{
		Match: registry.Query{Terms: []registry.Term{{Field: "state", Value: "cancelled"}}}, Act: registry.ActRequeue, Actor: "admin",
	})
	must(t, err)
	// Each run is cut off after one portion, when its answer is on its way.
	for n := range 3 {
		ctx, kill := context.WithCancel(t.Context())
		r.deps.Registry = killing{r.registry, kill}
		v, err := r.runAs(ctx, it.ID)
		kill()
		if n < 2 && (err == nil || v.Status != registry.Pending) {
			t.Errorf("run %d: %+v, %v", n, v, err)
		}
	}
	r.deps.Registry = r.registry
	if s := r.item(it.ID); !s.Status.Settled() {
		if v, err := r.run(it.ID); err != nil || v.Status != registry.Completed {
			t.Errorf("%+v, %v", v, err)
		}
	}
	for _, job := range r.jobs(batch) {
		if job.RetryCount != 1 || job.Status != registry.Pending {
			t.Fatalf("row %d was requeued %d times and is %s", job.Row, job.RetryCount, job.Status)
		}
	}
	as, err := r.registry.Attempts(t.Context(), it.ID)
	must(t, err)
	if last := as[len(as)-1].Progress; len(last) != 1 || last[0].Position != 250 || last[0].End != 250 {
		t.Errorf("progress %+v", last)
	}
}

// killing ends a worker after each portion.
type killing struct {
	registry.ForWorkers
	kill context.CancelFunc
}

func (k killing) ApplyNext(ctx context.Context, l registry.Lease) (registry.BulkProgress, error) {
	p, err := k.ForWorkers.ApplyNext(ctx, l)
	k.kill()
	<-ctx.Done()
	return p, err
}

// A job that failed for a wrong digest fetches and compares again when it is requeued, at any
// stage. It fails while its source is wrong, and completes afterwards.
func TestRequeue_ChecksAgain(t *testing.T) {
	right, wrong := "the right bytes", "the wrong bytes"
	for _, from := range []registry.Stage{"", registry.Estimate, registry.Provision, registry.Download} {
		t.Run("download_"+string(from), func(t *testing.T) {
			r := newRig(t, nil)
			url := r.site.put("a", wrong)
			job := r.job(registry.Spec{Type: registry.FileType, URL: url, Filename: "a", Digest: digestOf(right)})
			isContent(t, r.fails(job), sha256Of(wrong))
			r.command(job, registry.ActRequeue, from)
			again := r.fails(job)
			isContent(t, again, sha256Of(wrong))
			if again.RetryCount != 1 || again.Stage != registry.Download {
				t.Errorf("retry_count=%d stage=%s", again.RetryCount, again.Stage)
			}
			r.site.put("a", right)
			r.command(job, registry.ActRequeue, from)
			o := r.complete(job)
			r.valid(o, 1)
			if got := r.producer(o, 1)["a"]; got != right {
				t.Errorf("stored %q", got)
			}
			r.nothingStaged(job)
		})
	}
}

// keeping is a store that deletes no folder.
type keeping struct{ storage.Store }

func (keeping) DeletePrefix(context.Context, string) error { return errors.New("not now") }

// A job whose version is recorded, and which failed after that, may start over at process, even if
// staging has lost all of its files. The version stays as it is.
func TestRequeue_ProcessesWhatIsRecorded(t *testing.T) {
	for _, title := range []string{"small", longTitle} {
		r := newRig(t, nil)
		staged := r.deps.Staging
		r.deps.Staging = keeping{staged}
		job := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("a", "alpha"), Filename: "a", Title: title})
		if it := r.fails(job); it.Stage != registry.Notify || it.Commitment != registry.Preserved {
			t.Fatalf("failed at %s, %q: %s", it.Stage, it.Commitment, it.Note)
		}
		r.deps.Staging = staged
		if title == "small" {
			must(t, staged.DeletePrefix(t.Context(), "items/"+job))
		}
		r.command(job, registry.ActRequeue, registry.Process)
		o := r.complete(job)
		r.valid(o, 1)
		if got := r.producer(o, 1)["a"]; got != "alpha" {
			t.Errorf("stored %q", got)
		}
		r.nothingStaged(job)
	}
}

// A bag that does not match its manifest fails in process. Requeued there, the downloaded bag is
// checked again; requeued at download, the corrected bag is fetched.
func TestRequeue_ChecksABagAgain(t *testing.T) {
	r := newRig(t, nil)
	files := map[string]string{"x.txt": "x"}
	good := bagOf(files, nil)
	bad := bagOf(files, nil)
	bad["bag/data/x.txt"] = "y"
	url := r.site.put("b.zip", zipOf(t, bad))
	job := r.job(registry.Spec{Type: registry.BagType, URL: url, Filename: "b.zip"})
	first := r.fails(job)
	isContent(t, first, "x.txt")
	if first.Stage != registry.Process {
		t.Fatalf("failed at %s", first.Stage)
	}
	r.site.put("b.zip", zipOf(t, good))
	r.command(job, registry.ActRequeue, "")
	isContent(t, r.fails(job), "x.txt") // what was fetched is still wrong
	r.command(job, registry.ActRequeue, registry.Download)
	o := r.complete(job)
	r.valid(o, 1)
	if got := r.item(job).RetryCount; got != 2 {
		t.Errorf("retry_count=%d", got)
	}
}

// A minted ARK stays the item's, whatever stage the item is requeued at.
func TestRequeue_KeepsTheARK(t *testing.T) {
	broken := true
	r := newRig(t, func(d *workers.Deps) { d.Registry = refusing{d.Registry, &broken} })
	job := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("a", "a"), Filename: "a"})
	first := r.fails(job)
	if first.Stage != registry.Process {
		t.Fatalf("failed at %s: %s", first.Stage, first.Note)
	}
	ark := r.ark(job)
	broken = false
	r.command(job, registry.ActRequeue, registry.Estimate)
	if o := r.complete(job); o.ID != ark {
		t.Errorf("object %s, the ARK minted first was %s", o.ID, ark)
	}
}

// refusing does not let versions be announced.
type refusing struct {
	registry.ForWorkers
	broken *bool
}

func (s refusing) Intend(ctx context.Context, l registry.Lease, in registry.Intent) (registry.Intent, error) {
	if *s.broken {
		return in, errTest
	}
	return s.ForWorkers.Intend(ctx, l, in)
}
