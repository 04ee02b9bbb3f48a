package workers_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
)

// oldTar is a tar with a file of 2001 to the microsecond, one before 1970, one without a time, and
// one whose name is in ISO 8859-1.
func oldTar(t *testing.T, n int) (data []byte, want map[string]string, times map[string]time.Time) {
	t.Helper()
	times = map[string]time.Time{
		"2001.txt": time.Date(2001, 2, 3, 4, 5, 6, 789_123_000, time.UTC), "1944.txt": time.Date(1944, 6, 6, 6, 30, 0, 0, time.UTC), "never.txt": {},
		"Müller.txt": time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
	want = map[string]string{"2001.txt": fmt.Sprint("a", n), "1944.txt": fmt.Sprint("b", n), "never.txt": "c", "Müller.txt": fmt.Sprint("d", n)}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range []string{"2001.txt", "1944.txt", "never.txt", "Müller.txt"} {
		h := &tar.Header{
			Name: strings.ReplaceAll(name, "ü", "\xfc"), Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(want[name])), ModTime: times[name], Format: tar.FormatGNU,
		}
		if times[name].Nanosecond() > 0 {
			h.Format = tar.FormatPAX
		}
		must(t, w.WriteHeader(h))
		_, err := w.Write([]byte(want[name]))
		must(t, err)
	}
	must(t, w.Close())
	return out.Bytes(), want, times
}

// haveTimes checks every recorded object's times, and the event of the name that was read.
func (r *rig) haveTimes(want map[string]time.Time) (objects int) {
	r.t.Helper()
	page, err := r.registry.Objects(r.t.Context(), registry.ObjectQuery{Limit: 500})
	must(r.t, err)
	for _, o := range page.Rows {
		files, err := r.registry.Files(r.t.Context(), o.ID, o.Head, "", 100)
		must(r.t, err)
		seen := 0
		for _, f := range files {
			if name, ok := strings.CutPrefix(f.Path, "producer/"); ok {
				seen++
				if at, known := want[name]; !known || !f.Modified.Equal(at) {
					r.t.Errorf("%s of %s is of %s, want %s", name, o.ID, f.Modified, at)
				}
			}
		}
		if seen != len(want) {
			r.t.Errorf("%d files in %s, want %d", seen, o.ID, len(want))
		}
		events := r.events(o, string(premis.FilenameChange))
		if len(events) != 1 || !strings.Contains(events[0].Detail, "M%FCller.txt") || !strings.Contains(events[0].Detail, "iso-8859-1") || !strings.Contains(events[0].Detail, "producer/Müller.txt") {
			r.t.Errorf("events of names: %+v, want one with the bytes, the encoding and the name", events)
		}
	}
	return len(page.Rows)
}

// TestModified_DiesAnywhere: times and original names survive a kill at any operation on staging,
// from the download to the record.
func TestModified_DiesAnywhere(t *testing.T) {
	t.Parallel()
	for _, stage := range []registry.Stage{registry.Process, registry.Record} {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			r, stagingStore, _ := newFaultyRig(t)
			r.profile(collection, registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, NameEncoding: "iso-8859-1"})
			var times map[string]time.Time
			diesEverywhere(t, r, stage, stagingStore, func(n int) (id string, want map[string]string) {
				var data []byte
				data, want, times = oldTar(t, n)
				return r.job(registry.Spec{Type: registry.AutoType, URL: r.site.put("old.tar", string(data)), Filename: "old.tar"}), want
			})
			if n := r.haveTimes(times); n < 2 {
				t.Errorf("%d objects, want one for each death", n)
			}
		})
	}
}

// TestNamesNotUTF8_Refused: without a rule of the collection such a container is a content fault,
// and the message says how to correct it.
func TestNamesNotUTF8_Refused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	data, _, _ := oldTar(t, 1)
	it := r.fails(r.job(registry.Spec{Type: registry.AutoType, URL: r.site.put("old.tar", string(data)), Filename: "old.tar"}))
	if it.ErrorClass != registry.ContentFault || !strings.Contains(it.Note, "name_encoding") || !strings.Contains(it.Note, "Müller.txt") {
		t.Errorf("class=%s note=%s, want a fault of the content with what to do", it.ErrorClass, it.Note)
	}
	if left := keys(t, r.staging, staging.ItemPrefix(it.ID)+"/"); len(left) > 0 && strings.Contains(strings.Join(left, " "), "unpacked") {
		t.Errorf("left in staging: %v", left)
	}
}

// TestModified_Update: files that an update does not name keep their times; files sent again get
// their new ones.
func TestModified_Update(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	packed := func(files map[string]time.Time) string {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for name, at := range files {
			must(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1, ModTime: at}))
			_, err := w.Write([]byte("x"))
			must(t, err)
		}
		must(t, w.Close())
		return out.String()
	}
	first, second := time.Unix(1e9, 0).UTC(), time.Unix(2e9, 0).UTC()
	spec := registry.Spec{Type: registry.ContainerType, URL: r.site.put("one.tar", packed(map[string]time.Time{"a": first, "b": first})), Filename: "one.tar", LocalIDs: []string{"id"}}
	o := r.complete(r.job(spec))
	spec.Mode, spec.URL = registry.Update, r.site.put("two.tar", packed(map[string]time.Time{"b": second}))
	o2 := r.complete(r.job(spec))
	if o2.ID != o.ID || o2.Head != 2 {
		t.Fatalf("%s version %d, want version 2 of %s", o2.ID, o2.Head, o.ID)
	}
	for version, want := range map[int]map[string]time.Time{1: {"a": first, "b": first}, 2: {"a": first, "b": second}} {
		files, err := r.registry.Files(t.Context(), o.ID, version, "", 100)
		must(t, err)
		for _, f := range files {
			if at, ok := want[strings.TrimPrefix(f.Path, "producer/")]; ok && !f.Modified.Equal(at) {
				t.Errorf("version %d: %s is of %s, want %s", version, f.Path, f.Modified, at)
			}
		}
	}
}

// TestModified_Rows: the time in a manifest row has precedence over the server's, for object
// manifests and batch manifests.
func TestModified_Rows(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	said := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	rows := []checkm.Row{
		{URL: r.site.put("a", "alpha"), Name: "said.txt", Modified: said},
		{URL: r.site.put("b", "beta"), Name: "told.txt"},
	}
	o := r.complete(r.job(registry.Spec{Type: registry.ObjectManifest, Filename: "m", URL: r.site.manifest("m", checkm.Object, rows...)}))
	files, err := r.registry.Files(t.Context(), o.ID, 0, "", 100)
	must(t, err)
	for _, j := range r.expand(r.submit(registry.Spec{Type: registry.SingleFileBatch, URL: r.site.manifest("s", checkm.FileBatch, rows...)})) {
		single, err := r.registry.Files(t.Context(), r.complete(j.ID).ID, 0, "", 100)
		must(t, err)
		files = append(files, single...)
	}
	seen := 0
	for _, f := range files {
		switch f.Path {
		case "producer/said.txt":
			seen++
			if !f.Modified.Equal(said) {
				t.Errorf("%s is of %s, want %s", f.Path, f.Modified, said)
			}
		case "producer/told.txt":
			seen++
			if f.Modified.Equal(said) {
				t.Errorf("%s has another file's time", f.Path)
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d files, want 4", seen)
	}
}
