package workers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
	"github.com/holdfast/holdfast/workers"
)

// newFaultyRig is a rig whose stores fail on demand. The test itself looks at them from behind.
func newFaultyRig(t *testing.T) (r *rig, staging, objects *storagetest.Faulty) {
	t.Helper()
	inner, kept := storagetest.NewMemory(), storagetest.NewMemory()
	staging, objects = storagetest.NewFaulty(inner), storagetest.NewFaulty(kept)
	r = newRig(t, func(d *workers.Deps) {
		d.Staging = staging
		d.Policy = func(registry.Stage) base.Worker { return base.Worker{Attempts: 1000} }
	})
	r.staging, r.storage = inner, kept
	var err error
	r.objects, err = ocfl.OpenRoot(t.Context(), kept, "", nil)
	must(t, err)
	r.deps.Objects = roots(rootOf(t, objects))
	return r, staging, objects
}

// diesEverywhere runs a stage once for each operation on a store, with a death there, and lets the
// next attempt go on: each time there is one version of one object, under one name, whole and
// right, and nothing is left in staging.
func diesEverywhere(t *testing.T, r *rig, stage registry.Stage, store *storagetest.Faulty, job func(n int) (id string, want map[string]string)) {
	t.Helper()
	dies := []func(int){store.DieAt, store.DieAfter}
	// Before an operation, or before its answer.
	i, survived := 0, false
	for n := range looptest.Steps(t) {
		if survived {
			break
		}
		i++
		id, want := job(n)
		r.advance(id, stage)
		dies[i%2](n)
		_, err := r.run(id)
		store.Heal()
		var named string
		if err == nil {
			survived = true
		} else if it := r.item(id); it.Results["ark"] != nil {
			named = r.ark(id)
		}
		if it := r.item(id); it.Status == registry.Failed {
			t.Fatalf("death at operation %d failed the item: %s", n, it.Note)
		}
		r.wait(2 * time.Hour)
		o := r.complete(id)
		r.valid(o, o.Head)
		if o.Versions[o.Head-1].ItemID != id {
			t.Errorf("death at %d: version %d is not the job's", n, o.Head)
		}
		if named != "" && named != o.ID {
			t.Errorf("death at %d: %s became %s", n, named, o.ID)
		}
		if diff := cmp.Diff(want, r.producer(o, o.Head)); diff != "" {
			t.Errorf("death at %d (-want +got):\n%s", n, diff)
		}
		r.nothingStaged(id)
	}
}

// zipJob makes a job of a container, whose n-th file tells it from others.
func (r *rig) zipJob(n int) (string, map[string]string) { return r.zipJobs("")(n) }

// zipJobs returns a zipJob with a title.
func (r *rig) zipJobs(title string) func(n int) (string, map[string]string) {
	return func(n int) (string, map[string]string) {
		files := sample()
		files["which.txt"] = fmt.Sprint(n)
		return r.job(registry.Spec{Type: registry.AutoType, URL: r.site.put("c.zip", zipOf(r.t, files)), Filename: "c.zip", Title: title}), files
	}
}

// longTitle, which three of our system files have, makes a plan too large for its announcement.
var longTitle = strings.Repeat("long ", 1<<10)

// eachPlan runs a test with jobs whose plan is announced whole, and with jobs whose plan is staged.
// They have different numbers of file operations.
func eachPlan(t *testing.T, test func(t *testing.T, title string)) {
	t.Helper()
	for name, title := range map[string]string{"announced plan": "", "staged plan": longTitle} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, title)
		})
	}
}

func TestR03_DownloadDiesAnywhere(t *testing.T) {
	t.Parallel()
	r, staging, _ := newFaultyRig(t)
	diesEverywhere(t, r, registry.Download, staging, func(n int) (string, map[string]string) {
		files := map[string]string{"a.txt": "alpha", "b.txt": fmt.Sprint(n)}
		return r.job(registry.Spec{Type: registry.ObjectManifest, Filename: "m", URL: r.site.manifest("m", checkm.Object,
			checkm.Row{URL: r.site.put("a", files["a.txt"]), Name: "a.txt"},
			checkm.Row{URL: r.site.put("b", files["b.txt"]), Name: "b.txt", Algorithm: "sha256", Digest: sha256Of(files["b.txt"])},
		)}), files
	})
}

func TestR02_ProcessDiesAnywhereInStaging(t *testing.T) {
	t.Parallel()
	eachPlan(t, func(t *testing.T, title string) {
		r, staging, _ := newFaultyRig(t)
		diesEverywhere(t, r, registry.Process, staging, r.zipJobs(title))
	})
}

func TestR02_ProcessDiesAnywhereInStorage(t *testing.T) {
	t.Parallel()
	eachPlan(t, func(t *testing.T, title string) {
		r, _, objects := newFaultyRig(t)
		diesEverywhere(t, r, registry.Process, objects, r.zipJobs(title))
	})
}

