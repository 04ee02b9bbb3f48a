package intake_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
)

func zipOf(t *testing.T, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, n := range names {
		if _, err := z.Create(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func tarOf(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "a", Mode: 0o600}), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipOf(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRecognise(t *testing.T) {
	profile := func(k checkm.Kind) []byte { return []byte("#%checkm_0.7\n#%profile | " + k.ProfileURI() + "\n") }
	for _, tt := range []struct {
		name string
		head []byte
		want registry.PayloadType
	}{
		{"nothing", nil, registry.FileType},
		{"text", []byte("hello"), registry.FileType},
		{"zip", zipOf(t, "a.txt"), registry.ContainerType},
		{"empty zip", zipOf(t), registry.ContainerType},
		{"docx", zipOf(t, "[Content_Types].xml", "word/document.xml"), registry.FileType},
		{"tar", tarOf(t), registry.ContainerType},
		{"tar.gz", gzipOf(t, tarOf(t)), registry.ContainerType},
		{"gz of a file", gzipOf(t, []byte("hello")), registry.FileType},
		{"xz of a file", []byte("\xfd7zXZ\x00 and so on"), registry.FileType},
		{"object manifest", profile(checkm.Object), registry.ObjectManifest},
		{"batch manifest", profile(checkm.Batch), registry.BatchManifest},
		{"container batch", profile(checkm.ContainerBatch), registry.ContainerBatch},
		{"file batch", profile(checkm.FileBatch), registry.SingleFileBatch},
		{"storage manifest", profile(checkm.Add), registry.ObjectManifest},
		{"unknown profile", []byte("#%checkm_0.7\n#%profile | http://x/y\n"), registry.ObjectManifest},
	} {
		if got := intake.Recognise(tt.head); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		want := tt.want
		if want == registry.ContainerType {
			want = registry.AutoType // that it is a bag shows when it is opened
		}
		got, err := intake.Resolve(registry.AutoType, tt.head)
		if tt.name == "unknown profile" {
			var refused *intake.Refusal
			if !errors.As(err, &refused) || !refused.ContentFault() || !strings.Contains(err.Error(), "#%profile") {
				t.Errorf("%s: resolved to %s with %v, want a refusal that names #%%profile", tt.name, got, err)
			}
		} else if err != nil || got != want {
			t.Errorf("%s: resolved to %s with %v, want %s", tt.name, got, err, want)
		}
		if got, err := intake.Resolve(registry.FileType, tt.head); err != nil || got != registry.FileType {
			t.Errorf("%s: a type that was given became %s with %v", tt.name, got, err)
		}
	}
}

func TestParseType(t *testing.T) {
	for _, want := range registry.PayloadTypes() {
		got, err := intake.ParseType(strings.ToUpper(string(want)))
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", want, got, err)
		}
	}
	if _, err := intake.ParseType("zip"); err == nil || !strings.Contains(err.Error(), "container") {
		t.Errorf("error %v does not name what there is", err)
	}
}

func TestIsManifest(t *testing.T) {
	want := map[registry.PayloadType]bool{
		registry.ObjectManifest: true, registry.BatchManifest: true, registry.ContainerBatch: true, registry.SingleFileBatch: true,
	}
	for _, typ := range registry.PayloadTypes() {
		if got := intake.IsManifest(typ); got != want[typ] {
			t.Errorf("%s: %t", typ, got)
		}
	}
}

func TestJudge(t *testing.T) {
	object, batch := registry.ObjectManifest, registry.BatchManifest
	head := func(t registry.PayloadType) string { return "#%profile | " + checkm.Kind(t).ProfileURI() + "\n" }
	good, bad := "http://x/a | | | 1 | | a\n", "ftp://x/a | | | 1 | | b\n"
	for _, tt := range []struct {
		name string
		typ  registry.PayloadType
		text string
		ok   bool
		rows int64
	}{
		{"good", object, head(object) + good + "#%eof\n", true, 1},
		{"one bad row of an object", object, head(object) + good + bad + "#%eof\n", false, 2},
		{"one bad row of a batch", batch, head(batch) + good + bad + "#%eof\n", true, 2},
		{"only bad rows of a batch", batch, head(batch) + bad + "#%eof\n", true, 1},
		{"cut", batch, head(batch) + good, false, 1},
		{"no rows", batch, head(batch) + "#%eof\n", false, 0},
		{"empty", object, "", false, 0},
		{"another kind", object, head(batch) + good + "#%eof\n", false, 1},
		{"no profile, type given", object, good + "#%eof\n", true, 1},
	} {
		v, err := intake.Manifest(strings.NewReader(tt.text), tt.typ, intake.Options{})
		if err != nil {
			t.Fatal(err)
		}
		refusal, refused := intake.AsRefusal(v.Refusal())
		if refused == tt.ok || refused && !refusal.ContentFault() || v.Accepted != tt.ok {
			t.Errorf("%s: %+v, want accepted %t", tt.name, v, tt.ok)
		}
		if v.Rows != tt.rows {
			t.Errorf("%s: %d rows, want %d", tt.name, v.Rows, tt.rows)
		}
	}
}

// TestJudge_ReadFault checks that a failure to read a manifest is the system's fault, never the
// deposit's.
func TestJudge_ReadFault(t *testing.T) {
	broken := errors.New("disk")
	_, err := intake.Manifest(io.MultiReader(strings.NewReader("#%checkm_0.7\n"), failing{broken}), registry.ObjectManifest, intake.Options{})
	if _, refused := intake.AsRefusal(err); !errors.Is(err, broken) || refused {
		t.Errorf("error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestRefusal_NamesTheFirstFaults(t *testing.T) {
	text := "#%profile | " + checkm.Object.ProfileURI() + "\n" + strings.Repeat("ftp://x/a | | | 1 | | a\n", 6) + "#%eof\n"
	v, err := intake.Manifest(strings.NewReader(text), registry.ObjectManifest, intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err = v.Refusal(); err == nil {
		t.Fatal("accepted")
	}
	if got := err.Error(); !strings.Contains(got, "ftp") || !strings.Contains(got, "more") || strings.Count(got, "\n") > 0 {
		t.Errorf("error %q", got)
	}
}

// TestCases judges real manifests (reference/merritt.md, 3.4): what they are recognised as, and
// whether they are accepted.
func TestCases(t *testing.T) {
	refused := map[string]bool{
		"4blocks_dup_filename.checkm": true, "4blocks_incorrect_algorithm.checkm": true, "4blocks_incorrect_filesize.checkm": true,
		"4blocks_incorrect_md5_format.checkm": true, "4blocks_incorrect_url_protocol.checkm": true,
		"4blocks_missing_url.checkm": true, "4blocks_noeof.checkm": true,
	}
	types := map[string]registry.PayloadType{
		"4blocks": registry.ObjectManifest, "sampleBatchOfContainers": registry.ContainerBatch,
		"sampleBatchOfManifests": registry.BatchManifest, "sampleBatchOfFiles": registry.SingleFileBatch,
		"bigHunt": registry.ObjectManifest, "call911": registry.ObjectManifest,
		"huskyChicken": registry.AutoType, "brain_v1": registry.AutoType, "souvenirs": registry.AutoType,
	}
	folder := casesFolder(t)
	for _, pattern := range []string{"manifests/*.checkm", "sampleFiles/*.checkm", "sampleFiles/*.zip", "sampleFiles/*.gz", "sampleFiles/*.jpg"} {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no cases %s (%v)", pattern, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(path)
			got, err := intake.Resolve(registry.AutoType, data[:min(len(data), intake.HeadLen)])
			if name == "4blocks_noprofile.checkm" {
				if err == nil {
					t.Errorf("%s: taken for %s, want a refusal: nobody said what it lists", name, got)
				}
				continue
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			stem, _, _ := strings.Cut(strings.TrimSuffix(name, filepath.Ext(name)), "_incorrect")
			stem, _, _ = strings.Cut(stem, ".")
			if strings.HasPrefix(stem, "4blocks") {
				stem = "4blocks"
			}
			want, known := types[stem]
			if strings.HasSuffix(name, ".jpg") {
				want, known = registry.FileType, true
			}
			if known && got != want {
				t.Errorf("%s: recognised as %s, want %s", name, got, want)
			}
			if got == registry.AutoType {
				got = registry.ContainerType
			}
			v, err := intake.Judge(t.Context(), unpack.FromReaderAt(bytes.NewReader(data), int64(len(data))), registry.AutoType, intake.Options{})
			if err != nil || v.Accepted == refused[name] || v.Type != string(got) {
				t.Errorf("%s: %+v, %v, want %s, refused %t", name, v, err, got, refused[name])
			}
		}
	}
}

func casesFolder(t *testing.T) string { return sharedCases(t, "merritt") }

// sharedCases is the folder of one kind of the cases that lie beside the project.
func sharedCases(t *testing.T, kind string) string {
	t.Helper()
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for at != filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			folder := filepath.Join(filepath.Dir(at), "shared", "cases", kind)
			if _, err := os.Stat(folder); err != nil {
				t.Skipf("no real cases here: %v", err)
			}
			return folder
		}
		at = filepath.Dir(at)
	}
	t.Skip("not in a module")
	return ""
}
