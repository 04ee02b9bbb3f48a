package workers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
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
)

// inFormat replaces the receipt of a version by one of an earlier format, as programs of that time wrote it.
func (r *rig) inFormat(t *testing.T, format int, o registry.Object, version int) {
	t.Helper()
	at, err := evidence.In(r.objects, o.ID, registry.Place{})
	must(t, err)
	text, err := storage.ReadAll(t.Context(), at.Store, at.Key(evidence.File{Version: version}), 1<<20)
	must(t, err)
	var h receipt.Header
	var manifest receipt.Manifest
	var lines []byte
	result, err := receipt.Verify(bytes.NewReader(text), receipt.Options{
		Header: func(read receipt.Header) error { h = read; return nil },
		File: func(f receipt.File) error {
			f.MIMEType, f.Format, f.Since = "", nil, 0
			if format == 1 {
				f.Modified = time.Time{}
			}
			lines = append(lines, manifest.Add(f)...)
			return nil
		},
		Event: func(e receipt.Event, hash string) error { lines = append(lines, e.Line(hash)...); return nil },
	})
	must(t, err)
	if !result.Valid() {
		t.Fatalf("the receipt: %+v", result)
	}
	h.Format, h.Manifest = format, manifest.Digest()
	h.Collection, h.Item, h.ProfileVersion, h.EZIDItem, h.Named, h.Terms = "", "", 0, "", time.Time{}, receipt.Terms{}
	must(t, at.Store.Replace(t.Context(), at.Key(evidence.File{Version: version}), append(receipt.Head(sqlstoretest.ReceiptKey(t).Sign(h)), lines...)))
}

// rebuiltWith rebuilds a Registry from the rig's storage, and returns it with the faults that were named.
func (r *rig) rebuiltWith(t *testing.T, o rebuild.Options) (*sqlstore.Store, rebuild.Report, string) {
	t.Helper()
	to := r.rebuilding(t)
	said := ""
	o.To, o.Now, o.Keys = to, time.Now, r.trusted()
	o.Fault = func(o rebuild.Object) error {
		said += strings.Join(o.Faults, "\n") + "\n"
		for _, c := range o.Copies {
			said += c.Storage + ": " + strings.Join(c.Faults, "\n") + "\n"
		}
		return nil
	}
	report, err := rebuild.Run(t.Context(), o)
	must(t, err)
	return to, report, said
}

// identified is what people see of an object and that receipts of every format or the storages say.
func identified(t *testing.T, s *sqlstore.Store, id string) string {
	t.Helper()
	o, err := s.Object(t.Context(), id)
	must(t, err)
	o.CheckedAt, o.Unchecked, o.CreatedAt = time.Time{}, "", o.CreatedAt.Truncate(time.Second) // as the OCFL inventory has it
	var files []registry.File
	for _, v := range o.Versions {
		of, err := s.Files(t.Context(), id, v.Version, "", 500)
		must(t, err)
		for _, f := range of { // since when a file is what it is, is not said either
			f.Version, f.MIMEType, f.Format, f.Modified = v.Version, "", nil, time.Time{}
			files = append(files, f)
		}
	}
	page, err := s.PremisEvents(t.Context(), id, "", 500)
	must(t, err)
	text, err := json.MarshalIndent([]any{o, files, page.Rows}, "", " ")
	must(t, err)
	return string(text)
}

