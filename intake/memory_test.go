package intake_test

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
)

// mostMemory is what judging one payload may take of a process, whatever the payload
// (docs/security.md).
const mostMemory = 128 << 20

// hostile is a payload that is made to use up memory. It is at most as large as its bytes say.
type hostile struct {
	name string
	typ  registry.PayloadType // "" = auto
	make func(t *testing.T, w io.Writer)
	// judged says what there must be of the verdict, so that nothing passes that was not judged at
	// all.
	judged func(v intake.Report) bool
}

// lines yields n copies of a line.
func lines(line string, bytes int) io.Reader {
	return io.LimitReader(&repeated{line: line}, int64(bytes/len(line)*len(line)))
}

// repeated is a line without end.
type repeated struct {
	line string
	at   int
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) {
		m := copy(p[n:], r.line[r.at:])
		n, r.at = n+m, (r.at+m)%len(r.line)
	}
	return n, nil
}

// numbered yields n lines, each by its number.
func numbered(n int, line func(b []byte, i int) []byte) io.Reader {
	r, w := io.Pipe()
	go func() {
		out := bufio.NewWriterSize(w, 1<<16)
		var b []byte
		for i := range n {
			b = line(b[:0], i)
			if _, err := out.Write(b); err != nil {
				return
			}
		}
		_ = out.Flush()
		w.Close()
	}()
	return r
}

// inTar is a file of a tar, of which the content comes from a reader of that many bytes.
type inTar struct {
	name string
	size int64
	r    io.Reader
}

func text(name, content string) inTar {
	return inTar{name, int64(len(content)), strings.NewReader(content)}
}

// sized measures what a reader will yield by reading another of the kind.
func sized(name string, make func() io.Reader) inTar {
	n, _ := io.Copy(io.Discard, make())
	return inTar{name, n, make()}
}

