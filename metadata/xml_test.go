package metadata_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/metadata"
)

const oaiDC = `<?xml version="1.0"?>
<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:t="http://purl.org/dc/terms/">
  <dc:title>
     Bears &amp; <i>jazz</i>
     <![CDATA[<1920>]]>
  </dc:title>
  <dc:creator>A</dc:creator><dc:creator> </dc:creator><t:creator>B</t:creator>
  <t:abstract>no</t:abstract><title>no</title>
  <dc:identifier>loc1; loc2</dc:identifier>
</oai_dc:dc>`

func TestReadDublinCore(t *testing.T) {
	tests := []struct {
		name, in string
		want     metadata.DublinCore
	}{
		{"OAI", oaiDC, metadata.DublinCore{Title: []string{"Bears & jazz <1920>"}, Creator: []string{"A", "B"}, Identifier: []string{"loc1; loc2"}}},
		{"undeclared prefix", `<DublinCore><dc:date>1920</dc:date></DublinCore>`, metadata.DublinCore{Date: []string{"1920"}}},
		{"empty", `<DublinCore/>`, metadata.DublinCore{}},
		{"UTF-16", utf16LE(`<?xml version="1.0" encoding="UTF-16"?><DublinCore><dc:title>é</dc:title></DublinCore>`), metadata.DublinCore{Title: []string{"é"}}},
		{"Latin-1", "<?xml version='1.0' encoding='ISO-8859-1'?><DublinCore><dc:title>\xe9</dc:title></DublinCore>", metadata.DublinCore{Title: []string{"é"}}},
		{"BOM", "\ufeff<DublinCore><dc:title>x</dc:title></DublinCore>", metadata.DublinCore{Title: []string{"x"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := metadata.ReadDublinCore(strings.NewReader(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const dataCite = `<resource xmlns="http://datacite.org/schema/kernel-4">
  <identifier identifierType="DOI">10.5072/x</identifier>
  <creators><creator><creatorName nameType="Personal">Seneca, Tracy</creatorName></creator><creator><creatorName>B</creatorName></creator></creators>
  <titles><title titleType="Subtitle">sub</title><title xml:lang="en">Husky
    Chicken</title></titles>
  <publisher>UC</publisher><publicationYear>2009</publicationYear>
  <alternateIdentifiers><alternateIdentifier alternateIdentifierType="local">l1</alternateIdentifier></alternateIdentifiers>
</resource>`

func TestReadDataCite(t *testing.T) {
	got, err := metadata.ReadDataCite(strings.NewReader(dataCite))
	if err != nil {
		t.Fatal(err)
	}
	want := metadata.DataCite{
		Creators: []string{"Seneca, Tracy", "B"}, Titles: []string{"Husky Chicken"}, PublicationYear: "2009", Publisher: "UC",
		Identifiers: []metadata.Identifier{{Type: "DOI", Value: "10.5072/x"}, {Type: "local", Value: "l1"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err = metadata.ReadDataCite(strings.NewReader(`<resource><titles><title titleType="Other">o</title></titles></resource>`))
	if err != nil || len(got.Titles) != 1 {
		t.Errorf("no main title: %v, %v", got, err)
	}
}

func TestReadXML_Errors(t *testing.T) {
	readers := map[string]func(io.Reader) error{
		"dc":       func(r io.Reader) error { _, err := metadata.ReadDublinCore(r); return err },
		"datacite": func(r io.Reader) error { _, err := metadata.ReadDataCite(r); return err },
	}
	syntax := []struct {
		name, in string
		line     int
	}{
		{"empty", "", 1},
		{"truncated", "<resource>\n<titles>", 2},
		{"mismatched", "<resource>\n</dc>", 2},
		{"second root is cut", "<resource/>\n<x", 2},
		{"unknown entity", "<resource>&bomb;</resource>", 1},
		{"not UTF-8", "<resource>\xff</resource>", 1},
		{"control character", "<resource>\x01</resource>", 1},
	}
	for kind, read := range readers {
		for _, tt := range syntax {
			var se *metadata.SyntaxError
			if err := read(strings.NewReader(tt.in)); !errors.As(err, &se) || se.Line != tt.line {
				t.Errorf("%s, %s: %v, want a *SyntaxError at line %d", kind, tt.name, err, tt.line)
			}
		}
		if err := read(strings.NewReader("<html/>")); !errors.Is(err, metadata.ErrNoMetadata) {
			t.Errorf("%s, another document: %v, want ErrNoMetadata", kind, err)
		}
		if err := read(strings.NewReader("<?xml version='1.0' encoding='EBCDIC'?><resource/>")); err == nil {
			t.Errorf("%s: unknown encoding was accepted", kind)
		}
		big := io.MultiReader(strings.NewReader("<resource>"), &endless{c: ' '})
		if err := read(big); !errors.Is(err, metadata.ErrTooLarge) {
			t.Errorf("%s, endless: %v, want ErrTooLarge", kind, err)
		}
	}
}

// TestReadXML_Depth checks that comments, CDATA, instructions and attributes that look like tags
// neither hide nor add to the depth of the elements.
func TestReadXML_Depth(t *testing.T) {
	const most = 10_000
	readers := map[string]func(io.Reader) error{
		"dc":       func(r io.Reader) error { _, err := metadata.ReadDublinCore(r); return err },
		"datacite": func(r io.Reader) error { _, err := metadata.ReadDataCite(r); return err },
	}
	for kind, read := range readers {
		for _, open := range []string{"<a>", "<a>/>", "<a><!--/>-->", "<a><!--</a>-->", "<a><![CDATA[</a>/>]]>", "<a><?x />?>", `<a b="/>">`, "<a><b/>"} {
			err := read(strings.NewReader("<resource>" + strings.Repeat(open, most)))
			if !errors.Is(err, metadata.ErrTooLarge) || !strings.Contains(err.Error(), "deep") {
				t.Errorf("%s, %s again and again: %v, want that it is too deep", kind, open, err)
			}
		}
		for _, flat := range []string{"<!--<a>-->", "<![CDATA[<a>]]>", "<a/>", "<a></a >", `<a b="<"/>`, "<?x <a>?>"} {
			if err := read(strings.NewReader("<resource>" + strings.Repeat(flat, most+1) + "</resource>")); errors.Is(err, metadata.ErrTooLarge) {
				t.Errorf("%s, %s again and again: %v", kind, flat, err)
			}
		}
	}
}

func TestWriteDublinCore_Golden(t *testing.T) {
	d := metadata.DublinCore{
		Title: []string{"Bears & <jazz> \"1920\"", ""}, Creator: []string{"A; B", "C"}, Subject: []string{"s1;s2"},
		Description: []string{"one; not split"}, Publisher: []string{"P"}, Contributor: []string{"K"}, Date: []string{"1920"},
		Type: []string{"Image"}, Format: []string{"image/tiff"}, Identifier: []string{"ark:/99999/fk4x", "l1;l%sc2"}, Source: []string{"S"},
		Language: []string{"日本語"}, Relation: []string{"r1; r2"}, Coverage: []string{"V"}, Rights: []string{"R"},
	}
	b := written(t, func(b *bytes.Buffer) error { return metadata.WriteDublinCore(b, d) })
	golden(t, "mrt-dc.xml", b)
	if err := xml.Unmarshal(b, new(struct{})); err != nil {
		t.Errorf("not XML: %v", err)
	}
	got, err := metadata.ReadDublinCore(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	want := d
	want.Title = want.Title[:1]
	want.Creator, want.Subject = []string{"A", "B", "C"}, []string{"s1", "s2"}
	want.Identifier, want.Relation = []string{"ark:/99999/fk4x", "l1", "l;2"}, []string{"r1", "r2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestWriteDublinCore_Refuses(t *testing.T) {
	for _, bad := range []string{"a\x00", "a\x1b", "\xff", "\ufffe"} {
		var b bytes.Buffer
		var fe *metadata.FieldError
		err := metadata.WriteDublinCore(&b, metadata.DublinCore{Title: []string{"ok"}, Rights: []string{bad}})
		if !errors.As(err, &fe) || fe.Field != "dc:rights" || b.Len() > 0 {
			t.Errorf("%q: %v, %d bytes written, want a *FieldError about dc:rights and none", bad, err, b.Len())
		}
	}
}

func utf16LE(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func FuzzReadDublinCore(f *testing.F) {
	for _, s := range []string{oaiDC, `<DublinCore/>`, "\xff\xfe<\x00", `<dc><dc:title><dc:title>x`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := metadata.ReadDublinCore(strings.NewReader(s))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := metadata.WriteDublinCore(&b, d); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := metadata.ReadDublinCore(&b); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

func FuzzReadDataCite(f *testing.F) {
	f.Add(dataCite)
	f.Add(`<resource><titles><title/></titles>`)
	f.Fuzz(func(t *testing.T, s string) {
		d, err := metadata.ReadDataCite(strings.NewReader(s))
		if err != nil {
			return
		}
		if _, err := metadata.Merge(metadata.Sources{DataCite: &d}); err != nil {
			t.Fatal(err)
		}
	})
}
