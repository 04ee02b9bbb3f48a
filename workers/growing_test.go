package workers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers"
)

// smallVolume is a staging store on a small volume: it counts every byte that lies there, committed
// or not, and takes none past its end.
type smallVolume struct {
	storage.Store
	mu      sync.Mutex
	total   int64
	foreign int64            // of uploads, and of other programs
	bytes   map[string]int64 // by key, and by writer for what is on its way
	writers int
	over    int // writes that found the disk full
}

func (v *smallVolume) used() int64 {
	used := v.foreign
	for _, n := range v.bytes {
		used += n
	}
	return used
}

func (v *smallVolume) Space(context.Context) (storage.Space, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return storage.Space{Total: v.total, Used: v.used()}, nil
}

func (v *smallVolume) Create(ctx context.Context, key string) (storage.Writer, error) {
	w, err := v.Store.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.writers++
	return &smallWriter{Writer: w, volume: v, key: key, id: fmt.Sprint("writer ", v.writers)}, nil
}

func (v *smallVolume) Delete(ctx context.Context, key string) error {
	v.gone(func(k string) bool { return k == key })
	return v.Store.Delete(ctx, key)
}

func (v *smallVolume) DeletePrefix(ctx context.Context, prefix string) error {
	v.gone(func(k string) bool { return k == prefix || strings.HasPrefix(k, prefix+"/") })
	return v.Store.DeletePrefix(ctx, prefix)
}

func (v *smallVolume) gone(which func(key string) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.bytes, func(k string, _ int64) bool { return which(k) })
}

type smallWriter struct {
	storage.Writer
	volume  *smallVolume
	key, id string
}

func (w *smallWriter) Write(p []byte) (int, error) {
	v := w.volume
	v.mu.Lock()
	if v.used()+int64(len(p)) > v.total {
		v.over++
		v.mu.Unlock()
		return 0, storage.ErrNoSpace
	}
	v.bytes[w.id] += int64(len(p))
	v.mu.Unlock()
	return w.Writer.Write(p)
}

func (w *smallWriter) Commit(ctx context.Context) (storage.Info, error) {
	info, err := w.Writer.Commit(ctx)
	w.volume.mu.Lock()
	defer w.volume.mu.Unlock()
	if n, open := w.volume.bytes[w.id]; open && err == nil {
		w.volume.bytes[w.key] = n
		delete(w.volume.bytes, w.id)
	}
	return info, err
}

func (w *smallWriter) Abort() error {
	w.volume.gone(func(k string) bool { return k == w.id })
	return w.Writer.Abort()
}

func (w *smallWriter) Close() error {
	w.volume.gone(func(k string) bool { return k == w.id })
	return w.Writer.Close()
}

// grower is a job whose size nobody knows.
type grower struct {
	Size   int64
	Files  int
	Wrong  bool // it is not what the depositor says
	Killed int  // the round in which its worker dies
}

// small is what happens on a small volume.
type small struct {
	Jobs    []grower
	Total   int64
	Uploads []int64 // what they take in each of the first rounds
}

var smalls = rapid.Custom(func(t *rapid.T) small {
	total := rapid.Int64Range(300_000, 900_000).Draw(t, "total")
	return small{
		Total: total,
		Jobs: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) grower {
			return grower{
				Size:  total * rapid.Int64Range(1, 110).Draw(t, "share") / 100, // the largest never fit
				Files: rapid.IntRange(1, 3).Draw(t, "files"), Wrong: rapid.IntRange(0, 7).Draw(t, "wrong") == 0,
				Killed: rapid.IntRange(0, 5).Draw(t, "killed"),
			}
		}), 2, 5).Draw(t, "jobs"),
		Uploads: rapid.SliceOfN(rapid.Int64Range(0, total/3), 0, 4).Draw(t, "uploads"),
	}
})

const growersWait = 40 * time.Minute

// TestR24_GrowersEnd grows several jobs of unknown size at once on a small volume, beside uploads,
// with wrong files and killed workers. No byte is written beyond the limit, every job ends within a
// bounded time, those that fit are preserved, and afterwards nothing is reserved.
func TestR24_GrowersEnd(t *testing.T) {
	v := &smallVolume{bytes: map[string]int64{}}
	r := newRig(t, func(d *workers.Deps) {
		v.Store = d.Staging
		d.Staging, d.StagingFull, d.StagingFullUnestimated = v, 0.8, 0.8
		d.Policy = func(registry.Stage) base.Worker { return base.Worker{Attempts: 3, RoomFor: growersWait} }
	})
	r.site.break_(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method == http.MethodHead && strings.Contains(q.URL.Path, "file") {
			w.WriteHeader(http.StatusOK)
			return true
		}
		return false
	})
	cases := 10
	if testing.Short() {
		cases = 4
	}
	for seed := range cases {
		c := smalls.Example(seed)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { growersEnd(t, r, v, c, fmt.Sprint(seed)) })
		if t.Failed() {
			t.Fatalf("%+v", c)
		}
	}
}

