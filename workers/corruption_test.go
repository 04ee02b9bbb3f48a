package workers_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
)

// TestFixity_SilentCorruption damages some files of an object of three versions in one of its two
// storages or in both, in 200 seeded ways, and lets the schedule check everything. What one storage has
// right is mended in the other; what no storage has right stays as it is and waits for a person. When it
// is brought back, the same checks mend the rest. A normal run visits some of the cases.
func TestFixity_SilentCorruption(t *testing.T) {
	t.Parallel()
	const cases = 200
	p := newPair(t)
	p.addVersions(2)
	whole := p.contents(first)
	if diff := cmp.Diff(whole, p.contents(second)); diff != "" || len(whole) < 20 {
		t.Fatalf("%d files, the storages differ:\n%s", len(whole), diff)
	}
	visit := looptest.Some(t, 25)
	for n := range uint64(cases) {
		if !visit() {
			continue
		}
		lost := p.corrupt(rand.New(rand.NewPCG(23, n)), whole)
		harmed := map[string]map[string]string{first: p.contents(first), second: p.contents(second)}
		failed := p.checkAll(n)
		if len(failed) != len(lost) {
			t.Errorf("case %d: the checks of %v failed, want those of %v", n, failed, lost)
		}
		for storage := range p.roots {
			want := map[string]string{}
			for path, data := range whole {
				want[path] = data
				if bad, there := harmed[storage][path]; slices.Contains(lost, path) && there {
					want[path] = bad
				} else if slices.Contains(lost, path) {
					delete(want, path)
				}
			}
			if diff := cmp.Diff(want, p.contents(storage)); diff != "" {
				t.Errorf("case %d: in %s after the checks (-want +got):\n%s", n, storage, diff)
			}
		}
		p.damagedFiles(int64(len(lost)))
		for _, path := range lost {
			must(t, os.MkdirAll(filepath.Dir(p.file(first, path)), 0o755))
			_ = os.Remove(p.file(first, path))
			must(t, os.WriteFile(p.file(first, path), []byte(whole[path]), 0o644))
		}
		for id := range failed {
			_, err := p.registry.Command(t.Context(), registry.Command{ItemID: id, Act: registry.ActRequeue, Actor: "tester"})
			must(t, err)
			p.runCheck(t.Context(), id)
			if it := p.item(id); it.Status != registry.Completed {
				t.Errorf("case %d: %s, brought back: %s, %s", n, it.Name, it.Status, it.Note)
			}
		}
		p.damagedFiles(0)
		for storage, root := range p.roots {
			if diff := cmp.Diff(whole, p.contents(storage)); diff != "" {
				t.Fatalf("case %d: in %s at the end (-want +got):\n%s", n, storage, diff)
			}
			if report, err := root.Verify(t.Context(), p.object.ID, ocfl.ValidateOptions{}); err != nil || !report.Valid() {
				t.Fatalf("case %d: %s is not valid: %v, %v", n, storage, err, report.Errors())
			}
		}
	}
}

