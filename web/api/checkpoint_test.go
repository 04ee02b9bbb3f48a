package api_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/checkpoint"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/wire"
)

// rewritten is a Registry whose events were changed behind its back: event says which are still
// there.
type rewritten struct {
	scope.Registry
	checkpoint.Chains
	event    func(*registry.Premis) bool
	receipts bool // those of versions stay, whose last event is gone: no backup is like that
}

func (r *rewritten) DepositReceipt(ctx context.Context, id string, version int) (registry.DepositReceipt, error) {
	kept, err := r.Registry.DepositReceipt(ctx, id, version)
	if err != nil || r.receipts {
		return kept, err
	}
	page, err := r.PremisEvents(ctx, id, registry.AfterSeq(kept.LastEvent-1), 1)
	if err == nil && len(page.Rows) == 0 {
		err = registry.ErrNotFound
	}
	return kept, err
}

func (r *rewritten) PremisEvents(ctx context.Context, id, after string, limit int) (registry.Page[registry.Premis], error) {
	page, err := r.Registry.PremisEvents(ctx, id, after, limit)
	var kept []registry.Premis
	for _, e := range page.Rows {
		if r.event == nil || r.event(&e) {
			kept = append(kept, e)
		}
	}
	page.Rows = kept
	return page, err
}

func (r *rewritten) ChainEnds(ctx context.Context, storage, after string, limit int) ([]receipt.ChainEnd, error) {
	ends, err := r.Chains.ChainEnds(ctx, storage, after, limit)
	var kept []receipt.ChainEnd
	for _, e := range ends {
		page, err := r.PremisEvents(ctx, e.Object, "", 0)
		if err != nil {
			return nil, err
		}
		if n := len(page.Rows); n > 0 {
			kept = append(kept, receipt.ChainEnd{Object: e.Object, Seq: page.Rows[n-1].Seq, Hash: page.Rows[n-1].Hash})
		}
	}
	return kept, err
}

func (r *rewritten) Tombstone(ctx context.Context, id string) (string, error) {
	return r.Registry.Tombstone(ctx, id)
}

func (r *rewritten) ReceiptKeys(ctx context.Context) ([]registry.ReceiptKey, error) {
	return r.Registry.ReceiptKeys(ctx)
}

const otherARK = "ark:/99999/other"

// audited is a server on such a Registry with two objects, and what makes the checkpoint of a day
// of August.
func audited(t *testing.T) (b *bench, r *rewritten, write func(day int) error) {
	t.Helper()
	r = &rewritten{}
	b = newBench(t, func(b *bench, o *api.Options) {
		r.Registry, r.Chains = o.Registry, b.store
		o.Registry, o.Chains = r, r
	})
	return b, r, func(day int) error {
		c := checkpoint.Checkpointer{
			Registry: r, Objects: roots(b.objects),
			Now: func() time.Time { return time.Date(2026, 8, day, 23, 59, 0, 0, time.UTC) },
		}
		return c.Make(t.Context())
	}
}

func (b *bench) checkpoints(t *testing.T) (names []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(b.folder, "storage", "extensions", "holdfast-checkpoints", "*"))
	must(t, err)
	for _, name := range found {
		names = append(names, filepath.Base(name))
	}
	return names
}

// TestCheckpointer_OneADay checks that each storage gets one checkpoint a day, and that only the
// newest are kept.
func TestCheckpointer_OneADay(t *testing.T) {
	t.Parallel()
	b, _, checkpoint := audited(t)
	must(t, checkpoint(1))
	if names := b.checkpoints(t); len(names) > 0 {
		t.Errorf("%v of nothing", names)
	}
	operator := b.as(t, registry.RoleOperator)
	if report, err := operator.AuditCheckpoints(t.Context(), ""); err != nil || !report.Valid || report.Storages[0].Name != "" {
		t.Errorf("before the first one: %+v, %v", report, err)
	}
	b.preserve(t, objectARK, testFiles())
	for _, day := range []int{1, 1, 2, 1, 3, 4, 5, 6, 7, 8, 9} {
		must(t, checkpoint(day))
	}
	if names := strings.Join(b.checkpoints(t), " "); !strings.HasPrefix(names, "2026-08-03.jsonl") || !strings.HasSuffix(names, "2026-08-09.jsonl") || len(b.checkpoints(t)) != 7 {
		t.Errorf("there are %s", names)
	}
	report, err := operator.AuditCheckpoints(t.Context(), "")
	must(t, err)
	want := wire.CheckpointAudit{
		Storage: registry.DefaultStorage, Name: "2026-08-09.jsonl", Valid: true, At: time.Date(2026, 8, 9, 23, 59, 0, 0, time.UTC), Objects: 1, Faults: []wire.CheckpointFault{},
	}
	if len(report.Storages) == 1 {
		want.Heads = report.Storages[0].Heads
	}
	if got := fmt.Sprintf("%+v", report.Storages); !report.Valid || got != fmt.Sprintf("%+v", []wire.CheckpointAudit{want}) {
		t.Errorf("%s, want %+v", got, want)
	}
}