// tarZst writes a tar in Zstandard.
func tarZst(t *testing.T, w io.Writer, files ...inTar) {
	t.Helper()
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	writeTar(t, z, files...)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeTar(t *testing.T, w io.Writer, files ...inTar) {
	t.Helper()
	tw := tar.NewWriter(w)
	for _, f := range files {
		err := tw.WriteHeader(&tar.Header{Name: f.name, Mode: 0o600, Size: f.size})
		if err == nil {
			_, err = io.CopyN(tw, f.r, f.size)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
}

// bagWith is a bag in a tar.zst of which one file is another.
func bagWith(name string, content func() io.Reader) func(*testing.T, io.Writer) {
	return func(t *testing.T, w io.Writer) {
		var files []inTar
		for n, c := range bagTree("", tree{"a.txt": "alpha"}) {
			if n != name {
				files = append(files, text(n, c))
			}
		}
		tarZst(t, w, append(files, sized(name, content))...)
	}
}

const objectHead = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n"

func manifestOf(rows io.Reader) func(*testing.T, io.Writer) {
	return func(t *testing.T, w io.Writer) {
		if _, err := io.Copy(w, io.MultiReader(strings.NewReader(objectHead), rows, strings.NewReader("#%eof\n"))); err != nil {
			t.Fatal(err)
		}
	}
}

// manyErrors says that far more errors were counted than are listed.
func manyErrors(v intake.Report) bool { return v.Errors > 100_000 && len(v.Faults) == 1000 }

func broken(v intake.Report) bool { return !v.Valid && len(v.Faults) > 0 }

// corpus is payloads that are made to use up memory, each with another part of what judges them.
func corpus() []hostile {
	const (
		large = 100 << 20
		some  = 24 << 20 // enough to show that memory does not grow
	)
	million := 1_000_000
	sum := func(i int) [32]byte { return sha256.Sum256(strconv.AppendInt(nil, int64(i), 10)) }
	zeros := strings.Repeat("0", 64)
	return []hostile{
		{"bag: faulty lines in fetch.txt", "", bagWith("fetch.txt", func() io.Reader { return lines("x y z\n", large) }), manyErrors},
		{"bag: faulty lines in a manifest", "", bagWith("manifest-sha512.txt", func() io.Reader { return lines("no digest\n", large) }), manyErrors},
		{"bag: one line again and again in a manifest", "", bagWith("manifest-sha512.txt", func() io.Reader { return lines("00  data/a.txt\n", some) }), manyErrors},
		{"bag: entries again and again in fetch.txt", "", bagWith("fetch.txt", func() io.Reader { return lines("http://h.test/a - data/a.txt\n", some) }), broken},
		{"bag: faulty lines in bag-info.txt", "", bagWith("bag-info.txt", func() io.Reader { return lines("no tag\n", some) }), manyErrors},
		{"bag: tags without end in bag-info.txt", "", bagWith("bag-info.txt", func() io.Reader { return lines("Label: value\n", some) }), broken},
		{"bag: a line without end", "", bagWith("manifest-sha512.txt", func() io.Reader { return lines("a", some) }), broken},
		{"bag: one value of lines without end", "", bagWith("bag-info.txt", func() io.Reader { return io.MultiReader(strings.NewReader("Label: value\n"), lines(" more\n", some)) }), broken},
		{"bag: long names that are not there", "", bagWith("manifest-sha512.txt", func() io.Reader {
			return numbered(100, func(b []byte, i int) []byte {
				return fmt.Appendf(b, "%s%s  data/%d%s\n", zeros, zeros, i, strings.Repeat("x", 1_000_000))
			})
		}), broken},
		{"bag: a million names that are not there", "", bagWith("manifest-md5.txt", func() io.Reader {
			return numbered(million, func(b []byte, i int) []byte { return fmt.Appendf(b, "%s  data/%d\n", zeros[:32], i) })
		}), func(v intake.Report) bool { return v.Errors >= int64(million) }},
		{"bag: variants of one name", "", bagWith("manifest-md5.txt", func() io.Reader {
			return numbered(million, func(b []byte, i int) []byte {
				b = fmt.Appendf(b, "%s  data/", zeros[:32])
				for bit := range 20 {
					b = append(b, "aA"[i>>bit&1])
				}
				return append(b, '\n')
			})
		}), broken},
		{"bag: long variants of one name", "", bagWith("manifest-md5.txt", func() io.Reader {
			path := strings.Repeat("folder-of-some-length/", 180) // of 4,096 bytes
			return numbered(30_000, func(b []byte, i int) []byte {
				b = fmt.Appendf(b, "%s  data/%s", zeros[:32], path)
				for bit := range 15 {
					b = append(b, "aA"[i>>bit&1])
				}
				return append(b, '\n')
			})
		}), broken},
		{"bag: as many manifests as there may be, of many lines", "", func(t *testing.T, w io.Writer) {
			var files []inTar
			for name, content := range bagTree("", tree{"a.txt": "alpha"}) {
				files = append(files, text(name, content))
			}
			const n = 20_000
			for i := range 63 {
				files = append(files, sized(fmt.Sprintf("manifest-x%d.txt", i), func() io.Reader {
					return numbered(n, func(b []byte, i int) []byte { return fmt.Appendf(b, "00  data/%0100d\n", i) })
				}))
			}
			tarZst(t, w, files...)
		}, func(v intake.Report) bool { return v.Errors >= 20_000 }},
		{"bag: thousands of manifests", "", func(t *testing.T, w io.Writer) {
			var files []inTar
			for name, content := range bagTree("", tree{"a.txt": "alpha"}) {
				files = append(files, text(name, content))
			}
			for i := range 5000 {
				files = append(files, text(fmt.Sprintf("manifest-x%d.txt", i), strings.Repeat("no digest\n", 2000)))
			}
			tarZst(t, w, files...)
		}, broken},
		{"container: deep folders", "", func(t *testing.T, w io.Writer) {
			var files []inTar
			for i := range 10_000 {
				files = append(files, text(strconv.Itoa(i)+strings.Repeat("/a", 500), ""))
			}
			tarZst(t, w, files...)
		}, broken},
		{"container: a million files in a zip", "", func(t *testing.T, w io.Writer) {
			z := zip.NewWriter(w)
			for i := range million - 10 {
				if _, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("folder-%d/a-name-of-the-usual-length-%d.tif", i/1000, i)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
		}, func(v intake.Report) bool { return v.Valid && v.Files == int64(million-10) }},
		{"container: a million names in a zip that are no good", "", func(t *testing.T, w io.Writer) {
			z := zip.NewWriter(w)
			for i := range million - 10 {
				if _, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("../%d", i)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
		}, broken},
		{"bag: hundreds of thousands of files, listed by two manifests", "", func(t *testing.T, w io.Writer) {
			const n = 120_000
			empty, empty5 := sha256.Sum256(nil), "d41d8cd98f00b204e9800998ecf8427e"
			files := []inTar{
				text("bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"),
				sized("manifest-sha256.txt", func() io.Reader {
					return numbered(n, func(b []byte, i int) []byte { return fmt.Appendf(b, "%x  data/%d/%d.tif\n", empty, i/1000, i) })
				}),
				sized("manifest-md5.txt", func() io.Reader {
					return numbered(n, func(b []byte, i int) []byte { return fmt.Appendf(b, "%s  data/%d/%d.tif\n", empty5, i/1000, i) })
				}),
			}
			for i := range n {
				files = append(files, text(fmt.Sprintf("data/%d/%d.tif", i/1000, i), ""))
			}
			tarZst(t, w, files...)
		}, func(v intake.Report) bool { return v.Valid && v.Type == "bag" && v.Files == 120_000 }},
		{"manifest: faulty rows", "", manifestOf(lines("http://h.test/a | md6 | 1 | x\n", some)), manyErrors},
		{"manifest: a million rows", "", manifestOf(numbered(million, func(b []byte, i int) []byte {
			return fmt.Appendf(b, "https://h.test/%d | sha256 | %x | 1 | | f%d/%d\n", i, sum(i), i, i)
		})), func(v intake.Report) bool { return v.Files == int64(million) }},
		{"manifest: a line without end", "", manifestOf(lines("a", some)), broken},
		{"container: faulty rows in mrt-manifest.txt", "", func(t *testing.T, w io.Writer) {
			tarZst(t, w, text("a.txt", "alpha"), sized("mrt-manifest.txt", func() io.Reader {
				return io.MultiReader(strings.NewReader("#%checkm_0.7\n"), lines("a.txt | md6 | 1 | x\n", some))
			}))
		}, manyErrors},
		{"container: a million rows in mrt-manifest.txt", "", func(t *testing.T, w io.Writer) {
			tarZst(t, w, text("a.txt", "alpha"), sized("mrt-manifest.txt", func() io.Reader {
				return io.MultiReader(strings.NewReader("#%checkm_0.7\n"), numbered(million, func(b []byte, i int) []byte {
					return fmt.Appendf(b, "%d.tif | sha256 | %x | 1 | | %d.tif\n", i, sum(i), i)
				}), strings.NewReader("#%eof\n"))
			}))
		}, broken},
		{"container: mrt-erc.txt without end", "", func(t *testing.T, w io.Writer) {
			tarZst(t, w, text("a.txt", "alpha"), sized("mrt-erc.txt", func() io.Reader { return lines("who: x\n", some) }))
		}, broken},
		{"container: mrt-datacite.xml without end", "", func(t *testing.T, w io.Writer) {
			tarZst(t, w, text("a.txt", "alpha"), sized("mrt-datacite.xml", func() io.Reader { return lines("<a>", some) }))
		}, broken},
		{"container: mrt-datacite.xml whose elements only seem to be closed", "", func(t *testing.T, w io.Writer) {
			tarZst(t, w, text("a.txt", "alpha"), sized("mrt-datacite.xml", func() io.Reader { return lines("<a>/>", 4<<20-1<<10) }))
		}, broken},
		{"container: mrt-dc.xml without end", "", func(t *testing.T, w io.Writer) {
			tarZst(t, w, text("a.txt", "alpha"), sized("mrt-dc.xml", func() io.Reader {
				return io.MultiReader(strings.NewReader(`<d xmlns:dc="http://purl.org/dc/elements/1.1/">`), lines("<dc:title>x</dc:title>", some))
			}))
		}, broken},
		{"container: the widest window", "", func(t *testing.T, w io.Writer) {
			z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(unpack.DefaultWindow))
			if err != nil {
				t.Fatal(err)
			}
			writeTar(t, z, sized("noise", func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{}), unpack.DefaultWindow+1<<20) }))
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
		}, func(v intake.Report) bool { return v.Valid }},
		{"container: a gzip of zeros", "", func(t *testing.T, w io.Writer) {
			z := gzip.NewWriter(w)
			writeTar(t, z, sized("zeros", func() io.Reader { return lines("\x00", large) }))
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
		}, func(v intake.Report) bool { return v.Valid }},
	}
}

// objectWith is an OCFL object of which the inventory is another text.
func objectWith(t *testing.T, inventory ...io.Reader) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "0=ocfl_object_1.1"), []byte("ocfl_object_1.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(folder, "inventory.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, io.MultiReader(inventory...)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return folder
}