// TestRebuild_ReceiptsOfEarlierFormats: receipts of formats 1 and 2 say less; the collection and the job come
// from system files then.
func TestRebuild_ReceiptsOfEarlierFormats(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	want := map[string]string{}
	for format := 1; format <= 3; format++ {
		local := fmt.Sprint("format ", format)
		r.complete(r.fileTo(collection, local, local))
		o := r.complete(r.jobTo(collection, registry.Spec{
			Type: registry.FileType, Mode: registry.Update, URL: r.site.put("more", "more"), Filename: "more", LocalIDs: []string{local},
		}))
		want[o.ID] = identified(t, r.registry, o.ID)
		for version := 1; format < 3 && version <= 2; version++ {
			r.inFormat(t, format, o, version)
		}
	}
	to, report, said := r.rebuiltWith(t, rebuild.Options{Roots: r.deps.Objects})
	if report != (rebuild.Report{Objects: 3}) {
		t.Errorf("report %+v: %s", report, said)
	}
	for id := range want {
		if diff := cmp.Diff(want[id], identified(t, to, id)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

// TestRebuild_AssignedTerms: terms that an admin has set since the newest version are those of the new Registry.
func TestRebuild_AssignedTerms(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	terms := registry.Terms{PreservationLevel: "full", EmbargoUntil: "2990-01-02", EmbargoReason: "a letter"}
	must(t, p.registry.SetTerms(t.Context(), p.object.ID, registry.Terms{PreservationLevel: "bit-level"}, "at first", "admin"))
	must(t, p.registry.SetTerms(t.Context(), p.object.ID, terms, "asked by the donor", "admin"))
	must(t, p.keeper(0).Make(t.Context()))
	want := seen(t, p.registry, p.object.ID)
	to, report, said := p.rebuiltWith(t, rebuild.Options{Roots: p.deps.Objects})
	if report != (rebuild.Report{Objects: 1}) {
		t.Errorf("report %+v: %s", report, said)
	}
	if diff := cmp.Diff(want, seen(t, to, p.object.ID)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if o, err := to.Object(t.Context(), p.object.ID); err != nil || !cmp.Equal(o.Terms, terms) {
		t.Errorf("the terms are %+v, %v", o.Terms, err)
	}
}

// writeInventories writes the root inventory of the pair's object in all storages.
func (p *pair) writeInventories(text string) {
	p.t.Helper()
	for _, root := range p.deps.Objects {
		key, err := root.ObjectKey(p.object.ID)
		must(p.t, err)
		must(p.t, root.Store().Replace(p.t.Context(), key+"/inventory.json", []byte(text)))
	}
}

// TestRebuild_RootInventoryDamaged: an object whose root inventory is damaged in all copies is what its versions'
// own inventories say.
func TestRebuild_RootInventoryDamaged(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	want := seen(t, p.registry, p.object.ID)
	p.writeInventories("{")
	profile, err := p.registry.Collection(t.Context(), "pair")
	must(t, err)
	for _, receipts := range []bool{true, false} {
		if !receipts {
			for _, root := range p.deps.Objects {
				remove(t, root, p.object.ID, ocfl.EvidenceFolder, "")
			}
		}
		to, report, said := p.rebuiltWith(t, rebuild.Options{Roots: p.deps.Objects})
		if report != (rebuild.Report{Objects: 1, Damaged: 1}) || strings.Count(said, "its versions' own inventories count") != 2 || strings.Contains(said, "mrt-") {
			t.Errorf("receipts %t: report %+v: %s", receipts, report, said)
		}
		if receipts {
			if diff := cmp.Diff(want, seen(t, to, p.object.ID)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		o, err := to.Object(t.Context(), p.object.ID)
		must(t, err)
		made, err := to.Collection(t.Context(), "pair")
		must(t, err)
		if o.Owner != p.object.Owner || o.Files != p.object.Files || len(o.Versions[0].Replicas) != 2 || !cmp.Equal(made.Profile.Collections, profile.Profile.Collections) {
			t.Errorf("receipts %t: %+v in %+v", receipts, o, made)
		}
	}
}

// TestRebuild_ForgedHead: an inventory that tells of versions without end does not keep a rebuild busy; the versions
// that are there count.
func TestRebuild_ForgedHead(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	want := seen(t, p.registry, p.object.ID)
	root := p.deps.Objects[0]
	key, err := root.ObjectKey(p.object.ID)
	must(t, err)
	text, err := storage.ReadAll(t.Context(), root.Store(), key+"/inventory.json", 1<<20)
	must(t, err)
	forged := strings.Replace(string(text), `"head": "v1"`, `"head": "v2000000000"`, 1)
	if forged == string(text) {
		t.Fatalf("the inventory is %s", forged)
	}
	p.writeInventories(forged)
	to, report, said := p.rebuiltWith(t, rebuild.Options{Roots: p.deps.Objects})
	if report != (rebuild.Report{Objects: 1, Damaged: 1}) || strings.Count(said, "nothing after version 1001 counts") != 2 {
		t.Errorf("report %+v: %.2000s", report, said)
	}
	if diff := cmp.Diff(want, seen(t, to, p.object.ID)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
