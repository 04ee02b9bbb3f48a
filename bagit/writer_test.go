package bagit_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/bagit"
)

func write(ctx context.Context, target bagit.Target, payload bag) error {
	w, err := bagit.NewWriter(ctx, target, bagit.WriterOptions{
		Algorithms: []string{"SHA-512", "md5"},
		Info:       []bagit.Tag{{Label: "External-Description", Value: "two\nlines"}, {Label: "Contact-Name", Value: "a"}, {Label: "Contact-Name", Value: "b"}},
	})
	if err != nil {
		return err
	}
	for _, name := range payload.names() {
		known := map[string]string{"sha256": digest("sha256", payload[name])}
		if err := w.Add(ctx, name, int64(len(payload[name])), strings.NewReader(payload[name]), known); err != nil {
			return err
		}
	}
	if err := w.AddTagFile(ctx, "metadata/premis.xml", 4, strings.NewReader("<p/>"), nil); err != nil {
		return err
	}
	return w.Close(ctx)
}

// TestWriter_RoundTrip writes bags of odd names and sizes and has them judged.
func TestWriter_RoundTrip(t *testing.T) {
	for name, payload := range map[string]bag{
		"nothing": {},
		"files": {
			"a": "A", "empty": "", "dir/b": "B", "data/c": "C", "100% %25": "p", "line\nfeed\r": "l", " space ": "s", nfc: "c",
			"big": strings.Repeat("x", 5<<20), strings.Repeat("long/", 60) + "name": "n", "~tilde": "t", "*star": "s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if err := write(t.Context(), bagit.FolderTarget(root), payload); err != nil {
				t.Fatal(err)
			}
			folder := validateFS(t, root.FS())
			if !folder.Valid || folder.PayloadFiles != int64(len(payload)) {
				t.Errorf("folder: %d files, %v", folder.PayloadFiles, folder.Errors())
			}
			for _, f := range folder.Warnings() {
				if f.Rule != bagit.RulePortableName {
					t.Errorf("folder: %v", f)
				}
			}
			for name, content := range payload {
				if got, err := fs.ReadFile(root.FS(), "data/"+name); err != nil || string(got) != content {
					t.Errorf("%q: %v, %d octets of %d", name, err, len(got), len(content))
				}
			}
			want := []bagit.Tag{{Label: "External-Description", Value: "two\nlines"}, {Label: "Contact-Name", Value: "a"}, {Label: "Contact-Name", Value: "b"}}
			for i, tag := range want {
				if folder.Info[i].Label != tag.Label || folder.Info[i].Value != tag.Value {
					t.Errorf("tag %d: %+v, want %+v", i, folder.Info[i], tag)
				}
			}

			var buf bytes.Buffer
			if err := write(t.Context(), bagit.TarTarget(&buf, "bag", time.Unix(0, 0)), payload); err != nil {
				t.Fatal(err)
			}
			packed := validateTarBytes(t, buf.Bytes())
			sameFaults(t, "tar", packed, folder)
			if packed.Base != "bag" {
				t.Errorf("base %q", packed.Base)
			}
		})
	}
}

func TestWriter_Refuses(t *testing.T) {
	ctx := t.Context()
	var buf bytes.Buffer
	if _, err := bagit.NewWriter(ctx, bagit.TarTarget(&buf, "b", time.Time{}), bagit.WriterOptions{Algorithms: []string{"crc9"}}); !errors.Is(err, bagit.ErrAlgorithm) {
		t.Errorf("unknown algorithm: %v", err)
	}
	for _, tag := range []bagit.Tag{{Label: ""}, {Label: "a:b"}, {Label: " a"}, {Label: "a\nb"}, {Label: "payload-oxum"}, {Label: "a", Value: "\xff"}} {
		if _, err := bagit.NewWriter(ctx, bagit.TarTarget(&buf, "b", time.Time{}), bagit.WriterOptions{Info: []bagit.Tag{tag}}); !errors.Is(err, bagit.ErrTag) {
			t.Errorf("tag %+v: %v", tag, err)
		}
	}
	w, err := bagit.NewWriter(ctx, bagit.TarTarget(&buf, "b", time.Time{}), bagit.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string) error { return w.Add(ctx, name, 1, strings.NewReader("A"), nil) }
	if err := errors.Join(add("a"), add("d/e")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "/a", "../a", "x/../../a", "x//y", "./x", "x\x00", "a", "d", "a/b", "d/e/f", "\xff"} {
		if err := add(name); !errors.Is(err, bagit.ErrName) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for _, name := range []string{"bagit.txt", "bag-info.txt", "fetch.txt", "manifest-md5.txt", "tagmanifest-x.txt", "data/x", "data", "~x"} {
		if err := w.AddTagFile(ctx, name, 0, strings.NewReader(""), nil); !errors.Is(err, bagit.ErrName) {
			t.Errorf("tag file %q: %v", name, err)
		}
	}
	if err := w.Close(ctx); err != nil { // what was refused left nothing behind
		t.Fatal(err)
	}
	if r := validateTarBytes(t, buf.Bytes()); !r.Valid || r.PayloadFiles != 2 {
		t.Errorf("bag: %v", r.Faults)
	}
	if err := errors.Join(w.Close(ctx), add("z")); !errors.Is(err, bagit.ErrFinished) {
		t.Errorf("after Close: %v", err)
	}
}

// TestWriter_Breaks sees that a bag is never ended after a file went wrong.
func TestWriter_Breaks(t *testing.T) {
	broken := errors.New("disk is gone")
	for name, tc := range map[string]struct {
		r     io.Reader
		known map[string]string
		want  error
	}{
		"another digest": {strings.NewReader("A"), map[string]string{"md5": digest("md5", "B")}, bagit.ErrDigest},
		"too short":      {strings.NewReader(""), nil, bagit.ErrSize},
		"broken":         {failing{broken}, nil, broken},
	} {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		w, err := bagit.NewWriter(t.Context(), bagit.FolderTarget(root), bagit.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(t.Context(), "a", 1, tc.r, tc.known); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if err := w.Close(t.Context()); !errors.Is(err, tc.want) {
			t.Errorf("%s: closed: %v", name, err)
		}
		if r := validateFS(t, root.FS()); r.Valid {
			t.Errorf("%s: the rest is a valid bag", name)
		}
		if _, err := bagit.NewWriter(t.Context(), bagit.FolderTarget(root), bagit.WriterOptions{}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: over another bag: %v", name, err)
		}
		root.Close()
	}
}

func TestAlgorithms(t *testing.T) {
	var buf bytes.Buffer
	w, err := bagit.NewWriter(t.Context(), bagit.TarTarget(&buf, "b", time.Time{}), bagit.WriterOptions{Algorithms: bagit.Algorithms()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Add(t.Context(), "a", 1, strings.NewReader("A"), nil), w.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	r, err := bagit.ValidateTar(t.Context(), &buf, bagit.Options{Algorithms: bagit.Algorithms()})
	if err != nil || !r.Valid {
		t.Fatalf("%v %v", err, r.Faults)
	}
	want := append([]string{}, bagit.Algorithms()...)
	got := append([]string{}, r.Algorithms...)
	if diff := cmp.Diff(len(want), len(got)); diff != "" {
		t.Errorf("algorithms %v of %v", got, want)
	}
}
