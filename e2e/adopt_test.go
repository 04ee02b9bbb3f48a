package e2e

import (
	"archive/zip"
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/npmtest"
	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

//go:embed testdata/ocfljs.js
var ocfljs string

// foreign is a storage root that ocfl-go makes, with an object of three versions and one of one.
type foreign struct {
	name      string // of the storage, and of the collection that gets its objects
	layout    string // its extension
	spec      string // the version of OCFL
	algorithm string
	ids       [2]string

	folder  string // where it lies
	address string // NAME=ADDRESS
	arks    [2]string
}

// foreigners returns a root in each layout, and one of OCFL 1.0.
func foreigners() []*foreign {
	return []*foreign{
		{name: "flat", layout: "0002-flat-direct-storage-layout", spec: "1.1", algorithm: "sha512", ids: [2]string{"urn:flat:plates", "urn:flat:box"}},
		{name: "tuples", layout: "0003-hash-and-id-n-tuple-storage-layout", spec: "1.1", algorithm: "sha256", ids: [2]string{"urn:tuples:plates", "ark:/12148/btv1b8449691v"}},
		{name: "hashed", layout: "0004-hashed-n-tuple-storage-layout", spec: "1.1", algorithm: "sha512", ids: [2]string{"ark:/12148/btv1b8449692v", "info:Kästchen 1"}},
		{name: "omit", layout: "0006-flat-omit-prefix-storage-layout", spec: "1.1", algorithm: "sha512", ids: [2]string{"urn:omit:plates", "urn:omit:box"}},
		{name: "omittuples", layout: "0007-n-tuple-omit-prefix-storage-layout", spec: "1.1", algorithm: "sha512", ids: [2]string{"urn:omittuples:plates", "urn:omittuples:box"}},
		{name: "older", layout: "0003-hash-and-id-n-tuple-storage-layout", spec: "1.0", algorithm: "sha512", ids: [2]string{"urn:older:plates", "ark:/12148/btv1b8449693v"}},
	}
}

// ocflgo runs ocfl-go.
func ocflgo(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(proctest.Built(t, "ocflgo"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ocfl-go %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// valid has ocfl-go judge the root, in which the first object is at a version.
func (f *foreign) valid(t *testing.T, version string) {
	t.Helper()
	says(t, "ocfl-go of "+f.name, ocflgo(t, "validate", f.folder), f.ids[0]+" "+version+" "+f.spec+"\n", f.ids[1]+" v1 "+f.spec+"\n")
}

// noEventWaits has events of checks that found everything right written into the storages like all others,
// also those that come after the last mend.
const noEventWaits = "HOLDFAST_EVIDENCE_WITHIN=0"

// TestAdopt takes storage roots that another program made, in every layout and both versions of OCFL, by the
// command as people use it, which is killed at random. Then their objects are changed, and that program finds
// them valid.
func TestAdopt(t *testing.T) {
	t.Parallel()
	t.Run("folders", func(t *testing.T) {
		t.Parallel()
		second := filepath.Join(t.TempDir(), "second")
		if err := os.Mkdir(second, 0o755); err != nil {
			t.Fatal(err)
		}
		h := up(t)
		roots := h.make(nil)
		h.stop()
		for _, f := range roots {
			h.adopt(f)
		}
		h.env = append(h.env, "HOLDFAST_STORAGE_URL="+addresses(roots)+" second=file://"+second, noEventWaits)
		h.start()
		h.updateAdopted(roots)
		h.actOnAdopted(roots[1], second, func() {
			for _, name := range []string{"registry.db", "registry.db-wal", "registry.db-shm"} {
				if err := os.Remove(filepath.Join(h.dir, name)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
		})
	})
	t.Run("found", func(t *testing.T) {
		t.Parallel()
		h := up(t)
		all := h.makeFound()
		h.stop()
		some := h.adoptFound(all)
		var storages []string
		for _, f := range some {
			storages = append(storages, f.address)
		}
		h.env = append(h.env, "HOLDFAST_STORAGE_URL="+strings.Join(storages, " "))
		h.start()
		h.updateFound(some)
	})
	// Here the Registry serves meanwhile.
	t.Run("a bucket and PostgreSQL", func(t *testing.T) {
		t.Parallel()
		server := postgrestest.Shared(t)
		bucket := s3test.Start(t)
		database := server.Schema(t)
		h := up(t, append(s3test.Env(), "HOLDFAST_DATABASE_URL="+database, "HOLDFAST_RECEIPT_KEY=YSBrZXkgb2YgMzIgYnl0ZXMgZm9yIHRoZSB0ZXN0cy4=")...)
		h.database = database
		roots := h.make(bucket)
		h.refuseUnsigned(roots[0])
		for _, f := range roots {
			h.adopt(f)
		}
		h.stop()
		h.env = append(h.env, "HOLDFAST_STORAGE_URL="+addresses(roots)+" second="+bucket.Address("second"), noEventWaits)
		h.start()
		h.updateAdopted(roots)
		h.actOnAdopted(roots[1], filepath.Join(bucket.Folder, "second"), func() {
			h.database = server.Schema(t)
			h.env = append(h.env, "HOLDFAST_DATABASE_URL="+h.database)
			if r := h.runIn("", "migrate"); r.code != 0 {
				t.Fatalf("migrate ended with %d: %s", r.code, r.stderr)
			}
		})
	})
}

// make makes the roots, in folders or in a bucket, and their collections.
func (h *holdfast) make(bucket *s3test.Server) []*foreign {
	h.t.Helper()
	roots := foreigners()
	for _, f := range roots {
		f.folder = filepath.Join(h.t.TempDir(), f.name)
		f.address = f.name + "=file://" + f.folder
		ocflgo(h.t, append([]string{"make", f.folder, f.layout, f.spec, f.algorithm}, f.ids[:]...)...)
		if bucket != nil {
			bucket.Fill(h.t, f.folder, f.name)
			f.folder = filepath.Join(bucket.Folder, f.name)
			f.address = f.name + "=" + bucket.Address(f.name)
		}
		h.storedIn(f.name) // in the default storage until then
	}
	return roots
}

func addresses(roots []*foreign) string {
	var all []string
	for _, f := range roots {
		all = append(all, f.address)
	}
	return strings.Join(all, " ")
}

// adoption is a line of `adopt --json`.
type adoption struct {
	Objects, Adopted, Known, Refused, Versions int64
	DryRun                                     bool `json:"dry_run"`
}

// adoption runs `adopt --json`, and returns the last line and what it printed.
func (h *holdfast) adoption(code int, args []string) (a adoption, text string) {
	h.t.Helper()
	out := h.runIn("", args...)
	lines := strings.Split(strings.TrimSpace(out.stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &a); err != nil || out.code != code {
		h.t.Fatalf("%v ended with %d: %v\n%s%s", args, out.code, err, out.stdout, out.stderr)
	}
	return a, out.stdout
}

// adopt takes a root by the command, which is killed twice.
func (h *holdfast) adopt(f *foreign) {
	h.t.Helper()
	args := []string{"adopt", f.name, "--storage", f.address, "--dir", h.dir, "--collection", f.name, "--json"}
	if h.database != "" {
		args = []string{"adopt", f.name, "--storage", f.address, "--database", h.database, "--collection", f.name, "--json"}
	}
	run := func(args []string) adoption {
		h.t.Helper()
		a, _ := h.adoption(0, args)
		return a
	}
	before := files(h.t, f.folder)
	if dry := run(append(args, "--dry-run")); dry != (adoption{Objects: 2, Adopted: 2, Versions: 4, DryRun: true}) {
		h.t.Errorf("%s: the dry run says %+v", f.name, dry)
	}
	if now := files(h.t, f.folder); !maps.Equal(now, before) {
		h.t.Errorf("%s: the dry run changed files", f.name)
	}
	for range 2 {
		cmd := exec.Command(binary, args...)
		cmd.Env = h.environment()
		if err := cmd.Start(); err != nil {
			h.t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		_, _ = cmd.Process.Kill(), cmd.Wait() // the next run tells more than the errors
	}
	run(args)
	if again := run(args); again != (adoption{Objects: 2, Known: 2}) {
		h.t.Errorf("%s: it ends with %+v", f.name, again)
	}
	now := files(h.t, f.folder)
	for name, text := range before {
		if now[name] != text {
			h.t.Errorf("%s: %s was changed", f.name, name)
		}
	}
}

// found is a storage root of OCFL 1.0 that comes with ocfl-go, or one that ocfl-js makes.
type found struct {
	foreign
	versions int    // of its first object; 0: nothing is adopted
	files    string // where it lies there; "": ocfl-js makes it
	want     adoption
	why      string // its objects are refused
}

// makeFound lays out roots that come with ocfl-go, makes one by ocfl-js, and makes their collections. One is of
// a Fedora 6, in which most objects have a mutable head.
func (h *holdfast) makeFound() []*found {
	t := h.t
	t.Helper()
	all := []*found{
		{
			foreign{name: "fedora", layout: "0003,digestAlgorithm=md5,tupleSize=2,numberOfTuples=3", ids: [2]string{"1ac255b7-4103-4d0e-a48d-fa02ac5c41c0"}},
			2, "warn-stores/fedora-root.zip",
			adoption{Objects: 176, Adopted: 26, Refused: 150, Versions: 60},
			"it has a version that is not committed",
		},
		{foreign{name: "hashandid", ids: [2]string{"ark:123/abc"}}, 1, "good-stores/reg-extension-dir-root", adoption{Objects: 1, Adopted: 1, Versions: 1}, ""},
		{foreign{name: "flatencoded", layout: "0002"}, 0, "good-stores/simple-root", adoption{Objects: 3, Refused: 3}, "has no folder for it"},
		{foreign{name: "wrongpath"}, 0, "warn-stores/layout_wrong_path", adoption{Objects: 1, Refused: 1}, "has its folder at "},
	}
	stores := filepath.Join(proctest.Module(t, "ocflgo", "github.com/srerickson/ocfl-go"), "testdata", "store-fixtures", "1.0")
	const layout = "0003-hash-and-id-n-tuple-storage-layout"
	// In lower case: ocfl-js has other folders than 0003 says for identifiers with capitals.
	js := &found{foreign{name: "ocfljs", spec: "1.1", ids: [2]string{"urn:js:kästchen 1", "ark:/12148/btv1b8449694v"}}, 2, "", adoption{Objects: 2, Adopted: 2, Versions: 4}, ""}
	js.folder = filepath.Join(t.TempDir(), js.name)
	if out, err := npmtest.Node(t.Context(), t, "@ocfl/ocfl-fs", "0.2.2", ocfljs, js.folder, layout, js.ids[0], js.ids[1]).CombinedOutput(); err != nil {
		t.Fatalf("ocfl-js: %v\n%s", err, out)
	}
	for _, f := range all {
		from := filepath.Join(stores, f.files)
		files := os.DirFS(from)
		if filepath.Ext(from) == ".zip" {
			archive, err := zip.OpenReader(from)
			if err != nil {
				t.Fatal(err)
			}
			defer archive.Close()
			files = archive
		}
		f.folder = filepath.Join(t.TempDir(), f.name)
		if err := os.CopyFS(f.folder, files); err != nil {
			t.Fatal(err)
		}
	}
	all = append(all, js)
	for _, f := range all {
		f.address = f.name + "=file://" + f.folder
		if f.layout != "" {
			f.address += "?layout=" + f.layout
		}
		h.storedIn(f.name)
	}
	return all
}

// adoptFound adopts what can be adopted of roots, and returns those with such objects.
func (h *holdfast) adoptFound(all []*found) (some []*found) {
	h.t.Helper()
	for _, c := range []struct {
		storage, address, collection string
		code                         int
		says                         []string
	}{
		{"fedora", all[0].address, "fedora", 7, []string{"26 would be adopted (60 versions", "150 would be refused", "nothing was changed"}},
		{"fedora", "fedora=file://" + all[0].folder, "fedora", 2, []string{"no layout was given", "?layout="}},
		{"elsewhere", all[0].address, "fedora", 1, []string{"--storage elsewhere=ADDRESS"}},
		{"fedora", all[0].address, "nowhere", 4, []string{"holdfast collection create nowhere"}},
	} {
		r := h.runIn("", "adopt", c.storage, "--storage", c.address, "--dir", h.dir, "--collection", c.collection, "--dry-run")
		if r.code != c.code {
			h.t.Errorf("adopt %s of %s into %s ended with %d, want %d", c.storage, c.address, c.collection, r.code, c.code)
		}
		says(h.t, "adopt", r.stdout+r.stderr, c.says...)
	}
	for _, f := range all {
		code := 0
		if f.want.Refused > 0 {
			code = 7
		}
		for _, dry := range []string{"--dry-run", "--dry-run=false"} {
			f.want.DryRun = dry == "--dry-run"
			got, text := h.adoption(code, []string{"adopt", f.name, "--storage", f.address, "--dir", h.dir, "--collection", f.name, "--json", dry})
			if refused := strings.Count(text, f.why); got != f.want || f.why != "" && refused < int(f.want.Refused)-1 {
				h.t.Errorf("%s: adopt %s says %+v, %d refused because %q; want %+v", f.name, dry, got, refused, f.why, f.want)
			}
		}
		if f.versions > 0 {
			some = append(some, f)
		}
	}
	return some
}

// updateFound gives a new version to an object of each root.
func (h *holdfast) updateFound(some []*found) {
	h.t.Helper()
	for _, f := range some {
		h.storedIn(f.name, f.name)
		h.deposit(&f.foreign, "added.txt", f.versions+1)
		says(h.t, "ocfl-go of "+f.name, ocflgo(h.t, "validate", f.folder), fmt.Sprintf("%s v%d %s\n", f.ids[0], f.versions+1, cmp.Or(f.spec, "1.0")))
	}
}

// refuseUnsigned shows that receipts without a signature must be asked for.
func (h *holdfast) refuseUnsigned(f *foreign) {
	h.t.Helper()
	const why = "no key to sign the receipts"
	args := []string{"adopt", f.name, "--storage", f.address, "--database", h.database, "--collection", f.name}
	keyed := h.env
	h.env = append(slices.Clone(keyed), "HOLDFAST_RECEIPT_KEY=")
	if r := h.runIn("", args...); r.code != 2 || !strings.Contains(r.stderr, why) || !strings.Contains(r.stderr, "--unsigned") {
		h.t.Errorf("an adoption without a key ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := h.runIn("", append(args, "--dry-run")...); r.code != 0 || !strings.Contains(r.stderr, why) {
		h.t.Errorf("a dry run without a key ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := h.runIn("", append(args, "--dry-run", "--unsigned")...); r.code != 0 || strings.Contains(r.stderr, why) {
		h.t.Errorf("a dry run of an unsigned adoption ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	h.env = keyed
}

// updateAdopted has each root's collection keep its objects there, and gives a new version to one.
func (h *holdfast) updateAdopted(roots []*foreign) {
	h.t.Helper()
	for _, f := range roots {
		h.storedIn(f.name, f.name)
		f.arks[0] = h.deposit(f, "added.txt", 4)
		f.valid(h.t, "v4")
		if n := len(rows[struct{}](h, "object", "list", "--collection", f.name)); n != 2 {
			h.t.Errorf("%s: there are %d objects, want 2", f.name, n)
		}
	}
	h.must(0, "object", "verify", "--all")
	h.must(0, "object", "audit", "--all")
}

// deposit puts a file into the first object of a root, by its identifier there, and returns its ARK.
func (h *holdfast) deposit(f *foreign, name string, version int) string {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), name)
	if err := os.WriteFile(file, []byte(name+" of "+f.name), 0o600); err != nil {
		h.t.Fatal(err)
	}
	by := "--local-id"
	if strings.HasPrefix(f.ids[0], "ark:") {
		by = "--ark"
	}
	s, code := h.submit(file, "--collection", f.name, "--update", by, f.ids[0])
	if code != 0 || len(s.Jobs) != 1 || s.Jobs[0].Version != version || f.arks[0] != "" && s.Jobs[0].ObjectID != f.arks[0] {
		h.t.Fatalf("%s: exit=%d %+v, want version %d of %s", f.name, code, s, version, f.arks[0])
	}
	return s.Jobs[0].ObjectID
}

// actOnAdopted does to an object of a root what can be done to one: it is exported in each form, copied to
// another storage, mended from there, restored, made again for a new Registry after lose, updated and deleted.
func (h *holdfast) actOnAdopted(f *foreign, second string, lose func()) {
	t, ark := h.t, f.arks[0]
	t.Helper()
	want := map[string]string{"renamed.txt": "glass", "box/list.txt": "one, two", "added.txt": "added.txt of tuples"}
	for form, args := range map[string][]string{"folder": {}, "bag": {"--bag"}, "tar": {"--tar"}, "bag.tar": {"--bag", "--tar"}} {
		out := filepath.Join(t.TempDir(), form)
		h.must(0, append([]string{"object", "export", ark, "--out", out}, args...)...)
		if got := payload(t, out, args); !maps.Equal(got, want) {
			t.Errorf("exported as a %s: %v", form, got)
		}
	}
	h.must(0, "object", "restore", ark, "--out", filepath.Join(t.TempDir(), "restored.tar"))
	if got := h.zipped(ark); !maps.Equal(got, want) {
		t.Errorf("exported as a zip: %v", got)
	}

	h.must(0, "storage", "add", "second", "--collection", f.name, "--yes", "--reason", "two copies")
	h.until("both objects are copied", func() bool { return len(h.list("action:copy", "state:completed")) == 2 })
	says(t, "ocfl-go of the copies", ocflgo(t, "validate", second), f.ids[0]+" v4 1.1\n", f.ids[1]+" v1 1.1\n")
	h.deposit(f, "later.txt", 5)
	places, err := filepath.Glob(filepath.Join(f.folder, "*", "*", "*", "*plates", "v1", "content", "plate.txt"))
	if err != nil || len(places) != 1 {
		t.Fatalf("the first file of the first object: %v, %v", places, err)
	}
	damage(t, places[0])
	h.must(1, "object", "verify", ark)
	h.must(0, "object", "fixity", ark, "--reason", "to mend it")
	h.until("it is mended", func() bool { return h.run("object", "verify", ark).code == 0 })
	f.valid(t, "v5")
	h.until("all events are in the storages", func() bool { return h.evidenceKept(ark, f.folder, second) })
	h.stop()
	lose()
	if r := h.runIn("", "rebuild", "--dir", h.dir); r.code != 0 {
		t.Fatalf("rebuild ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	h.start()
	h.must(0, "object", "verify", "--all")
	h.storedIn(f.name, f.name, "second")
	h.deposit(f, "last.txt", 6)
	f.valid(t, "v6")

	ann, _ := h.token("--name", "ann", "--role", "operator")
	ben, _ := h.token("--name", "ben", "--role", "admin")
	if r := h.as(ann, "object", "delete", ark, "--reason", "rights were withdrawn"); r.code != 0 {
		t.Fatalf("asked for a deletion: %d %s", r.code, r.stderr)
	}
	r := h.as(ben, "object", "delete", ark, "--approve")
	if r.code != 0 {
		t.Fatalf("approved: %d %s", r.code, r.stderr)
	}
	h.must(0, "watch", strings.TrimSpace(r.stdout))
	if _, err := os.Stat(places[0]); !os.IsNotExist(err) {
		t.Errorf("after the deletion %s: %v", places[0], err)
	}
	if left := ocflgo(t, "validate", f.folder, second); strings.Contains(left, f.ids[0]) || strings.Count(left, f.ids[1]+" v1 1.1\n") != 2 {
		t.Errorf("after the deletion ocfl-go finds %s", left)
	}
	if out := h.runIn("", "check", f.folder); !strings.Contains(out.stdout, "valid") || out.code != 0 {
		t.Errorf("the check of the root: %d %s%s", out.code, out.stdout, out.stderr)
	}
}

// zipped returns the files of an object's zip, as the pages offer it.
func (h *holdfast) zipped(ark string) map[string]string {
	h.t.Helper()
	_, text := h.get("/api/v1/objects/" + url.PathEscape(ark) + "/export")
	archive, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		h.t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			h.t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			h.t.Fatal(err)
		}
		got[f.Name] = string(text)
	}
	return got
}