// A killed update makes no version twice, and removes nothing of the previous version.
func TestR02_UpdateDiesAnywhereInStorage(t *testing.T) {
	t.Parallel()
	r, _, objects := newFaultyRig(t)
	made := 0
	diesEverywhere(t, r, registry.Process, objects, func(int) (string, map[string]string) {
		made++
		ids := []string{fmt.Sprint(made)}
		r.complete(r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("f", "first"), Filename: "first", LocalIDs: ids}))
		return r.job(registry.Spec{
			Type: registry.FileType, Mode: registry.Update, URL: r.site.put("g", "second"), Filename: "second", LocalIDs: ids,
		}), map[string]string{"first": "first", "second": "second"}
	})
}

func TestR02_RecordDiesAnywhere(t *testing.T) {
	t.Parallel()
	eachPlan(t, func(t *testing.T, title string) {
		r, staging, _ := newFaultyRig(t)
		diesEverywhere(t, r, registry.Record, staging, r.zipJobs(title))
	})
}

// A version's receipt is whole beside its bytes when its job is completed, wherever the writing of it
// was killed; r.valid looks.
func TestR02_RecordDiesAnywhereInStorage(t *testing.T) {
	t.Parallel()
	r, _, objects := newFaultyRig(t)
	t.Run("new", func(t *testing.T) { diesEverywhere(t, r, registry.Record, objects, r.zipJob) })
	made := 0
	t.Run("update", func(t *testing.T) {
		diesEverywhere(t, r, registry.Record, objects, func(int) (string, map[string]string) {
			made++
			ids := []string{fmt.Sprint("updated ", made)}
			r.complete(r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("f", "first"), Filename: "first", LocalIDs: ids}))
			return r.job(registry.Spec{
				Type: registry.FileType, Mode: registry.Update, URL: r.site.put("g", "second"), Filename: "second", LocalIDs: ids,
			}), map[string]string{"first": "first", "second": "second"}
		})
	})
}

func TestR26_NotifyDiesAnywhere(t *testing.T) {
	t.Parallel()
	eachPlan(t, func(t *testing.T, title string) {
		r, staging, _ := newFaultyRig(t)
		diesEverywhere(t, r, registry.Notify, staging, r.zipJobs(title))
	})
}

// stopper cancels a step when an operation begins.
type stopper struct {
	storage.Store
	at   atomic.Int64
	stop func()
}

func (s *stopper) tick() {
	if s.at.Add(-1) == 0 {
		s.stop()
	}
}

func (s *stopper) Create(ctx context.Context, key string) (storage.Writer, error) {
	s.tick()
	return s.Store.Create(ctx, key)
}

func (s *stopper) Stat(ctx context.Context, key string) (storage.Info, error) {
	s.tick()
	return s.Store.Stat(ctx, key)
}

// A shutdown during a step costs no attempt, and the next worker continues.
func TestR04_StoppedAnywhere(t *testing.T) {
	for _, stage := range []registry.Stage{registry.Download, registry.Process, registry.Record} {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			eachPlan(t, func(t *testing.T, title string) {
				r, staging, _ := newFaultyRig(t)
				for n := range looptest.Steps(t) {
					id, want := r.zipJobs(title)(n)
					r.advance(id, stage)
					ctx, cancel := context.WithCancel(t.Context())
					s := &stopper{Store: staging, stop: cancel}
					s.at.Store(int64(n))
					r.deps.Staging = s
					_, err := r.runAs(ctx, id)
					cancel()
					r.deps.Staging = staging
					if err == nil && s.at.Load() > 0 {
						break // it had fewer operations than that
					}
					it := r.item(id)
					if err != nil && (!errors.Is(err, base.ErrStopping) && !errors.Is(err, context.Canceled) || it.Tries != 0 || it.Status.Settled()) {
						t.Fatalf("stopped at %d: %v, tries=%d status=%s", n, err, it.Tries, it.Status)
					}
					o := r.complete(id)
					r.valid(o, 1)
					if diff := cmp.Diff(want, r.producer(o, 1)); diff != "" {
						t.Errorf("stopped at %d (-want +got):\n%s", n, diff)
					}
					r.nothingStaged(id)
				}
			})
		})
	}
}

// barrier holds a writer back before one of its writes.
type barrier struct {
	storage.Store
	left    atomic.Int64
	reached chan struct{}
	open    chan struct{}
}

func (g *barrier) pass() {
	if g.left.Add(-1) == 0 {
		close(g.reached)
		<-g.open
	}
}

func (g *barrier) Create(ctx context.Context, key string) (storage.Writer, error) {
	g.pass()
	return g.Store.Create(ctx, key)
}

func (g *barrier) Replace(ctx context.Context, key string, data []byte) error {
	g.pass()
	return g.Store.Replace(ctx, key, data)
}

// A superseded worker wakes up after its successor has finished, with a write that can no longer be
// refused. It changes nothing under final names and nothing in the Registry; in staging it writes
// only names of its own attempt.
func TestR00_SupersededWritesOnlyItsOwnNames(t *testing.T) {
	for name, staging := range map[string]bool{"storage": false, "staging": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlan(t, func(t *testing.T, title string) {
				for n := range looptest.Steps(t) {
					if !supersededAt(t, n, title, staging) {
						break
					}
				}
			})
		})
	}
}