// inventories are made to use up memory by their form.
func inventories() map[string][]io.Reader {
	const large = 6 << 20
	return map[string][]io.Reader{
		"nested":           {strings.NewReader(`{"x":`), lines("[", 100<<20)},
		"nested objects":   {strings.NewReader(`{"x":`), lines(`{"a":`, large)},
		"one string":       {strings.NewReader(`{"id":"`), lines("x", 100<<20), strings.NewReader(`"}`)},
		"one number":       {strings.NewReader(`{"id":`), lines("1", 100<<20), strings.NewReader(`}`)},
		"one key again":    {strings.NewReader(`{"x":0`), lines(`,"x":0`, large), strings.NewReader(`}`)},
		"many keys":        {strings.NewReader(`{"x":0`), numbered(large/16, func(b []byte, i int) []byte { return fmt.Appendf(b, `,"%d":0`, i) }), strings.NewReader(`}`)},
		"paths of no kind": {strings.NewReader(`{"manifest":{"ab":[0`), lines(",0", large), strings.NewReader(`]}}`)},
	}
}

// inventoryOf is an inventory of n files in some versions, each the same, with further blocks at
// its end.
func inventoryOf(n, versions int, digest, path func(b []byte, i int) []byte, more ...io.Reader) []io.Reader {
	block := func(prefix string) io.Reader {
		return numbered(n, func(b []byte, i int) []byte {
			b = append(b, ",\""[min(i, 1)^1:]...)
			b = append(digest(b, i), `":["`+prefix...)
			return append(path(b, i), "\"]\n"...)
		})
	}
	parts := []io.Reader{
		strings.NewReader(fmt.Sprintf(`{"id":"urn:x","type":"https://ocfl.io/1.1/spec/#inventory","digestAlgorithm":"sha512","head":"v%d","manifest":{`, versions)),
		block("v1/content/"), strings.NewReader(`},"versions":{`),
	}
	for v := range versions {
		comma := ","[min(v, 1)^1:]
		parts = append(parts, strings.NewReader(fmt.Sprintf(`%s"v%d":{"created":"2020-01-01T00:00:00Z","state":{`, comma, v+1)), block(""), strings.NewReader("}}"))
	}
	parts = append(parts, strings.NewReader("}"))
	return append(append(parts, more...), strings.NewReader("}"))
}

