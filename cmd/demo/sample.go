package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// sample is the deposit of the demo: two objects of several files with manifests, a zip and a
// picture.
type sample struct {
	address string            // of its server
	files   map[string][]byte // by name
	objects []map[string][]byte
}

func makeSample() (*sample, error) {
	diary := map[string][]byte{
		"diary-1.txt": []byte(strings.Repeat("Monday. Rain on the harbour; the nets stay dry.\n", 2000)),
		"diary-2.txt": []byte(strings.Repeat("Tuesday. We sailed at four.\n", 5000)),
	}
	letters := map[string][]byte{
		"mrt-erc.txt":        []byte("erc:\nwho: Okoye, Ada\nwhat: Letters from the coast\nwhen: 1931\nwhere: letters-1931\n"),
		"1931/first.txt":     []byte("Dear Tomás, the house is standing.\n"),
		"1931/přípis.txt":    []byte("A note that somebody added later.\n"),
		"1931/scans/one.svg": picture("#334155"),
	}
	portrait := map[string][]byte{"portrait.svg": picture("#7c2d12")}
	zipped, err := zipOf(letters)
	if err != nil {
		return nil, err
	}
	s := &sample{
		files: map[string][]byte{
			"letters.zip": zipped, "portrait.svg": portrait["portrait.svg"],
			"tide-table.txt": []byte("High water at Brest 06:12 and 18:37.\n"),
		},
		objects: []map[string][]byte{diary, letters, portrait},
	}
	for name, data := range diary {
		s.files[name] = data
	}
	return s, nil
}

// picture returns a small image, a different one for each colour.
func picture(colour string) []byte {
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><circle cx="32" cy="32" r="28" fill=%q/></svg>`, colour)
}

func zipOf(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.Create(name)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// ServeHTTP serves the files, and the manifests, which name this server.
func (s *sample) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	data, ok := s.files[name]
	switch name {
	case "batch.checkm":
		data, ok = s.batch(), true
	case "diary.checkm":
		data, ok = s.manifest("diary-1.txt", "diary-2.txt"), true
	case "tides.checkm":
		right := s.manifest("tide-table.txt")
		data, ok = bytes.Replace(right, []byte(digest(s.files["tide-table.txt"])), []byte(digest([]byte("another table"))), 1), true
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, name, time.Unix(1_700_000_000, 0), bytes.NewReader(data))
}

const (
	header = `#%checkm_0.7
#%profile | http://uc3.cdlib.org/registry/ingest/manifest/{profile}
#%prefix | mrt: | http://merritt.cdlib.org/terms#
#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#
#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName`
	objectFields = header + " | mrt:mimeType\n"
	batchFields  = header + " | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date\n"
)

// manifest returns the manifest of an object.
func (s *sample) manifest(names ...string) []byte {
	out := []byte(strings.Replace(objectFields, "{profile}", "mrt-ingest-manifest", 1))
	for _, name := range names {
		data := s.files[name]
		out = fmt.Appendf(out, "%s/%s | sha-256 | %s | %d | | %s | text/plain\n", s.address, name, digest(data), len(data), name)
	}
	return append(out, "#%eof\n"...)
}

// batch returns the manifest of the batch.
func (s *sample) batch() []byte {
	out := []byte(strings.Replace(batchFields, "{profile}", "mrt-batch-manifest", 1))
	out = fmt.Appendf(out, "%s/diary.checkm | | | | | diary.checkm | | diary-1 | Nguyễn, Minh | A fisherman's diary | 1929\n", s.address)
	out = fmt.Appendf(out, "%s/tides.checkm | | | | | tides.checkm | | tides-1 | Harbour office | Tide table, with a wrong digest | 1930\n", s.address)
	return append(out, "#%eof\n"...)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// compare compares an exported folder with the sample's objects. It returns the number of its
// files.
func (s *sample) compare(folder string) (int, error) {
	got := map[string][]byte{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		got[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, want := range s.objects {
		if equal(want, got) {
			return len(got), nil
		}
	}
	return 0, errors.New("it is not one of the submitted objects")
}

func equal(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for name, data := range a {
		other, ok := b[name]
		if !ok || !bytes.Equal(data, other) {
			return false
		}
	}
	return true
}
