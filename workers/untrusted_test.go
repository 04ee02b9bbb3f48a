package workers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// deposits are kinds of jobs, by what is handed in. Two of a kind have notes of the same names, and
// other bytes of the same sizes.
func deposits() map[string]func(r *rig, salt string) (id string, want map[string]string) {
	files := func(salt string) map[string]string {
		return map[string]string{"a.txt": "alpha " + salt, "b/c.txt": "gamma " + salt, "mrt-erc.txt": "what: title " + salt + "\n"}
	}
	packed := func(t registry.PayloadType, pack func(r *rig, salt string) (data []byte, want map[string]string)) func(*rig, string) (string, map[string]string) {
		return func(r *rig, salt string) (string, map[string]string) {
			data, want := pack(r, salt)
			return r.job(registry.Spec{Type: t, URL: r.site.put(salt+".zip", string(data)), Filename: "c.zip"}), want
		}
	}
	return map[string]func(*rig, string) (string, map[string]string){
		"file": func(r *rig, salt string) (string, map[string]string) {
			text := strings.Repeat("holdfast "+salt, 17<<20/14) // beyond a checkpoint
			return r.job(registry.Spec{Type: registry.FileType, URL: r.site.put(salt, text), Filename: "big"}), map[string]string{"big": text}
		},
		"manifest": func(r *rig, salt string) (string, map[string]string) {
			want := files(salt)
			delete(want, "mrt-erc.txt")
			var rows []checkm.Row
			for _, name := range slices.Sorted(maps.Keys(want)) {
				rows = append(rows, checkm.Row{URL: r.site.put(salt+"-"+strings.ReplaceAll(name, "/", "-"), want[name]), Name: name})
			}
			return r.job(registry.Spec{Type: registry.ObjectManifest, Filename: "m", URL: r.site.manifest("m"+salt, checkm.Object, rows...)}), want
		},
		"container": packed(registry.ContainerType, func(r *rig, salt string) ([]byte, map[string]string) {
			return []byte(zipOf(r.t, files(salt))), files(salt)
		}),
		"bag": packed(registry.BagType, func(r *rig, salt string) ([]byte, map[string]string) {
			bag := bagOf(files(salt), nil)
			return []byte(zipOf(r.t, bag)), bag
		}),
	}
}

// notes are the interim entries of an item's last attempt.
func (r *rig) notes(id string) map[string][]byte {
	r.t.Helper()
	all := map[string][]byte{}
	for n := r.item(id).Attempt; n > 0 && len(all) == 0; n-- {
		must(r.t, r.interim.Each(r.t.Context(), interim.Attempt{ItemID: id, N: n}, "", func(key string, value []byte) error {
			all[key] = value
			return nil
		}))
	}
	return all
}

// forge writes an item's notes as the next attempt finds them.
func (r *rig) forge(id string, notes map[string][]byte) {
	r.t.Helper()
	must(r.t, r.interim.Put(r.t.Context(), interim.Attempt{ItemID: id, N: r.item(id).Attempt}, notes))
}

