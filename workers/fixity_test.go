package workers_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers"
	"github.com/holdfast/holdfast/workers/fixitycheck"
	"github.com/holdfast/holdfast/workers/pace"
)

// pair is a rig with one object that lies in two storages, the folders of which a test damages.
type pair struct {
	*rig
	object  registry.Object
	folders map[string]string // of the object, by storage
	roots   map[string]*ocfl.Root
}

// The names of its storages.
const (
	first  = registry.DefaultStorage
	second = "second"
)

// newPair stores an object of one file, and copies it to another storage.
func newPair(t *testing.T) *pair {
	t.Helper()
	r := newRig(t, nil)
	p := &pair{rig: r, roots: map[string]*ocfl.Root{first: r.objects}, folders: map[string]string{}}
	p.roots[second] = rootOf(t, openDir(t, filepath.Join(r.folder, second)))
	r.deps.Objects = append(r.deps.Objects, ocfl.Named{Root: p.roots[second], Name: second, Address: "another place"})
	r.profile("pair", profileOf(first, second))
	p.object = r.complete(r.jobTo("pair", registry.Spec{Type: registry.FileType, URL: r.site.put("a.txt", "what was stored"), Filename: "a.txt"}))
	key, err := r.objects.ObjectKey(p.object.ID)
	must(t, err)
	p.folders[first], p.folders[second] = filepath.Join(r.folder, "storage", key), filepath.Join(r.folder, second, key)
	return p
}

// file is a file of the object in one storage.
func (p *pair) file(storage, path string) string {
	return filepath.Join(p.folders[storage], filepath.FromSlash(path))
}

func (p *pair) worker(change ...func(*workers.Fixity)) *workers.Fixity {
	w := &workers.Fixity{
		Worker:  base.Worker{Attempts: 3},
		Checker: fixitycheck.Checker{Registry: p.registry, Objects: slices.Clone(p.deps.Objects), Version: "1.2.3", Limiter: pace.NewLimiter(0)},
	}
	for _, c := range change {
		c(w)
	}
	return w
}

// check has one file checked and returns its item.
func (p *pair) check(path string, change ...func(*workers.Fixity)) registry.WorkItem {
	p.t.Helper()
	it, err := p.registry.RequestObject(p.t.Context(), registry.ObjectRequest{
		Action: registry.FixityCheck, Spec: registry.ObjectSpec{ObjectID: p.object.ID, File: []byte(path)}, Actor: "tester",
	})
	must(p.t, err)
	p.runCheck(p.t.Context(), it.ID, change...)
	return p.item(it.ID)
}

func (p *pair) runCheck(ctx context.Context, id string, change ...func(*workers.Fixity)) {
	runner := &base.Runner{Registry: p.registry, Interim: p.deps.Interim, Version: "1.2.3"}
	_, _ = runner.RunOne(ctx, p.worker(change...), id) // what became of it is asked of the Registry
}

// premises are the preservation events about a file, as outcome and detail, oldest first.
func (p *pair) premises(path string) (out []string) {
	p.t.Helper()
	events, err := p.registry.PremisEvents(p.t.Context(), p.object.ID, "", 500)
	must(p.t, err)
	for _, e := range events.Rows {
		if strings.HasPrefix(e.Detail, path+" ") {
			out = append(out, e.Type+" "+e.Outcome+": "+e.Detail)
		}
	}
	return out
}

const aContent = "v1/content/producer/a.txt"

func (p *pair) right(storage, path string) {
	p.t.Helper()
	report, err := p.roots[storage].Verify(p.t.Context(), p.object.ID, ocfl.ValidateOptions{})
	must(p.t, err)
	if !report.Valid() {
		p.t.Errorf("in %s the object is not right: %v", storage, report.Errors())
	}
	if data, err := os.ReadFile(p.file(storage, path)); err != nil || path == aContent && string(data) != "what was stored" {
		p.t.Errorf("%s in %s: %q, %v", path, storage, data, err)
	}
	for name := range p.roots {
		for _, key := range keys(p.t, p.roots[name].Store(), "extensions/holdfast-mending") {
			p.t.Errorf("left in %s: %s", name, key)
		}
	}
}

func (p *pair) damagedFiles(want int64) {
	p.t.Helper()
	q, err := p.registry.QueueStatus(p.t.Context())
	must(p.t, err)
	if q.Damaged != want {
		p.t.Errorf("%d damaged files, want %d", q.Damaged, want)
	}
}

