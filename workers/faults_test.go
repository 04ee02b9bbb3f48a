package workers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// A fault of the deposit fails the item at once as a content fault. A system fault is retried, and
// finally fails as a system fault (docs/invariants.md, I8).
func TestFaults_ContentOrSystem(t *testing.T) {
	answer := func(status int) func(r *rig) {
		return func(r *rig) {
			r.site.break_(func(w http.ResponseWriter, req *http.Request) bool {
				if req.URL.Path != "/f" {
					return false
				}
				w.WriteHeader(status)
				return true
			})
		}
	}
	good := "0123456789"
	tests := []struct {
		name  string
		row   checkm.Row
		do    func(r *rig)
		class registry.ErrorClass
		words []string
	}{
		{name: "404", do: answer(404), class: registry.ContentFault, words: []string{"x.bin", "404", "/f"}},
		{name: "410", do: answer(410), class: registry.ContentFault},
		{name: "403", do: answer(403), class: registry.SystemFault, words: []string{"grant access"}},
		{name: "401", do: answer(401), class: registry.SystemFault},
		{name: "429", do: answer(429), class: registry.SystemFault},
		{name: "500", do: answer(500), class: registry.SystemFault},
		{name: "503", do: answer(503), class: registry.SystemFault},
		{name: "short body", do: func(r *rig) {
			r.site.break_(func(w http.ResponseWriter, req *http.Request) bool {
				if req.URL.Path != "/f" || req.Method == http.MethodHead {
					return false
				}
				w.Header().Set("Content-Length", "10")
				_, _ = w.Write([]byte("012"))
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			})
		}, class: registry.SystemFault, words: []string{"ended too early"}},
		{name: "refused", row: checkm.Row{URL: "http://127.0.0.1:1/f"}, class: registry.SystemFault},
		{name: "not TLS", row: checkm.Row{URL: "https://SITE/f"}, class: registry.SystemFault},
		{name: "forbidden network", row: checkm.Row{URL: "http://10.1.2.3/f"}, class: registry.ContentFault, words: []string{"HOLDFAST_NET_ALLOW"}},
		{name: "wrong size", row: checkm.Row{Size: 11}, class: registry.ContentFault, words: []string{"10 bytes", "11 bytes"}},
		{
			name: "wrong digest", row: checkm.Row{Algorithm: "sha256", Digest: sha256Of("other")}, class: registry.ContentFault,
			words: []string{sha256Of(good), sha256Of("other")},
		},
		{name: "wrong md2", row: checkm.Row{Algorithm: "md2", Digest: strings.Repeat("ab", 16)}, class: registry.ContentFault, words: []string{"md2", strings.Repeat("ab", 16)}},
		{name: "other bytes each time", row: checkm.Row{Algorithm: "sha256", Digest: sha256Of("other")}, do: func(r *rig) {
			n := 0
			r.site.break_(func(w http.ResponseWriter, req *http.Request) bool {
				if req.URL.Path != "/f" || req.Method == http.MethodHead {
					return false
				}
				n++
				fmt.Fprintf(w, "%010d", n)
				return true
			})
		}, class: registry.SystemFault, words: []string{"different bytes each time"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			url := r.site.put("f", good)
			if tt.row.URL == "" {
				tt.row.URL = url
			}
			tt.row.URL = strings.Replace(tt.row.URL, "SITE", strings.TrimSuffix(strings.TrimPrefix(r.site.url, "http://"), "/"), 1)
			tt.row.Name = "x.bin"
			m := r.site.manifest("m", checkm.Object, tt.row, checkm.Row{URL: r.site.put("g", "fine"), Name: "fine.txt"})
			if tt.do != nil {
				tt.do(r)
			}
			job := r.job(registry.Spec{Type: registry.ObjectManifest, URL: m, Filename: "m"})
			it := r.fails(job)
			wantClass(t, it, tt.class, tt.words...)
			if it.Stage != registry.Download {
				t.Errorf("failed in %s, want download: estimate never fails", it.Stage)
			}
			wantTries := 0
			if tt.class == registry.SystemFault {
				wantTries = 3
			}
			if it.Tries != wantTries {
				t.Errorf("tries=%d, want %d", it.Tries, wantTries)
			}
			if len(keys(t, r.storage, "")) > 3 {
				t.Error("something was stored")
			}
		})
	}
}

