package receipt_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
)

var update = flag.Bool("update", false, "write the golden file anew")

func key(t testing.TB, text string) *receipt.Key {
	t.Helper()
	k, err := receipt.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const keyText, otherText = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "YWJjZGVmMDEyMzQ1Njc4OTAxMjM0NTY3ODlhYmNkZWY="

// sample is a receipt of three files and two events.
func sample(t testing.TB) []byte {
	t.Helper()
	at := time.Date(2026, 8, 1, 14, 30, 0, 123456789, time.FixedZone("", 2*3600))
	var m receipt.Manifest
	var body bytes.Buffer
	for _, f := range []receipt.File{
		{
			Path: "producer/50% \"ü\"\\.txt", Size: 5, Digests: map[string]string{"sha512": "AA", "md5": "bb"}, Modified: at.AddDate(-82, 0, 0), Content: "v1/content/producer/a", MIMEType: "text/plain", Since: 1,
			Format: &receipt.FileFormat{PUID: "x-fmt/111", Name: "Plain \"Text\" File", Registry: "v120", Warning: "by its name only"},
		},
		{Path: "producer/latin-\xe9\n", Size: 0, Digests: map[string]string{"sha512": "cc"}, Content: "v2/content/producer/b", Since: 2, Format: &receipt.FileFormat{PUID: "fmt/412", Name: "DOCX", Version: "2007 onwards"}},
		{Path: "system/mrt-erc.txt", Size: 7, Digests: map[string]string{"sha512": "dd"}, Content: "v2/content/system/mrt-erc.txt"},
	} {
		body.Write(m.Add(f))
	}
	before := strings.Repeat("0f", 32)
	span := receipt.Span{First: 4, Count: 2, Before: before}
	for i, kind := range []string{"fixity check", "ingestion"} {
		e := receipt.Event{
			Seq: int64(4 + i), Object: "ark:/99999/fk4x", ID: fmt.Sprint("id", i), Version: i + 1, Type: kind, At: at.Add(time.Hour),
			Agent: "Holdfast 1.0", Outcome: "success", Detail: "a \"detail\"",
		}
		before = e.Hash(before)
		body.Write(e.Line(before))
	}
	span.After = before
	head, signature := key(t, keyText).Sign(receipt.Header{
		Object: "ark:/99999/fk4x", Version: 2, Owner: "ark:/99999/owner", LocalIDs: []string{"l1", "l\n2"}, Title: "A \"title\" <&> \u2028",
		Collection: "maps", Item: "01J9", ProfileVersion: 7, EZIDItem: "01J8", Named: at.Add(-time.Minute),
		Terms: receipt.Terms{
			Basis: "copyright", Status: "unknown", Jurisdiction: "de", Statement: "a \"note\"", URI: "https://example.org/",
			PreservationLevel: "full", EmbargoUntil: "2030-01-01", EmbargoReason: "a letter",
		},
		Created: at, Recorded: at.Add(time.Second), Files: m.Files, Bytes: m.Bytes, Manifest: m.Digest(), Events: span,
		Replicas: []receipt.Replica{{Storage: "file:///one", Verified: at, Inventory: "sha512:00"}, {Storage: "s3://two", Verified: at, Inventory: "sha512:00"}},
	})
	return append(receipt.Head(head, signature), body.Bytes()...)
}

// TestGolden: the format must not change, so that a receipt can be verified in fifty years.
func TestGolden(t *testing.T) {
	t.Parallel()
	path := filepath.Join("testdata", "receipt.jsonl")
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, sample(t), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(sample(t))); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestEarlierFormats: receipts of formats 1 and 2, made by programs of that time, stay valid. This
// program writes their lines the same way.
func TestEarlierFormats(t *testing.T) {
	t.Parallel()
	dated := strings.NewReplacer(`,"content"`, `,"modified":"2001-02-03T04:05:06.000000Z","content"`)
	typed := strings.NewReplacer(`,"content"`, `,"mime":"text/plain","content"`)
	for format, later := range map[int][]*strings.Replacer{1: {dated, typed}, 2: {typed, strings.NewReplacer(`,"created"`, `,"collection":"maps","created"`)}} {
		text, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("receipt-format-%d.jsonl", format)))
		if err != nil {
			t.Fatal(err)
		}
		trusted := []receipt.PublicKey{key(t, keyText).Public()}
		r := verify(t, text, receipt.Options{Keys: trusted})
		if !r.Valid() || !r.Trusted || r.Header.Format != format || r.Files != 3 {
			t.Errorf("%+v", r)
		}
		head, signature := key(t, keyText).Sign(r.Header)
		if !bytes.HasPrefix(text, receipt.Head(head, signature)) {
			t.Errorf("signed again it is %s%x", head, signature)
		}
		f := registry.File{Path: "producer/a", Version: 3, Modified: time.Now(), MIMEType: "text/plain", Format: &registry.Format{PUID: "x"}}
		if got := string(receipt.FileOf(f, format).Line()); strings.Contains(got, "modified") != (format > 1) || strings.Contains(got, "mime") || strings.Contains(got, "since") {
			t.Errorf("a line of format %d is %s", format, got)
		}
		for _, with := range later {
			if r := verify(t, []byte(with.Replace(string(text))), receipt.Options{}); r.Valid() || !strings.Contains(r.Faults[0].Message, "form") {
				t.Errorf("format %d with what came later: %+v", format, r)
			}
		}
	}
}

