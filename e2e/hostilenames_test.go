package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hostileNames are those of real input 41 (reference/merritt.md, 3.4).
var hostileNames = []string{
	"README 1.md", "README+2.md", "README %AF.md", "Test50%majrule.txt", "Z_5%_400C-bet.xlsx", "README cliché.md", "README|pipe.md",
	"こんにちは.md", "שלום", "مرحبا", "file☠☡☢☣.txt", "file..name..with..dots.txt", "file & name.txt", "∑a ≤ b.txt",
	"caf\u00e9.txt", "cafe\u0301.txt", // the same in two normal forms
	"\ufffd", "File%00x.md", "File%hhx.md", "File%!!x.md",
}

// TestRealInput41_HostileNames: files with hostile names, however they come in, go out under the
// same names, byte for byte, with the same content, and no other file does.
func TestRealInput41_HostileNames(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for i, name := range hostileNames {
		want[name] = fmt.Sprintf("content %d of %q\n", i, name)
	}
	folder := t.TempDir()
	write := func(name, data string) string {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var zipped, tarred bytes.Buffer
	z, tw := zip.NewWriter(&zipped), tar.NewWriter(&tarred)
	for _, name := range hostileNames {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, want[name])
		}
		if err == nil {
			err = tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(want[name]))})
		}
		if err == nil {
			_, err = io.WriteString(tw, want[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	web, address := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := want[strings.TrimPrefix(r.URL.Path, "/")]; ok {
			content(text)(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	web.Start()
	named, unnamed := make([]string, len(hostileNames)), make([]string, len(hostileNames))
	singles := make([]string, len(hostileNames))
	for i, name := range hostileNames {
		at := address + "/" + url.PathEscape(name)
		named[i] = fmt.Sprintf("%s | | | %d | | %s", at, len(want[name]), strings.NewReplacer(" ", "%20", "|", "%7c").Replace(name))
		unnamed[i] = at + " | | | | |" // its name is its address's
		singles[i] = write(filepath.Join("singles", name), want[name])
	}
	h := up(t)
	for _, tt := range []struct{ name, path string }{
		{"zip", write("names.zip", zipped.String())},
		{"tar", write("names.tar", tarred.String())},
		{"folder", filepath.Join(folder, "singles")},
		{"object manifest", write("named.checkm", manifest("mrt-ingest-manifest", named...))},
		{"object manifest without names", write("unnamed.checkm", manifest("mrt-ingest-manifest", unnamed...))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h.t = t
			s, code := h.submit("--force", tt.path)
			if code != 0 || len(s.Jobs) != 1 {
				t.Fatalf("exit=%d summary=%+v", code, s)
			}
			if diff := cmp.Diff(want, exportedFiles(t, h, s.Jobs[0].ObjectID)); diff != "" {
				t.Errorf("names and contents (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("single uploads", func(t *testing.T) {
		h.t = t
		r := h.run(append([]string{"submit", "--wait", "--json", "--type", "file", "--force"}, singles...)...)
		if r.code != 0 {
			t.Fatalf("exit=%d: %s%s", r.code, r.stdout, r.stderr)
		}
		got := map[string]string{}
		for line := range strings.Lines(r.stdout) {
			if !strings.Contains(line, `"message_type":"summary"`) {
				continue
			}
			var s summary
			if err := json.Unmarshal([]byte(line), &s); err != nil || len(s.Jobs) != 1 {
				t.Fatalf("summary %s: %v", line, err)
			}
			one := exportedFiles(t, h, s.Jobs[0].ObjectID)
			if len(one) != 1 {
				t.Errorf("%s has files %v", s.Jobs[0].ObjectID, slices.Collect(maps.Keys(one)))
			}
			maps.Copy(got, one)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("names and contents (-want +got):\n%s", diff)
		}
	})
	t.Run("all verify", func(t *testing.T) {
		h.t = t
		if r := h.run("object", "verify", "--all"); r.code != 0 {
			t.Errorf("verify ended with %d: %s%s", r.code, r.stdout, r.stderr)
		}
	})
}

// exportedFiles exports an object and returns its producer's files by name.
func exportedFiles(t *testing.T, h *holdfast, object string) map[string]string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	if r := h.run("object", "export", object, "--out", out); r.code != 0 {
		t.Fatalf("export %s ended with %d: %s", object, r.code, r.stderr)
	}
	return files(t, out)
}
