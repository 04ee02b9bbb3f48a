package workers_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/rebuild"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
	"github.com/holdfast/holdfast/web/api/checkpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// signedPair is a pair of storages with two signed checkpoints each. Of one object, check, all events lie
// there; of the other one, waits, the last event waits to be written. A third one was deleted since.
type signedPair struct {
	*pair
	check, waits, gone registry.Object
	backup             string // of before the second object
}

func newSignedPair(t *testing.T) *signedPair {
	t.Helper()
	s := &signedPair{pair: newPair(t)}
	s.backup = s.copied(t)
	s.check = s.object
	s.pair.check(aContent)
	must(t, s.keeper(0).Make(t.Context()))
	other := func(name string) registry.Object {
		return s.complete(s.jobTo("pair", registry.Spec{Type: registry.FileType, URL: s.site.put(name, name), Filename: "a.txt"}))
	}
	s.waits = other("waits")
	s.gone = other("gone")
	s.object = s.waits
	s.pair.check(aContent)
	s.object = s.check
	for day := range 2 {
		c := checkpoint.Checkpointer{Registry: s.registry, Objects: s.deps.Objects, Now: func() time.Time { return time.Now().AddDate(0, 0, day-1) }}
		must(t, c.Make(t.Context()))
	}
	if it := s.advance(s.deletion(s.gone), ""); it.Status != registry.Completed {
		t.Fatalf("the deletion is %s: %s", it.Status, it.Note)
	}
	return s
}

// copies returns copies of the storages.
func (s *signedPair) copies(t *testing.T, open func(t *testing.T, name string) storage.Store) (out ocfl.Roots) {
	t.Helper()
	for _, root := range s.deps.Objects {
		to := open(t, root.Name)
		for info, err := range root.Store().List(t.Context(), "") {
			must(t, err)
			text, err := storage.ReadAll(t.Context(), root.Store(), info.Key, 1<<20)
			must(t, err)
			_, err = storage.Put(t.Context(), to, info.Key, text)
			must(t, err)
		}
		out = append(out, ocfl.Named{Root: rootOf(t, to), Name: root.Name})
	}
	return out
}

// remove removes what lies below a folder of an object and contains a text in its name.
func remove(t *testing.T, root ocfl.Named, id, folder, text string) {
	t.Helper()
	o, err := evidence.In(root.Root, id, registry.Place{})
	must(t, err)
	for info, err := range o.Store.List(t.Context(), o.Folder+"/"+folder) {
		must(t, err)
		if strings.Contains(info.Key, text) {
			must(t, o.Store.Delete(t.Context(), info.Key))
		}
	}
}

// rewrite replaces the object's segment with one that says something else, and that nobody signed.
func rewrite(t *testing.T, root ocfl.Named, id string) {
	t.Helper()
	o, err := evidence.In(root.Root, id, registry.Place{})
	must(t, err)
	files, err := o.List(t.Context())
	must(t, err)
	f := files.Segments[0]
	var before string
	var events []receipt.Event
	_, err = o.Read(t.Context(), files, evidence.Reader{Event: func(e receipt.Event, hash string) error {
		if e.Seq < f.First {
			before = hash
		} else {
			events = append(events, e)
		}
		return nil
	}})
	must(t, err)
	hash := before
	var lines []byte
	for _, e := range events {
		e.Detail = "something else"
		hash = e.Hash(hash)
		lines = append(lines, e.Line(hash)...)
	}
	var key *receipt.Key
	head := key.SignEvents(receipt.EventsHeader{Object: id, Events: receipt.Span{First: f.First, Count: int64(len(events)), Before: before, After: hash}})
	must(t, o.Store.Delete(t.Context(), o.Key(f)))
	_, err = storage.Put(t.Context(), o.Store, o.Key(f), append(head, lines...))
	must(t, err)
}

