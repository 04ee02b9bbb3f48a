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

// chaosSource is a server of payloads of every kind, which can misbehave. Its content depends on
// seed and scale only.
type chaosSource struct {
	url      string
	body     map[string][]byte // by path
	digested map[string]bool   // paths whose digest the manifests name: wrong bytes are found out
	scale    int

	mu    sync.Mutex
	rng   *rand.Rand
	rate  float64 // share of answers that go wrong
	asked int
	wrong map[string]int   // answers that went wrong, by kind
	sent  map[string]int64 // bytes of bodies, by path
}

// What a chaos run submits at scale 1.
const (
	chaosFiles     = 12 // rows of the batch of files; half of them share local ids, three to one
	chaosManifests = 4  // object manifests, of three files each
	chaosZips      = 4
	sharedIDs      = 2
)

// chaosBig files, at any scale, have several parts each, so that resuming inside a file shows.
const (
	chaosBig = 2
	bigSize  = 40 << 20
	bigBatch = "/big.checkm"
)

func newChaosSource(t *testing.T, seed uint64) *chaosSource { return newChaosSourceOf(t, seed, 1) }

func newChaosSourceOf(t *testing.T, seed uint64, scale int) *chaosSource {
	t.Helper()
	s := &chaosSource{
		body: map[string][]byte{}, digested: map[string]bool{}, scale: scale, rng: rand.New(rand.NewPCG(seed, 1)),
		wrong: map[string]int{}, sent: map[string]int64{},
	}
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
	for i := range chaosFiles * s.scale {
		name, local := fmt.Sprintf("f%d.bin", i), ""
		if i%2 == 0 {
			local = fmt.Sprintf("shared-%d", i/2%(sharedIDs*s.scale))
		}
		s.body["/"+name] = append(fmt.Appendf(nil, "%d of the files ", i), some(300<<10)...)
		rows = append(rows, s.row(name)+" | | "+local)
	}
	s.body["/files.checkm"] = []byte(identified("mrt-single-file-batch-manifest", rows...))
	rows = nil
	for i := range chaosManifests * s.scale {
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
	for i := range chaosZips * s.scale {
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
	rows = nil
	for i := range chaosBig {
		raw := make([]byte, bigSize+i)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(raw)
		name := fmt.Sprintf("big%d.bin", i)
		s.body["/"+name] = raw
		rows = append(rows, s.row(name))
	}
	s.body[bigBatch] = []byte(manifest("mrt-single-file-batch-manifest", rows...))
	for i := range 3 {
		s.body[fmt.Sprintf("/update%d.bin", i)] = append(fmt.Appendf(nil, "update %d ", i), some(50<<10)...)
	}
}

// row returns the manifest row of a payload, with digest and size.
func (s *chaosSource) row(name string) string {
	raw := s.body["/"+name]
	s.digested["/"+name] = true
	return fmt.Sprintf("%s/%s | sha256 | %x | %d | | %s", s.url, name, sha256.Sum256(raw), len(raw), name)
}

// ServeHTTP answers correctly, or fails like servers and networks do.
func (s *chaosSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, ok := s.body[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	switch kind := s.mood(r); kind {
	case "stall": // the kill comes, or the connection ends
		select {
		case <-r.Context().Done():
		case <-time.After(time.Second):
		}
		panic(http.ErrAbortHandler)
	case "cut off": // it promised more than it sends
		w.Header().Set("ETag", etag(raw))
		w.Header().Set("Content-Length", fmt.Sprint(len(raw)))
		s.count(r, w)(raw[:len(raw)/2])
		panic(http.ErrAbortHandler)
	case "changed": // another file, of which half comes: what goes on here must not be mixed with it
		other := bytes.Repeat([]byte("other"), len(raw)/5+1)[:len(raw)]
		w.Header().Set("ETag", etag(other))
		w.Header().Set("Content-Length", fmt.Sprint(len(raw)))
		s.count(r, w)(other[:len(raw)*9/10])
		panic(http.ErrAbortHandler)
	case "wrong bytes": // which change every time
		other := bytes.Clone(raw)
		copy(other, fmt.Sprint(time.Now().UnixNano()))
		w.Header().Set("ETag", etag(other))
		s.count(r, w)(other)
	case "wrong size":
		w.Header().Set("Content-Length", fmt.Sprint(len(raw)/2+7))
	case "busy":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	case "too many":
		w.Header().Set("Retry-After", time.Now().UTC().Add(time.Second).Format(http.TimeFormat))
		w.WriteHeader(http.StatusTooManyRequests)
	case "error":
		w.WriteHeader(http.StatusInternalServerError)
	default:
		if r.Method == http.MethodGet { // so that there is a middle to be hit
			select {
			case <-time.After(20 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
		w.Header().Set("ETag", etag(raw))
		http.ServeContent(&countedBody{w, s.count(r, w)}, r, "", time.Unix(1_000_000_000, 0), bytes.NewReader(raw))
	}
}

func etag(raw []byte) string { return fmt.Sprintf(`"%x"`, sha256.Sum256(raw)) }

// countedBody counts the bytes of a response body.
type countedBody struct {
	http.ResponseWriter
	write func([]byte) (int, error)
}

// Write implements http.ResponseWriter.
func (b *countedBody) Write(p []byte) (int, error) { return b.write(p) }

// count returns a function that writes a body and counts it.
func (s *chaosSource) count(r *http.Request, w http.ResponseWriter) func([]byte) (int, error) {
	return func(p []byte) (int, error) {
		n, err := w.Write(p)
		if r.Method == http.MethodGet {
			s.mu.Lock()
			s.sent[r.URL.Path] += int64(n)
			s.mu.Unlock()
		}
		return n, err
	}
}

// mood returns the way in which an answer fails, "" for a good one.
func (s *chaosSource) mood(r *http.Request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.rng.Float64() >= s.rate {
		return ""
	}
	kinds := []string{"stall", "cut off", "busy", "too many", "error"}
	switch {
	case r.Method == http.MethodHead:
		kinds = append(kinds, "wrong size")
	case s.digested[r.URL.Path]:
		kinds = append(kinds, "changed", "wrong bytes")
	}
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

// retransferred returns the bytes sent beyond each file's size: of all files, and of the worst.
func (s *chaosSource) retransferred() (all, most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, sent := range s.sent {
		again := max(0, sent-int64(len(s.body[path])))
		all += again
		most = max(most, again)
	}
	return all, most
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

// identified returns a [manifest] with columns for identifiers.
func identified(profile string, rows ...string) string {
	return strings.Replace(manifest(profile, rows...), "nfo:fileName\n", "nfo:fileName | mrt:primaryIdentifier | mrt:localIdentifier\n", 1)
}