// leaf changes the n-th value in a note's JSON, whatever lies before that, and counts how many
// there are.
func leaf(note []byte, n int) (changed []byte, leaves int) {
	at := bytes.IndexByte(note, '{')
	var v any
	if at < 0 || json.Unmarshal(note[at:], &v) != nil {
		return note, 0
	}
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				v[k] = walk(v[k])
			}
			return v
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
			return v
		}
		if leaves++; leaves-1 != n {
			return v
		}
		switch v := v.(type) {
		case string:
			return strings.Map(func(c rune) rune {
				return map[rune]rune{'0': '1', '1': '0', 'a': 'b', 'b': 'a'}[c] + c*rune(b2i(!strings.ContainsRune("01ab", c)))
			}, v)
		case float64:
			return v + 1
		}
		return nil
	}
	text, err := json.Marshal(walk(v))
	if err != nil {
		return note, 0
	}
	return append(slices.Clone(note[:at]), text...), leaves
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// forgeries are what somebody can do who writes to the store of interim data: the notes of an item
// that was stopped become others. They have the notes of another item of the kind, and those of the
// item at an earlier time.
func forgeries() []func(mine, others, earlier map[string][]byte) map[string][]byte {
	each := func(fn func(key string, note []byte) []byte) func(mine, _, _ map[string][]byte) map[string][]byte {
		return func(mine, _, _ map[string][]byte) map[string][]byte {
			out := map[string][]byte{}
			for key, note := range mine {
				out[key] = fn(key, note)
			}
			return out
		}
	}
	all := []func(mine, others, earlier map[string][]byte) map[string][]byte{
		func(_, others, _ map[string][]byte) map[string][]byte { return others },
		func(_, _, earlier map[string][]byte) map[string][]byte { return earlier },
		func(mine, _, _ map[string][]byte) map[string][]byte { // under each other's names
			keys, out := slices.Sorted(maps.Keys(mine)), map[string][]byte{}
			for i, key := range keys {
				out[keys[(i+1)%len(keys)]] = mine[key]
			}
			return out
		},
		func(mine, others, _ map[string][]byte) map[string][]byte { // another's content behind one's own code
			out := map[string][]byte{}
			for key, note := range mine {
				at, from := bytes.IndexByte(note, '{'), bytes.IndexByte(others[key], '{')
				if at >= 0 && from >= 0 {
					out[key] = append(slices.Clone(note[:at]), others[key][from:]...)
				}
			}
			return out
		},
		each(func(string, []byte) []byte { return []byte(`{}`) }),
		each(func(string, []byte) []byte { return nil }),
	}
	leaves := 16
	if looptest.All() {
		leaves = 100 // more than any note has
	}
	for n := range leaves {
		all = append(all, each(func(_ string, note []byte) []byte {
			_, leaves := leaf(note, -1)
			if leaves == 0 {
				return note
			}
			changed, _ := leaf(note, n%leaves)
			return changed
		}))
	}
	return all
}