// Damage as disks and people make it.
var damage = map[string]func(path string) error{
	"a flipped byte": func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		data[len(data)/2] ^= 1
		return overwrite(path, data)
	},
	"cut": func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return overwrite(path, data[:len(data)/2])
	},
	"deleted": func(path string) error { return os.Remove(path) },
}

// overwrite puts other bytes under a name, whatever the file's mode.
func overwrite(path string, data []byte) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func TestFixity_AllIsWell(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.wait(24 * time.Hour)
	for _, path := range []string{aContent, "v1/inventory.json"} {
		if it := p.check(path); it.Status != registry.Completed {
			t.Errorf("%s: %s, %s", path, it.Status, it.Note)
		}
		if got := p.premises(path); len(got) != 1 || !strings.Contains(got[0], "fixity check success") || !strings.Contains(got[0], "good in storage "+second+"; good in storage "+first) {
			t.Errorf("events %q", got)
		}
	}
	p.damagedFiles(0)
}

// Every kind of damage to content, inventories and derived files, in either storage, is mended from
// the other.
func TestFixity_MendsFromTheOther(t *testing.T) {
	t.Parallel()
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			for path, checked := range map[string]string{
				aContent: aContent, "v1/inventory.json": "v1/inventory.json", "v1/inventory.json.sha256": "v1/inventory.json",
				"inventory.json": "v1/inventory.json", "inventory.json.sha256": "v1/inventory.json",
				"0=ocfl_object_1.1": "v1/inventory.json",
			} {
				for _, storage := range slices.Sorted(maps.Keys(p.roots)) {
					before, err := os.ReadFile(p.file(storage, path))
					must(t, err)
					must(t, harm(p.file(storage, path)))
					if it := p.check(checked); it.Status != registry.Completed {
						t.Errorf("%s in %s: %s, %s", path, storage, it.Status, it.Note)
					}
					p.right(storage, path)
					if after, err := os.ReadFile(p.file(storage, path)); err != nil || string(after) != string(before) {
						t.Errorf("%s in %s is mended to %q (%v), want %q", path, storage, after, err, before)
					}
					got := p.premises(checked)
					if last := got[len(got)-1]; !strings.Contains(last, "replication success") || !strings.Contains(last, "repaired in storage "+storage) {
						t.Errorf("%s in %s: last event %q", path, storage, last)
					}
				}
			}
			if got := p.premises(aContent); len(got) != 4 || !strings.Contains(got[0], "fixity check failure") {
				t.Errorf("events %q, want a failure and a repair for each storage", got)
			}
			p.damagedFiles(0)
		})
	}
}

func TestFixity_RightNowhere(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	must(t, damage["cut"](p.file(first, aContent)))
	must(t, damage["deleted"](p.file(second, aContent)))
	it := p.check(aContent)
	if it.Status != registry.Failed || !it.NeedsAdminReview {
		t.Errorf("status %s", it.Status)
	}
	wantClass(t, it, registry.SystemFault, aContent, "damaged in storage "+first, "missing in storage "+second)
	p.damagedFiles(1)
	if data, err := os.ReadFile(p.file(first, aContent)); err != nil || string(data) != "what wa" {
		t.Errorf("what was there became %q, %v", data, err)
	}
	// Brought back from elsewhere, the same check finds it right, and mends the other.
	must(t, overwrite(p.file(first, aContent), []byte("what was stored")))
	_, err := p.registry.Command(t.Context(), registry.Command{ItemID: it.ID, Act: registry.ActRequeue, Actor: "tester"})
	must(t, err)
	p.runCheck(t.Context(), it.ID)
	if it := p.item(it.ID); it.Status != registry.Completed {
		t.Errorf("after it was brought back: %s, %s", it.Status, it.Note)
	}
	p.right(second, aContent)
	p.damagedFiles(0)
}

// broken is a store whose objects cannot be read.
type broken struct {
	storage.Store
	key string
	err error
}

