package intake_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
)

// tree is files by name.
type tree map[string]string

// bagTree is a valid bag of the given payload, below prefix.
func bagTree(prefix string, payload tree) tree {
	out := tree{prefix + "bagit.txt": "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"}
	var manifest strings.Builder
	for _, name := range slices.Sorted(maps.Keys(payload)) {
		fmt.Fprintf(&manifest, "%x  data/%s\n", sha256.Sum256([]byte(payload[name])), name)
		out[prefix+"data/"+name] = payload[name]
	}
	out[prefix+"manifest-sha256.txt"] = manifest.String()
	return out
}

// with returns a copy in which some files are others; "" takes one away.
func (t tree) with(change tree) tree {
	out := maps.Clone(t)
	maps.Copy(out, change)
	maps.DeleteFunc(out, func(_, content string) bool { return content == "" })
	return out
}

func (t tree) zip(tb testing.TB) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, t[name])
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func (t tree) tar(tb testing.TB) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(t[name]))})
		if err == nil {
			_, err = io.WriteString(w, t[name])
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func (t tree) fs() fs.FS {
	out := fstest.MapFS{}
	for name, content := range t {
		out[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return out
}

func judge(t *testing.T, data []byte, typ registry.PayloadType, o intake.Options) intake.Report {
	t.Helper()
	v, err := intake.Judge(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), typ, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// rules are those of a verdict's errors.
func rules(v intake.Report) (out []string) {
	for _, f := range v.Faults {
		if f.Severity == intake.Error {
			out = append(out, f.Rule+" "+f.File)
		}
	}
	return out
}

// TestJudge_Containers checks that the same files are judged alike in a zip, in a tar and in a
// folder.
func TestJudge_Containers(t *testing.T) {
	t.Parallel()
	payload := tree{"a.txt": "alpha", "b/c.txt": strings.Repeat("c", 2<<20)}
	good := bagTree("", payload)
	for _, tt := range []struct {
		name  string
		files tree
		typ   registry.PayloadType // "" = auto
		want  registry.PayloadType
		rules []string
	}{
		{"files", payload, "", registry.ContainerType, nil},
		{"a bag", good, "", registry.BagType, nil},
		{"a bag in a folder", bagTree("bag/", payload), "", registry.BagType, nil},
		{"a bag in a folder beside another file", bagTree("bag/", payload).with(tree{"readme.txt": "x"}), "", registry.ContainerType, nil},
		{"a bag to be taken as files", good, registry.ContainerType, registry.ContainerType, nil},
		{"files said to be a bag", tree{"a.txt": "alpha"}, registry.BagType, registry.BagType, []string{"declaration bagit.txt", "no-manifest manifest-sha512.txt", "payload-dir data"}},
		{"a bag that lost its declaration", good.with(tree{"bagit.txt": ""}), "", registry.BagType, []string{"declaration bagit.txt"}},
		{"a description that cannot be read", bagTree("", tree{"mrt-erc.txt": "no label", "sub/mrt-dc.xml": "<"}), "", registry.BagType, []string{"description data/mrt-erc.txt"}},
		{"two damaged files", good.with(tree{"data/a.txt": "ALPHA", "data/b/c.txt": strings.Repeat("d", 2<<20)}), "", registry.BagType, []string{"digest data/a.txt", "digest data/b/c.txt"}},
		{"a file too many and one too few", good.with(tree{"data/a.txt": "", "data/x": "x"}), "", registry.BagType, []string{"missing data/a.txt", "unlisted data/x"}},
	} {
		verdicts := map[string]intake.Report{}
		typ := tt.typ
		if typ == "" {
			typ = registry.AutoType
		}
		verdicts["zip"] = judge(t, tt.files.zip(t), typ, intake.Options{})
		verdicts["tar"] = judge(t, tt.files.tar(t), typ, intake.Options{})
		verdicts["tar.gz"] = judge(t, gzipOf(t, tt.files.tar(t)), typ, intake.Options{})
		if v, err := intake.Folder(t.Context(), tt.files.fs(), typ, intake.Options{}); err == nil {
			verdicts["folder"] = v
		} else if !errors.Is(err, intake.ErrNoJudge) || tt.want == registry.BagType {
			t.Errorf("%s: folder: %v", tt.name, err)
		}
		for how, v := range verdicts {
			slices.Sort(tt.rules)
			got := rules(v)
			slices.Sort(got)
			if v.Type != string(tt.want) || v.Valid != (len(tt.rules) == 0) || v.Accepted != v.Valid || !slices.Equal(got, tt.rules) {
				t.Errorf("%s as %s: %+v, want %s with %q", tt.name, how, v, tt.want, tt.rules)
			}
			if v.Valid && tt.want == registry.ContainerType && v.Files != int64(len(tt.files)) {
				t.Errorf("%s as %s: %d files, want %d", tt.name, how, v.Files, len(tt.files))
			}
		}
	}
}

func TestJudge_BadContainers(t *testing.T) {
	t.Parallel()
	good := tree{"a.txt": strings.Repeat("alpha", 1000), "b.txt": "beta"}.tar(t)
	for _, tt := range []struct {
		name string
		data []byte
		typ  registry.PayloadType
		rule string
	}{
		{"nothing at all", nil, registry.AutoType, "empty "},
		{"no files", tree{}.zip(t), registry.AutoType, "container-empty "},
		{"no container", []byte("just text"), registry.ContainerType, "container-format "},
		{"no container, said to be a bag", []byte("just text"), registry.BagType, "container-format "},
		{"cut off", good[:2048], registry.AutoType, "container-damaged a.txt"},
		{"escaping", tree{"../x": "x"}.tar(t), registry.AutoType, "container-name ../x"},
	} {
		v := judge(t, tt.data, tt.typ, intake.Options{})
		if got := rules(v); v.Accepted || len(got) != 1 || got[0] != tt.rule {
			t.Errorf("%s: %+v, want %q", tt.name, v, tt.rule)
		}
	}
	several := tree{"../x": "x", "/y": "y", "z": "z"}
	for how, data := range map[string][]byte{"zip": several.zip(t), "tar": several.tar(t)} {
		v := judge(t, data, registry.AutoType, intake.Options{})
		if got := rules(v); v.Accepted || v.Errors != 2 || !slices.Equal(got, []string{"container-name ../x", "container-name /y"}) {
			t.Errorf("%s with two bad names: %+v", how, v)
		}
	}
	bomb := gzipOf(t, tree{"zeros": strings.Repeat("\x00", 4<<20)}.tar(t))
	if v := judge(t, bomb, registry.AutoType, intake.Options{Limits: unpack.Limits{Bytes: 1 << 20}}); !slices.Equal(rules(v), []string{"container-limit zeros"}) {
		t.Errorf("bomb: %+v", v)
	}
}

// TestJudge_DescriptionsBehindOthers checks that an unreadable description is reported even behind
// many others that do not count. Where it cannot be known whether it is among them, the bag is
// refused.
func TestJudge_DescriptionsBehindOthers(t *testing.T) {
	t.Parallel()
	decoys := func(format string) tree {
		out := tree{}
		for i := range 3000 {
			out[fmt.Sprintf(format, i)] = "no label"
		}
		return out
	}
	bag, inFolder := tree{"mrt-erc.txt": "no label"}, bagTree("z/", tree{"mrt-erc.txt": "no label"})
	for name, tt := range map[string]struct {
		files tree
		want  string
	}{
		"in the payload":       {bagTree("", bag).with(bagTree("", decoys("a%d/data/mrt-erc.txt")).with(tree{"bagit.txt": "", "manifest-sha256.txt": ""})), "data/mrt-erc.txt"},
		"deeper":               {inFolder.with(decoys("z/a%d/data/mrt-erc.txt")), "z/data/mrt-erc.txt"},
		"of the system beside": {inFolder.with(decoys("__MACOSX%d/data/mrt-erc.txt")), "z/data"},
	} {
		v := judge(t, tt.files.tar(t), registry.BagType, intake.Options{})
		if got := rules(v); v.Accepted || !slices.Contains(got, "description "+tt.want) {
			t.Errorf("%s: %d errors, none of %q", name, v.Errors, tt.want)
		}
	}
}

// TestJudge_SystemFaults checks that a failure to read gives an error and no verdict.
func TestJudge_SystemFaults(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk")
	data := bagTree("", tree{"a": "alpha"}).tar(t)
	for _, typ := range []registry.PayloadType{registry.AutoType, registry.ContainerType, registry.BagType, registry.ObjectManifest} {
		for good := range 3 { // how many opens succeed
			n := 0
			v, err := intake.Judge(t.Context(), unpack.Input{Size: int64(len(data)), Open: func(_ context.Context, offset, length int64) (io.ReadCloser, error) {
				if n++; n > good {
					return io.NopCloser(failing{broken}), nil
				}
				return io.NopCloser(bytes.NewReader(data[offset : offset+length])), nil
			}}, typ, intake.Options{})
			if n > good && !errors.Is(err, broken) {
				t.Errorf("%s, %d good reads: %+v, %v", typ, good, v, err)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := intake.Judge(ended, unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), registry.BagType, intake.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestJudge_Remote checks that the addresses of a manifest or a holey bag are asked, and that a
// source that does not answer is distinguished from one that gives a wrong answer.
func TestJudge_Remote(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/there":
			_, _ = io.WriteString(w, "alpha")
		case "/closed":
			http.Error(w, "no", http.StatusForbidden)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	web := source.NewHTTP(source.HTTPOptions{Guard: source.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	t.Cleanup(web.Close)
	o := intake.Options{Remote: web}

	text := "#%checkm_0.7\n#%profile | " + checkm.Batch.ProfileURI() + "\n"
	for _, row := range []string{"/there | | | 5 | | a", "/there | | | 6 | | b", "/gone | | | | | c", "/closed | | | | | d"} {
		text += server.URL + row + "\n"
	}
	v := judge(t, []byte(text+"#%eof\n"), registry.BatchManifest, o)
	got := map[int]string{}
	for _, f := range v.Faults {
		if f.Severity == intake.Error {
			got[f.Line] = f.Rule
		}
	}
	want := map[int]string{4: "remote-size", 5: "remote-missing", 6: "remote-unreachable"}
	if !maps.Equal(got, want) || v.Errors != 3 || v.Unreachable != 1 || !v.Accepted || v.Valid {
		t.Errorf("got %v of %+v, want %v", got, v, want)
	}

	holey := bagTree("", tree{"a": "alpha", "b": "beta"}).with(tree{"data/a": "", "fetch.txt": server.URL + "/there 5 data/a\n"})
	if v := judge(t, holey.zip(t), registry.AutoType, o); !v.Valid || v.Warnings == 0 {
		t.Errorf("a holey bag whose file is there: %+v", v)
	}
	holey["fetch.txt"] = server.URL + "/gone 5 data/a\n"
	if v := judge(t, holey.zip(t), registry.AutoType, o); v.Valid || !slices.Equal(rules(v), []string{"remote-missing data/a"}) {
		t.Errorf("a holey bag whose file is gone: %+v", v)
	}
}

// TestJudge_FetchAddresses checks that the addresses in fetch.txt are judged like those of a
// manifest: a password and an address that is never fetched are refused.
func TestJudge_FetchAddresses(t *testing.T) {
	t.Parallel()
	for url, rule := range map[string]string{
		"http://u:pw@h.test/a": "url-secret data/a", "ftp://h.test/a": "url-scheme data/a", "upload:1": "url-scheme data/a",
		"http://h.test:99999/a": "url data/a", "https://h.test/a": "",
	} {
		holey := bagTree("", tree{"a": "alpha", "b": "beta"}).with(tree{"data/a": "", "fetch.txt": url + " 5 data/a\n"})
		v := judge(t, holey.zip(t), registry.AutoType, intake.Options{})
		if got := rules(v); v.Accepted != (rule == "") || rule != "" && !slices.Contains(got, rule) {
			t.Errorf("%s: %+v, want %q", url, v, rule)
		}
		if strings.Contains(fmt.Sprint(v), "pw") {
			t.Errorf("%s: the report repeats the password", url)
		}
	}
}

// TestJudge_ManyFaults checks that the list of faults is bounded and the count is not.
func TestJudge_ManyFaults(t *testing.T) {
	t.Parallel()
	files := bagTree("", tree{"a": "alpha"})
	for i := range 1100 {
		files[fmt.Sprintf("data/extra%04d", i)] = "x"
	}
	v := judge(t, files.zip(t), registry.AutoType, intake.Options{})
	if v.Errors != 1100 || len(v.Faults) != 1000 || !strings.Contains(v.Refusal().Error(), "and 1097 more") {
		t.Errorf("%d errors, %d listed: %v", v.Errors, len(v.Faults), v.Refusal())
	}
}

// TestJudge_PublicCases judges every public bag and OCFL object, the bags also as tars. The names
// of their folders are the expected verdicts.
func TestJudge_PublicCases(t *testing.T) {
	t.Parallel()
	bags, objects := sharedCases(t, "bagit"), sharedCases(t, "ocfl")
	met := 0
	for _, pattern := range []string{"v*/valid/*/", "v*/invalid/*/"} {
		for _, dir := range glob(t, filepath.Join(bags, pattern)) {
			met++
			valid := filepath.Base(filepath.Dir(dir)) == "valid"
			v, err := intake.Folder(t.Context(), os.DirFS(dir), registry.AutoType, intake.Options{})
			if err != nil || v.Accepted != valid {
				t.Errorf("%s: %+v, %v", dir, v, err)
			}
			packed := judge(t, packed(t, dir), registry.AutoType, intake.Options{})
			if packed.Accepted != valid || packed.Type != string(registry.BagType) {
				t.Errorf("%s in a tar: %+v", dir, packed)
			}
		}
	}
	for _, dir := range glob(t, filepath.Join(objects, "1.1/*/*/")) {
		met++
		v, err := intake.Folder(t.Context(), os.DirFS(dir), intake.OCFLObject, intake.Options{})
		if good := !strings.HasPrefix(filepath.Base(filepath.Dir(dir)), "bad"); err != nil || v.Accepted != good {
			t.Errorf("%s: %+v, %v", dir, v, err)
		}
	}
	if met < 40 {
		t.Errorf("only %d cases in %s and %s", met, bags, objects)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases %s (%v)", pattern, err)
	}
	return slices.DeleteFunc(paths, func(p string) bool {
		info, err := os.Stat(p)
		return err != nil || !info.IsDir()
	})
}

// packed is a folder as a tar.
func packed(t *testing.T, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