// TestUnsigned: a receipt that nobody signed is complete or not, and never trusted.
func TestUnsigned(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(string(sample(t)), "\n")
	h, err := receipt.ParseHeader(lines[0])
	if err != nil {
		t.Fatal(err)
	}
	text := string(receipt.Head(receipt.Unsigned(h), nil)) + strings.Join(lines[2:], "")
	if r := verify(t, []byte(text), receipt.Options{}); !r.Valid() || r.Signed || r.Trusted || r.Files != 3 || r.Events != 2 {
		t.Errorf("%+v", r)
	}
	if r := verify(t, []byte(text), receipt.Options{Keys: []receipt.PublicKey{key(t, keyText).Public()}}); r.Valid() || r.Signed || r.Trusted || r.Total != 1 || r.Faults[0].Where != "key" {
		t.Errorf("with a key: %+v", r)
	}
	if r := verify(t, []byte(strings.Replace(text, `"size":5`, `"size":6`, 1)), receipt.Options{}); r.Valid() {
		t.Error("a changed file passed")
	}
	h.Format = 2
	if _, err := receipt.ParseHeader(receipt.Unsigned(h)); err == nil {
		t.Error("format 2 knows no receipts without a key")
	}
}

// TestFile_NoTime: a file without a known time, or with one that no line can hold, has none, and
// not 1970.
func TestFile_NoTime(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)} {
		f := receipt.File{Path: "producer/a", Digests: map[string]string{"sha512": "aa"}, Modified: at}
		if got := string(f.Line()); strings.Contains(got, "modified") || strings.Contains(got, "1970") {
			t.Errorf("of %v: %s", at, got)
		}
	}
}

