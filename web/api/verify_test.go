package api_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/wire"
)

// TestVerify_ComparesWithTheRecord checks that an object that is consistent but differs from the
// record is not valid.
func TestVerify_ComparesWithTheRecord(t *testing.T) {
	was := map[string]string{"producer/a": "alpha", "producer/b": "beta", "producer/b c": "gamma"}
	for name, forged := range map[string]struct {
		files   map[string]string
		message string
		faults  string
	}{
		"nothing":        {was, "m", ""},
		"other bytes":    {map[string]string{"producer/a": "alphA", "producer/b": "beta", "producer/b c": "gamma"}, "m", "R004 v1/inventory.json, R005 producer/a"},
		"one file more":  {map[string]string{"producer/a": "alpha", "producer/b": "beta", "producer/b c": "gamma", "producer/z": "z"}, "m", "R004 v1/inventory.json, R005 producer/z"},
		"one file first": {map[string]string{"a": "z", "producer/a": "alpha", "producer/b": "beta", "producer/b c": "gamma"}, "m", "R004 v1/inventory.json, R005 a"},
		"one file less":  {map[string]string{"producer/a": "alpha", "producer/b c": "gamma"}, "m", "R004 v1/inventory.json, R005 producer/b"},
		"another name":   {map[string]string{"producer/a": "alpha", "producer/b": "beta", "producer/b d": "gamma"}, "m", "R004 v1/inventory.json, R005 producer/b c, R005 producer/b d"},
		"two exchanged":  {map[string]string{"producer/a": "beta", "producer/b": "alpha", "producer/b c": "gamma"}, "m", "R004 v1/inventory.json, R005 producer/a, R005 producer/b"},
		"its message":    {was, "another", "R004 v1/inventory.json"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.preserve(t, objectARK, was)
			forge(t, b, forged.files, forged.message)
			report, err := b.as(t, registry.RoleOperator).Verify(t.Context(), objectARK)
			must(t, err)
			if got := findings(report); got != forged.faults || report.Valid != (got == "") || report.Against != wire.AgainstRecord {
				t.Errorf("valid=%t against %s: %q, want %q", report.Valid, report.Against, got, forged.faults)
			}
		})
	}
}