// TestFixity_OlderInventory: the check of an older version's inventory never sets the object's root to
// that version, though the inventories of later versions are lost: their checks bring these back.
func TestFixity_OlderInventory(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.addVersions(2)
	whole := p.contents(second)
	for _, path := range []string{"inventory.json", "inventory.json.sha256", "v2/inventory.json", "v3/inventory.json"} {
		must(t, os.Remove(p.file(second, path)))
	}
	for _, path := range []string{"v1/inventory.json", "v2/inventory.json"} {
		if it := p.check(path); it.Status != registry.Completed {
			t.Errorf("%s: %s, %s", path, it.Status, it.Note)
		}
		if _, err := os.Stat(p.file(second, "inventory.json")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the check of %s wrote the root's inventory: %v", path, err)
		}
	}
	if it := p.check("v3/inventory.json"); it.Status != registry.Completed {
		t.Errorf("%s, %s", it.Status, it.Note)
	}
	if diff := cmp.Diff(whole, p.contents(second)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// addVersions adds versions of several files to the object.
func (p *pair) addVersions(versions int) {
	p.t.Helper()
	for n := range versions {
		p.complete(p.jobTo("pair", registry.Spec{
			Type: registry.ContainerType, Mode: registry.Update, PrimaryID: p.object.ID, Filename: "c.zip",
			URL: p.site.put(fmt.Sprint(n), zipOf(p.t, map[string]string{"b.bin": strings.Repeat(fmt.Sprint(n), 5000), "sub/c.txt": fmt.Sprint(n), "empty": ""})),
		}))
	}
}

// contents are the files of the object in one storage by path.
func (p *pair) contents(storage string) map[string]string {
	p.t.Helper()
	out := map[string]string{}
	must(p.t, filepath.WalkDir(p.folders[storage], func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(p.folders[storage], path)
		data, err := os.ReadFile(path)
		out[filepath.ToSlash(name)] = string(data)
		return err
	}))
	return out
}

// corrupt damages one to four files of the object, evidence among them. It returns those of which no
// storage has the right bytes: only content, since an inventory may be mended from what is derived from
// it.
func (p *pair) corrupt(random *rand.Rand, whole map[string]string) (lost []string) {
	p.t.Helper()
	paths := slices.Sorted(maps.Keys(whole))
	random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for _, path := range paths[:1+random.IntN(4)] {
		storages := [][]string{{first}, {second}, {first, second}}[random.IntN(3)]
		evidence := strings.HasPrefix(path, "extensions/") // it is written anew from the Registry
		if len(storages) > 1 && !evidence && !strings.Contains(path, "/content/") {
			storages = storages[random.IntN(2):][:1]
		}
		for _, storage := range storages {
			must(p.t, os.Remove(p.file(storage, path)))
			if data, there := corrupted(random, whole[path]); there {
				must(p.t, os.WriteFile(p.file(storage, path), []byte(data), 0o644))
			}
		}
		if len(storages) > 1 && !evidence {
			lost = append(lost, path)
		}
	}
	return lost
}

// corrupted returns other bytes in place of a file's, or that it is not there.
func corrupted(random *rand.Rand, data string) (other string, there bool) {
	if data == "" {
		return "x", random.IntN(2) == 0
	}
	at := random.IntN(len(data))
	switch out := []byte(data); random.IntN(5) {
	case 0:
		out[at] ^= 1 << random.IntN(8)
		return string(out), true
	case 1:
		return data[:at], true
	case 2:
		return data + data[at:], true
	case 3:
		clear(out[at:min(len(out), at+1+random.IntN(512))])
		if string(out) == data {
			out[at] = 1
		}
		return string(out), true
	}
	return "", false
}

// checkAll lets the schedule check all files, and returns the names of the checks that failed by their
// items' ids.
func (p *pair) checkAll(n uint64) map[string]string {
	p.t.Helper()
	p.wait(91 * 24 * time.Hour)
	if _, err := p.registry.Recheck(p.t.Context(), registry.RecheckRequest{Every: 90 * 24 * time.Hour, Outstanding: 1000, Keep: time.Hour}); err != nil {
		p.t.Fatalf("case %d: %v", n, err)
	}
	items, err := p.registry.Items(p.t.Context(), registry.ItemQuery{Action: registry.FixityCheck, Status: registry.Pending, Limit: 500})
	must(p.t, err)
	failed := map[string]string{}
	for _, it := range slices.Backward(items.Rows) { // in the order in which they are given out
		p.runCheck(p.t.Context(), it.ID)
		if it = p.item(it.ID); it.Status == registry.Failed {
			failed[it.ID] = it.Name + ": " + it.Note
		} else if it.Status != registry.Completed {
			p.t.Errorf("case %d: %s: %s, %s", n, it.Name, it.Status, it.Note)
		}
	}
	return failed
}
