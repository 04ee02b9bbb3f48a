package checkm_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/checkm"
)

func TestReaderValues(t *testing.T) {
	text := batch("https://h.test/x%20y.zip?sig=1 | SHA-256 | 8EB32B67483526906FF99036D9028AA5B6AB5E59E83CA439E63CC041284B6CC2 | 007 |" +
		" 2010-06-02T13:54:43-07:00 | x y.zip | ark:/99999/fk4 | loc1; loc%sc2 ;loc1;; loc%7c3 | Tracy %7c Seneca | %20Title%20 | 1920-1932\n")
	got, faults := one(t, text)
	want := checkm.Row{
		Line: 6, URL: "https://h.test/x%20y.zip?sig=1", Algorithm: "sha256",
		Digest: "8eb32b67483526906ff99036d9028aa5b6ab5e59e83ca439e63cc041284b6cc2", Size: 7,
		Modified: time.Date(2010, 6, 2, 20, 54, 43, 0, time.UTC), Name: "x y.zip", PrimaryID: "ark:/99999/fk4",
		LocalIDs: []string{"loc1", "loc;2", "loc|3"}, Creator: "Tracy | Seneca", Title: " Title ", Date: "1920-1932",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(faults) > 0 {
		t.Errorf("row (-want +got):\n%s\nfaults %v", diff, faults)
	}
}

func TestReaderEscapes(t *testing.T) {
	tests := []struct{ cell, name string }{
		{"README%201.md", "README 1.md"},
		{"README 1.md", "README 1.md"},
		{"README%7cpipe.md", "README|pipe.md"},
		{"README%7Cpipe.md", "README%7Cpipe.md"},
		{"README %AF.md", "README %AF.md"},
		{"%41%25.md", "%41%25.md"},
		{"%2520.md", "%2520.md"},
		{"Test50%majrule.txt", "Test50%majrule.txt"},
		{"Z_5%_400C-bet.xlsx", "Z_5%_400C-bet.xlsx"},
		{"File%00x.md", "File%00x.md"},
		{"a%scb.md", "a%scb.md"},
		{"100%", "100%"},
		{"%20lead and trail%20", " lead and trail "},
		{"こんにちは.md", "こんにちは.md"},
		{"שלום", "שלום"},
		{"\u00a0a", "\u00a0a"},
		{"e\u0301.txt", "e\u0301.txt"},
		{"\uFFFD.txt", "\uFFFD.txt"},
		{"", "a|b c.jpg"},
	}
	for _, tt := range tests {
		row, faults := one(t, object("https://h.test/d/a%7Cb%20c.jpg | | | | | "+tt.cell+"\n"))
		if row.Name != tt.name || row.URL != "https://h.test/d/a%7Cb%20c.jpg" || checkm.Refused(faults) {
			t.Errorf("%q: name %q, URL %q, faults %v; want %q", tt.cell, row.Name, row.URL, faults, tt.name)
		}
	}
}

func TestAlgorithm(t *testing.T) {
	tests := []struct {
		name, canonical string
		hexLen          int
	}{
		{"Adler-32", "adler32", 8},
		{"CRC32", "crc32", 8},
		{"md2", "md2", 32},
		{"MD5", "md5", 32},
		{"SHA-1", "sha1", 40},
		{"sha256", "sha256", 64},
		{"SHA-384", "sha384", 96},
		{"sha-512", "sha512", 128},
		{"SHA-512/256", "sha512/256", 64},
	}
	for _, tt := range tests {
		canonical, n, ok := checkm.Algorithm(tt.name)
		if canonical != tt.canonical || n != tt.hexLen || !ok {
			t.Errorf("Algorithm(%q) = %q, %d, %t; want %q, %d", tt.name, canonical, n, ok, tt.canonical, tt.hexLen)
		}
		row, faults := one(t, object("https://h.test/a | "+tt.name+" | "+strings.Repeat("Ab", n/2)+"\n"))
		if row.Algorithm != tt.canonical || row.Digest != strings.Repeat("ab", n/2) || len(faults) > 0 {
			t.Errorf("%s: %q %q %v", tt.name, row.Algorithm, row.Digest, faults)
		}
	}
	for _, name := range []string{"", "-", "sha", "sha224", "sha_256", "md5 ", "sha256/512"} {
		if c, _, ok := checkm.Algorithm(name); ok {
			t.Errorf("Algorithm(%q) = %q, want none", name, c)
		}
	}
}

func TestModified(t *testing.T) {
	day := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := map[string]time.Time{
		"2020-01-01":                     day,
		"2020-01-01T00:00.000Z":          day,
		"2020-01-01T00:00.500Z":          day.Add(30 * time.Second),
		"2020-01-01T01:00+01:00":         day,
		"2020-01-01T00:00:00":            day,
		"2020-01-01 00:00:00":            day,
		"2020-01-01T00:00:00.123456789Z": day.Add(123456789),
		"2020-01-01T00:00:00+0000":       day,
		"2020-01-01T00:00.Z":             {},
		"2020-13-01":                     {},
		"foo":                            {},
	}
	for text, want := range tests {
		row, faults := one(t, object("https://h.test/a | | | | "+text+"\n"))
		if !row.Modified.Equal(want) || (len(faults) > 0) != want.IsZero() {
			t.Errorf("%q = %s, faults %v; want %s", text, row.Modified, faults, want)
		}
	}
}

// TestReaderFields checks that a #%fields line that moves columns is honoured.
func TestReaderFields(t *testing.T) {
	moved := func(fields, row string) string {
		head, _, _ := strings.Cut(objectHead, "#%fields")
		return head + fields + "\n" + row + "\n" + eof
	}
	want := checkm.Row{
		Line: 6, URL: "https://h.test/d/a.jpg", Algorithm: "md5", Digest: "0b21c6d48e815dd537d42dc1cfac0111",
		Size: 12, Name: "n.jpg",
	}
	const sum = "0b21c6d48e815dd537d42dc1cfac0111"
	tests := []struct{ name, fields, row string }{
		{"fields", "#%fields | nfo:fileName | nfo:fileUrl | nfo:fileSize | nfo:hashAlgorithm | nfo:hashValue", "n.jpg | https://h.test/d/a.jpg | 12 | md5 | " + sum},
		{"columns, other prefix and case", "#%columns | a:filename | b:FILEURL | fileSize | hashAlgorithm | c:hashValue", "n.jpg | https://h.test/d/a.jpg | 12 | md5 | " + sum},
		{"unknown column is left out", "#%fields | nfo:fileName | x:y | nfo:fileUrl | nfo:fileSize | nfo:hashAlgorithm | nfo:hashValue", "n.jpg | foo | https://h.test/d/a.jpg | 12 | md5 | " + sum},
		{"spaces between names", "#%columns | nfo:fileURL nfo:hashAlgorithm nfo:hashValue nfo:fileSize nfo:fileCreated mrt:targetFilePath", "https://h.test/d/a.jpg | md5 | " + sum + " | 12 | | n.jpg"},
		{"prefix of one's own", "#%prefix | my: | " + "http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n#%fields | my:fileUrl | my:hashAlgorithm | my:hashValue | my:fileSize | - | my:fileName", "https://h.test/d/a.jpg | md5 | " + sum + " | 12 | | n.jpg"},
		{"prefix of others, bound below", "#%fields | nfo:fileName | dc:fileUrl | nfo:fileUrl | nfo:fileSize | nfo:hashAlgorithm | nfo:hashValue\n#%prefix | dc: | http://purl.org/dc/elements/1.1/", "n.jpg | ftp://x | https://h.test/d/a.jpg | 12 | md5 | " + sum},
		{"short line", "#%fields | nfo:fileUrl | nfo:hashAlgorithm", "https://h.test/d/a.jpg | md5 | " + sum + " | 12 | | n.jpg"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows, err := readAll(t, moved(tt.fields, tt.row), checkm.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want.Line = 6 + strings.Count(tt.fields, "\n")
			if diff := cmp.Diff([]checkm.Row{want}, rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReaderURLShortcut checks that an ordinary address, which is not parsed, is judged like the
// same address parsed.
func TestReaderURLShortcut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		url := rapid.StringMatching(`https?://[a-zA-Z0-9.-]{0,3}(:80)?(/[a-z0-9._~@:-]{0,4}){0,3}`).Draw(t, "url")
		short, faults := judged(url)
		long, others := judged(url + "?")
		if short.Name != long.Name || !slices.Equal(brief(faults), brief(others)) {
			t.Errorf("%s: name %q, faults %v; parsed: %q, %v", url, short.Name, faults, long.Name, others)
		}
	})
}

// judged is the only row of an object manifest of one address.
func judged(url string) (checkm.Row, []checkm.Fault) {
	row, faults, _ := checkm.NewReader(strings.NewReader(object(url+"\n")), checkm.Options{}).Next()
	return row, faults
}

// TestReaderKinds checks that the storage manifest has ingest columns and that mrt-manifest.txt
// begins with names.
func TestReaderKinds(t *testing.T) {
	const store = "#%profile | http://uc3.cdlib.org/registry/store/manifest/"
	row, _ := one(t, store+"mrt-add-manifest\nhttp://h.test/1 | crc32 | 0000abcd | 3 | 2020-01-01 | system/mrt-erc.txt | text/plain\n"+eof)
	if row.Name != "system/mrt-erc.txt" || row.Digest != "0000abcd" || row.MIMEType != "text/plain" {
		t.Errorf("add row = %+v", row)
	}
	row, faults := one(t, store+"mrt-object-manifest\n%20#1.txt | md5 | 0b21c6d48e815dd537d42dc1cfac0111 | 3 | 2020-01-01 | text/plain\n"+eof)
	if row.Name != " #1.txt" || row.URL != "" || row.Size != 3 || row.MIMEType != "text/plain" || len(faults) > 0 {
		t.Errorf("in-container row = %+v, faults %v", row, faults)
	}
	if _, err := readAll(t, store+"mrt-object-manifest\n | md5 | 0b21c6d48e815dd537d42dc1cfac0111\n"+eof, checkm.Options{}); err != nil {
		t.Errorf("row without a name: %v, want only that row refused", err)
	}
}

// TestReaderBadRowAlone checks that a bad row is reported with all its faults and does not affect
// other rows.
func TestReaderBadRowAlone(t *testing.T) {
	text := batch("https://h.test/1.zip\n", "ftp://h.test/2.zip | md5x | | -1 | | ../x | ark:/foo\n", "https://h.test/3.zip\n")
	rows, err := readAll(t, text, checkm.Options{})
	if err != nil || len(rows) != 2 || rows[0].Name != "1.zip" || rows[1].Name != "3.zip" || rows[1].Line != 8 {
		t.Errorf("rows %+v, err %v; want 1.zip and 3.zip", rows, err)
	}
	wantFaults(t, check(t, text, checkm.Options{}),
		"7 error url-scheme", "7 error algorithm", "7 error size", "7 error name", "7 error primary-identifier")
}

func TestReaderEncoding(t *testing.T) {
	text := object(row1, "https://h.test/b | | | | | b\xe9\x00.jpg\n", "https://h.test/c\n")
	r := checkm.NewReader(strings.NewReader(text), checkm.Options{})
	var names []string
	var faults []checkm.Fault
	var err error
	for err == nil {
		var row checkm.Row
		var f []checkm.Fault
		if row, f, err = r.Next(); err == nil {
			names = append(names, row.Name)
			faults = append(faults, f...)
		}
	}
	var unsound *checkm.UnsoundError
	if !errors.As(err, &unsound) || unsound.Total != 2 {
		t.Fatalf("err = %v, want two encoding faults", err)
	}
	if want := []string{"a.jpg", "b\uFFFD\uFFFD.jpg", "c"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	for i, b := range []byte{0, 0xe9} {
		if got := text[faults[i].Offset]; got != b || faults[i].Line != 7 || faults[i].Column != 6 || faults[i].Field != "nfo:fileName" {
			t.Errorf("fault %v, offset %d has byte %#x, want %#x in column 6 of line 7", faults[i], faults[i].Offset, got, b)
		}
	}
	var f checkm.Fault
	if !errors.As(err, &f) || f.Rule != checkm.RuleEncoding {
		t.Errorf("errors.As finds %v, want the encoding fault", f)
	}
}

// TestReaderLongLines checks that an endless line costs one row and no memory.
func TestReaderLongLines(t *testing.T) {
	for _, n := range []int{checkm.MaxLine + 1, 3 * checkm.MaxLine, 10 * checkm.MaxLine} {
		text := object("https://h.test/1\n", strings.Repeat("x", n)+"\r\n", "https://h.test/2\n")
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text))} {
			rep, err := checkm.Check(r, checkm.Options{})
			if err != nil || rep.Rows != 3 || !rep.Sound {
				t.Errorf("%s: %+v, %v", name, rep, err)
			}
			wantFaults(t, rep, "7 error line-length")
		}
	}
	const name = " | | | | | a"
	exact := "https://h.test/" + strings.Repeat("x", checkm.MaxLine-15-len(name))
	if row, faults := one(t, object(exact+name+"\n")); row.URL != exact || len(faults) > 0 {
		t.Errorf("a line of MaxLine bytes: %d bytes of URL, faults %v", len(row.URL), faults)
	}
}

// TestReaderChunks checks that the sizes of reads make no difference.
func TestReaderChunks(t *testing.T) {
	text := strings.ReplaceAll(object(row1, "\n", row1, "bad\n"), "\n", "\r\n")
	want := check(t, text, checkm.Options{})
	for name, r := range map[string]io.Reader{
		"one byte": iotest.OneByteReader(strings.NewReader(text)), "data with EOF": iotest.DataErrReader(strings.NewReader(text)),
	} {
		got, err := checkm.Check(r, checkm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestReaderIOError checks that a read error is neither taken for the end nor for a fault of the
// manifest.
func TestReaderIOError(t *testing.T) {
	broken := errors.New("connection reset")
	r := checkm.NewReader(io.MultiReader(strings.NewReader(objectHead+row1+"https://h.t"), iotest.ErrReader(broken)), checkm.Options{})
	if row, faults, err := r.Next(); err != nil || len(faults) > 0 || row.Name != "a.jpg" {
		t.Fatalf("first row: %+v %v %v", row, faults, err)
	}
	for range 2 {
		if _, _, err := r.Next(); !errors.Is(err, broken) {
			t.Errorf("err = %v, want %v", err, broken)
		}
	}
	rep, err := checkm.Check(io.MultiReader(strings.NewReader(objectHead+row1), iotest.ErrReader(broken)), checkm.Options{})
	if !errors.Is(err, broken) || rep.Sound || rep.Rows != 1 {
		t.Errorf("Check: %+v, %v", rep, err)
	}
	if _, err := checkm.Check(stuck{}, checkm.Options{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("stuck reader: %v, want io.ErrNoProgress", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestReaderKindAndFaults(t *testing.T) {
	r := checkm.NewReader(strings.NewReader("#%profile | "+checkm.Object.ProfileURI()+"\n"+row1+eof), checkm.Options{})
	if _, _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if r.Kind() != checkm.Object || len(r.Faults()) != 3 {
		t.Errorf("kind %q, faults %v; want three missing headers", r.Kind(), r.Faults())
	}
	for range 2 {
		if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("err = %v, want io.EOF", err)
		}
	}
}