// findings are the faults of a report, warnings left out.
func findings(report wire.VerifyReport) string {
	var out []string
	for _, f := range report.Faults {
		if f.Code[0] != 'W' {
			out = append(out, strings.TrimSpace(f.Code+" "+f.Path))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// forge puts another version 1 in the place of the object's, valid by OCFL.
func forge(t *testing.T, b *bench, files map[string]string, message string) {
	t.Helper()
	was, err := b.objects.Inventory(t.Context(), objectARK, 1)
	must(t, err)
	folder, err := b.objects.ObjectKey(objectARK)
	must(t, err)
	must(t, b.objects.Store().DeletePrefix(t.Context(), folder))
	b.write(t, objectARK, files, message, was.Versions[0].Created)
	b.keepReceipt(t, objectARK, b.objects)
}

// TestVerify_VersionNobodyRecorded checks that a version that is neither recorded nor announced is
// a fault, and that an announced one is not.
func TestVerify_VersionNobodyRecorded(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	b.preserve(t, objectARK, map[string]string{"producer/a": "alpha"})
	_, err := storage.Put(ctx, b.staging, "forged", []byte("forged"))
	must(t, err)
	inv, err := b.objects.Inventory(ctx, objectARK, 1)
	must(t, err)
	inv, _, err = ocfl.NewVersion(inv, ocfl.Change{Message: "m", Created: time.Now(), Files: ocfl.Files([]ocfl.File{{Path: "producer/a", Digest: sha512Of("forged")}})})
	must(t, err)
	must(t, b.objects.Commit(ctx, inv, func(ocfl.ContentFile) (storage.Store, string, error) { return b.staging, "forged", nil }, ocfl.CommitOptions{}))
	c := b.as(t, registry.RoleOperator)
	report, err := c.Verify(ctx, objectARK)
	must(t, err)
	if got := findings(report); report.Valid || got != "R006 v2" {
		t.Errorf("valid=%t %q, want R006", report.Valid, got)
	}
}

// unreadable is a Registry that loses its record of files while an object is verified.
type unreadable struct{ scope.Registry }

func (unreadable) FileHistory(context.Context, string, registry.FilePlace, int) ([]registry.File, error) {
	return nil, errors.New("the database is away")
}

// TestVerify_RecordUnreachable checks that the verdict says so if only the inventory could be
// compared.
func TestVerify_RecordUnreachable(t *testing.T) {
	b := newBench(t, func(_ *bench, o *api.Options) { o.Registry = unreadable{o.Registry} })
	b.preserve(t, objectARK, map[string]string{"producer/a": "alpha"})
	report, err := b.as(t, registry.RoleOperator).Verify(t.Context(), objectARK)
	must(t, err)
	if got := findings(report); got != "R007" || !report.Valid || report.Against != wire.AgainstInventory || report.Replicas[0].Against != wire.AgainstInventory {
		t.Errorf("valid=%t against %s (%s): %q, want R007 and a verdict by the inventory", report.Valid, report.Against, report.Replicas[0].Against, got)
	}
}

// atRecord is a Registry whose jobs may be at the step that writes receipts into the storages.
type atRecord struct {
	scope.Registry
	is bool
}

func (r *atRecord) Item(ctx context.Context, id string) (registry.WorkItem, error) {
	it, err := r.Registry.Item(ctx, id)
	if r.is {
		it.Stage = registry.Record
	}
	return it, err
}

// TestVerify_Evidence checks that evidence beside the bytes is compared with the record, and that a receipt
// that is about to be written is not missed.
func TestVerify_Evidence(t *testing.T) {
	r := &atRecord{}
	b := newBench(t, func(_ *bench, o *api.Options) {
		r.Registry = o.Registry
		o.Registry = r
	})
	ctx := t.Context()
	b.preserve(t, objectARK, testFiles())
	b.mark = "2"
	b.preserve(t, otherARK, testFiles())
	in, err := evidence.In(b.objects, objectARK, registry.Place{})
	must(t, err)
	other, err := evidence.In(b.objects, otherARK, registry.Place{})
	must(t, err)
	receipt := evidence.File{Version: 1}
	whole, err := storage.ReadAll(ctx, in.Store, in.Key(receipt), 1<<20)
	must(t, err)
	others, err := storage.ReadAll(ctx, other.Store, other.Key(receipt), 1<<20)
	must(t, err)
	for name, tt := range map[string]struct {
		text []byte // nil: there is no such file
		at   bool
		says string
	}{
		"right": {text: whole}, "missing": {says: "it is missing"}, "not written yet": {at: true},
		"cut off": {text: whole[:len(whole)-10], says: "it is damaged"}, "another": {text: others, says: "it is not what the record says"},
		"changed": {text: []byte(strings.Replace(string(whole), "A title", "B title", 1)), says: "it is damaged"},
	} {
		must(t, in.Store.Delete(ctx, in.Key(receipt)))
		if tt.text != nil {
			_, err := storage.Put(ctx, in.Store, in.Key(receipt), tt.text)
			must(t, err)
		}
		r.is = tt.at
		report, err := b.as(t, registry.RoleOperator).Verify(ctx, objectARK)
		must(t, err)
		want := ""
		if tt.says != "" {
			want = "R008 extensions/holdfast-evidence/v1.receipt.jsonl"
		}
		if got := findings(report); got != want || report.Valid != (want == "") || report.Against != wire.AgainstRecord ||
			want != "" && report.Faults[len(report.Faults)-1].Message != tt.says {
			t.Errorf("%s: %q, %+v", name, got, report)
		}
		if tt.text == nil {
			_, err := storage.Put(ctx, in.Store, in.Key(receipt), whole)
			must(t, err)
		}
	}
}