// TestAudit_FindsWhatWasDone checks that every change to the end of a chain is found, by receipt
// and checkpoint, and that no newer checkpoint covers it.
func TestAudit_FindsWhatWasDone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		event            func(*registry.Premis) bool
		valid            bool
		older, rewritten int64
		says             string
	}{
		"nothing":         {func(*registry.Premis) bool { return true }, true, 0, 0, ""},
		"cut off":         {func(e *registry.Premis) bool { return e.ObjectID != objectARK }, false, 1, 0, "this event is missing, but the receipt of version 1 ends with it"},
		"another outcome": {func(e *registry.Premis) bool { e.Outcome = "other"; return true }, false, 0, 0, "was changed"},
		"a chain that is right again": {func(e *registry.Premis) bool {
			if e.ObjectID == objectARK {
				e.Outcome = "other"
				e.Hash = receipt.EventOf(*e).Hash(receipt.Zero)
			}
			return true
		}, false, 0, 1, "the chain was rewritten"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, r, checkpoint := audited(t)
			b.preserve(t, objectARK, testFiles())
			b.mark = "2"
			b.preserve(t, otherARK, testFiles())
			must(t, checkpoint(1))
			r.event, r.receipts = tt.event, true
			operator := b.as(t, registry.RoleOperator)
			report, err := operator.AuditObject(t.Context(), objectARK)
			must(t, err)
			if report.Valid != tt.valid || report.Receipts != 1 || !tt.valid && !strings.Contains(report.Faults[0].Message, tt.says) {
				t.Errorf("object: %+v, want one that says %q", report, tt.says)
			}
			if name == "cut off" {
				_, err := operator.DepositReceipt(t.Context(), objectARK, 1)
				problemOf(t, err, http.StatusInternalServerError, wire.CodeDamaged)
			}
			all, err := operator.AuditCheckpoints(t.Context(), "")
			must(t, err)
			at := all.Storages[0]
			broken := tt.older+tt.rewritten > 0
			if all.Valid == broken || at.Older != tt.older || at.Rewritten != tt.rewritten || at.Objects != 2 {
				t.Errorf("checkpoint: %+v", at)
			}
			if broken && (len(at.Faults) != 1 || at.Faults[0].ObjectID != objectARK) {
				t.Errorf("faults: %+v", at.Faults)
			}
			if err := checkpoint(2); (err != nil) != broken || (len(b.checkpoints(t)) == 1) != broken {
				t.Errorf("the next checkpoint: %v, there are %v", err, b.checkpoints(t))
			}
			one, err := operator.AuditCheckpoints(t.Context(), otherARK)
			must(t, err)
			if !one.Valid || one.Storages[0].Objects != 1 {
				t.Errorf("the other object alone: %+v", one)
			}
		})
	}
}

// TestAudit_DamagedCheckpoint checks that a changed checkpoint is only reported as invalid.
func TestAudit_DamagedCheckpoint(t *testing.T) {
	t.Parallel()
	b, _, checkpoint := audited(t)
	b.preserve(t, objectARK, testFiles())
	must(t, checkpoint(1))
	file := filepath.Join(b.folder, "storage", "extensions", "holdfast-checkpoints", "2026-08-01.jsonl")
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.Chmod(file, 0o600))
	must(t, os.WriteFile(file, []byte(strings.Replace(string(text), `"seq":1`, `"seq":2`, 1)), 0o600))
	report, err := b.as(t, registry.RoleOperator).AuditCheckpoints(t.Context(), "")
	must(t, err)
	if at := report.Storages[0]; report.Valid || at.Damage == "" || at.Older+at.Rewritten != 0 {
		t.Errorf("%+v", report)
	}
	if err := checkpoint(2); err == nil {
		t.Error("a newer checkpoint covers one that was changed")
	}
}
