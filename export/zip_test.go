package export_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/export"
	"github.com/holdfast/holdfast/replica"
)

// unzip returns the files of a zip.
func unzip(t *testing.T, text []byte) map[string]string {
	t.Helper()
	in, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range in.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name] = string(content)
	}
	return got
}

// TestWriteZip: a zip has the same names and bytes as a tar, and the same package gives the same
// zip.
func TestWriteZip(t *testing.T) {
	t.Parallel()
	for name, opts := range forms() {
		m := object()
		m.files["producer/\xff ü"] = "not UTF-8"
		if opts.Bag {
			delete(m.files, "producer/\xff ü")
		}
		p := lay(t, m, opts)
		var out, again bytes.Buffer
		for _, w := range []io.Writer{&out, &again} {
			if err := errors.Join(p.CheckZip(t.Context()), p.WriteZip(t.Context(), w)); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(out.Bytes(), again.Bytes()) {
			t.Errorf("%s: two zips of one package differ", name)
		}
		var tarred bytes.Buffer
		if err := p.WriteTar(t.Context(), &tarred, 0, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(untar(t, tarred.Bytes()), unzip(t, out.Bytes())); diff != "" {
			t.Errorf("%s: tar and zip (-tar +zip):\n%s", name, diff)
		}
		if !opts.Bag {
			if got := unzip(t, out.Bytes())["holdfast-terms.txt"]; got != terms {
				t.Errorf("%s: the zip says of terms: %q", name, got)
			}
			continue
		}
		if report, err := bagit.ValidateTar(t.Context(), &tarred, bagit.Options{}); err != nil || !report.Valid {
			t.Errorf("%s: %v %+v", name, err, report)
		}
	}
}

// A damaged file ends the zip, which then cannot be opened.
func TestWriteZip_Damage(t *testing.T) {
	t.Parallel()
	m := object()
	m.bad = map[string]string{"producer/a.txt": "A"}
	for _, ahead := range []int64{0, 1 << 10} {
		var out bytes.Buffer
		err := layFrom(t, m, &replica.Reader{Source: m, Ahead: ahead}, export.Options{}).WriteZip(t.Context(), &out)
		if !errors.Is(err, replica.ErrDamaged) {
			t.Fatalf("ahead %d: %v", ahead, err)
		}
		if _, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len())); err == nil {
			t.Errorf("ahead %d: a part can be opened as a whole zip", ahead)
		}
	}
	m.there = map[string]string{}
	var out bytes.Buffer
	if err := layFrom(t, m, &replica.Reader{Source: m, Ahead: 1 << 10}, export.Options{}).WriteZip(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if got := unzip(t, out.Bytes()); got["a.txt"] != "a" {
		t.Errorf("from the other storage: %q", slices.Sorted(maps.Keys(got)))
	}
}

func TestCheckZip(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]error{
		"producer/a": nil, `producer/..\..\evil`: export.ErrName, "producer/" + strings.Repeat("x", 1<<16): export.ErrName, "producer/../evil": export.ErrName,
	} {
		m := &memory{files: map[string]string{name: "x"}}
		if err := lay(t, m, export.Options{}).CheckZip(t.Context()); !errors.Is(err, want) {
			t.Errorf("%.40q: %v, want %v", name, err, want)
		}
	}
}
