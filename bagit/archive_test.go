package bagit_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/bagit"
)

// TestValidate_SameVerdict damages generated bags and expects the same report for every packaging
// and every order of the files.
func TestValidate_SameVerdict(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "A", "d/b", "d/\u00e9", "d/e\u0301", "x%", "x%25", "X%2525", "y\nz", "Y%0Az", "*s", "s", "e\u0301/\u00c9", "\u00e9/e\u0301", "bagit.txt", "manifest-md5.txt", "data/c"})
		content := rapid.SampledFrom([]string{"", "1", "22", strings.Repeat("long", 1<<18+1)})
		b := newBag(rapid.SampledFrom([]string{"0.93", "0.97", "1.0"}).Draw(rt, "version"))
		for range rapid.IntRange(0, 5).Draw(rt, "files") {
			b["data/"+name.Draw(rt, "name")] = content.Draw(rt, "content")
		}
		b.listed()
		if rapid.Bool().Draw(rt, "tagged") {
			b = b.with("bag-info.txt", "Payload-Oxum: 3.2\n").tagged()
		}
		for range rapid.IntRange(0, 3).Draw(rt, "damages") {
			victim := rapid.SampledFrom(b.names()).Draw(rt, "victim")
			switch rapid.IntRange(0, 3).Draw(rt, "damage") {
			case 0:
				delete(b, victim)
			case 1:
				b[victim] += "x"
			case 2:
				b["data/"+name.Draw(rt, "extra")] = "extra"
			default:
				b["manifest-md5.txt"] += line("md5", "1", "data/"+name.Draw(rt, "listed"))
			}
		}
		if b["bagit.txt"] == "" {
			return // where the bag begins is then a guess in an archive
		}
		want, err := bagit.ValidateFS(t.Context(), b.fs(), bagit.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		order := rapid.Permutation(b.names()).Draw(rt, "order")
		sameFaults(rt, "tar", validateTar(t, b, "top", order), want)
		sameFaults(rt, "tar without a folder", validateTar(t, b, "", order), want)
		v := bagit.NewValidator(bagit.Options{})
		for _, name := range order {
			if v.NeedsContent(name) {
				err = v.Add(t.Context(), name, -1, strings.NewReader(b[name]))
			} else {
				err = v.AddDigested(name, int64(len(b[name])), map[string]string{
					"MD5": digest("md5", b[name]), "sha-256": digest("sha256", b[name]), "whirlpool": "00",
				})
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		got, err := v.Finish()
		if err != nil {
			rt.Fatal(err)
		}
		sameFaults(rt, "digests", got, want)
		sameFaults(rt, "shares", inShares(t.Context(), rt, b, order), want)
	})
}

// inShares judges a bag of which only a few records are held in memory at a time.
func inShares(ctx context.Context, rt *rapid.T, b bag, order []string) *bagit.Report {
	v := bagit.NewValidator(bagit.Options{Form: bagit.FormFolder})
	v.InShares(300)
	for _, name := range order {
		if err := v.Add(ctx, name, -1, strings.NewReader(b[name])); err != nil {
			rt.Fatal(err)
		}
	}
	r, err := v.Finish()
	if err != nil {
		rt.Fatal(err)
	}
	return r
}

func TestValidateTar_Damage(t *testing.T) {
	good := newBag("1.0", "a", strings.Repeat("A", 3<<20), "b", "B")
	raw := packTar(t, good, "top", nil)
	gz := zipped(t, raw)
	flipped := bytes.Clone(gz)
	flipped[len(flipped)-6] ^= 1 // in the checksum of gzip
	for name, tc := range map[string]struct {
		raw   []byte
		rule  bagit.Rule
		valid bool
	}{
		"cut off in a file":     {raw[:1<<20], bagit.RuleArchive, false},
		"cut off in gzip":       {gz[:len(gz)/2], bagit.RuleArchive, false},
		"checksum of gzip":      {flipped, bagit.RuleArchive, false},
		"octets after the gzip": {append(bytes.Clone(gz), "padding"...), bagit.RuleArchive, true},
		"no tar":                {bytes.Repeat([]byte("x"), 2048), bagit.RuleArchive, false},
		"nothing":               {nil, bagit.RuleDeclaration, false},
	} {
		r := validateTarBytes(t, tc.raw)
		found := false
		for _, f := range r.Faults {
			found = found || f.Rule == tc.rule
		}
		if r.Valid != tc.valid || !found {
			t.Errorf("%s: valid=%t, want %t with %s: %v", name, r.Valid, tc.valid, tc.rule, r.Faults)
		}
	}
}

