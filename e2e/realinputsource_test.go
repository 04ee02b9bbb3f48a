package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inputs are the real inputs and the server that they are fetched from: the files that are there,
// and those that were written after their descriptions.
type inputs struct {
	t       *testing.T
	url     string
	folder  string            // of the sample files
	written map[string]string // by name
}

func newInputs(t *testing.T) *inputs {
	in := &inputs{t: t, folder: cases(t), written: map[string]string{}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if !in.has(name) {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, name, time.Unix(1_000_000_000, 0), strings.NewReader(in.text(name)))
	}))
	t.Cleanup(srv.Close)
	in.url = srv.URL
	return in
}

// path is where a file lies that was not written here; "" when it is nowhere.
func (in *inputs) path(name string) string {
	for _, folder := range []string{in.folder, filepath.Join(filepath.Dir(in.folder), "manifests")} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	return ""
}

func (in *inputs) has(name string) bool {
	_, written := in.written[name]
	return written || in.path(name) != ""
}

// text is a file as it is served: the public host that manifests name is this server.
func (in *inputs) text(name string) string {
	text, written := in.written[name]
	if !written {
		raw, err := os.ReadFile(in.path(name))
		if err != nil {
			in.t.Errorf("real input %s: %v", name, err)
		}
		text = string(raw)
	}
	if strings.Contains(name, ".checkm") {
		text = strings.ReplaceAll(text, publicHost, in.url)
	}
	return text
}

// file writes an input to disk, as its depositor has it, and returns its path.
func (in *inputs) file(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(in.text(name)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// write adds a file to the server and returns its name.
func (in *inputs) write(name, text string) string {
	in.written[name] = text
	return name
}

// edited is a real manifest with parts of it replaced, in pairs of old and new; each must be there.
func (in *inputs) edited(name, from string, pairs ...string) string {
	text := in.text(from)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			in.t.Fatalf("%s has no %q", from, pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return in.write(name, text)
}

// zip adds a zip file to the server and returns its name.
func (in *inputs) zip(name string, members map[string]string) string {
	path := filepath.Join(in.t.TempDir(), "zip")
	zipTo(in.t, path, members)
	raw, err := os.ReadFile(path)
	if err != nil {
		in.t.Fatal(err)
	}
	return in.write(name, string(raw))
}

// files are some of the sample files under their own names.
func (in *inputs) files(names ...string) object {
	o := object{}
	for _, name := range names {
		o[name] = in.text(name)
	}
	return o
}

// members are what is in a container of the sample files.
func (in *inputs) members(name string) object { return unpacked(in.t, in.path(name)) }
