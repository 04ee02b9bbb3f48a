package format_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/format"
)

func TestMIME(t *testing.T) {
	t.Parallel()
	png := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR and more")
	noise := []byte{0xff, 0x00, 0x13, 0x99}
	zip := zipOf(t, "notes.txt")
	for _, tt := range []struct {
		name             string
		head             []byte
		file, said, want string
	}{
		{"content before name and word", png, "a.txt", "text/plain", "image/png"},
		{"word where content says nothing", noise, "a.jpg", "application/x-own", "application/x-own"},
		{"name is no content", noise, "a.jpg", "", "application/octet-stream"},
		{"text", []byte("hello"), "a", "", "text/plain; charset=utf-8"},
		{"text told apart by its extension", []byte("a,b"), "A.CSV", "", "text/csv; charset=utf-8"},
		{"text is never an image", []byte("hello"), "a.png", "", "text/plain; charset=utf-8"},
		{"JSON that is cut off", []byte(`{"a": [1`), "a.json", "", "application/json"},
		{"zip", zip, "a.zip", "", "application/zip"},
		{"document in a zip", zip, "a.docx", "", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"empty, whatever its name and word", nil, "a.csv", "text/csv", "application/x-empty"},
	} {
		if got := format.MIME(tt.head, tt.file, tt.said); got != tt.want {
			t.Errorf("%s: type=%q, want %q", tt.name, got, tt.want)
		}
	}
}

func zipOf(t *testing.T, name string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	_, err := w.Create(name)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestHeadIsTheSameHoweverItComes(t *testing.T) {
	t.Parallel()
	text := append([]byte("<?xml version=\"1.0\"?><gpx>"), bytes.Repeat([]byte("x"), 10_000)...)
	var whole, bytewise format.Head
	whole.Write(text)
	for i := range text {
		bytewise.Write(text[i : i+1])
	}
	if a, b := whole.MIME("", ""), bytewise.MIME("", ""); a != b || !strings.HasPrefix(a, "text/xml") && a != "application/gpx+xml" {
		t.Errorf("whole %q, bytewise %q", a, b)
	}
}

func TestAgentHasItsVersion(t *testing.T) {
	t.Parallel()
	modules, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(modules), "github.com/gabriel-vasile/"+format.Agent+"\n") {
		t.Errorf("agent %q is not what go.mod has", format.Agent)
	}
}
