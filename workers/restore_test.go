package workers_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
	"github.com/holdfast/holdfast/workers"
)

// restore asks for an object's newest version and returns the item.
func (r *rig) restore(o registry.Object) string {
	r.t.Helper()
	it, err := r.registry.RequestObject(r.t.Context(), registry.ObjectRequest{
		Action: registry.RestoreObject, Spec: registry.ObjectSpec{ObjectID: o.ID}, Actor: "depositor",
	})
	must(r.t, err)
	return it.ID
}

// restoring runs the item once, with marks this many bytes apart.
func (r *rig) restoring(ctx context.Context, id string, part int64) (registry.Verdict, error) {
	r.t.Helper()
	w, _ := r.handler(registry.Restore).(*workers.Restore)
	w.Restorer.Part = part
	runner := &base.Runner{Registry: r.deps.Registry, Interim: r.deps.Interim, Version: "1.2.3"}
	return runner.RunOne(ctx, w, id)
}

func (r *rig) restoration(id string) registry.Restoration {
	r.t.Helper()
	out, err := r.registry.RestorationOf(r.t.Context(), id)
	must(r.t, err)
	return out
}

// restored checks that a restore is ready, that what lies there is a valid bag of exactly the
// version, that it is all that lies there of it, and that the history tells it once.
func (r *rig) restored(id string, o registry.Object) registry.Restoration {
	r.t.Helper()
	re := r.restoration(id)
	if re.Status != registry.RestoreReady || re.ReadyAt == nil || re.ExpiresAt == nil || re.ExpiresAt.Sub(*re.ReadyAt) != 7*24*time.Hour {
		r.t.Fatalf("restore %+v, item %s: %s", re, r.item(id).Status, r.item(id).Note)
	}
	data, err := storage.ReadAll(r.t.Context(), r.staging, re.Place, 1<<30)
	must(r.t, err)
	if int64(len(data)) != re.SizeBytes || sha256Of(string(data)) != re.SHA256 {
		r.t.Errorf("%d bytes of sha256 %s, recorded are %d of %s", len(data), sha256Of(string(data)), re.SizeBytes, re.SHA256)
	}
	report, err := bagit.ValidateTar(r.t.Context(), bytes.NewReader(data), bagit.Options{})
	must(r.t, err)
	if !report.Valid {
		r.t.Errorf("the bag is not valid: %v", report.Errors())
	}
	got := map[string]string{}
	for in := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(r.t, err)
		text, err := io.ReadAll(in)
		must(r.t, err)
		name := strings.TrimPrefix(h.Name, report.Base+"/")
		if producers, ok := strings.CutPrefix(name, "data/"); ok {
			got["producer/"+producers] = string(text)
		} else if strings.HasPrefix(name, "system/") {
			got[name] = string(text)
		}
	}
	want := r.files(o, re.Version)
	if diff := cmp.Diff(want, got); diff != "" || re.Files != int64(len(want)) {
		r.t.Errorf("%d files (-want +got):\n%s", re.Files, diff)
	}
	r.nothingStaged(id)
	events, err := r.registry.PremisEvents(r.t.Context(), o.ID, "", 500)
	must(r.t, err)
	told := slices.DeleteFunc(events.Rows, func(e registry.Premis) bool { return e.Type != "dissemination" || e.ItemID != id })
	if len(told) != 1 || told[0].Outcome != "success" || !strings.Contains(told[0].Detail, re.SHA256) || !strings.Contains(told[0].Detail, "for depositor") {
		r.t.Errorf("events %+v", told)
	}
	return re
}

func TestRestore(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job, _ := r.zipJob(1)
	o := r.complete(job)
	id := r.restore(o)
	if again := r.restore(o); again != id {
		t.Errorf("asked for twice it is %s and %s", id, again)
	}
	if v, err := r.run(id); err != nil || v.Status != registry.Completed {
		t.Fatalf("%+v, %v", v, err)
	}
	re := r.restored(id, o)
	if !strings.HasPrefix(re.Place, "restores/"+id+"/") || !strings.HasSuffix(re.Place, "/"+re.Name) || re.N != 1 {
		t.Errorf("restore %+v", re)
	}
	if it := r.item(id); it.SizeBytes != re.SizeBytes || it.DoneBytes != re.SizeBytes || it.Files != re.Files {
		t.Errorf("item %+v", it)
	}
	if again := r.restore(o); again != id {
		t.Errorf("asked for while it lies ready it is %s and %s", id, again)
	}
	r.wait(8 * 24 * time.Hour)
	if re := r.restoration(id); re.Status != registry.RestoreRemoved || re.SHA256 == "" {
		t.Errorf("when its time is over: %+v", re)
	}
	next := r.restore(o)
	if _, err := r.run(next); err != nil || next == id {
		t.Fatalf("another one is %s: %v", next, err)
	}
	if re := r.restored(next, o); re.N != 2 {
		t.Errorf("restore %+v", re)
	}
}

