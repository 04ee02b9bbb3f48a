package checkm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/checkm"
)

func TestWriterText(t *testing.T) {
	var b strings.Builder
	w := checkm.NewWriter(&b, checkm.Object)
	for _, row := range []checkm.Row{
		{URL: "https://h.test/a.jpg", Algorithm: "SHA-1", Digest: strings.Repeat("AB", 20), Size: 0, Name: "d/a|b .jpg"},
		{URL: "https://h.test/x%20y", Size: -1, Modified: time.Date(2020, 1, 1, 1, 0, 0, 0, time.FixedZone("", 3600)), Name: " x", MIMEType: "text/plain"},
		{URL: "https://h.test/last.md", Size: -1},
	} {
		if err := w.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := object("https://h.test/a.jpg | sha1 | "+strings.Repeat("ab", 20)+" | 0 |  | d/a%7cb .jpg\n",
		"https://h.test/x%20y |  |  |  | 2020-01-01T00:00:00Z | %20x | text/plain\n",
		"https://h.test/last.md\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if err := w.Write(checkm.Row{URL: "https://h.test/a"}); !errors.Is(err, checkm.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
	rows, err := readAll(t, b.String(), checkm.Options{})
	if err != nil || len(rows) != 3 || rows[0].Name != "d/a|b .jpg" || rows[2].Name != "last.md" {
		t.Errorf("read back %+v, %v", rows, err)
	}
}

// TestWriterHostileNames checks that names are kept byte for byte.
func TestWriterHostileNames(t *testing.T) {
	for _, name := range []string{
		"README 1.md", "README+2.md", "README %AF.md", "Test50%majrule.txt", "Z_5%_400C-bet.xlsx", "README cliché.md", "README|pipe.md",
		"こんにちは.md", "שלום", "مرحبا", "file☠☡☢☣.txt", "file..name..with..dots.txt", "file & name.txt", "∑a ≤ b.txt", "caf\u00e9", "cafe\u0301",
		"\uFFFD", "File%00x.md", "File%hhx.md", "File%!!x.md", " lead", "trail ", "#hash", "a;b", "%7C", "..a", "a..", "a/b/c", `a\b`, "-",
	} {
		var b strings.Builder
		w := checkm.NewWriter(&b, checkm.Object)
		if err := w.Write(checkm.Row{URL: "https://h.test/1", Size: -1, Name: name}); err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if row, faults := one(t, b.String()); row.Name != name || checkm.Refused(faults) {
			t.Errorf("%q came back as %q, faults %v", name, row.Name, faults)
		}
	}
}

// TestWriterNameByURL checks that a name that cannot be written is left out where the URL already
// ends with it.
func TestWriterNameByURL(t *testing.T) {
	var b strings.Builder
	w := checkm.NewWriter(&b, checkm.Object)
	if err := w.Write(checkm.Row{URL: "https://h.test/a%2520b", Size: -1, Name: "a%20b"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if row, _ := one(t, b.String()); row.Name != "a%20b" {
		t.Errorf("name = %q", row.Name)
	}
}

func TestWriterRefuses(t *testing.T) {
	const u = "https://h.test/a.zip"
	tests := []struct {
		name string
		kind checkm.Kind
		row  checkm.Row
		rule checkm.Rule // "" when inexpressible
	}{
		{"escape in a name", checkm.Object, checkm.Row{URL: u, Name: "a%20b"}, ""},
		{"line break", checkm.Batch, checkm.Row{URL: u, Title: "a\nb"}, ""},
		{"carriage return", checkm.Batch, checkm.Row{URL: u, Title: "a\rb"}, ""},
		{"NUL", checkm.Batch, checkm.Row{URL: u, Title: "a\x00b"}, ""},
		{"bad UTF-8", checkm.Batch, checkm.Row{URL: u, Title: "a\xe9b"}, ""},
		{"bad UTF-8 in a name", checkm.Object, checkm.Row{URL: u, Name: "a\xe9b"}, checkm.RuleName},
		{"tab at the end", checkm.Batch, checkm.Row{URL: u, Title: "a\t"}, ""},
		{"blank local id", checkm.Batch, checkm.Row{URL: u, LocalIDs: []string{" "}}, ""},
		{"empty local id", checkm.Batch, checkm.Row{URL: u, LocalIDs: []string{"a", ""}}, ""},
		{"escape in a local id", checkm.Batch, checkm.Row{URL: u, LocalIDs: []string{"a%20"}}, ""},
		{"title of an object manifest", checkm.Object, checkm.Row{URL: u, Title: "t"}, ""},
		{"MIME type of a batch", checkm.Batch, checkm.Row{URL: u, MIMEType: "a/b"}, ""},
		{"URL in a container", checkm.InContainer, checkm.Row{URL: u, Name: "a"}, ""},
		{"comment in a container", checkm.InContainer, checkm.Row{Name: "#a"}, ""},
		{"pipe in a URL", checkm.Object, checkm.Row{URL: u + "|x", Name: "a"}, ""},
		{"year 10000", checkm.Object, checkm.Row{URL: u, Modified: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, ""},
		{"too long", checkm.Batch, checkm.Row{URL: u, Title: strings.Repeat("x", checkm.MaxLine)}, ""},
		{"unknown kind", checkm.Unknown, checkm.Row{URL: u}, ""},
		{"no URL", checkm.Object, checkm.Row{Name: "a"}, checkm.RuleURLMissing},
		{"no name", checkm.InContainer, checkm.Row{}, checkm.RuleNameMissing},
		{"scheme", checkm.Object, checkm.Row{URL: "ftp://h.test/a"}, checkm.RuleURLScheme},
		{"name leads out", checkm.Object, checkm.Row{URL: u, Name: "../a"}, checkm.RuleName},
		{"digest", checkm.Object, checkm.Row{URL: u, Algorithm: "md5", Digest: "ab"}, checkm.RuleDigest},
		{"ARK", checkm.Batch, checkm.Row{URL: u, PrimaryID: "ark:/foo"}, checkm.RulePrimaryID},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			w := checkm.NewWriter(&b, tt.kind)
			err := w.Write(tt.row)
			var f checkm.Fault
			switch {
			case tt.rule == "" && !errors.Is(err, checkm.ErrInexpressible):
				t.Errorf("err = %v, want ErrInexpressible", err)
			case tt.rule != "" && (!errors.As(err, &f) || f.Rule != tt.rule):
				t.Errorf("err = %v, want %s", err, tt.rule)
			}
			good := checkm.Row{URL: u, Name: "a"}
			if again := w.Write(good); !errors.Is(again, err) {
				t.Errorf("second Write = %v, want the first error", again)
			}
			if cerr := w.Close(); !errors.Is(cerr, err) || strings.Contains(b.String(), eof) {
				t.Errorf("Close = %v, wrote %q; want the first error and no #%%eof", cerr, b.String())
			}
		})
	}
}

func TestWriterNoRows(t *testing.T) {
	var b strings.Builder
	w := checkm.NewWriter(&b, checkm.Object)
	for range 2 {
		if err := w.Close(); !errors.Is(err, checkm.ErrNoRows) || b.Len() > 0 {
			t.Errorf("Close = %v, wrote %q; want ErrNoRows and nothing", err, b.String())
		}
	}
}

type fullDisk struct{ err error }

func (f fullDisk) Write([]byte) (int, error) { return 0, f.err }

func TestWriterIOError(t *testing.T) {
	full := errors.New("no space")
	w := checkm.NewWriter(fullDisk{full}, checkm.Object)
	if err := w.Write(checkm.Row{URL: "https://h.test/a"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("Close = %v, want %v", err, full)
	}
}

// TestRoundTrip checks that a Reader returns whatever Write accepts.
func TestRoundTrip(t *testing.T) { rapid.Check(t, roundTrip) }

// FuzzRoundTrip is TestRoundTrip with rows made of fuzzed bytes.
func FuzzRoundTrip(f *testing.F) { f.Fuzz(rapid.MakeFuzz(roundTrip)) }

func roundTrip(t *rapid.T) {
	kinds := []checkm.Kind{checkm.Object, checkm.Batch, checkm.ContainerBatch, checkm.FileBatch, checkm.Add, checkm.InContainer}
	kind := rapid.SampledFrom(kinds).Draw(t, "kind")
	var b strings.Builder
	w := checkm.NewWriter(&b, kind)
	var want []checkm.Row
	for range rapid.IntRange(1, 4).Draw(t, "rows") {
		row := drawRow(t, kind)
		probe := checkm.NewWriter(&strings.Builder{}, kind)
		if probe.Write(row) != nil {
			continue
		}
		if err := w.Write(row); err != nil {
			t.Fatalf("Write: %v", err)
		}
		want = append(want, row)
	}
	if len(want) == 0 {
		return
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := checkm.NewReader(strings.NewReader(b.String()), checkm.Options{})
	for i, row := range want {
		got, faults, err := r.Next()
		if err != nil || checkm.Refused(faults) || !got.Equal(row) {
			t.Fatalf("row %d: %+v, faults %v, err %v; want %+v in\n%s", i, got, faults, err, row, b.String())
		}
	}
	if _, _, err := r.Next(); err == nil || len(r.Faults()) > 0 {
		t.Fatalf("end: %v, faults %v", err, r.Faults())
	}
}

// drawRow makes a row that is normalised; some cannot be written.
func drawRow(t *rapid.T, kind checkm.Kind) checkm.Row {
	text := rapid.StringOfN(rapid.OneOf(
		rapid.SampledFrom([]rune(" %|;#207csé\t~")), rapid.Rune(),
	), 0, 12, -1)
	name := rapid.StringOfN(rapid.OneOf(rapid.SampledFrom([]rune(" %|;#207cs/.")), rapid.RuneFrom([]rune("abcאé漢"))), 1, 12, -1)
	row := checkm.Row{Size: rapid.Int64Min(-1).Draw(t, "size"), Name: name.Draw(t, "name")}
	if kind != checkm.InContainer {
		row.URL = "https://h.test/" + rapid.StringMatching(`[a-z0-9%?=/é]{0,8}`).Draw(t, "url")
	}
	if alg := rapid.SampledFrom([]string{"", "md5", "sha256", "sha512/256", "crc32"}).Draw(t, "algorithm"); alg != "" {
		_, n, _ := checkm.Algorithm(alg)
		row.Algorithm, row.Digest = alg, rapid.StringOfN(rapid.RuneFrom([]rune("0123456789abcdef")), n, n, -1).Draw(t, "digest")
	}
	if rapid.Bool().Draw(t, "dated") {
		row.Modified = time.Unix(rapid.Int64Range(-60000000000, 250000000000).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()
	}
	if kind.Batch() {
		row.PrimaryID = rapid.SampledFrom([]string{"", "ark:/99999/fk4", "ark:99999/x.1"}).Draw(t, "ark")
		row.LocalIDs = rapid.SliceOfNDistinct(text, 0, 3, rapid.ID).Draw(t, "local")
		row.Creator, row.Title, row.Date = text.Draw(t, "creator"), text.Draw(t, "title"), text.Draw(t, "date")
	} else {
		row.MIMEType = rapid.SampledFrom([]string{"", "text/plain", "odd"}).Draw(t, "mime")
	}
	return row
}