// TestValidate_SystemErrors checks that a failure to read is returned as an error and never
// reported as a fault of the bag.
func TestValidate_SystemErrors(t *testing.T) {
	raw := packTar(t, newBag("1.0", "a", strings.Repeat("A", 3<<20)), "", nil)
	broken := errors.New("disk is gone")
	for _, at := range []int{0, 100, 1 << 20, len(raw) - 1024} {
		r := io.MultiReader(bytes.NewReader(raw[:at]), failing{broken})
		if report, err := bagit.ValidateTar(t.Context(), r, bagit.Options{}); !errors.Is(err, broken) || report != nil {
			t.Errorf("tar broken at %d: %v, report %v", at, err, report)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if _, err := bagit.ValidateTar(ctx, bytes.NewReader(raw), bagit.Options{}); !errors.Is(err, broken) {
		t.Errorf("tar stopped: %v", err)
	}
	if _, err := bagit.ValidateFS(ctx, newBag("1.0", "a", "A").fs(), bagit.Options{}); !errors.Is(err, broken) {
		t.Errorf("folder stopped: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestValidate_Links(t *testing.T) {
	dir := t.TempDir()
	for name, content := range newBag("1.0", "a", "A") {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(dir, "data", "a"), filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../a", filepath.Join(dir, "data", "a")); err != nil {
		t.Fatal(err)
	}
	r := validateFolder(t, dir)
	if diff := cmp.Diff([]string{"error file-type data/a", "error missing data/a"}, rules(r.Errors())[:2]); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}

	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, hdr := range []*tar.Header{
		{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		{Name: "../up", Typeflag: tar.TypeReg},
		{Name: "/abs", Typeflag: tar.TypeReg},
		{Name: "twice", Typeflag: tar.TypeReg},
		{Name: "twice", Typeflag: tar.TypeReg},
		{Name: "twice/x", Typeflag: tar.TypeReg},
	} {
		if err := tw.WriteHeader(hdr); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range newBag("1.0", "a", "A") {
		if err := tw.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"error unsafe-name ../up", "error unsafe-name /abs", "error file-type link", "error duplicate-entry twice",
		"error file-and-folder twice",
	}
	if diff := cmp.Diff(want, rules(validateTarBytes(t, buf.Bytes()).Errors())); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// TestValidateTar_Base checks that the bag's folder is found in the archive.
func TestValidateTar_Base(t *testing.T) {
	inner := newBag("1.0", "a", "A")
	asPayload := bag{}
	for name, content := range inner {
		asPayload["data/"+name] = content
	}
	outer := asPayload.with("bagit.txt", inner["bagit.txt"]).listed()
	if r := validateTar(t, outer, "", nil); !r.Valid || r.Base != "" || r.PayloadFiles != 4 {
		t.Errorf("bag in a bag: base %q: %v", r.Base, r.Faults)
	}
	if r := validateTar(t, outer.with("bagit.txt", "-"), "", nil); r.Valid || r.Base != "" {
		t.Errorf("outer bag without declaration: base %q: %v", r.Base, r.Faults)
	}
	if r := validateTar(t, inner, "data", nil); !r.Valid || r.Base != "data" {
		t.Errorf("bag in a folder named data: base %q: %v", r.Base, r.Faults)
	}
	two := bag{"__MACOSX/._bag": "", "other.txt": ""}
	for name, content := range inner {
		two["bag/"+name] = content
	}
	r := validateTar(t, two, "", nil)
	if diff := cmp.Diff([]string{"error outside-bag other.txt", "warning system-file __MACOSX/._bag"}, rules(r.Faults)); diff != "" || r.Base != "bag" {
		t.Errorf("base %q (-want +got):\n%s", r.Base, diff)
	}
}

func TestValidator_Contract(t *testing.T) {
	b := newBag("1.0", "a", "A")
	v := bagit.NewValidator(bagit.Options{})
	if got := v.Wanted("data/a"); len(got) != 6 {
		t.Errorf("wanted before the manifests are known: %v", got)
	}
	v.ExpectManifests(b.names()...)
	if diff := cmp.Diff([]string{"md5", "sha256"}, v.Wanted("data/a")); diff != "" {
		t.Errorf("wanted (-want +got):\n%s", diff)
	}
	if got := v.Wanted("bag-info.txt"); len(got) != 0 {
		t.Errorf("wanted without tag manifests: %v", got)
	}
	if err := v.AddDigested("bagit.txt", 1, nil); !errors.Is(err, bagit.ErrNeedsContent) {
		t.Errorf("digests of bagit.txt: %v", err)
	}
	if err := v.AddDigested("data/a", 1, map[string]string{"md5": "12"}); !errors.Is(err, bagit.ErrDigest) {
		t.Errorf("short digest: %v", err)
	}
	if err := v.Add(t.Context(), "data/a", 5, strings.NewReader("A")); !errors.Is(err, bagit.ErrSize) {
		t.Errorf("short file: %v", err)
	}
	for _, name := range b.names() {
		if name == "data/a" {
			continue
		}
		if err := v.Add(t.Context(), name, int64(len(b[name])), strings.NewReader(b[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.AddDigested("data/a", 1, map[string]string{"md5": digest("md5", "A")}); err != nil {
		t.Fatal(err)
	}
	r, err := v.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"error not-verified data/a"}, rules(r.Faults)); diff != "" || !r.Complete || r.Valid {
		t.Errorf("complete=%t valid=%t (-want +got):\n%s", r.Complete, r.Valid, diff)
	}
	if again, err := v.Finish(); err != nil || again != r {
		t.Error("second Finish gives another report")
	}
	if err := v.Add(t.Context(), "data/b", 1, strings.NewReader("B")); !errors.Is(err, bagit.ErrFinished) {
		t.Errorf("add after Finish: %v", err)
	}
}

func TestValidate_CompletenessOnly(t *testing.T) {
	b := newBag("1.0", "a", "A", "b", "B").with("data/a", "X", "bag-info.txt", "Payload-Oxum: 2.2\n").tagged()
	opts := bagit.Options{CompletenessOnly: true}
	r, err := bagit.ValidateFS(t.Context(), unreadable{b.fs()}, opts)
	if err != nil || !r.Complete || r.Valid || len(r.Faults) != 0 {
		t.Errorf("folder: %v %+v", err, r)
	}
	r, err = bagit.ValidateTar(t.Context(), bytes.NewReader(packTar(t, b, "top", nil)), opts)
	if err != nil || !r.Complete || r.Valid || len(r.Faults) != 0 {
		t.Errorf("tar: %v %+v", err, r)
	}
}

// unreadable has no payload that could be opened.
type unreadable struct{ fs.FS }

func (u unreadable) Open(name string) (fs.File, error) {
	if name == "data/a" || name == "data/b" {
		return nil, fs.ErrPermission
	}
	return u.FS.Open(name)
}

func TestValidate_Limits(t *testing.T) {
	b := newBag("1.0", "a", "A")
	long := strings.Repeat(line("md5", "A", "data/a")+"x: y\n", 5000)
	for name, tt := range map[string]struct {
		content string
		errors  int64
		limited bool
	}{
		"manifest-md5.txt": {long, 0, true},
		"bag-info.txt":     {long, 5000, false},
		"fetch.txt":        {long, 10_000, false},
	} {
		r, err := bagit.ValidateFS(t.Context(), b.with(name, tt.content).fs(), bagit.Options{MaxRecords: 20_000})
		if err != nil || r.Valid || len(r.Faults) > 1000 || tt.errors > 0 && r.ErrorCount != tt.errors {
			t.Fatalf("%s: %v, %d faults of %d, want %d", name, err, len(r.Faults), r.ErrorCount, tt.errors)
		}
		limited := slices.ContainsFunc(r.Faults, func(f bagit.Fault) bool { return f.Rule == bagit.RuleLimit })
		if limited != tt.limited {
			t.Errorf("%s: fault of the limit: %t, want %t: %v", name, limited, tt.limited, r.Faults[0])
		}
	}
}

// TestValidateTar_ManifestLast checks that a manifest covers only the files after it in the
// archive, regardless of the number of cores, so that the verdict on a rarely used algorithm is
// always the same.
func TestValidateTar_ManifestLast(t *testing.T) {
	t.Parallel()
	b := bag{"bagit.txt": "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"}
	order := []string{"bagit.txt"}
	var manifest strings.Builder
	for i := range 50 {
		name := fmt.Sprintf("data/%02d", i)
		b[name] = "abc"
		order = append(order, name)
		fmt.Fprintf(&manifest, "%s  %s\n", abcDigests["sha3-256"], name)
	}
	b["manifest-sha3-256.txt"] = manifest.String()
	raw := packTar(t, b, "top", append(order, "manifest-sha3-256.txt"))
	for range 20 {
		r := validateTarBytes(t, raw)
		n := 0
		for _, f := range r.Errors() {
			if f.Rule == bagit.RuleNotVerified {
				n++
			}
		}
		if n != 50 {
			t.Fatalf("%d of 50 files are not verified: %v", n, r.Faults)
		}
	}
}