func (b *broken) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if strings.HasSuffix(key, b.key) {
		return io.NopCloser(&failing{b.err}), nil
	}
	return b.Store.Open(ctx, key, offset, length)
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// An unreadable file is no verdict: the check is retried, and nothing is changed.
func TestFixity_CannotBeRead(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	root, err := ocfl.OpenRoot(t.Context(), &broken{p.roots[second].Store(), "a.txt", syscall.EIO}, "", nil)
	must(t, err)
	it := p.check(aContent, func(w *workers.Fixity) { w.Checker.Objects[1].Root = root })
	if it.Status != registry.Pending || it.Tries != 1 || !strings.Contains(it.Note, "input/output error") {
		t.Errorf("status %s after %d tries: %s", it.Status, it.Tries, it.Note)
	}
	p.damagedFiles(0)
	if got := p.premises(aContent); len(got) != 0 {
		t.Errorf("events %q", got)
	}
	p.wait(2 * time.Hour)
	p.runCheck(t.Context(), it.ID)
	if it := p.item(it.ID); it.Status != registry.Completed {
		t.Errorf("when the disk is back: %s, %s", it.Status, it.Note)
	}
}

// A missing storage is not a storage whose files were deleted.
func TestFixity_StorageIsGone(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	names, err := os.ReadDir(filepath.Join(p.folder, "second"))
	must(t, err)
	for _, name := range names {
		must(t, os.RemoveAll(filepath.Join(p.folder, "second", name.Name())))
	}
	it := p.check(aContent)
	if it.Status != registry.Pending || it.Tries != 1 {
		t.Errorf("status %s after %d tries: %s", it.Status, it.Tries, it.Note)
	}
	p.damagedFiles(0)
}

// lying is a store that shows the object whose copy is made other bytes than the check saw.
type lying struct {
	storage.Store
	key   string
	opens int
}

func (l *lying) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if strings.HasSuffix(key, l.key) {
		if l.opens++; l.opens > 1 {
			return io.NopCloser(strings.NewReader("what was storeD")), nil
		}
	}
	return l.Store.Open(ctx, key, offset, length)
}

// Bytes are judged while they are copied, not before: nothing is mended with bad bytes.
func TestFixity_NeverMendsWithBadBytes(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	must(t, damage["deleted"](p.file(second, aContent)))
	root, err := ocfl.OpenRoot(t.Context(), &lying{Store: p.roots[first].Store(), key: "a.txt"}, "", nil)
	must(t, err)
	it := p.check(aContent, func(w *workers.Fixity) { w.Checker.Objects[0].Root = root })
	if it.Status != registry.Pending || it.Tries != 1 {
		t.Errorf("status %s after %d tries: %s", it.Status, it.Tries, it.Note)
	}
	if _, err := os.Stat(p.file(second, aContent)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was put in place: %v", err)
	}
	p.damagedFiles(1)
}

// perishing is a storage whose worker dies at its n-th call that changes something, before or after
// it.
type perishing struct {
	storage.Store
	die   context.CancelCauseFunc
	left  int
	after bool
}

var errKilled = errors.New("the process was killed")

func (d *perishing) do(change func() error) error {
	if d.left--; d.left == 0 {
		defer d.die(errKilled)
		if !d.after {
			return errKilled
		}
		if err := change(); err != nil {
			return err
		}
		return errKilled
	}
	if d.left < 0 {
		return errKilled
	}
	return change()
}

func (d *perishing) Delete(ctx context.Context, key string) error {
	return d.do(func() error { return d.Store.Delete(ctx, key) })
}

func (d *perishing) Replace(ctx context.Context, key string, data []byte) error {
	return d.do(func() error { return d.Store.Replace(ctx, key, data) })
}

func (d *perishing) Create(ctx context.Context, key string) (w storage.Writer, err error) {
	err = d.do(func() error { w, err = d.Store.Create(ctx, key); return err })
	return w, err
}

func (d *perishing) CopyFrom(ctx context.Context, dstKey string, src storage.Store, srcKey string) (info storage.Info, err error) {
	if own, ok := src.(*perishing); ok {
		src = own.Store
	}
	err = d.do(func() error { info, err = storage.Copy(ctx, d.Store, dstKey, src, srcKey); return err })
	return info, err
}

func (d *perishing) ReplaceFrom(ctx context.Context, key, srcKey string) error {
	return d.do(func() error { return storage.ReplaceFrom(ctx, d.Store, key, srcKey) })
}