// contradictions are the ways in which storages contradict their checkpoints.
var contradictions = map[string]struct {
	harm func(*testing.T, *signedPair, ocfl.Roots)
	want rebuild.Report // Contradicted and Unreadable
	says string
	// trusted is what is said with trusted keys; "": the same.
	trusted string
	strange int64 // what a reconcile disagrees with besides, because none of the known keys signed it
}{
	"nothing": {harm: func(*testing.T, *signedPair, ocfl.Roots) {}},
	"a tail cut off in both": {
		harm: func(t *testing.T, s *signedPair, in ocfl.Roots) {
			for _, root := range in {
				remove(t, root, s.check.ID, ocfl.EvidenceFolder, "/events-")
			}
		},
		want: rebuild.Report{Contradicted: 2}, says: "it was cut off",
	},
	"a tail cut off in one": { // the other one has it, and this one is named as a damaged copy
		harm: func(t *testing.T, s *signedPair, in ocfl.Roots) {
			remove(t, in[1], s.check.ID, ocfl.EvidenceFolder, "/events-")
		},
		says: "is missing",
	},
	"all evidence removed": {
		harm: func(t *testing.T, s *signedPair, in ocfl.Roots) {
			for _, root := range in {
				remove(t, root, s.waits.ID, ocfl.EvidenceFolder, "")
			}
		},
		want: rebuild.Report{Contradicted: 2}, says: "its chain of events ends with 0",
	},
	"an object removed in both": {
		harm: func(t *testing.T, s *signedPair, in ocfl.Roots) {
			for _, root := range in {
				remove(t, root, s.waits.ID, "", "")
			}
		},
		want: rebuild.Report{Contradicted: 2}, says: "no storage has the object right",
	},
	"an object removed in one": {
		harm: func(t *testing.T, s *signedPair, in ocfl.Roots) { remove(t, in[1], s.waits.ID, "", "") },
		want: rebuild.Report{Contradicted: 1}, says: "the object is missing here",
	},
	"another hash": {
		harm: func(t *testing.T, s *signedPair, in ocfl.Roots) {
			for _, root := range in {
				rewrite(t, root, s.check.ID)
			}
		},
		want: rebuild.Report{Contradicted: 2}, says: "the chain was rewritten", trusted: "was cut off", strange: 1, // what nobody signed does not count
	},
	"a tail cut off, and of the newest checkpoint, too": {
		harm: func(t *testing.T, s *signedPair, in ocfl.Roots) {
			names, err := in[0].Checkpoints(t.Context())
			must(t, err)
			must(t, in[0].Store().Replace(t.Context(), in[0].CheckpointKey(names[1]), []byte(`{"holdfast_checkpoint":3}`+"\n")))
			for _, root := range in {
				remove(t, root, s.check.ID, ocfl.EvidenceFolder, "/events-")
			}
		},
		want: rebuild.Report{Contradicted: 2, Unreadable: 1}, says: "it is cut off",
	},
}

// rebuilt rebuilds a Registry and returns what it counts of checkpoints, and all faults.
func (s *signedPair) rebuilt(t *testing.T, o rebuild.Options) (counts rebuild.Report, said string) {
	t.Helper()
	var text strings.Builder
	o.To, o.Now = s.rebuilding(t), time.Now
	o.Fault = func(o rebuild.Object) error {
		text.WriteString(strings.Join(o.Faults, "\n") + "\n")
		for _, c := range o.Copies {
			text.WriteString(o.ID + " in " + c.Storage + ": " + strings.Join(c.Faults, "\n") + "\n")
		}
		return nil
	}
	report, err := rebuild.Run(t.Context(), o)
	must(t, err)
	return rebuild.Report{Contradicted: report.Contradicted, Unreadable: report.Unreadable}, text.String()
}