func verify(t testing.TB, text []byte, o receipt.Options) *receipt.Result {
	t.Helper()
	r, err := receipt.Verify(bytes.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerify(t *testing.T) {
	t.Parallel()
	text := sample(t)
	var files []string
	r := verify(t, text, receipt.Options{File: func(f receipt.File) error { files = append(files, f.Path); return nil }})
	if !r.Valid() || r.Trusted || r.Files != 3 || r.Events != 2 || r.Header.Title != "A \"title\" <&> \u2028" {
		t.Errorf("without a key: %+v", r)
	}
	if diff := cmp.Diff([]string{"producer/50% \"ü\"\\.txt", "producer/latin-\xe9\n", "system/mrt-erc.txt"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	ours, theirs := key(t, keyText).Public(), key(t, otherText).Public()
	if r := verify(t, text, receipt.Options{Keys: []receipt.PublicKey{theirs, ours}}); !r.Valid() || !r.Trusted {
		t.Errorf("with its key among others: %+v", r)
	}
	if r := verify(t, text, receipt.Options{Keys: []receipt.PublicKey{theirs}}); r.Valid() || r.Trusted || r.Faults[0].Where != "key" {
		t.Errorf("with another key: %+v", r)
	}
	r, err := receipt.Verify(bytes.NewReader(text), receipt.Options{File: func(receipt.File) error { return errors.Join(receipt.ErrStop, io.ErrClosedPipe) }})
	if !errors.Is(err, io.ErrClosedPipe) || r.Files != 1 {
		t.Errorf("stopped: %v after %d files", err, r.Files)
	}
}

// TestVerify_Faults: each change is reported where it was made.
func TestVerify_Faults(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(string(sample(t)), "\n")
	change := func(n int, from, to string) string {
		if !strings.Contains(lines[n-1], from) {
			t.Fatalf("line %d has no %q", n, from)
		}
		return strings.Join(lines[:n-1], "") + strings.Replace(lines[n-1], from, to, 1) + strings.Join(lines[n:], "")
	}
	forged := key(t, otherText)
	h, err := receipt.ParseHeader(lines[0])
	if err != nil {
		t.Fatal(err)
	}
	head, signature := forged.Sign(h)
	tests := []struct{ name, text, where, says string }{
		{"empty", "", "header", "empty"},
		{"something else", "hello\n", "header", "no receipt"},
		{"newer format", change(1, "3", "4"), "header", "newer holdfast"},
		{"other version", change(1, `"version":2`, `"version":3`), "signature", "changed after signing"},
		{"name twice", change(1, `"version":2`, `"version":3,"version":2`), "header", "form"},
		{"unknown name", change(1, `"version":2`, `"version":2,"more":1`), "header", "unknown field"},
		{"space", change(1, `"version":2`, `"version": 2`), "header", "form"},
		{"key renamed", change(1, h.Key[:8], "00000000"), "key", "its public key has the id"},
		{"signature of another", change(2, `:"`, `:"AAAA`), "signature", "does not match the header"},
		{"no signature", lines[0], "signature", "missing"},
		{"file's digest", change(3, "aa", "ab"), "files", "list of files was changed"},
		{"file's time", change(3, "1944", "1945"), "files", "list of files was changed"},
		{"odd time", change(3, ".123456Z", ".12345Z"), "file", "form"},
		{"file's size", change(3, `"size":5`, `"size":6`), "files", "list of files was changed"},
		{"file's name", change(5, "mrt-erc", "a"), "files", "list of files was changed"},
		{"out of order", strings.Join(lines[:2], "") + lines[3] + lines[2] + strings.Join(lines[4:], ""), `file producer/50%25 "ü"\.txt`, "does not come after"},
		{"no digest", change(5, `{"sha512":"dd"}`, `{}`), "file", "digests"},
		{"odd escape", change(4, "%0A", "%0a"), "file", "form"},
		{"event's detail", change(6, "success", "failure"), "event 4 (fixity check)", "it was changed"},
		{"event's hash", change(6, `"hash":"`, `"hash":"00`), "event 4", "invalid value of hash"},
		{"other event missing", strings.Join(lines[:5], "") + lines[6], "event 4 (ingestion)", "missing, or out of place"},
		{"cut off", strings.Join(lines[:6], ""), "receipt", "cut off after 3 of 3 files and 1 of 2 events"},
		{"cut in a line", strings.Join(lines, "")[:len(strings.Join(lines, ""))-1], "event 5", "form"},
		{"more", strings.Join(lines, "") + lines[6], "receipt", "more than"},
		{"endless line", lines[0] + strings.Repeat("x", 2<<20), "line", "longer than"},
		{"signed by somebody else", string(receipt.Head(head, signature)) + strings.Join(lines[2:], ""), "key", "not among the keys given"},
	}
	trusted := receipt.Options{Keys: []receipt.PublicKey{key(t, keyText).Public()}}
	for _, tt := range tests {
		r := verify(t, []byte(tt.text), trusted)
		found := false
		for _, f := range r.Faults {
			found = found || f.Where == tt.where && strings.Contains(f.Message, tt.says)
		}
		if r.Valid() || !found {
			t.Errorf("%s: %v, want one of %s that says %q", tt.name, r.Faults, tt.where, tt.says)
		}
	}
}

// TestVerify_EveryByte: changing any byte of a receipt is a fault.
func TestVerify_EveryByte(t *testing.T) {
	t.Parallel()
	text := sample(t)
	for i := range text {
		changed := bytes.Clone(text)
		changed[i] ^= 1
		if verify(t, changed, receipt.Options{}).Valid() {
			t.Errorf("byte %d, %q, may be %q", i, text[i], changed[i])
		}
	}
}

// TestVerify_ReadsNoFurther: a hostile receipt is read line by line, and no further than its header
// announces.
func TestVerify_ReadsNoFurther(t *testing.T) {
	t.Parallel()
	in := io.MultiReader(bytes.NewReader(sample(t)), endless{})
	r, err := receipt.Verify(in, receipt.Options{})
	if err != nil || r.Valid() || r.Files != 3 {
		t.Errorf("%+v %v", r, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, `{"file":"a","size":1}`+"\n"), nil }

func TestEscapePath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a b/ü.txt": "a b/ü.txt", "100%": "100%25", "a\nb\x7f": "a%0Ab%7F", "\xe9": "%E9", "\uffff": "%EF%BF%BF", "\ufffd": "\ufffd",
	} {
		if got := receipt.EscapePath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	for c := range 0x80 { // alone among letters, and among what is escaped
		want := string(rune(c))
		if c < ' ' || c == 0x7f || c == '%' {
			want = fmt.Sprintf("%%%02X", c)
		}
		for _, end := range []string{"", "ü"} {
			if got := receipt.EscapePath("a" + string(rune(c)) + "b" + end); got != "a"+want+"b"+end {
				t.Errorf("%q: %q, want %q within", rune(c), got, want)
			}
		}
	}
	for _, bad := range []string{"%", "%4", "%41", "%zz", "a\n", "%e9", "%+1"} {
		if path, ok := receipt.UnescapePath(bad); ok {
			t.Errorf("%q was taken for %q", bad, path)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		path := string(rapid.SliceOf(rapid.Byte()).Draw(t, "path"))
		if back, ok := receipt.UnescapePath(receipt.EscapePath(path)); !ok || back != path {
			t.Fatalf("%q comes back as %q", path, back)
		}
	})
}

// TestLine_Strings: every character of ASCII stands in a line in its one form, alone among letters
// and among what is escaped.
func TestLine_Strings(t *testing.T) {
	t.Parallel()
	for c := range 0x80 {
		want := string(rune(c))
		switch {
		case c == '"' || c == '\\':
			want = "\\" + want
		case c < ' ' || c == 0x7f:
			want = fmt.Sprintf("\\u%04x", c)
		}
		for _, end := range []string{"", "ü", "\""} {
			line := string(receipt.Event{Detail: "a" + string(rune(c)) + end}.Line("x"))
			if want := `"detail":"a` + want + strings.ReplaceAll(end, `"`, `\"`) + `"}`; !strings.Contains(line, want) {
				t.Errorf("%s, want %s in it", line, want)
			}
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "geheim", keyText[:40], keyText + keyText} {
		if _, err := receipt.ParseKey(bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	one, two := key(t, receipt.NewKey()).Public(), key(t, keyText).Public()
	if back, err := receipt.ParsePublicKey(one.String()); err != nil || !bytes.Equal(back, one) {
		t.Errorf("hex: %v %v", back, err)
	}
	if back, err := receipt.ParsePublicKeys([]byte("our keys\n" + one.PEM() + two.PEM())); err != nil || len(back) != 2 || back[1].ID() != two.ID() {
		t.Errorf("PEM: %v %v", back, err)
	}
	for _, bad := range []string{"", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"} {
		if _, err := receipt.ParsePublicKeys([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestDocs: the commands in docs/receipt.md work as written, for objects of either digest.
func TestDocs(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"sha512", "sha256"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			testDocs(t, algorithm)
		})
	}
}

func testDocs(t *testing.T, algorithm string) {
	for _, tool := range []string{"sh", "openssl", "sha256sum", "sha512sum", "sed", "grep"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here; it is needed to run what docs/receipt.md shows", tool)
		}
	}
	doc, err := os.ReadFile("../../docs/receipt.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(doc), "```sh\n")
	script, _, ok := strings.Cut(script, "```")
	if !ok {
		t.Fatal("docs/receipt.md has no script")
	}
	text := string(exported(t, algorithm))
	run := func(text, alpha string) (string, error) {
		dir := t.TempDir()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(os.WriteFile(filepath.Join(dir, "receipt.jsonl"), []byte(text), 0o644))
		must(os.WriteFile(filepath.Join(dir, "key.pem"), []byte(key(t, keyText).Public().PEM()), 0o644))
		must(os.MkdirAll(filepath.Join(dir, "exported", "sub"), 0o755))
		must(os.WriteFile(filepath.Join(dir, "exported", "a.txt"), []byte(alpha), 0o644))
		must(os.WriteFile(filepath.Join(dir, "exported", "sub", "b.txt"), nil, 0o644))
		cmd := exec.Command("sh", "-e", "-c", script)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(text, "alpha"); err != nil {
		t.Errorf("a valid receipt: %v\n%s", err, out)
	}
	if out, err := run(text, "alphb"); err == nil {
		t.Errorf("a file with another content passed:\n%s", out)
	}
	for name, changed := range map[string]string{
		"header": strings.Replace(text, `"version":1`, `"version":2`, 1),
		"file":   strings.Replace(text, `"size":0`, `"size":1`, 1),
		"event":  strings.Replace(text, "stored", "sorted", 1),
	} {
		if out, err := run(changed, "alpha"); err == nil {
			t.Errorf("a changed %s passed:\n%s", name, out)
		}
	}
}

func digestOf(algorithm, text string) string {
	if algorithm == "sha256" {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	sum := sha512.Sum512([]byte(text))
	return hex.EncodeToString(sum[:])
}

// exported is the receipt of a version whose files TestDocs writes.
func exported(t testing.TB, algorithm string) []byte {
	t.Helper()
	var m receipt.Manifest
	var body bytes.Buffer
	for _, f := range []receipt.File{
		{Path: "producer/a.txt", Size: 5, Digests: map[string]string{algorithm: digestOf(algorithm, "alpha")}, Modified: time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC), Content: "v1/content/producer/a.txt"},
		{Path: "producer/sub/b.txt", Size: 0, Digests: map[string]string{algorithm: digestOf(algorithm, "")}, Content: "v1/content/producer/sub/b.txt"},
		{Path: "system/mrt-erc.txt", Size: 4, Digests: map[string]string{algorithm: digestOf(algorithm, "erc:")}, Content: "v1/content/system/mrt-erc.txt"},
	} {
		body.Write(m.Add(f))
	}
	span := receipt.Span{First: 1, Count: 2, Before: receipt.Zero, After: receipt.Zero}
	for i := range 2 {
		e := receipt.Event{Seq: int64(i + 1), Object: "ark:/99999/fk4x", ID: "id", Version: 1, Type: "ingestion", Detail: `it is "stored" \ here`}
		span.After = e.Hash(span.After)
		body.Write(e.Line(span.After))
	}
	head, signature := key(t, keyText).Sign(receipt.Header{
		Object: "ark:/99999/fk4x", Version: 1, Title: `"before":"x"`, Files: m.Files, Bytes: m.Bytes, Manifest: m.Digest(), Events: span,
	})
	return append(receipt.Head(head, signature), body.Bytes()...)
}

// FuzzVerify: whatever comes in, Verify ends, and what it calls valid is a receipt of exactly these
// bytes.
func FuzzVerify(f *testing.F) {
	f.Add(sample(f))
	f.Add(exported(f, "sha512"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var again bytes.Buffer
		r, err := receipt.Verify(bytes.NewReader(text), receipt.Options{File: func(f receipt.File) error { again.Write(f.Line()); return nil }})
		if err != nil {
			t.Fatal(err)
		}
		if (r.Total == 0) != (len(r.Faults) == 0) || r.Files > max(0, r.Header.Files) || r.Events > max(0, r.Header.Events.Count) {
			t.Fatalf("%+v", r)
		}
		if r.Valid() && !bytes.Contains(text, again.Bytes()) {
			t.Fatalf("the files read are not those that stand there: %q in %q", again.Bytes(), text)
		}
	})
}