// A version is restored as it was, whatever came after it.
func TestRestore_OldVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	first := r.complete(r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("a", "one"), Filename: "a.txt"}))
	o := r.complete(r.job(registry.Spec{Type: registry.FileType, Mode: registry.Update, PrimaryID: first.ID, URL: r.site.put("b", "two"), Filename: "a.txt"}))
	it, err := r.registry.RequestObject(t.Context(), registry.ObjectRequest{
		Action: registry.RestoreObject, Spec: registry.ObjectSpec{ObjectID: o.ID, Version: 1}, Actor: "depositor",
	})
	must(t, err)
	if _, err := r.run(it.ID); err != nil {
		t.Fatal(err)
	}
	if re := r.restored(it.ID, o); re.Version != 1 {
		t.Errorf("version %d", re.Version)
	}
}

// restoreDies runs a restore once for each operation on a store with a death there, and lets the
// next attempt go on. Nothing lies under a final name before the Registry tells it, but what the
// dead one has judged.
func restoreDies(t *testing.T, r *rig, die func(n int), heal func()) {
	t.Helper()
	job, _ := r.zipJob(0)
	o := r.complete(job)
	survived := false
	for n := range looptest.Steps(t) {
		if survived {
			break
		}
		id := r.restore(o)
		die(n)
		_, err := r.restoring(t.Context(), id, 700)
		heal()
		survived = err == nil
		if it := r.item(id); it.Status == registry.Failed {
			t.Fatalf("death at operation %d failed the item: %s", n, it.Note)
		}
		for _, key := range keys(t, r.staging, "restores/"+id) {
			data, err := storage.ReadAll(t.Context(), r.staging, key, 1<<30)
			must(t, err)
			if report, err := bagit.ValidateTar(t.Context(), bytes.NewReader(data), bagit.Options{}); err != nil || !report.Valid {
				t.Errorf("death at %d: %s has its name and is no valid bag: %v %v", n, key, err, report)
			}
		}
		for range 3 {
			if survived {
				break
			}
			r.wait(2 * time.Hour)
			if _, err := r.restoring(t.Context(), id, 700); err == nil && r.item(id).Status == registry.Completed {
				break
			}
		}
		r.restored(id, o)
		if t.Failed() {
			t.Fatalf("death at operation %d", n)
		}
		r.wait(8 * 24 * time.Hour) // so that the next one is another
	}
}

func TestR02_RestoreDiesAnywhereInStaging(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, staging, _ := newFaultyRig(t)
			die := staging.DieAt
			if after {
				die = staging.DieAfter
			}
			restoreDies(t, r, die, staging.Heal)
		})
	}
}

func TestR02_RestoreDiesAnywhereInStorage(t *testing.T) {
	t.Parallel()
	r, _, objects := newFaultyRig(t)
	restoreDies(t, r, objects.DieAt, objects.Heal)
}

// unreached is a Registry that a restore cannot reach from its n-th call on, which may have been
// carried out.
type unreached struct {
	registry.ForWorkers
	left  int
	after bool
}

func (m *unreached) call(do func() error) error {
	m.left--
	if m.left > 0 || m.left == 0 && m.after {
		if err := do(); err != nil || m.left > 0 {
			return err
		}
	}
	return errTest
}

func (m *unreached) RestorationOf(ctx context.Context, id string) (r registry.Restoration, err error) {
	err = m.call(func() error { r, err = m.ForWorkers.RestorationOf(ctx, id); return err })
	return r, err
}

func (m *unreached) Object(ctx context.Context, id string) (o registry.Object, err error) {
	err = m.call(func() error { o, err = m.ForWorkers.Object(ctx, id); return err })
	return o, err
}

func (m *unreached) Files(ctx context.Context, id string, version int, after string, limit int) (files []registry.File, err error) {
	err = m.call(func() error { files, err = m.ForWorkers.Files(ctx, id, version, after, limit); return err })
	return files, err
}

func (m *unreached) Reserve(ctx context.Context, l registry.Lease, r registry.Reservation) error {
	return m.call(func() error { return m.ForWorkers.Reserve(ctx, l, r) })
}