// stopAt runs an item's stage and ends it at an operation on staging: its worker is told to stop,
// or dies. It says whether it got so far.
func (r *rig) stopAt(id string, staging *storagetest.Faulty, n int) bool {
	r.t.Helper()
	if r.item(id).Stage == registry.Download {
		staging.DieAt(n)
		_, err := r.run(id)
		staging.Heal()
		r.wait(2 * time.Hour)
		return err != nil
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	s := &stopper{Store: staging, stop: cancel}
	s.at.Store(int64(n))
	r.deps.Staging = s
	defer func() { r.deps.Staging = staging }()
	_, err := r.runAs(ctx, id)
	return err != nil
}

// ends runs an item to its end, whichever that is.
func (r *rig) ends(id string) registry.WorkItem {
	r.t.Helper()
	var err error
	for range 50 {
		if it := r.item(id); it.Status.Settled() {
			return it
		}
		_, err = r.run(id)
		r.wait(2 * time.Hour)
	}
	r.t.Fatalf("it does not come to an end: %v", err)
	return registry.WorkItem{}
}

// Whatever happens to an item's interim data while no worker has it, the submitted bytes are
// preserved.
func TestR26_NotesAreNotTrusted(t *testing.T) {
	t.Parallel()
	for kind, deposit := range deposits() {
		for _, stage := range []registry.Stage{registry.Download, registry.Process} {
			if kind == "file" && stage == registry.Process {
				continue // its notes are the other kinds', and it is large
			}
			t.Run(kind+" "+string(stage), func(t *testing.T) {
				t.Parallel()
				r, staging, _ := newFaultyRig(t)
				forgeries, forged := forgeries(), 0
				other, _ := deposit(r, "other")
				r.advance(other, stage)
				// Some forgeries at each of the first points, other ones each time; in a whole run
				// all of them, at each point that there is.
				points, each, begin, step := 9, 3, 0, 1
				first := looptest.Number(t, len(forgeries))
				switch {
				case looptest.All():
				case kind == "file" && stage == registry.Download:
					each, begin = 2, 63 // it has written most of its bytes
				case kind == "manifest" && stage == registry.Download:
					step = 3
				}
				there := 0                   // points
				var others map[string][]byte // when it was stopped last
				for at := begin + step; r.item(other).Stage == stage && r.stopAt(other, staging, at); at += step {
					others = r.notes(other)
					there++
				}
				if looptest.All() {
					points, each = max(points, there), len(forgeries)
				}
				r.command(other, registry.ActHold, "") // its files stay, and its turn does not come
				for point := 1; point <= points; point++ {
					at := begin + point*step
					earlier := map[string][]byte{}
					for i := range each {
						which := (first + (point-1)*each + i) % len(forgeries)
						id, want := deposit(r, fmt.Sprintf("%05d", 200*at+i))
						r.advance(id, stage)
						if at > 1 && r.stopAt(id, staging, at-1) { // some time before
							earlier = r.notes(id)
						}
						if !r.stopAt(id, staging, at) {
							r.ends(id) // it was through
							continue
						}
						r.forge(id, forgeries[which](r.notes(id), others, earlier))
						forged += len(r.notes(id))
						if it := r.ends(id); it.Status != registry.Completed {
							t.Fatalf("forgery %d at operation %d: %s", which, at, it.Note)
						}
						o := r.object(id)
						r.valid(o, 1)
						if diff := cmp.Diff(want, r.producer(o, 1)); diff != "" {
							t.Fatalf("forgery %d at operation %d: other bytes are preserved", which, at)
						}
					}
				}
				if forged == 0 {
					t.Error("no note was forged")
				}
			})
		}
	}
}

// Whatever happens to a file in staging, the submitted bytes are preserved: it is fetched, unpacked
// or planned again.
func TestR06_StagingIsNotTrusted(t *testing.T) {
	t.Parallel()
	for kind, deposit := range deposits() {
		if kind == "file" {
			continue // the manifest's files are as this
		}
		for _, stage := range []registry.Stage{registry.Process, registry.Record} {
			t.Run(kind+" "+string(stage), func(t *testing.T) {
				t.Parallel()
				r, _, _ := newFaultyRig(t)
				other, _ := deposit(r, "99999")
				r.advance(other, stage)
				r.command(other, registry.ActHold, "")
				changed := 0
				for n := 0; ; n++ {
					id, want := deposit(r, fmt.Sprintf("%05d", n))
					r.advance(id, stage)
					mine := keys(t, r.staging, "items/"+id)
					if n >= len(mine) {
						break
					}
					// The other item's file of this place, of the same size as a rule; or a byte
					// less than there was.
					key := mine[n]
					bytes := r.stagedBytes(strings.Replace(key, id, other, 1))
					if bytes == nil || n%2 == 1 {
						bytes = append([]byte("x"), r.stagedBytes(key)...)
					}
					must(t, r.staging.Replace(t.Context(), key, bytes))
					changed++
					it := r.ends(id)
					if it.Status != registry.Completed {
						t.Errorf("%s was changed: %s: %s", key, it.Status, it.Note)
						continue
					}
					o := r.object(id)
					r.valid(o, 1)
					if diff := cmp.Diff(want, r.producer(o, 1)); diff != "" || strings.Contains(o.Title, "99999") {
						t.Errorf("%s was changed: other bytes are preserved, or described (%q)", key, o.Title)
					}
				}
				if changed < 1 {
					t.Errorf("%d files were changed", changed)
				}
			})
		}
	}
}

// stagedBytes is what lies in staging, nil when there is nothing.
func (r *rig) stagedBytes(key string) []byte {
	r.t.Helper()
	in, err := r.staging.Open(r.t.Context(), key, 0, -1)
	if err != nil {
		return nil
	}
	return []byte(r.all(in))
}