// All missing files are named at once, and the job completes when the producer has added them.
func TestDownload_NamesAllMissing(t *testing.T) {
	r := newRig(t, nil)
	var rows []checkm.Row
	for i := range 40 {
		name := fmt.Sprintf("f%02d", i)
		url := r.site.url + name
		if i%4 != 0 {
			r.site.put(name, name)
		}
		rows = append(rows, checkm.Row{URL: url, Name: name})
	}
	job := r.job(registry.Spec{Type: registry.ObjectManifest, URL: r.site.manifest("m", checkm.Object, rows...), Filename: "m"})
	it := r.fails(job)
	isContent(t, it, "f00", "f04", "f20")
	for i := 0; i < 40; i += 4 {
		r.site.put(fmt.Sprintf("f%02d", i), "late")
	}
	_, err := r.registry.Command(t.Context(), registry.Command{ItemID: job, Act: registry.ActRequeue, Actor: "tester", Reason: "put there"})
	must(t, err)
	o := r.complete(job)
	if got := r.producer(o, 1); len(got) != 40 || got["f04"] != "late" || got["f05"] != "f05" {
		t.Errorf("files %v", got)
	}
	if n := r.site.gets("f05"); n != 1 {
		t.Errorf("a file that was there was fetched %d times", n)
	}
}