func (m *unreached) RecordRestoration(ctx context.Context, l registry.Lease, rec registry.RestorationRecord) (r registry.Restoration, err error) {
	err = m.call(func() error { r, err = m.ForWorkers.RecordRestoration(ctx, l, rec); return err })
	return r, err
}

func TestR02_RestoreDiesAnywhereInTheRegistry(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		r, _, _ := newFaultyRig(t)
		m := &unreached{ForWorkers: r.registry, after: after}
		heal := func() { m.left = 1 << 30 }
		heal()
		r.deps.Registry = m
		restoreDies(t, r, func(n int) { m.left = n }, heal)
	}
}

// replicated restores of an object whose bytes are not right everywhere.
func (p *pair) restoredAs(id string) registry.Restoration {
	p.t.Helper()
	re := p.restoration(id)
	data, err := storage.ReadAll(p.t.Context(), p.staging, re.Place, 1<<20)
	must(p.t, err)
	report, err := bagit.ValidateTar(p.t.Context(), bytes.NewReader(data), bagit.Options{})
	if err != nil || !report.Valid || !bytes.Contains(data, []byte("what was stored")) {
		p.t.Errorf("%v, %+v", err, report)
	}
	return re
}

// A file that is wrong, short or missing in one storage is read from the other, and the history
// says so.
func TestRestore_FromTheOtherStorage(t *testing.T) {
	t.Parallel()
	words := map[string]string{"a flipped byte": "other bytes", "cut": "short", "deleted": "missing"}
	for name, harm := range damage {
		for _, part := range []int64{0, 100} {
			p := newPair(t)
			must(t, harm(p.file(first, aContent)))
			id := p.restore(p.object)
			if _, err := p.restoring(t.Context(), id, part); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			p.restoredAs(id)
			events, err := p.registry.PremisEvents(t.Context(), p.object.ID, "", 500)
			must(t, err)
			if last := events.Rows[len(events.Rows)-1]; !strings.Contains(last.Detail, "producer/a.txt in "+first+": "+words[name]) {
				t.Errorf("%s: the last event is %q", name, last.Detail)
			}
			p.nothingStaged(id)
		}
	}
}