// Killed before or after any of its changes, the next attempt mends the file, and the history
// records the damage.
func TestFixity_KilledWhileMending(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"a flipped byte", "deleted"} {
		for _, after := range []bool{false, true} {
			for n := 1; n <= 4; n++ {
				p := newPair(t)
				must(t, damage[kind](p.file(second, aContent)))
				ctx, die := context.WithCancelCause(t.Context())
				store := &perishing{p.roots[second].Store(), die, n, after}
				root, err := ocfl.OpenRoot(t.Context(), store, "", nil)
				must(t, err)
				it, err := p.registry.RequestObject(t.Context(), registry.ObjectRequest{
					Action: registry.FixityCheck, Spec: registry.ObjectSpec{ObjectID: p.object.ID, File: []byte(aContent)}, Actor: "tester",
				})
				must(t, err)
				p.runCheck(ctx, it.ID, func(w *workers.Fixity) { w.Checker.Objects[1].Root = root })
				die(nil)
				if store.left > 0 {
					t.Fatalf("%s: only %d changes", kind, n-store.left)
				}
				if it := p.item(it.ID); it.Status == registry.Completed && n < 4 {
					t.Errorf("%s, killed at %d: completed", kind, n)
				}
				p.wait(2 * time.Hour)
				p.runCheck(t.Context(), it.ID)
				if it := p.item(it.ID); it.Status != registry.Completed {
					t.Errorf("%s, killed at %d (after: %v): %s, %s", kind, n, after, it.Status, it.Note)
				}
				p.damagedFiles(0)
				if data, err := os.ReadFile(p.file(second, aContent)); err != nil || string(data) != "what was stored" {
					t.Errorf("%s, killed at %d (after: %v): %q, %v", kind, n, after, data, err)
				}
				if got := p.premises(aContent); len(got) < 2 || !strings.Contains(got[0], "failure") || !strings.Contains(got[len(got)-1], "success") {
					t.Errorf("%s, killed at %d (after: %v): events %q", kind, n, after, got)
				}
			}
		}
	}
}

// An object with running work is not changed; a check that finds nothing wrong does not wait for
// that.
func TestFixity_WaitsForTheObject(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	other := p.advance(p.jobTo("pair", registry.Spec{Type: registry.FileType, URL: p.site.put("b.txt", "b"), Filename: "b.txt", PrimaryID: p.object.ID}), registry.Record)
	if it := p.check(aContent); it.Status != registry.Completed {
		t.Errorf("a file that is right: %s, %s", it.Status, it.Note)
	}
	must(t, damage["deleted"](p.file(second, aContent)))
	it := p.check(aContent)
	waits(t, it)
	if _, err := os.Stat(p.file(second, aContent)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was mended all the same: %v", err)
	}
	p.complete(other.ID)
	p.runCheck(t.Context(), it.ID)
	if it := p.item(it.ID); it.Status != registry.Completed {
		t.Errorf("in its turn: %s, %s", it.Status, it.Note)
	}
}

// Every file of an object is checked in time, content, inventories and system files, however often
// versions change.
func TestFixity_CoversEverything(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.wait(91 * 24 * time.Hour)
	done, err := p.registry.Recheck(t.Context(), registry.RecheckRequest{Every: 90 * 24 * time.Hour, Outstanding: 1000, Keep: time.Hour})
	must(t, err)
	var stored []string
	must(t, filepath.WalkDir(p.folders[second], func(path string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel(p.folders[second], path)
		if err == nil && !d.IsDir() && strings.HasPrefix(name, "v1") && !strings.Contains(name, "inventory.json.") {
			stored = append(stored, name)
		}
		return err
	}))
	if done.Queued != len(stored) {
		t.Errorf("%d checks of %d files: %v", done.Queued, len(stored), stored)
	}
	items, err := p.registry.Items(t.Context(), registry.ItemQuery{Action: registry.FixityCheck, Limit: 500})
	must(t, err)
	for _, it := range slices.Backward(items.Rows) { // in the order in which they are given out
		p.runCheck(t.Context(), it.ID)
		if it := p.item(it.ID); it.Status != registry.Completed {
			t.Errorf("%s: %s, %s", it.Name, it.Status, it.Note)
		}
	}
	o, err := p.registry.Object(t.Context(), p.object.ID)
	must(t, err)
	if o.CheckedAt.Before(p.object.CheckedAt.Add(90 * 24 * time.Hour)) {
		t.Errorf("checked at %v, before that at %v", o.CheckedAt, p.object.CheckedAt)
	}
}
