package bagit_test

import (
	"archive/tar"
	"bytes"
	stdcmp "cmp"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast/holdfast/bagit"
)

// bag is the files of a bag by name.
type bag map[string]string

func (b bag) fs() fs.FS {
	out := fstest.MapFS{}
	for name, content := range b {
		out[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return out
}

func (b bag) names() []string { return slices.Sorted(maps.Keys(b)) }

// with gives a copy with files changed or, when given "-", left out.
func (b bag) with(changes ...string) bag {
	out := maps.Clone(b)
	for i := 0; i < len(changes); i += 2 {
		if out[changes[i]] = changes[i+1]; changes[i+1] == "-" {
			delete(out, changes[i])
		}
	}
	return out
}

// newBag makes a bag of that version with the payload, md5 and sha256 manifests, and nothing else.
func newBag(version string, payload ...string) bag {
	b := bag{"bagit.txt": "BagIt-Version: " + version + "\nTag-File-Character-Encoding: UTF-8\n"}
	for i := 0; i < len(payload); i += 2 {
		b["data/"+payload[i]] = payload[i+1]
	}
	return b.listed()
}

// listed writes the payload manifests anew.
func (b bag) listed() bag {
	b["manifest-md5.txt"], b["manifest-sha256.txt"] = "", ""
	for _, name := range b.names() {
		if strings.HasPrefix(name, "data/") {
			b["manifest-md5.txt"] += digest("md5", b[name]) + "  " + name + "\n"
			b["manifest-sha256.txt"] += digest("sha256", b[name]) + "  " + name + "\n"
		}
	}
	return b
}

// tagged adds a tag manifest of all tag files.
func (b bag) tagged() bag {
	text := ""
	for _, name := range b.names() {
		if !strings.HasPrefix(name, "data/") && !strings.HasPrefix(name, "tagmanifest-") {
			text += digest("sha256", b[name]) + "  " + name + "\n"
		}
	}
	return b.with("tagmanifest-sha256.txt", text)
}

func digest(alg, content string) string {
	switch alg {
	case "md5":
		sum := md5.Sum([]byte(content))
		return hex.EncodeToString(sum[:])
	case "sha256":
		sum := sha256.Sum256([]byte(content))
		return hex.EncodeToString(sum[:])
	}
	sum := sha512.Sum512([]byte(content))
	return hex.EncodeToString(sum[:])
}

func readFolder(t *testing.T, dir string) bag {
	t.Helper()
	out := bag{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(os.DirFS(dir), name)
		out[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func validateFolder(t *testing.T, dir string) *bagit.Report {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return validateFS(t, root.FS())
}

func validateFS(t *testing.T, fsys fs.FS) *bagit.Report {
	t.Helper()
	r, err := bagit.ValidateFS(t.Context(), fsys, bagit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// packTar packs the files in the order given, or by name.
func packTar(t *testing.T, b bag, top string, order []string) []byte {
	t.Helper()
	if order == nil {
		order = b.names()
	}
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, name := range order {
		hdr := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(top, name), Size: int64(len(b[name])), Mode: 0o644}
		if err := tw.WriteHeader(hdr); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(b[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zipped(t *testing.T, raw []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	if _, err := gz.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func validateTar(t *testing.T, b bag, top string, order []string) *bagit.Report {
	t.Helper()
	return validateTarBytes(t, packTar(t, b, top, order))
}

func validateTarBytes(t *testing.T, raw []byte) *bagit.Report {
	t.Helper()
	r, err := bagit.ValidateTar(t.Context(), bytes.NewReader(raw), bagit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func validateZip(t *testing.T, b bag, top string) *bagit.Report {
	t.Helper()
	r, err := validateZipWith(t, b, top, bagit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func validateZipWith(t *testing.T, b bag, top string, opts bagit.Options) (*bagit.Report, error) {
	t.Helper()
	opts.FindBase = true
	opts.Form = stdcmp.Or(opts.Form, bagit.FormZip)
	v := bagit.NewValidator(opts)
	defer v.Close()
	names := b.names()
	for i, name := range names {
		names[i] = path.Join(top, name)
	}
	v.ExpectManifests(names...)
	for _, name := range b.names() {
		if err := v.Add(t.Context(), path.Join(top, name), int64(len(b[name])), strings.NewReader(b[name])); err != nil {
			return nil, err
		}
	}
	return v.Finish()
}

// sameFaults compares reports but for what differs between a folder and an archive.
func sameFaults(t interface {
	Helper()
	Errorf(string, ...any)
}, form string, got, want *bagit.Report,
) {
	t.Helper()
	ignore := cmp.Options{
		cmpopts.IgnoreFields(bagit.Report{}, "Base"), cmpopts.IgnoreUnexported(bagit.Tag{}, bagit.FetchEntry{}),
	}
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Errorf("as %s the report differs from that of the folder (-folder +%s):\n%s", form, form, diff)
	}
}

// rules are the rules of the faults as "error rule file", sorted as in the report.
func rules(faults []bagit.Fault) []string {
	out := []string{}
	for _, f := range faults {
		out = append(out, string(f.Severity)+" "+string(f.Rule)+" "+f.File)
	}
	return out
}
