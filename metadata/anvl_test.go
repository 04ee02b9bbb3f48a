package metadata_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/metadata"
)

func TestReadANVL(t *testing.T) {
	tests := []struct {
		name, in string
		want     []metadata.Record
	}{
		{"empty", "", nil},
		{"blank lines only", "\n \n\t\n", nil},
		{"comment only", "# nothing\n", nil},
		{"one", "who: Tracy\n", []metadata.Record{{{"who", "Tracy", 1}}}},
		{"tab, and no last newline", "batch:\tbid-1", []metadata.Record{{{"batch", "bid-1", 1}}}},
		{"no space", "a:b:c", []metadata.Record{{{"a", "b:c", 1}}}},
		{"empty value", "erc:\nwho:\n", []metadata.Record{{{"erc", "", 1}, {"who", "", 2}}}},
		{"CRLF and BOM", "\ufefferc:\r\nwho: x\r\n", []metadata.Record{{{"erc", "", 1}, {"who", "x", 2}}}},
		{"lone CR", "a: 1\rb: 2\r", []metadata.Record{{{"a", "1", 1}, {"b", "2", 2}}}},
		{"two records", "a: 1\n\n\nb: 2\n", []metadata.Record{{{"a", "1", 1}}, {{"b", "2", 4}}}},
		{
			"continued, with a comment between", "what: a long\n   title\n# note\n\tin three\nwho: x\n",
			[]metadata.Record{{{"what", "a long title in three", 1}, {"who", "x", 5}}},
		},
		{"value begins on the next line", "what:\n  title\n", []metadata.Record{{{"what", "title", 1}}}},
		{"escapes", "a%3Ab: 50%25 %0a %c3%A9", []metadata.Record{{{"a:b", "50% \n é", 1}}}},
		{"no escapes", "a: 50% %zz %4", []metadata.Record{{{"a", "50% %zz %4", 1}}}},
		{"escape of a NUL stays", "a: File%00x.md", []metadata.Record{{{"a", "File%00x.md", 1}}}},
		{"escapes that give no UTF-8 stay", "a: README %AF.md", []metadata.Record{{{"a", "README %AF.md", 1}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := metadata.ReadANVL(strings.NewReader(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadANVL_Faults(t *testing.T) {
	in := "who: x\nno colon here\n  and its continuation\n: no label\n\n  indented\nwhat: \xff\nwhen: \x00\nok: y\n"
	records, err := metadata.ReadANVL(strings.NewReader(in))
	if records != nil {
		t.Errorf("records %v beside an error", records)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("error %v, want several joined", err)
	}
	var lines []int
	for _, fault := range joined.Unwrap() {
		var se *metadata.SyntaxError
		if !errors.As(fault, &se) {
			t.Fatalf("%T, want *SyntaxError", fault)
		}
		lines = append(lines, se.Line)
	}
	if diff := cmp.Diff([]int{2, 4, 6, 7, 8}, lines); diff != "" {
		t.Errorf("faulty lines (-want +got):\n%s\n%v", diff, err)
	}
}

func TestReadANVL_Limits(t *testing.T) {
	_, err := metadata.ReadANVL(&endless{c: 'x'})
	if !errors.Is(err, metadata.ErrTooLarge) {
		t.Errorf("endless input: %v, want ErrTooLarge", err)
	}
	_, err = metadata.ReadANVL(strings.NewReader(strings.Repeat("x\n", 10_000)))
	if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) != 100 {
		t.Errorf("10000 faults: want the first 100 joined, got %.80v", err)
	}
	broken := errors.New("broken")
	if _, err = metadata.ReadANVL(&endless{err: broken}); !errors.Is(err, broken) {
		t.Errorf("broken reader: %v", err)
	}
}

func TestWriteANVL(t *testing.T) {
	r := metadata.Record{}.Add("erc", "").Add("a:b#", "x: #y").Add("#c", " two  spaces ").Add("d", "50%\r\n\ttab\x7f").Add("e", "  ").Add("\ufefff", "\ufeff")
	var b bytes.Buffer
	if err := metadata.WriteANVL(&b, metadata.Space, r); err != nil {
		t.Fatal(err)
	}
	want := "erc:\na%3Ab#: x: #y\n%23c: %20two  spaces%20\nd: 50%25%0D%0A%09tab%7F\ne: %20%20\n%EF%BB%BFf: \ufeff\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWriteANVL_Refuses(t *testing.T) {
	for _, r := range []metadata.Record{
		{{Label: "", Value: "x"}},
		{{Label: "ok", Value: "x"}, {Label: "bad", Value: "\xff"}},
		{{Label: "ok", Value: "x"}, {Label: "bad", Value: "a\x00b"}},
		{{Label: "bad\xff", Value: "x"}},
	} {
		var b bytes.Buffer
		err := metadata.WriteANVL(&b, metadata.Tab, r)
		var fe *metadata.FieldError
		if !errors.As(err, &fe) {
			t.Errorf("%v: %v, want a *FieldError", r, err)
		}
		if b.Len() > 0 {
			t.Errorf("%v: %q was written beside an error", r, b.String())
		}
	}
	full := errors.New("no space left")
	if err := metadata.WriteANVL(&endless{err: full}, metadata.Tab, metadata.Record{{Label: "a", Value: "b"}}); !errors.Is(err, full) {
		t.Errorf("full disk: %v", err)
	}
}

func TestRecord_Lookup(t *testing.T) {
	r := metadata.Record{{Label: "Who", Value: "a"}, {Label: "who", Value: "b"}}
	if v, ok := r.First("WHO"); v != "a" || !ok {
		t.Errorf("First=%q, %v", v, ok)
	}
	if _, ok := r.First("what"); ok {
		t.Error("First found what is not there")
	}
}

// TestANVL_RoundTrip checks that whatever is written is read back unchanged.
func TestANVL_RoundTrip(t *testing.T) {
	text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune(" \t\r\n%:#;25éA\ufeff")))).
		Filter(func(s string) bool { return !strings.ContainsRune(s, 0) })
	rapid.Check(t, func(t *rapid.T) {
		var want metadata.Record
		for range rapid.IntRange(1, 5).Draw(t, "n") {
			label := text.Filter(func(s string) bool { return s != "" }).Draw(t, "label")
			want = want.Add(label, text.Draw(t, "value"))
		}
		var b bytes.Buffer
		sep := rapid.SampledFrom([]metadata.Separator{metadata.Space, metadata.Tab}).Draw(t, "sep")
		if err := metadata.WriteANVL(&b, sep, want); err != nil {
			t.Fatal(err)
		}
		got, err := metadata.ReadANVL(&b)
		if err != nil || len(got) != 1 {
			t.Fatalf("%d records, %v", len(got), err)
		}
		if diff := cmp.Diff(want, got[0], cmpopts.IgnoreFields(metadata.Element{}, "Line")); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func FuzzReadANVL(f *testing.F) {
	for _, s := range []string{"erc:\nwho: a\n b\n\n#c\nx%3a: %41%ff", "erc: a | b | c | d", ":\n x", "\ufeffa:b\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		records, err := metadata.ReadANVL(strings.NewReader(s))
		if err != nil {
			var se *metadata.SyntaxError
			if !errors.As(err, &se) {
				t.Fatalf("error of type %T", err)
			}
			return
		}
		for _, r := range records {
			var b bytes.Buffer
			if err := metadata.WriteANVL(&b, metadata.Space, r); err != nil {
				t.Fatalf("what was read cannot be written: %v", err)
			}
			again, err := metadata.ReadANVL(&b)
			if err != nil || len(again) != 1 {
				t.Fatalf("what was written cannot be read: %v", err)
			}
			if diff := cmp.Diff(r, again[0], cmpopts.IgnoreFields(metadata.Element{}, "Line")); diff != "" {
				t.Fatalf("(-first +second):\n%s", diff)
			}
		}
		if e, err := metadata.ReadERC(strings.NewReader(s)); err == nil {
			e.Identifiers()
		}
	})
}

// endless gives one byte for ever, or an error; writing to it fails with that error.
type endless struct {
	c   byte
	err error
}

func (e *endless) Read(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	return copy(p, bytes.Repeat([]byte{e.c}, len(p))), nil
}

func (e *endless) Write([]byte) (int, error) { return 0, e.err }
