package workers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage/storagetest"
	"github.com/holdfast/holdfast/workers"
)

// inventoryFile is the stored file with which evidence is checked.
const inventoryFile = "v1/inventory.json"

// withEvidence has a receipt and a segment in each storage, and returns their paths in the object.
func withEvidence(t *testing.T) (p *pair, receiptPath, segmentPath string, segment evidence.File) {
	t.Helper()
	p = newPair(t)
	p.check(aContent)
	must(t, p.keeper(0).Make(t.Context()))
	in, err := evidence.In(p.roots[first], p.object.ID, registry.Place{})
	must(t, err)
	files, err := in.List(t.Context())
	must(t, err)
	if len(files.Segments) != 1 || len(files.Receipts) != 1 {
		t.Fatalf("evidence %+v", files)
	}
	path := func(f evidence.File) string { return ocfl.EvidenceFolder + "/" + f.String() }
	return p, path(evidence.File{Version: 1}), path(files.Segments[0]), files.Segments[0]
}

// TestFixity_Evidence: evidence that is damaged or missing is found, named and written anew, whichever
// file it is, and in all storages at once.
func TestFixity_Evidence(t *testing.T) {
	t.Parallel()
	for kind, harm := range damage {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, receiptPath, segmentPath, _ := withEvidence(t)
			for _, path := range []string{receiptPath, segmentPath} {
				for _, in := range [][]string{{second}, {first, second}} {
					want, err := os.ReadFile(p.file(first, path))
					must(t, err)
					before := len(p.premises(inventoryFile))
					for _, name := range in {
						must(t, harm(p.file(name, path)))
					}
					if it := p.check(inventoryFile); it.Status != registry.Completed {
						t.Fatalf("%s in %s: %s %s", path, in, it.Status, it.Note)
					}
					got := p.premises(inventoryFile)[before:]
					what := filepath.Base(path) + " damaged)"
					if kind == "deleted" {
						what = filepath.Base(path) + " missing)"
					}
					if len(got) != 2 || strings.Count(got[0], what) != len(in) || !strings.HasPrefix(got[0], "fixity check failure: ") ||
						!strings.HasPrefix(got[1], "replication success: ") || strings.Count(got[1], " repaired") != len(in) {
						t.Errorf("%s in %s: events %q", path, in, got)
					}
					for _, name := range in {
						if text, err := os.ReadFile(p.file(name, path)); err != nil || string(text) != string(want) {
							t.Errorf("%s in %s is not as before: %v\n%s", path, name, err, text)
						}
					}
				}
			}
			p.damagedFiles(0)
			must(t, p.keeper(0).Make(t.Context()))
			for name := range p.roots {
				p.allIn(name)
			}
			if it := p.check(inventoryFile); it.Status != registry.Completed || !strings.HasPrefix(p.premises(inventoryFile)[len(p.premises(inventoryFile))-1], "fixity check success: ") {
				t.Errorf("once more: %s %q", it.Status, p.premises(inventoryFile))
			}
		})
	}
}

