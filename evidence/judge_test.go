package evidence_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/registry"
)

// fewReceipts is a record that is asked for receipts of versions that are there, or that a file names.
type fewReceipts struct {
	*record
	named map[int]bool
}

func (r fewReceipts) DepositReceipt(ctx context.Context, id string, version int) (registry.DepositReceipt, error) {
	if !r.named[version] {
		return registry.DepositReceipt{}, fmt.Errorf("nothing names version %d", version)
	}
	return r.record.DepositReceipt(ctx, id, version)
}

// TestJudge_AnyNumber: a file whose name has a huge number is judged as quickly as any other.
func TestJudge_AnyNumber(t *testing.T) {
	t.Parallel()
	r, o := newRecord(t), object()
	r.happen(3)
	version := r.version(t)
	must(t, evidence.KeepReceipts(t.Context(), r, version, o))
	others := []evidence.File{{Version: math.MaxInt}, {First: 2, Last: math.MaxInt64}}
	for _, f := range others {
		put(t, o, f, "x")
	}
	judge := evidence.Judge{From: fewReceipts{r, map[int]bool{version: true, math.MaxInt: true}}, Known: registry.EvidencePlaces{Last: r.last()}}
	got, err := judge.Of(t.Context(), evidence.Place{Object: o, Head: version, Kept: r.last()})
	must(t, err)
	if diff := cmp.Diff(others, got.Other); diff != "" || len(got.Damaged)+len(got.Missing) > 0 {
		t.Errorf("judged %s (-want +got):\n%s", got, diff)
	}
}