// A server that fails temporarily does not delay the files of others, and is no content fault.
func TestDownload_OneServerDown(t *testing.T) {
	r := newRig(t, nil)
	r.site.break_(func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.HasPrefix(req.URL.Path, "/down") || req.Method == http.MethodHead {
			return false
		}
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	rows := []checkm.Row{{URL: r.site.put("down1", "d"), Name: "down1"}}
	for i := range 30 {
		name := fmt.Sprintf("up%d", i)
		rows = append(rows, checkm.Row{URL: r.site.put(name, name), Name: name})
	}
	job := r.job(registry.Spec{Type: registry.ObjectManifest, URL: r.site.manifest("m", checkm.Object, rows...), Filename: "m"})
	r.advance(job, registry.Download)
	if _, err := r.run(job); err == nil {
		t.Fatal("download succeeded")
	}
	if it := r.item(job); it.Status != registry.Pending || it.DoneFiles != 30 {
		t.Errorf("status=%s done=%d, want pending with 30 files", it.Status, it.DoneFiles)
	}
	r.site.break_(nil)
	r.wait(2 * 60e9)
	o := r.complete(job)
	if got := r.producer(o, 1); len(got) != 31 {
		t.Errorf("%d files", len(got))
	}
	for i := range 30 {
		if n := r.site.gets(fmt.Sprintf("up%d", i)); n != 1 {
			t.Errorf("up%d was fetched %d times", i, n)
		}
	}
}

// Payloads that are invalid as a whole.
func TestFaults_Payload(t *testing.T) {
	brokenBag := bagOf(sample(), nil)
	brokenBag["bag/data/a.txt"] = "alphA\n"
	tests := []struct {
		name  string
		typ   registry.PayloadType
		data  func(t *testing.T, s *site) string
		words []string
		batch bool // the batch itself fails
	}{
		{"no container", registry.ContainerType, func(*testing.T, *site) string { return "plain text" }, []string{"c"}, false},
		{"cut zip", registry.ContainerType, func(t *testing.T, _ *site) string { return zipOf(t, sample())[:200] }, nil, false},
		{"cut tar.gz", registry.ContainerType, func(t *testing.T, _ *site) string { z := gzipOf(t, tarOf(t, sample())); return z[:len(z)-20] }, nil, false},
		{"zip slip", registry.ContainerType, func(t *testing.T, _ *site) string { return zipOf(t, map[string]string{"../../etc/x": "x"}) }, []string{"../../etc/x"}, false},
		{"empty zip", registry.ContainerType, func(t *testing.T, _ *site) string { return zipOf(t, nil) }, []string{"no files"}, false},
		{"invalid bag", registry.BagType, func(t *testing.T, _ *site) string { return zipOf(t, brokenBag) }, []string{"data/a.txt"}, false},
		{"invalid bag, auto", registry.AutoType, func(t *testing.T, _ *site) string { return zipOf(t, brokenBag) }, []string{"data/a.txt"}, false},
		{"no bag", registry.BagType, func(t *testing.T, _ *site) string { return zipOf(t, sample()) }, []string{"bagit.txt"}, false},
		{"corrupt manifest", registry.ObjectManifest, func(*testing.T, *site) string { return "#%checkm_0.7\nhttp://x/y" }, []string{"eof"}, false},
		{"corrupt batch", registry.BatchManifest, func(*testing.T, *site) string { return "#%checkm_0.7\nhttp://x/y" }, []string{"eof"}, true},
		{"batch of none", registry.BatchManifest, func(_ *testing.T, s *site) string {
			s.manifest("one", checkm.Batch, checkm.Row{URL: "http://x/y"})
			lines := strings.SplitAfter(s.files["one"], "\n")
			return strings.Join(append(lines[:len(lines)-3], lines[len(lines)-2:]...), "")
		}, nil, true},
		{"manifest names an upload", registry.ObjectManifest, func(_ *testing.T, s *site) string {
			s.manifest("one", checkm.Object, checkm.Row{URL: s.url + "theirs", Name: "x"})
			return strings.ReplaceAll(s.files["one"], s.url+"theirs", "upload:0123")
		}, []string{"line 6", "upload:0123"}, false},
		{"bad erc", registry.ContainerType, func(t *testing.T, _ *site) string {
			return zipOf(t, map[string]string{"mrt-erc.txt": "erc:\nno colon here\n", "x": "x"})
		}, []string{"mrt-erc.txt"}, false},
		{"bad ark in erc", registry.ContainerType, func(t *testing.T, _ *site) string {
			return zipOf(t, map[string]string{"mrt-erc.txt": "erc:\nwhere: ark:/foo\n", "x": "x"})
		}, []string{"ark:/foo"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			batch := r.submit(registry.Spec{Type: tt.typ, URL: r.site.put("c", tt.data(t, r.site)), Filename: "c"})
			if tt.batch {
				isContent(t, r.fails(batch), tt.words...)
				return
			}
			jobs := r.expand(batch)
			it := r.fails(jobs[0].ID)
			isContent(t, it, tt.words...)
			if it.Tries != 0 {
				t.Errorf("a content fault was tried %d times", it.Tries)
			}
			if left := keys(t, r.staging, "items/"+it.ID); strings.Contains(strings.Join(left, " "), "unpacked") {
				t.Errorf("unpacked files are left: %v", left)
			}
		})
	}
}

// A row of a batch cannot name an upload: that address is its submitter's alone.
func TestExpand_RefusesUploadRows(t *testing.T) {
	r := newRig(t, nil)
	r.site.manifest("b", checkm.FileBatch,
		checkm.Row{URL: r.site.url + "theirs", Name: "stolen"}, checkm.Row{URL: r.site.put("f", "f"), Name: "f"})
	url := r.site.put("b", strings.ReplaceAll(r.site.files["b"], r.site.url+"theirs", "upload:abc"))
	jobs := r.expand(r.submit(registry.Spec{Type: registry.SingleFileBatch, URL: url}))
	if len(jobs) != 2 {
		t.Fatalf("%d jobs", len(jobs))
	}
	isContent(t, jobs[0], "upload:abc")
	r.complete(jobs[1].ID)
}