// supersededAt holds a worker back before its n-th write to staging or storage until its successor
// is through. It returns false when there are fewer.
func supersededAt(t *testing.T, n int, title string, staging bool) bool {
	t.Helper()
	r, _, _ := newFaultyRig(t)
	id, want := r.zipJobs(title)(n)
	r.advance(id, registry.Process)
	mine := fmt.Sprintf("items/%s/%d.", id, r.item(id).Attempt+1)
	zombie := &barrier{Store: r.storage, reached: make(chan struct{}), open: make(chan struct{})}
	zombie.left.Store(int64(n))
	good := r.deps
	if staging {
		zombie.Store = r.staging
		r.deps.Staging = zombie
	} else {
		r.deps.Objects = roots(rootOf(t, zombie))
	}
	h := r.handler(registry.Process)
	r.deps = good
	ended := make(chan error, 1)
	go func() {
		runner := &base.Runner{Registry: r.registry, Interim: r.interim}
		_, err := runner.RunOne(t.Context(), h, id)
		ended <- err
	}()
	select {
	case <-zombie.reached:
	case err := <-ended:
		if err != nil {
			t.Fatalf("the step failed before operation %d: %v", n, err)
		}
		if n <= 4 {
			t.Fatalf("only %d operations", n-1)
		}
		return false
	}
	_, err := r.registry.Reclaim(t.Context())
	must(t, err)
	r.wait(time.Hour)
	o := r.complete(id)
	before := snapshot(t, r.storage)
	history, err := r.registry.Events(t.Context(), id, 0, 500)
	must(t, err)
	close(zombie.open)
	if err := <-ended; !errors.Is(err, registry.ErrClaimLost) {
		t.Errorf("operation %d: the superseded step ended with %v", n, err)
	}
	if diff := cmp.Diff(before, snapshot(t, r.storage)); diff != "" {
		t.Errorf("operation %d: the superseded worker changed storage:\n%s", n, diff)
	}
	for _, key := range keys(t, r.staging, "") {
		if !strings.HasPrefix(key, mine) {
			t.Errorf("operation %d: %s is left in staging", n, key)
		}
	}
	after, err := r.registry.Events(t.Context(), id, 0, 500)
	must(t, err)
	if diff := cmp.Diff(history, after); diff != "" {
		t.Errorf("operation %d: the superseded worker changed the Registry:\n%s", n, diff)
	}
	r.valid(r.object(id), 1)
	if diff := cmp.Diff(want, r.producer(o, 1)); diff != "" {
		t.Errorf("operation %d (-want +got):\n%s", n, diff)
	}
	return true
}

func rootOf(t *testing.T, s storage.Store) *ocfl.Root {
	t.Helper()
	root, err := ocfl.OpenRoot(t.Context(), s, "", nil)
	must(t, err)
	return root
}

func snapshot(t *testing.T, s storage.Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, key := range keys(t, s, "") {
		data, err := storage.ReadAll(t.Context(), s, key, 1<<20)
		must(t, err)
		out[key] = sha256Of(string(data))
	}
	return out
}

// forgetful loses the Registry's answers to some calls, or the calls themselves.
type forgetful struct {
	registry.ForWorkers
	identify, intend func(err error) error
}

func (f *forgetful) Identify(ctx context.Context, l registry.Lease, r registry.IdentifyRequest) (registry.Identity, error) {
	id, err := f.ForWorkers.Identify(ctx, l, r)
	if f.identify != nil {
		err = f.identify(err)
	}
	return id, err
}

func (f *forgetful) Intend(ctx context.Context, l registry.Lease, in registry.Intent) (registry.Intent, error) {
	out, err := f.ForWorkers.Intend(ctx, l, in)
	if f.intend != nil {
		err = f.intend(err)
	}
	return out, err
}

// A name is assigned once, whatever answer is lost when. The announced version is the one written.
func TestR08_AnswersLost(t *testing.T) {
	lose := func(error) error { return errTest }
	for name, f := range map[string]*forgetful{"identify": {identify: lose}, "intend": {intend: lose}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			f.ForWorkers = r.registry
			id, _ := r.zipJob(1)
			r.advance(id, registry.Process)
			r.deps.Registry = f
			if _, err := r.run(id); !errors.Is(err, errTest) {
				t.Fatalf("error %v", err)
			}
			ark := r.ark(id)
			r.deps.Registry = r.registry
			r.wait(time.Hour)
			o := r.complete(id)
			if ark == "" || o.ID != ark {
				t.Errorf("%q became %q", ark, o.ID)
			}
			r.valid(o, 1)
			all, err := r.registry.Objects(t.Context(), registry.ObjectQuery{})
			if err != nil || len(all.Rows) != 1 {
				t.Errorf("%d objects (%v)", len(all.Rows), err)
			}
		})
	}
}