// bigInventory is a valid inventory, or one made of what is small as text and large in memory.
type bigInventory struct {
	name  string
	large bool // it must be refused
	text  func() []io.Reader
}

func bigInventories() []bigInventory {
	sha512 := func(b []byte, i int) []byte {
		sum := sha512.Sum512(strconv.AppendInt(nil, int64(i), 10))
		return hex.AppendEncode(b, sum[:])
	}
	short := func(b []byte, i int) []byte { return strconv.AppendInt(b, int64(i), 36) }
	path := func(b []byte, i int) []byte {
		return fmt.Appendf(b, "a folder with a name/%03d/some file name of usual length %06d.tif", i/1000, i)
	}
	entries := func(block string, n int, entry func(b []byte, i int) []byte) []io.Reader {
		return []io.Reader{strings.NewReader(`,"` + block + `":{"md5":{"":[]`), numbered(n, func(b []byte, i int) []byte { return entry(append(b, ','), i) }), strings.NewReader("}}")}
	}
	return []bigInventory{
		{"80,000 files", false, func() []io.Reader { return inventoryOf(80_000, 1, sha512, path) }},
		{"200,000 files", true, func() []io.Reader { return inventoryOf(200_000, 1, sha512, path) }},
		{"10,000 files in 15 versions", false, func() []io.Reader { return inventoryOf(10_000, 15, sha512, path) }},
		{"10,000 files in 100 versions", true, func() []io.Reader { return inventoryOf(10_000, 100, sha512, path) }},
		{"names of few letters", true, func() []io.Reader { return inventoryOf(500_000, 1, short, short) }},
		{"fixity of few letters", true, func() []io.Reader {
			return inventoryOf(10, 1, sha512, path, entries("fixity", 1_000_000, func(b []byte, i int) []byte { return append(short(append(b, '"'), i), `":["a"]`...) })...)
		}},
		{"one name again and again", true, func() []io.Reader {
			return inventoryOf(10, 1, sha512, path, strings.NewReader(`,"fixity":{"md5":{"a":[""`), lines(`,"a"`, 8<<20), strings.NewReader("]}}"))
		}},
	}
}

