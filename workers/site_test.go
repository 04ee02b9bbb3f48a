package workers_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// site is a depositor's web server.
type site struct {
	t   testing.TB
	url string

	mu    sync.Mutex
	files map[string]string
	asked map[string]int // GETs by path
	// fault, when set, may answer a request itself.
	fault func(w http.ResponseWriter, r *http.Request) bool
}

func newSite(t testing.TB) *site {
	s := &site{t: t, files: map[string]string{}, asked: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL + "/"
	return s
}

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	s.mu.Lock()
	data, ok := s.files[name]
	if r.Method == http.MethodGet {
		s.asked[name]++
	}
	fault := s.fault
	s.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	sum := sha256.Sum256([]byte(data))
	w.Header().Set("ETag", fmt.Sprintf("%q", hex.EncodeToString(sum[:8])))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), strings.NewReader(data))
}

// put publishes a file and returns its address.
func (s *site) put(name, data string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[name] = data
	return s.url + name
}

func (s *site) break_(fault func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

func (s *site) gets(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

// manifest publishes a Checkm manifest of the rows.
func (s *site) manifest(name string, kind checkm.Kind, rows ...checkm.Row) string {
	s.t.Helper()
	var out bytes.Buffer
	w := checkm.NewWriter(&out, kind)
	for _, row := range rows {
		if row.Size == 0 {
			row.Size = -1
		}
		must(s.t, w.Write(row))
	}
	must(s.t, w.Close())
	return s.put(name, out.String())
}

// files that most tests submit.
func sample() map[string]string {
	return map[string]string{
		"a.txt":         "alpha\n",
		"sub/b.txt":     "beta\n",
		"sub/same.txt":  "alpha\n",
		"sub/empty.bin": "",
	}
}

func zipOf(t testing.TB, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.Create(name)
		must(t, err)
		_, err = w.Write([]byte(files[name]))
		must(t, err)
	}
	must(t, z.Close())
	return out.String()
}

func tarOf(t testing.TB, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Format: tar.FormatPAX}))
		_, err := w.Write([]byte(files[name]))
		must(t, err)
	}
	must(t, w.Close())
	return out.String()
}

func gzipOf(t testing.TB, data string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write([]byte(data))
	must(t, err)
	must(t, w.Close())
	return out.String()
}

func sha256Of(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

func digestOf(data string) *registry.Digest {
	return &registry.Digest{Algorithm: "sha256", Value: sha256Of(data)}
}

// bagOf makes a bag in one top folder; holes are left out and named in fetch.txt, by address.
func bagOf(files, holes map[string]string) map[string]string {
	bag := map[string]string{"bag/bagit.txt": "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"}
	var manifest, fetch strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&manifest, "%s  data/%s\n", sha256Of(files[name]), name)
		if address, ok := holes[name]; ok {
			fmt.Fprintf(&fetch, "%s %d data/%s\n", address, len(files[name]), name)
			continue
		}
		bag["bag/data/"+name] = files[name]
	}
	bag["bag/manifest-sha256.txt"] = manifest.String()
	if len(holes) > 0 {
		bag["bag/fetch.txt"] = fetch.String()
	}
	return bag
}
