package evidence_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/registry/receipt"
)

// TestCompare_Fork: a chain lost the events from 4 on, of which 5 was signed, and two people accepted that. It
// went on with others. Storages have segments of both branches.
func TestCompare_Fork(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.version(t)
	r.happen(1)
	lost := &record{key: r.key, receipts: maps.Clone(r.receipts), events: slices.Clone(r.events), files: r.files}
	lost.happen(4)
	for i := range lost.events[3:] {
		lost.events[3+i].Detail = "lost"
	}
	lost.rehash(3)
	r.happen(5)
	updated := &record{key: r.key, receipts: maps.Clone(r.receipts), events: slices.Clone(r.events), files: r.files}
	updated.version(t)
	gap := receipt.Gap{Object: ark, After: 3, To: 5, Hash: lost.hash(5)}
	type part struct {
		of          *record
		first, last int64
	}
	for name, tt := range map[string]struct {
		parts   [2][]part // in each storage
		end     *record   // of which the newest checkpoint signed event at
		at      int64
		updated bool
		want    *record
		last    int64
		each    string // up to which event each storage has the chain, and what it lacks
	}{
		"both branches in one": {
			parts: [2][]part{{{lost, 4, 5}, {lost, 6, 7}, {r, 3, 4}, {r, 5, 8}}, {{r, 3, 8}}}, want: r, last: 8,
			each: "8 [] 8 []",
		},
		"of one name": {
			parts: [2][]part{{{r, 3, 3}, {lost, 4, 5}}, {{r, 3, 3}, {r, 4, 5}, {r, 6, 6}}}, want: r, last: 6,
			each: "3 [events-0000000004-0000000005.jsonl events-0000000006-0000000006.jsonl] 6 []",
		},
		"without the event that was signed": {
			parts: [2][]part{{{r, 3, 3}, {lost, 4, 4}}, {{r, 3, 5}}}, end: r, at: 5, want: r, last: 5,
			each: "3 [events-0000000003-0000000005.jsonl] 5 []",
		},
		"merged with events before": {
			parts: [2][]part{{{lost, 3, 7}, {r, 4, 8}}, {{lost, 3, 7}}}, want: r, last: 8,
			each: "8 [] 3 [events-0000000004-0000000008.jsonl]",
		},
		"an update since": {
			parts: [2][]part{{{r, 3, 3}, {lost, 4, 7}}, {{r, 3, 3}, {lost, 4, 7}}}, updated: true, want: updated, last: 10,
			each: "10 [] 10 []",
		},
		"the lost branch alone": {
			parts: [2][]part{{{lost, 3, 7}}, {{lost, 3, 7}}}, end: lost, at: 3, want: lost, last: 7,
			each: "7 [] 7 []",
		},
		"the lost branch alone, and the chain went on": {
			parts: [2][]part{{{lost, 3, 7}}, {{lost, 3, 7}}}, end: r, at: 4, want: r, last: 3,
			each: "3 [] 3 []",
		},
		"what was lost was taken back": {
			parts: [2][]part{{{lost, 3, 7}, {r, 3, 4}}, {{lost, 3, 7}}}, end: lost, at: 7, want: lost, last: 7,
			each: "7 [] 7 []",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := []evidence.Object{object(), object()}
			for i, o := range in {
				must(t, evidence.KeepReceipts(t.Context(), r, 1, o))
				if tt.updated {
					must(t, evidence.KeepReceipts(t.Context(), updated, 2, o))
				}
				for _, p := range tt.parts[i] {
					p.of.keep(t, o, p.first, p.last)
				}
			}
			fork := evidence.Fork{Gaps: []receipt.Gap{gap}}
			if tt.end != nil {
				fork.End = receipt.ChainEnd{Object: ark, Seq: tt.at, Hash: tt.end.hash(tt.at)}
			}
			copies, err := evidence.Compare(t.Context(), ark, r.trusted(), fork, in...)
			must(t, err)
			report, err := copies.Read(t.Context(), evidence.Reader{})
			must(t, err)
			if report.Last != tt.last || report.Hash != tt.want.hash(tt.last) || !report.Valid() {
				t.Errorf("read up to event %d %+v", report.Last, report)
			}
			each := fmt.Sprint(copies.Copies[0].Last(), copies.Copies[0].Missing, copies.Copies[1].Last(), copies.Copies[1].Missing)
			if each != tt.each {
				t.Errorf("the storages have %s, want %s", each, tt.each)
			}
		})
	}
}
