package workers_test

import (
	"bytes"
	"crypto/md5"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// listOf makes an mrt-manifest.txt of rows.
func listOf(t testing.TB, rows ...checkm.Row) string {
	t.Helper()
	var out bytes.Buffer
	w := checkm.NewWriter(&out, checkm.InContainer)
	for _, row := range rows {
		must(t, w.Write(row))
	}
	must(t, w.Close())
	return out.String()
}

// rowOf is what is true of a file.
func rowOf(name, data string) checkm.Row {
	return checkm.Row{Name: name, Algorithm: "sha256", Digest: sha256Of(data), Size: int64(len(data))}
}

// A container whose list matches its files, by any algorithms, is stored with its list.
func TestCorroborate_Agrees(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.txt": "alpha", "sub/b|c.txt": "beta", "empty": "", "no digest": "x", "no size": "y", "mrt-erc.txt": "erc:\nwhat: listed, too\n"}
	m5, s512 := md5.Sum([]byte("beta")), sha512.Sum512(nil)
	list := listOf(
		t, rowOf("a.txt", "alpha"), rowOf("mrt-erc.txt", files["mrt-erc.txt"]),
		checkm.Row{Name: "sub/b|c.txt", Algorithm: "md5", Digest: hex.EncodeToString(m5[:]), Size: 4},
		checkm.Row{Name: "empty", Algorithm: "sha512", Digest: hex.EncodeToString(s512[:]), Size: 0},
		checkm.Row{Name: "no digest", Size: 1},
		checkm.Row{Name: "no size", Size: -1, Algorithm: "sha256", Digest: sha256Of("y")},
		checkm.Row{Name: "mrt-manifest.txt", Size: 1}, // whatever it says of itself
	)
	for _, typ := range []registry.PayloadType{registry.ContainerType, registry.AutoType} {
		t.Run(string(typ), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			with := maps.Clone(files)
			with["mrt-manifest.txt"] = list
			o := r.complete(r.job(registry.Spec{Type: typ, URL: r.site.put("c.zip", zipOf(t, with)), Filename: "c.zip"}))
			r.valid(o, 1)
			if diff := cmp.Diff(with, r.producer(o, 1)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if o.Title != "listed, too" {
				t.Errorf("title %q", o.Title)
			}
			wantListed(t, r.files(o, 1)) // ours lies beside it
		})
	}
}

// All differences between a container's list and its files are reported at once, and fail the job
// for good.
func TestCorroborate_Disagrees(t *testing.T) {
	t.Parallel()
	m5 := md5.Sum([]byte("other"))
	files := map[string]string{"good": "good", "size": "size", "digest": "digest", "md5": "md5", "unlisted": "u", "sub/unlisted, too": "u"}
	files["mrt-manifest.txt"] = listOf(
		t, rowOf("good", "good"),
		checkm.Row{Name: "size", Size: 5},
		checkm.Row{Name: "digest", Size: 6, Algorithm: "sha256", Digest: sha256Of("other")},
		checkm.Row{Name: "md5", Size: 3, Algorithm: "md5", Digest: hex.EncodeToString(m5[:])},
		rowOf("absent", "x"), rowOf("sub/absent, too", "x"),
	)
	for kind, data := range map[string]string{"zip": zipOf(t, files), "tar.xz": xzOf(t, tarOf(t, files))} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			it := r.fails(r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c", data), Filename: "c"}))
			isContent(
				t, it, "mrt-manifest.txt", "size (mrt-manifest.txt:7): listing-size; expected: 5 bytes; found: 4 bytes",
				"digest (mrt-manifest.txt:8): listing-digest; expected: sha256 "+sha256Of("other")+"; found: "+sha256Of("digest"),
				"md5 (mrt-manifest.txt:9): listing-digest; expected: md5 "+hex.EncodeToString(m5[:]),
				"\nunlisted (mrt-manifest.txt): listing-extra", "sub/unlisted, too (mrt-manifest.txt): listing-extra",
				"absent (mrt-manifest.txt:10): listing-absent", "sub/absent, too (mrt-manifest.txt:11): listing-absent",
			)
			if strings.Contains(it.Note, "good") || it.Tries != 0 {
				t.Errorf("tried %d times; note %q", it.Tries, it.Note)
			}
			if left := keys(t, r.staging, "items/"+it.ID); strings.Contains(strings.Join(left, " "), "unpacked") {
				t.Errorf("unpacked files are left: %v", left)
			}
		})
	}
}

// An invalid list is refused with its faults.
func TestCorroborate_BadList(t *testing.T) {
	t.Parallel()
	good := listOf(t, rowOf("x", "x"))
	for name, tt := range map[string]struct {
		list  string
		words []string
	}{
		"cut":             {strings.TrimSuffix(good, "#%eof\n"), []string{"#%eof"}},
		"another profile": {strings.Replace(good, "store/manifest/mrt-object-manifest", "ingest/manifest/mrt-ingest-manifest", 1), []string{"profile"}},
		"no list":         {"these are my files\n", []string{"mrt-manifest.txt"}},
		"named twice":     {listOf(t, rowOf("x", "x"), rowOf("y", "y")), []string{"mrt-manifest.txt:7", "line 6"}},
		"no rows":         {good[:strings.Index(good, "x |")] + "#%eof\n", []string{"refused"}},
		"escaping":        {strings.Replace(good, "\nx |", "\n../x |", 1), []string{"../x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "named twice" {
				tt.list = strings.Replace(tt.list, "\ny |", "\nx |", 1)
			}
			r := newRig(t, nil)
			data := zipOf(t, map[string]string{"x": "x", "mrt-manifest.txt": tt.list})
			it := r.fails(r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c", data), Filename: "c"}))
			isContent(t, it, append(tt.words, "mrt-manifest.txt")...)
		})
	}
}

// Of many faults the first are named and the others counted.
func TestCorroborate_ManyFaults(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("f%02d", i)] = "x"
	}
	files["mrt-manifest.txt"] = listOf(t, rowOf("f00", "x"))
	r := newRig(t, nil)
	it := r.fails(r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c", zipOf(t, files)), Filename: "c"}))
	isContent(t, it, "f01 (mrt-manifest.txt): listing-extra", "f10 (", "and 39 more files")
}

// Only a container has such a list: in other submissions a file of that name is an ordinary file.
func TestCorroborate_OnlyInContainers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	list := listOf(t, rowOf("absent", "x"))
	url := r.site.manifest("m", checkm.Object, checkm.Row{URL: r.site.put("mrt-manifest.txt", list), Name: "mrt-manifest.txt"})
	o := r.complete(r.job(registry.Spec{Type: registry.ObjectManifest, URL: url, Filename: "m"}))
	if got := r.producer(o, 1); got["mrt-manifest.txt"] != list {
		t.Errorf("files %v", got)
	}
	deeper := zipOf(t, map[string]string{"sub/mrt-manifest.txt": list, "x": "x"})
	r.complete(r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c", deeper), Filename: "c"}))
}
