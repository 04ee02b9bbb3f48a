package e2e

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// chaosSource is a server of payloads of every kind, which can be told to misbehave. What it serves depends on the seed alone.
type chaosSource struct {
	url  string
	body map[string][]byte // by path

	mu    sync.Mutex
	rng   *rand.Rand
	rate  float64 // share of answers that go wrong
	asked int
	wrong map[string]int // answers that went wrong, by kind
}

// The sizes of what a chaos run submits.
const (
	chaosFiles     = 12 // rows of the batch of files; half of them share two local ids
	chaosManifests = 4  // object manifests, of three files each
	chaosZips      = 4
	sharedIDs      = 2
)

func newChaosSource(t *testing.T, seed uint64) *chaosSource {
	t.Helper()
	s := &chaosSource{body: map[string][]byte{}, rng: rand.New(rand.NewPCG(seed, 1)), wrong: map[string]int{}}
	server, url := listen(t, s)
	s.url = url
	s.fill(t, rand.New(rand.NewPCG(seed, 2)))
	server.Start()
	return s
}

// fill makes the payloads.
func (s *chaosSource) fill(t *testing.T, rng *rand.Rand) {
	t.Helper()
	some := func(limit int) []byte {
		b := make([]byte, rng.IntN(limit))
		for i := range b {
			b[i] = byte(rng.UintN(256))
		}
		return b
	}
	var rows []string
	for i := range chaosFiles {
		name, local := fmt.Sprintf("f%d.bin", i), ""
		if i%2 == 0 {
			local = fmt.Sprintf("shared-%d", i/2%sharedIDs)
		}
		s.body["/"+name] = append(fmt.Appendf(nil, "%d of the files ", i), some(300<<10)...)
		rows = append(rows, s.row(name)+" | | "+local)
	}
	s.body["/files.checkm"] = []byte(identified("mrt-single-file-batch-manifest", rows...))
	rows = nil
	for i := range chaosManifests {
		var members []string
		for j := range 3 {
			name := fmt.Sprintf("m%d-%d.bin", i, j)
			s.body["/"+name] = append(fmt.Appendf(nil, "%d of manifest %d ", j, i), some(100<<10)...)
			members = append(members, s.row(name))
		}
		name := fmt.Sprintf("m%d.checkm", i)
		s.body["/"+name] = []byte(manifest("mrt-ingest-manifest", members...))
		rows = append(rows, s.url+"/"+name+" | | | | | "+name)
	}
	s.body["/manifests.checkm"] = []byte(manifest("mrt-batch-manifest", rows...))
	rows = nil
	for i := range chaosZips {
		name := fmt.Sprintf("z%d.zip", i)
		s.body["/"+name] = zipped(t, map[string][]byte{"a.txt": fmt.Appendf(nil, "a of %d", i), "deep/er/b.bin": some(200 << 10), "empty": nil})
		rows = append(rows, s.row(name))
	}
	s.body["/containers.checkm"] = []byte(manifest("mrt-container-batch-manifest", rows...))
	payload := append([]byte("in a bag "), some(100<<10)...)
	s.body["/bag.zip"] = zipped(t, map[string][]byte{
		"bag/bagit.txt":           []byte("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"),
		"bag/manifest-sha256.txt": fmt.Appendf(nil, "%x  data/inside.bin\n", sha256.Sum256(payload)),
		"bag/data/inside.bin":     payload,
	})
	for i := range 3 {
		s.body[fmt.Sprintf("/update%d.bin", i)] = append(fmt.Appendf(nil, "update %d ", i), some(50<<10)...)
	}
}

// row is a manifest's row for a payload, with digest and size.
func (s *chaosSource) row(name string) string {
	raw := s.body["/"+name]
	return fmt.Sprintf("%s/%s | sha256 | %x | %d | | %s", s.url, name, sha256.Sum256(raw), len(raw), name)
}

// ServeHTTP answers as asked, or goes wrong in one of the ways that servers and networks do.
func (s *chaosSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, ok := s.body[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	switch kind := s.mood(); kind {
	case "stall": // the kill comes, or the connection ends
		select {
		case <-r.Context().Done():
		case <-time.After(time.Second):
		}
		panic(http.ErrAbortHandler)
	case "reset", "short":
		w.Header().Set("Content-Length", fmt.Sprint(len(raw)))
		w.Write(raw[:len(raw)/2])
		panic(http.ErrAbortHandler)
	case "busy":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	case "error":
		w.WriteHeader(http.StatusInternalServerError)
	default:
		if r.Method == http.MethodGet { // so that there is a middle to be hit
			select {
			case <-time.After(20 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(raw)))
		http.ServeContent(w, r, "", time.Unix(1_000_000_000, 0), bytes.NewReader(raw))
	}
}

func (s *chaosSource) mood() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.rng.Float64() >= s.rate {
		return ""
	}
	kinds := []string{"stall", "reset", "short", "busy", "error"}
	kind := kinds[s.rng.IntN(len(kinds))]
	s.wrong[kind]++
	return kind
}

// behave sets the share of answers that go wrong.
func (s *chaosSource) behave(rate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rate = rate
}

// zipped makes a zip.
func zipped(t *testing.T, members map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, raw := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Unix(1_000_000_000, 0)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(raw); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// identified is [manifest] with columns for identifiers.
func identified(profile string, rows ...string) string {
	return strings.Replace(manifest(profile, rows...), "nfo:fileName\n", "nfo:fileName | mrt:primaryIdentifier | mrt:localIdentifier\n", 1)
}