// TestRebuild_Checkpoints: what a signed checkpoint names and storages have no more is named; what was not
// written yet is not called cut off, and neither is what was deleted.
func TestRebuild_Checkpoints(t *testing.T) {
	t.Parallel()
	s := newSignedPair(t)
	folder := func(t *testing.T, name string) storage.Store { return openDir(t, filepath.Join(t.TempDir(), name)) }
	for name, tt := range contradictions {
		t.Run(name, func(t *testing.T) {
			in := s.copies(t, folder)
			tt.harm(t, s, in)
			for _, o := range []rebuild.Options{{Roots: in}, {Roots: in, Keys: s.trusted()}, {Roots: in, DryRun: true}} {
				got, said := s.rebuilt(t, o)
				says := tt.says
				if len(o.Keys) > 0 && tt.trusted != "" {
					says = tt.trusted
				}
				if got != tt.want || !strings.Contains(said, says) || tt.says == "" && said != "" {
					t.Errorf("counted %+v, want %+v; said %s", got, tt.want, said)
				}
			}
			var lost [2]int64
			for i, apply := range []bool{false, true} {
				options := rebuild.ReconcileOptions{Roots: in, To: s.restoredOf(t, s.backup), Now: time.Now, Apply: apply}
				said := found{}
				options.Found = said.add
				got, err := rebuild.Reconcile(t.Context(), options)
				must(t, err)
				if got.Disagree != tt.want.Contradicted+tt.strange || got.Unreadable != tt.want.Unreadable {
					t.Errorf("apply %t: %+v: %+v", apply, got, said)
				}
				lost[i] = got.Lost
			}
			if lost[0] != lost[1] || tt.says == "" && lost[0] != 2 { // the event that waits, of both storages' checkpoints
				t.Errorf("events are lost of %d objects", lost)
			}
		})
	}
	t.Run("another key", func(t *testing.T) {
		key, err := receipt.ParseKey(receipt.NewKey())
		must(t, err)
		got, said := s.rebuilt(t, rebuild.Options{Roots: s.deps.Objects, Keys: []receipt.PublicKey{key.Public()}})
		if got.Unreadable != 6 || !strings.Contains(said, "is not a key of this service") {
			t.Errorf("counted %+v; said %s", got, said)
		}
	})
}

// TestRebuild_OtherInventory: of two storages with different inventories, both of which agree with themselves, the
// one counts that the signed receipt names, also if it is read last.
func TestRebuild_OtherInventory(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	in := p.deps.Objects
	folder, err := in[0].ObjectKey(p.object.ID)
	must(t, err)
	text, err := storage.ReadAll(t.Context(), in[0].Store(), folder+"/inventory.json", 1<<20)
	must(t, err)
	forged := []byte(strings.Replace(string(text), "a.txt", "b.txt", 1))
	sum := sha256.Sum256(forged)
	for _, place := range []string{"/", "/v1/"} {
		must(t, in[0].Store().Replace(t.Context(), folder+place+"inventory.json", forged))
		must(t, in[0].Store().Replace(t.Context(), folder+place+"inventory.json.sha256", []byte(hex.EncodeToString(sum[:])+" inventory.json\n")))
	}
	to := p.rebuilding(t)
	said := ""
	_, err = rebuild.Run(t.Context(), rebuild.Options{Roots: in, To: to, Now: time.Now, Fault: func(o rebuild.Object) error {
		said += strings.Join(o.Copies[0].Faults, "\n") + strings.Join(o.Copies[1].Faults, "\n")
		return nil
	}})
	must(t, err)
	o, err := to.Object(t.Context(), p.object.ID)
	must(t, err)
	if len(o.Versions) != 1 || len(o.Versions[0].Replicas) != 1 || o.Versions[0].Replicas[0].Storage != second || !strings.Contains(said, "another inventory") {
		t.Errorf("%+v, said %q", o, said)
	}
}

// TestRebuild_NothingTwice: after a rebuild the storages get later events only, and nothing that they have.
func TestRebuild_NothingTwice(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for range 2 {
		p.check(aContent)
		must(t, p.keeper(0).Make(t.Context()))
	}
	before, last := p.evidenceIn(first)
	remove(t, p.deps.Objects[1], p.object.ID, ocfl.EvidenceFolder, before[2]) // this one lacks the newest event
	to := p.rebuilding(t)
	_, err := rebuild.Run(t.Context(), rebuild.Options{Roots: p.deps.Objects, To: to, Now: time.Now})
	must(t, err)
	defer p.on(p.registry)
	p.on(to)
	p.check(aContent)
	must(t, p.keeper(0).Make(t.Context()))
	for name, newest := range map[string]evidence.File{first: {First: last + 1, Last: last + 1}, second: {First: last, Last: last + 1}} {
		p.allIn(name)
		if now, _ := p.evidenceIn(name); now[len(now)-1] != newest.String() || !slices.Equal(now[:2], before[:2]) {
			t.Errorf("in %s: %q, before %q", name, now, before)
		}
	}
}