func growersEnd(t *testing.T, r *rig, v *smallVolume, c small, name string) {
	v.mu.Lock()
	v.total, v.foreign, v.over = c.Total, 0, 0
	clear(v.bytes) // the lists of jobs that failed in an earlier case
	v.mu.Unlock()
	jobs := map[string]grower{}
	for i, g := range c.Jobs {
		jobs[r.job(registry.Spec{Type: registry.ObjectManifest, URL: r.growing(fmt.Sprintf("%s-%d", name, i), g), Filename: "m"})] = g
	}
	open := slices.Sorted(maps.Keys(jobs))
	killed := false
	var last sync.Map      // what a job's last step came to
	const mostRounds = 120 // each job may wait for its limit, one after the other
	for round := 0; len(open) > 0; round++ {
		if round > mostRounds {
			for _, id := range open {
				it := r.item(id)
				err, _ := last.Load(id)
				t.Errorf("job %s (%+v) has not ended: %s %s %s; %v", id, jobs[id], it.Stage, it.Status, it.Note, err)
			}
			t.FailNow()
		}
		v.mu.Lock()
		v.foreign = 0
		if round < len(c.Uploads) {
			v.foreign = c.Uploads[round]
		}
		v.mu.Unlock()
		var all sync.WaitGroup
		for _, id := range open {
			all.Go(func() {
				for it := r.item(id); !it.Status.Settled() && it.Status != registry.Running; it = r.item(id) {
					if _, err := r.run(id); err != nil {
						last.Store(id, err)
						return
					}
				}
			})
			if jobs[id].Killed == round+1 { // and what it still writes is refused
				killed = true
				_, err := r.registry.Reclaim(context.WithoutCancel(t.Context()))
				must(t, err)
			}
		}
		all.Wait()
		open = slices.DeleteFunc(open, func(id string) bool { return r.item(id).Status.Settled() })
		r.wait(2 * time.Minute)
	}
	var kept int64 // for a requeue, of jobs that are wrong
	for id, g := range jobs {
		if g.Wrong && r.item(id).ErrorClass == registry.ContentFault {
			kept += g.Size
		}
	}
	limit := int64(0.8 * float64(c.Total))
	for id, g := range jobs {
		it := r.item(id)
		switch fits := g.Size <= limit-kept-10_000; { // beside lists and manifests
		case it.Status == registry.Failed && it.ErrorClass == registry.ContentFault && g.Wrong:
		case it.Status == registry.Failed && it.ErrorClass == registry.SystemFault && (strings.Contains(it.Note, "HOLDFAST_ROOM_WAIT") || strings.Contains(it.Note, "is larger than")) && (!fits || g.Wrong):
		case it.Status == registry.Completed && !g.Wrong && g.Size <= limit:
		default:
			t.Errorf("job of %+v on %d bytes: %s %s %s", g, c.Total, it.State, it.ErrorClass, it.Note)
		}
	}
	if v.over > 0 && !killed && len(c.Uploads) == 0 {
		t.Errorf("%d writes found the disk full: more was promised than there is", v.over)
	}
	if got := v.used() - v.foreign; got > kept+20_000 { // lists and manifests of what failed are kept, too
		t.Errorf("%d bytes are left in staging: %v", got, v.bytes)
	}
	probe := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put(name+"probe", "x"), Filename: "p", SizeBytes: 1})
	r.advance(probe, registry.Download)
	runner := &base.Runner{Registry: r.registry, Interim: r.deps.Interim, Version: "1.2.3"}
	var reserved error
	_, _ = runner.RunOne(t.Context(), &probing{do: func(ctx context.Context, item *base.Item) error {
		reserved = r.registry.Reserve(ctx, item.Lease(), registry.Reservation{Volume: "staging", Bytes: c.Total, Total: c.Total, Threshold: 1})
		return base.Content(errors.Join(errors.New("it was only asked"), r.registry.Reserve(ctx, item.Lease(), registry.Reservation{Volume: "staging", Total: c.Total, Threshold: 1})))
	}}, probe)
	if reserved != nil {
		t.Errorf("something is reserved still: %v", reserved)
	}
}

// growing publishes an object manifest without sizes.
func (r *rig) growing(name string, g grower) string {
	var rows []checkm.Row
	for i := range g.Files {
		file := fmt.Sprintf("%s-file-%d", name, i)
		row := checkm.Row{URL: r.site.put(file, strings.Repeat("x", int(g.Size)/g.Files)), Name: file}
		if g.Wrong && i == 0 {
			row.Algorithm, row.Digest = "sha256", sha256Of("what was promised")
		}
		rows = append(rows, row)
	}
	return r.site.manifest(name, checkm.Object, rows...)
}

// probing does something at download in a job's stead.
type probing struct {
	base.Worker
	do func(ctx context.Context, item *base.Item) error
}

func (*probing) Stage() registry.Stage { return registry.Download }

func (w *probing) Work(ctx context.Context, item *base.Item) error { return w.do(ctx, item) }