// A file that no storage has right needs a person, who learns which and where; after that is fixed
// the same item restores it.
func TestRestore_RightNowhere(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	must(t, damage["a flipped byte"](p.file(first, aContent)))
	must(t, damage["deleted"](p.file(second, aContent)))
	id := p.restore(p.object)
	_, _ = p.restoring(t.Context(), id, 0)
	it := p.item(id)
	if it.Status != registry.Failed || !it.NeedsAdminReview {
		t.Errorf("status %s", it.Status)
	}
	wantClass(t, it, registry.SystemFault, "producer/a.txt", first+" damaged", second+" missing", "requeue")
	if re := p.restoration(id); re.Status != registry.RestoreFailed || re.Note != it.Note {
		t.Errorf("restore %+v", re)
	}
	if left := keys(t, p.staging, "restores/"); len(left) > 0 {
		t.Errorf("published: %v", left)
	}
	must(t, overwrite(p.file(first, aContent), []byte("what was stored")))
	_, err := p.registry.Command(t.Context(), registry.Command{ItemID: id, Act: registry.ActRequeue, Actor: "tester"})
	must(t, err)
	if _, err := p.restoring(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	p.restoredAs(id)
}

// An unreadable storage is no damage: the other one serves, and a single one is retried.
func TestRestore_CannotBeRead(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	bad, err := ocfl.OpenRoot(t.Context(), &broken{p.roots[first].Store(), "a.txt", errTest}, "", nil)
	must(t, err)
	good := slices.Clone(p.deps.Objects)
	p.deps.Objects = slices.Clone(good)
	p.deps.Objects[0].Root = bad
	id := p.restore(p.object)
	if _, err := p.restoring(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	p.restoredAs(id)
	p.wait(8 * 24 * time.Hour)
	id = p.restore(p.object)
	p.deps.Objects = p.deps.Objects[:1]
	_, err = p.restoring(t.Context(), id, 0)
	if it := p.item(id); !errors.Is(err, errTest) || it.Status != registry.Pending || it.Tries != 1 {
		t.Errorf("%v, status %s after %d tries", err, it.Status, it.Tries)
	}
	p.deps.Objects = good
	p.wait(2 * time.Hour)
	if _, err := p.restoring(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	p.restoredAs(id)
}

// bigJob is an object of one large file beside small ones.
func (r *rig) bigJob(size int) registry.Object {
	r.t.Helper()
	text := strings.Repeat("0123456789abcdef", size/16)
	return r.complete(r.job(registry.Spec{Type: registry.AutoType, Filename: "c.zip", URL: r.site.put("big.zip", zipOf(r.t, map[string]string{
		"a.txt": "alpha", "big.bin": text, "z.txt": "omega",
	}))}))
}

// opening notes where files are opened.
type opening struct {
	storage.Store
	mu sync.Mutex
	at []string
}

func (o *opening) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = append(o.at, fmt.Sprintf("%s@%d", filepath.Base(key), offset))
	return o.Store.Open(ctx, key, offset, length)
}

// Killed in the middle of a large file, the next attempt continues inside it, and reads again only
// what came after the last mark.
func TestRestore_GoesOnInsideAFile(t *testing.T) {
	t.Parallel()
	const size, part = 2 << 20, 256 << 10
	r, staging, _ := newFaultyRig(t)
	watched := &opening{Store: r.storage}
	r.deps.Objects = roots(rootOf(t, watched))
	o := r.bigJob(size)
	id := r.restore(o)
	staging.Fail(storagetest.Write, 40, storagetest.ErrDead) // 40 writes of 32 KiB and some headers
	if _, err := r.restoring(t.Context(), id, part); err == nil {
		t.Fatal("it was not killed")
	}
	watched.at = nil
	r.wait(2 * time.Hour)
	before := staging.Count(storagetest.Write)
	if _, err := r.restoring(t.Context(), id, part); err != nil {
		t.Fatal(err)
	}
	r.restored(id, o)
	var offset int64
	if i := slices.IndexFunc(watched.at, func(at string) bool { return strings.HasPrefix(at, "big.bin@") }); i < 0 {
		t.Fatalf("opened %v", watched.at)
	} else if _, err := fmt.Sscanf(watched.at[i], "big.bin@%d", &offset); err != nil || offset < 3*part {
		t.Errorf("gone on at %s", watched.at[i])
	}
	if slices.Contains(watched.at, "a.txt@0") {
		t.Errorf("read again: %v", watched.at)
	}
	if writes := staging.Count(storagetest.Write) - before; writes > (size-3*part)/(32<<10)+40 {
		t.Errorf("%d writes by the second attempt", writes)
	}
}

// A file that reads back damaged never gets its final name, and is written again.
func TestRestore_SpoiltInStaging(t *testing.T) {
	t.Parallel()
	for offset, said := range map[int64]string{
		0:    "error: ", // in a header
		600:  "sha256 is ",
		1000: "sha256 is ", // between two files, where no digest of the bag is
	} {
		spoilt(t, offset, said)
	}
}

func spoilt(t *testing.T, offset int64, said string) {
	t.Helper()
	r, staging, _ := newFaultyRig(t)
	job, _ := r.zipJob(1)
	o := r.complete(job)
	id := r.restore(o)
	staging.Flip(fmt.Sprintf("items/%s/1.restore-0.tar", id), offset)
	_, err := r.restoring(t.Context(), id, 0)
	if it := r.item(id); err == nil || it.Tries != 1 || !strings.Contains(it.Note, "is damaged") || !strings.Contains(it.Note, said) {
		t.Fatalf("%v: %s", err, it.Note)
	}
	staging.Heal()
	if left := keys(t, r.staging, ""); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	r.wait(2 * time.Hour)
	if _, err := r.restoring(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	r.restored(id, o)
}

// TestR24_RestoreReservesFirst: room is reserved before the first byte, awaited uncounted, and
// released in the end.
func TestR24_RestoreReservesFirst(t *testing.T) {
	t.Parallel()
	r, v := newVolume(t, 1<<30)
	asked := &reservations{ForWorkers: r.registry}
	o := r.bigJob(1 << 20)
	r.deps.Registry = asked
	v.use(1 << 30)
	id := r.restore(o)
	_, _ = r.restoring(t.Context(), id, 0)
	waits(t, r.item(id))
	if why, err := r.registry.Why(t.Context(), id); err != nil || why.Reason != registry.ReasonNoSpace || len(asked.asked) > 0 {
		t.Errorf("%+v, %v, reserved %v", why, err, asked.asked)
	}
	if left := keys(t, r.staging, ""); len(left) > 0 {
		t.Errorf("written without room: %v", left)
	}
	v.use(0)
	r.wait(2 * time.Minute)
	if _, err := r.restoring(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	re := r.restored(id, o)
	if len(asked.asked) != 1 || asked.asked[0].Bytes != re.SizeBytes {
		t.Errorf("reserved %+v for %d bytes", asked.asked, re.SizeBytes)
	}
	other := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("x", "x"), Filename: "x"})
	r.advance(other, registry.Provision)
	v.use(858_993_458) // to the last byte but one
	if it := r.advance(other, registry.Download); it.Stage != registry.Download {
		t.Errorf("the room was not given back: %s", it.Note)
	}
}

// archiveAll archives the files of an object whose path below the object's folder has a text in it.
func (r *rig) archiveAll(s *storagetest.Faulty, o registry.Object, with string) (n int) {
	r.t.Helper()
	key, err := r.objects.ObjectKey(o.ID)
	must(r.t, err)
	for _, k := range keys(r.t, r.storage, key+"/v1/content/") {
		if strings.Contains(k, with) {
			s.Archive(k)
			n++
		}
	}
	return n
}

// Archived files are thawed all at once, awaited without a worker or room, and then read.
func TestRestore_Thaws(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"", "z.txt"} { // everything, or the last of the producer's files
		r, _, objects := newFaultyRig(t)
		o := r.bigJob(1 << 20)
		n := r.archiveAll(objects, o, what)
		id := r.restore(o)
		_, _ = r.restoring(t.Context(), id, 100<<10)
		it := r.item(id)
		waits(t, it)
		why, err := r.registry.Why(t.Context(), id)
		if err != nil || why.Reason != registry.ReasonThawing || !strings.Contains(why.Sentence, fmt.Sprintf("restore %d files", n)) || it.RunAt.Sub(it.UpdatedAt) < time.Minute {
			t.Errorf("%q: %+v, %v", what, why, err)
		}
		for range 5 { // it looks again, and asks for nothing more
			r.wait(time.Hour)
			_, _ = r.restoring(t.Context(), id, 100<<10)
			waits(t, r.item(id))
		}
		if wait := r.item(id).RunAt.Sub(r.item(id).UpdatedAt); wait < 25*time.Minute || wait > 31*time.Minute {
			t.Errorf("%q: after five hours it waits %v", what, wait)
		}
		if thawed, left := objects.Thawed(); thawed != n || left != 0 {
			t.Errorf("%q: %d thaws were asked for, %d objects are still archived", what, thawed, left)
		}
		r.wait(time.Hour)
		if _, err := r.restoring(t.Context(), id, 100<<10); err != nil {
			t.Fatalf("%q: %v", what, err)
		}
		r.restored(id, o)
		if it := r.item(id); it.Tries != 0 {
			t.Errorf("%q: %d tries", what, it.Tries)
		}
	}
}

// An object deleted during its restore is not restored, and that needs no review.
func TestRestore_DeletedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job, _ := r.zipJob(1)
	o := r.complete(job)
	id := r.restore(o)
	if v, err := r.run(r.deletion(o)); err != nil || v.Status != registry.Completed {
		t.Fatalf("%+v, %v", v, err)
	}
	_, _ = r.run(id)
	isContent(t, r.item(id), o.ID, "because")
	if _, err := r.registry.RequestObject(t.Context(), registry.ObjectRequest{Action: registry.RestoreObject, Spec: registry.ObjectSpec{ObjectID: o.ID}}); !errors.As(err, new(*registry.GoneError)) {
		t.Errorf("asked for again: %v", err)
	}
}

// metered is a staging store that looks at the memory in use while it is written to.
type metered struct {
	storage.Store
	most uint64
}

func (m *metered) Create(ctx context.Context, key string) (storage.Writer, error) {
	w, err := m.Store.Create(ctx, key)
	return &meteredWriter{Writer: w, m: m}, err
}

type meteredWriter struct {
	storage.Writer
	m *metered
	n int
}

func (w *meteredWriter) Write(p []byte) (int, error) {
	if w.n++; w.n%256 == 0 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		w.m.most = max(w.m.most, stats.HeapAlloc)
	}
	return w.Writer.Write(p)
}

// Memory use does not depend on the size of the payload.
func TestRestore_Memory(t *testing.T) {
	r := newRig(t, nil)
	o := r.bigJob(64 << 20)
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	m := &metered{Store: r.deps.Staging}
	r.deps.Staging = m
	id := r.restore(o)
	if _, err := r.restoring(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if m.most == 0 || m.most > stats.HeapAlloc+8<<20 {
		t.Errorf("%d bytes in use, %d before", m.most, stats.HeapAlloc)
	}
	if re := r.restoration(id); re.Status != registry.RestoreReady || re.SizeBytes < 64<<20 {
		t.Errorf("restore %+v", re)
	}
}