// TestRebuild_DeletedChain: after a rebuild the signed tombstone of a deleted object stands for its chain of
// events, so the record is not older than the checkpoints because of it.
func TestRebuild_DeletedChain(t *testing.T) {
	t.Parallel()
	s := newSignedPair(t)
	text, err := s.deps.Objects[0].Tombstone(t.Context(), s.gone.ID)
	must(t, err)
	stone, _, err := receipt.ReadTombstone(text, nil)
	must(t, err)
	other := stone
	other.LastHash = receipt.Zero
	var nobody *receipt.Key
	for name, tt := range map[string]struct {
		text []byte
		want wire.CheckpointAudit // Older, Rewritten and Buried
	}{
		"as it was":               {text, wire.CheckpointAudit{Older: 1, Buried: 1}}, // the last event of waits was not written yet
		"not signed":              {nobody.SignTombstone(stone), wire.CheckpointAudit{Older: 2}},
		"signed with another end": {sqlstoretest.ReceiptKey(t).SignTombstone(other), wire.CheckpointAudit{Older: 1, Rewritten: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			in := s.copies(t, func(t *testing.T, name string) storage.Store { return openDir(t, filepath.Join(t.TempDir(), name)) })
			to := s.rebuilding(t)
			for _, root := range in {
				must(t, root.Store().Replace(t.Context(), root.TombstoneKey(s.gone.ID), tt.text))
			}
			_, err := rebuild.Run(t.Context(), rebuild.Options{Roots: in, To: to, Now: time.Now})
			must(t, err)
			for _, root := range in {
				a, err := checkpoint.Audit(t.Context(), to, root, "")
				must(t, err)
				if got := (wire.CheckpointAudit{Older: a.Older, Rewritten: a.Rewritten, Buried: a.Buried}); !cmp.Equal(got, tt.want) {
					t.Errorf("in %s: %+v, want %+v", root.Name, a, tt.want)
				}
			}
		})
	}
}

// unreadableCheckpoints is a store that cannot read checkpoints.
type unreadableCheckpoints struct{ storage.Store }

var errNoCheckpoint = errors.New("the store is not there")

func (u *unreadableCheckpoints) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if strings.Contains(key, "holdfast-checkpoints") {
		return nil, errNoCheckpoint
	}
	return u.Store.Open(ctx, key, offset, length)
}

// TestRebuild_CheckpointsInBuckets: the same in buckets. A rebuild that cannot read a checkpoint is not done,
// and goes on later.
func TestRebuild_CheckpointsInBuckets(t *testing.T) {
	s3test.Setenv(t)
	server := s3test.Start(t)
	s := newSignedPair(t)
	for name, tt := range contradictions {
		t.Run(name, func(t *testing.T) {
			in := s.copies(t, func(t *testing.T, storage string) storage.Store {
				bucket, err := s3.Open(t.Context(), server.Address(strings.ReplaceAll(name, " ", "-")+"/"+storage))
				must(t, err)
				t.Cleanup(func() { must(t, bucket.Close()) })
				return bucket
			})
			tt.harm(t, s, in)
			if got, said := s.rebuilt(t, rebuild.Options{Roots: in}); got != tt.want || !strings.Contains(said, tt.says) {
				t.Errorf("counted %+v, want %+v; said %s", got, tt.want, said)
			}
			if name != "a tail cut off in both" {
				return
			}
			away := ocfl.Named{Root: rootOf(t, &unreadableCheckpoints{in[1].Store()}), Name: in[1].Name}
			o := rebuild.Options{Roots: ocfl.Roots{in[0], away}, To: s.rebuilding(t), Now: time.Now}
			if _, err := rebuild.Run(t.Context(), o); !errors.Is(err, errNoCheckpoint) {
				t.Errorf("without a checkpoint: %v", err)
			}
			if state, err := o.To.(*sqlstore.Store).RebuildState(t.Context()); err != nil || !state.Open() {
				t.Errorf("the rebuild is done: %+v, %v", state, err)
			}
			o.Roots = in
			if got, err := rebuild.Run(t.Context(), o); err != nil || got.Contradicted != 2 {
				t.Errorf("gone on: %+v, %v", got, err)
			}
		})
	}
}