// judgeEnv names the file that a process of this test is to judge, and nothing else.
const judgeEnv = "HOLDFAST_TEST_JUDGE"

// TestMemory_Judge is run by TestMemory in a process of its own.
func TestMemory_Judge(t *testing.T) {
	path := os.Getenv(judgeEnv)
	if path == "" {
		t.Skip("TestMemory runs it")
	}
	var v intake.Report
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		v, err = intake.Folder(t.Context(), os.DirFS(path), registry.AutoType, intake.Options{})
	} else {
		var f *os.File
		if f, err = os.Open(path); err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		v, err = intake.Judge(t.Context(), unpack.FromReaderAt(f, info.Size()), registry.AutoType, intake.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	first := "-"
	if len(v.Faults) > 0 {
		first = v.Faults[0].Rule
	}
	fmt.Printf("verdict %t %s %d %d %d %s\n", v.Valid, v.Type, v.Errors, v.Files, len(v.Faults), strings.ReplaceAll(first, " ", "-"))
	for _, f := range v.Faults[:min(3, len(v.Faults))] {
		fmt.Printf("fault %.200s\n", f.Error())
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Printf("peak %s\n", strings.TrimSpace(rest))
		}
	}
}

// judgeApart judges a file or folder of a size in a process of its own, and fails when that takes
// too much memory.
func judgeApart(t *testing.T, path string, size int64) (v intake.Report) {
	t.Helper()
	peak := int64(0)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemory_Judge$")
	cmd.Env = append(os.Environ(), judgeEnv+"="+path, "GOGC=100") // as in production; scripts/test.sh collects more seldom
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "verdict":
			var listed int
			var first string
			_, err = fmt.Sscan(rest, &v.Valid, &v.Type, &v.Errors, &v.Files, &listed, &first)
			v.Faults = make([]intake.Fault, listed)
			if listed > 0 {
				v.Faults[0].Rule = first
			}
		case "fault":
			t.Log(rest)
		case "peak":
			_, err = fmt.Sscanf(rest, "%d kB", &peak)
			peak <<= 10
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	t.Logf("%d KiB: peak %d MiB, %d errors", size>>10, peak>>20, v.Errors)
	if peak == 0 || peak > mostMemory {
		t.Errorf("the process took %d MiB, want at most %d", peak>>20, mostMemory>>20)
	}
	return v
}

// sampled skips two of three payloads, other ones each time.
func sampled(t *testing.T) {
	t.Helper()
	if !looptest.Some(t, 3)() {
		t.Skip("not this time; TEST_ALL=1 runs all")
	}
}

// TestMemory checks that a process that judges a payload, however it is made, takes at most 128
// MiB.
func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the peak of a process is read from /proc")
	}
	if underRace {
		t.Skip("the race detector takes several times the memory; scripts/test.sh runs it without")
	}
	for _, h := range corpus() {
		t.Run(h.name, func(t *testing.T) {
			sampled(t)
			path := filepath.Join(t.TempDir(), "payload")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			w := bufio.NewWriterSize(f, 1<<16)
			h.make(t, w)
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			size, err := f.Seek(0, io.SeekCurrent)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			v := judgeApart(t, path, size)
			if h.judged != nil && !h.judged(v) {
				t.Errorf("the verdict is not one on this payload: %+v", v)
			}
		})
	}
	for _, b := range bigInventories() {
		t.Run("inventory: "+b.name, func(t *testing.T) {
			sampled(t)
			folder := objectWith(t, b.text()...)
			info, err := os.Stat(filepath.Join(folder, "inventory.json"))
			if err != nil {
				t.Fatal(err)
			}
			v := judgeApart(t, folder, info.Size())
			if large := len(v.Faults) > 0 && v.Faults[0].Rule == ocfl.CodeLarge; large != b.large || v.Type != "ocfl-object" {
				t.Errorf("refused: %t, want %t; the first fault is %+v", large, b.large, v.Faults[:min(1, len(v.Faults))])
			}
		})
	}
	for name, inventory := range inventories() {
		t.Run("inventory: "+name, func(t *testing.T) {
			sampled(t)
			folder := objectWith(t, inventory...)
			info, err := os.Stat(filepath.Join(folder, "inventory.json"))
			if err != nil {
				t.Fatal(err)
			}
			if v := judgeApart(t, folder, info.Size()); !broken(v) || v.Type != "ocfl-object" {
				t.Errorf("the verdict is not one on this object: %+v", v)
			}
		})
	}
}
