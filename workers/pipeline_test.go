package workers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers"
)

func TestAll_CoversStages(t *testing.T) {
	r := newRig(t, nil)
	var got []registry.Stage
	for _, h := range workers.All(&r.deps) {
		got = append(got, h.Stage())
	}
	want := registry.Stages()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("workers.All and the stages of all routes differ (-want +got):\n%s", diff)
	}
}

// Each payload type, and the automatic one for each, goes through all six stages.
func TestPipeline_PayloadTypes(t *testing.T) {
	inBag := sample()
	bag := bagOf(inBag, nil)
	docx := map[string]string{"[Content_Types].xml": "<Types/>", "word/document.xml": "<w/>", "_rels/.rels": "<r/>"}
	tests := []struct {
		name string
		data func(s *site) (filename, data string)
		typ  registry.PayloadType
		auto bool
		want map[string]string
		kind string // in mrt-ingest.txt
	}{
		{"file", func(*site) (string, string) { return "note.txt", "hello\n" }, registry.FileType, true, map[string]string{"note.txt": "hello\n"}, "file"},
		{"empty file", func(*site) (string, string) { return "none", "" }, registry.FileType, true, map[string]string{"none": ""}, "file"},
		{"zip", func(s *site) (string, string) { return "c.zip", zipOf(s.t, sample()) }, registry.ContainerType, true, sample(), "container"},
		{"tar.gz", func(s *site) (string, string) { return "c.tar.gz", gzipOf(s.t, tarOf(s.t, sample())) }, registry.ContainerType, true, sample(), "container"},
		{"tar named otherwise", func(s *site) (string, string) { return "c.dat", tarOf(s.t, sample()) }, registry.ContainerType, true, sample(), "container"},
		{"bag in zip", func(s *site) (string, string) { return "b.zip", zipOf(s.t, bag) }, registry.BagType, true, bag, "bag"},
		{"bag in tar", func(s *site) (string, string) { return "b.tar", tarOf(s.t, bag) }, registry.BagType, true, bag, "bag"},
		{
			"docx", func(s *site) (string, string) { return "d.docx", zipOf(s.t, docx) }, registry.AutoType, false,
			map[string]string{"d.docx": zipOf(t, docx)},
			"file",
		},
		{"docx as container", func(s *site) (string, string) { return "d.docx", zipOf(s.t, docx) }, registry.ContainerType, false, docx, "container"},
		{"folders with a bag among others", func(s *site) (string, string) {
			return "m.zip", zipOf(s.t, map[string]string{"one/bagit.txt": "x", "two/y.txt": "y"})
		}, registry.AutoType, false, map[string]string{"one/bagit.txt": "x", "two/y.txt": "y"}, "container"},
		{"object manifest", func(s *site) (string, string) {
			s.put("a", "alpha\n")
			s.put("b", "beta\n")
			s.manifest("m.checkm", checkm.Object,
				checkm.Row{URL: s.url + "a", Algorithm: "sha256", Digest: sha256Of("alpha\n"), Size: 6, Name: "x/a.txt"},
				checkm.Row{URL: s.url + "b", Name: "b.txt", MIMEType: "text/x-beta"})
			return "m.checkm", s.files["m.checkm"]
		}, registry.ObjectManifest, true, map[string]string{"x/a.txt": "alpha\n", "b.txt": "beta\n"}, "object-manifest"},
	}
	for _, tt := range tests {
		types := []registry.PayloadType{tt.typ}
		if tt.auto {
			types = append(types, registry.AutoType)
		}
		for _, typ := range types {
			t.Run(tt.name+" as "+string(typ), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, nil)
				name, data := tt.data(r.site)
				job := r.job(registry.Spec{
					Type: typ, URL: r.site.put(name, data), Filename: name, Digest: digestOf(data), SizeBytes: int64(len(data)),
					Title: "A title", LocalIDs: []string{"id-1"}, Submitter: "ann",
				})
				o := r.complete(job)
				r.valid(o, 1)
				if diff := cmp.Diff(tt.want, r.producer(o, 1)); diff != "" {
					t.Errorf("producer's files (-want +got):\n%s", diff)
				}
				if ingest := r.content(o, 1, "system/mrt-ingest.txt"); !strings.Contains(ingest, "type:\t"+tt.kind+"\n") {
					t.Errorf("mrt-ingest.txt has no type %s:\n%s", tt.kind, ingest)
				}
				if o.Title != "A title" || !slices.Equal(o.LocalIDs, []string{"id-1"}) {
					t.Errorf("title=%q local ids=%v", o.Title, o.LocalIDs)
				}
				r.nothingStaged(job)
			})
		}
	}
}