// TestFixity_OtherEvidence: evidence that is whole and says something else than the record, or more, is
// kept for a person, and so is everything if the record does not agree with itself.
func TestFixity_OtherEvidence(t *testing.T) {
	t.Parallel()
	p, _, segmentPath, segment := withEvidence(t)
	page, err := p.registry.PremisEvents(t.Context(), p.object.ID, registry.AfterSeq(segment.First-2), 10)
	must(t, err)
	before, e := page.Rows[0].Hash, receipt.EventOf(page.Rows[1])
	write := func(f evidence.File, change func(*receipt.Event)) string {
		hash := before
		var lines []byte
		for seq := f.First; seq <= f.Last; seq++ {
			e := e
			e.Seq = seq
			change(&e)
			hash = e.Hash(hash)
			lines = append(lines, e.Line(hash)...)
		}
		var key *receipt.Key // nobody signs it
		text := append(key.SignEvents(receipt.EventsHeader{
			Object: p.object.ID, Events: receipt.Span{First: f.First, Count: f.Last - f.First + 1, Before: before, After: hash},
		}), lines...)
		path := filepath.Join(filepath.Dir(p.file(second, segmentPath)), f.String())
		must(t, os.WriteFile(path, text, 0o644))
		return path
	}
	longer := segment
	longer.Last += 5
	for name, path := range map[string]string{
		"more events":  write(longer, func(*receipt.Event) {}),
		"other events": write(evidence.File{First: segment.First, Last: segment.Last}, func(e *receipt.Event) { e.Detail = "something else" }),
	} {
		text, err := os.ReadFile(path)
		must(t, err)
		it := p.check(inventoryFile)
		if it.Status != registry.Failed || !strings.Contains(it.Note, filepath.Base(path)+" not what the record says") {
			t.Errorf("%s: %s %s", name, it.Status, it.Note)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != string(text) {
			t.Errorf("%s: the file was changed: %v", name, err)
		}
	}
}

// TestFixity_EvidenceDiesAnywhere: wherever mending dies, a repeat ends with the same files, and the
// damage is told.
func TestFixity_EvidenceDiesAnywhere(t *testing.T) {
	t.Parallel()
	p, receiptPath, segmentPath, _ := withEvidence(t)
	var want []string
	for _, path := range []string{receiptPath, segmentPath} {
		text, err := os.ReadFile(p.file(second, path))
		must(t, err)
		want = append(want, string(text))
	}
	for _, dieAt := range []func(*storagetest.Faulty, int){(*storagetest.Faulty).DieAt, (*storagetest.Faulty).DieAfter} {
		for n := 1; ; n += 2 {
			must(t, damage["cut"](p.file(second, receiptPath)))
			must(t, damage["a flipped byte"](p.file(second, segmentPath)))
			failures := strings.Count(strings.Join(p.premises(inventoryFile), "\n"), "receipt.jsonl damaged")
			faulty := storagetest.NewFaulty(p.roots[second].Store())
			root := rootOf(t, faulty)
			dieAt(faulty, n)
			it := p.check(inventoryFile, func(w *workers.Fixity) {
				w.Checker.Objects[1].Root = root
			})
			died := it.Status != registry.Completed
			for range 5 {
				if it = p.item(it.ID); it.Status == registry.Completed {
					break
				}
				p.wait(2 * time.Hour)
				p.runCheck(t.Context(), it.ID)
			}
			if it.Status != registry.Completed {
				t.Fatalf("killed at call %d: then %s %s", n, it.Status, it.Note)
			}
			for i, path := range []string{receiptPath, segmentPath} {
				if text, err := os.ReadFile(p.file(second, path)); err != nil || string(text) != want[i] {
					t.Fatalf("killed at call %d: %s is not as before: %v\n%s", n, path, err, text)
				}
			}
			if now := strings.Count(strings.Join(p.premises(inventoryFile), "\n"), "receipt.jsonl damaged"); now <= failures {
				t.Fatalf("killed at call %d: the damage is not told: %q", n, p.premises(inventoryFile))
			}
			if !died {
				break
			}
		}
	}
}

// TestFixity_EvidenceOfOlderVersions: a storage that has no newer versions of an object keeps its evidence right,
// too.
func TestFixity_EvidenceOfOlderVersions(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.profile("pair", profileOf(first))
	p.addVersions(1)
	p.check(aContent)
	must(t, p.keeper(0).Make(t.Context()))
	names, _ := p.evidenceIn(second)
	if len(names) < 2 || names[0] != "v1.receipt.jsonl" || strings.Contains(strings.Join(names, " "), "v2.receipt") {
		t.Fatalf("evidence %q", names)
	}
	const inventory = "v2/inventory.json"
	whole := p.contents(second)
	for kind, harm := range damage {
		for _, name := range names {
			path := ocfl.EvidenceFolder + "/" + name
			before := len(p.premises(inventory))
			must(t, harm(p.file(second, path)))
			if it := p.check(inventory); it.Status != registry.Completed {
				t.Fatalf("%s, %s: %s %s", name, kind, it.Status, it.Note)
			}
			got := p.premises(inventory)[before:]
			if len(got) != 2 || !strings.HasPrefix(got[0], "fixity check failure: ") || !strings.Contains(got[0], "damaged in storage "+second+" (its evidence: ") ||
				!strings.HasPrefix(got[1], "replication success: ") || !strings.Contains(got[1], "repaired in storage "+second) {
				t.Errorf("%s, %s: events %q", name, kind, got)
			}
			if now := p.contents(second)[path]; now != whole[path] {
				t.Errorf("%s, %s: it is not as before: %s", name, kind, now)
			}
		}
	}
	p.damagedFiles(0)
}