func TestPipeline_StageByStage(t *testing.T) {
	r := newRig(t, nil)
	root := keys(t, r.storage, "")
	data := zipOf(t, sample())
	batch := r.submit(registry.Spec{Type: registry.AutoType, URL: r.site.put("c.zip", data)})
	jobs := r.expand(batch)
	if len(jobs) != 1 || jobs[0].Row != 1 || jobs[0].Stage != registry.Estimate {
		t.Fatalf("jobs %+v", jobs)
	}
	job := jobs[0].ID
	step := func(want registry.Stage) registry.WorkItem {
		t.Helper()
		v, err := r.run(job)
		if err != nil || v.Stage != want {
			t.Fatalf("verdict %+v (%v), want stage %s", v, err, want)
		}
		return r.item(job)
	}
	if it := step(registry.Provision); it.SizeBytes != int64(len(data)) || it.Files != 1 || it.Priority != 5 {
		t.Errorf("estimated size=%d files=%d priority=%d", it.SizeBytes, it.Files, it.Priority)
	}
	if r.site.gets("c.zip") != 1 { // expand looked at it
		t.Errorf("estimate fetched the file: %d GETs", r.site.gets("c.zip"))
	}
	step(registry.Download)
	if it := step(registry.Process); it.DoneBytes != int64(len(data)) || it.DoneFiles != 1 {
		t.Errorf("downloaded %d bytes, %d files", it.DoneBytes, it.DoneFiles)
	}
	if now := keys(t, r.storage, ""); !slices.Equal(now, root) {
		t.Errorf("in storage before process: %v", now)
	}
	it := step(registry.Record)
	ark := r.ark(job)
	if string(it.Results["version"]) != "1" || !strings.HasPrefix(ark, "ark:/99999/fk4") {
		t.Errorf("version %s of %q", it.Results["version"], ark)
	}
	if _, err := r.registry.Object(t.Context(), ark); err == nil {
		t.Error("the object is visible before it was recorded")
	}
	step(registry.Notify)
	o := r.object(job)
	r.valid(o, 1)
	v, err := r.run(job)
	if err != nil || v.Status != registry.Completed {
		t.Fatalf("notify: %+v %v", v, err)
	}
	r.nothingStaged(job)
	if v, err := r.run(batch); err != nil || v.Status != registry.Completed {
		t.Fatalf("report: %+v %v", v, err)
	}
	r.nothingStaged(batch)
	report, err := r.registry.ReportOf(t.Context(), batch, 0)
	if err != nil || report.Completed != 1 || report.Failed != 0 {
		t.Errorf("report %+v (%v)", report, err)
	}
	types := map[string]bool{}
	events, err := r.registry.PremisEvents(t.Context(), o.ID, "", 0)
	must(t, err)
	for _, e := range events.Rows {
		types[e.Type] = true
	}
	for _, want := range []string{"identifier assignment", "message digest calculation", "ingestion"} {
		if !types[want] {
			t.Errorf("no preservation event %q among %v", want, slices.Sorted(maps.Keys(types)))
		}
	}
}

// ark is the name that a job's object was given.
func (r *rig) ark(job string) string {
	r.t.Helper()
	var id registry.Identity
	decode(r.t, r.item(job).Results["ark"], &id)
	return id.ARK
}

// The three batch manifests make a job of each row; a bad row becomes a failed job, and the others
// continue.
func TestPipeline_Batches(t *testing.T) {
	for _, kind := range []checkm.Kind{checkm.Batch, checkm.ContainerBatch, checkm.FileBatch} {
		for _, typ := range []registry.PayloadType{registry.PayloadType(kind), registry.AutoType} {
			t.Run(fmt.Sprintf("%s as %s", kind, typ), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, nil)
				var rows []checkm.Row
				for i := range 3 {
					text := fmt.Sprintf("content %d\n", i)
					name := fmt.Sprintf("part%d", i)
					switch kind {
					case checkm.ContainerBatch:
						r.site.put(name, zipOf(t, map[string]string{"f.txt": text}))
					case checkm.Batch:
						r.site.manifest(name, checkm.Object, checkm.Row{URL: r.site.put(name+"-f", text), Name: "f.txt"})
					default:
						r.site.put(name, text)
					}
					rows = append(rows, checkm.Row{URL: r.site.url + name, Name: name, Title: "T" + name, LocalIDs: []string{"L" + name}})
				}
				r.site.manifest("batch.checkm", kind, rows...)
				text := r.site.files["batch.checkm"]
				url := r.site.put("batch.checkm", strings.Replace(text, "#%eof", "ftp://nowhere/x | | | | | x\n#%eof", 1))
				batch := r.submit(registry.Spec{Type: typ, URL: url, Creator: "the batch's"})
				jobs := r.expand(batch)
				if len(jobs) != 4 {
					t.Fatalf("%d jobs, want 4", len(jobs))
				}
				for _, j := range jobs[:3] {
					o := r.complete(j.ID)
					r.valid(o, 1)
					if o.Title != "T"+j.Name || o.Creator != "the batch's" || !slices.Equal(o.LocalIDs, []string{"L" + j.Name}) {
						t.Errorf("object %+v of row %s", o, j.Name)
					}
					for _, data := range r.producer(o, 1) {
						if !strings.HasPrefix(data, "content ") {
							t.Errorf("content %q", data)
						}
					}
				}
				if jobs[3].Status != registry.Failed || jobs[3].ErrorClass != registry.ContentFault {
					t.Errorf("bad row: %s %s", jobs[3].Status, jobs[3].ErrorClass)
				}
				v, err := r.run(batch)
				if err != nil || v.Status != registry.Failed || r.item(batch).ErrorClass != registry.JobsFault {
					t.Errorf("batch: %+v %v", v, err)
				}
			})
		}
	}
}
