package check

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/registry/receipt"
)

// mutationSubjects returns the subjects of TestMutations: our own bags and objects, public ones if
// they are here, and receipts with each kind of folder.
func mutationSubjects(t *testing.T) (subjects []subject) {
	t.Helper()
	bags := map[string]fileset{
		"bag 1.0 with tag manifest":          ownBag("1.0", "sha512").tagged(),
		"bag 1.0 of two manifests":           ownBag("1.0", "md5", "sha256"),
		"bag 0.97 of two manifests":          ownBag("0.97", "md5", "sha256").tagged(),
		"bag 0.97 without tag manifest":      ownBag("0.97", "sha1"),
		"bag 1.0 with what has no manifests": ownBag("1.0", "sha256").tagged().with("notes.txt", "free"),
	}
	objects := map[string]fileset{"object of two versions": ownObject()}
	public, err := filepath.Glob("../../../shared/cases/bagit/v*/valid/*/bagit.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range public {
		files := readFiles(t, filepath.Dir(file))
		if files["fetch.txt"] == nil && files.size() < 100_000 { // so that the loop stays quick and whole
			bags[strings.TrimPrefix(filepath.Dir(file), "../../../shared/cases/")] = files
		}
	}
	public, err = filepath.Glob("../../../shared/cases/ocfl/*/good-objects/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range public {
		if files := readFiles(t, folder); files.size() < 100_000 { // so that the loop stays quick
			objects[strings.TrimPrefix(folder, "../../../shared/cases/")] = files
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bags)) {
		s := subject{name: name, files: bags[name], prove: proveBag, check: checkAs("bag")}
		subjects = append(subjects, s, s) // twice: of each a plain one and one that hides more often than not
		if len(tagManifests(bags[name])) > 0 {
			subjects[len(subjects)-1].hide = fileset.retag
		}
	}
	for name, data := range map[string][]byte{"bag.zip": zippedBag(t, bags["bag 1.0 with tag manifest"]), "bag.tar.gz": gzippedBag(t, bags["bag 1.0 with tag manifest"])} {
		subjects = append(subjects, subject{
			name: name, files: fileset{name: data}, argument: name, prove: proveArchive,
			check: func(dir string) []string { return []string{"check", "--type", "bag", filepath.Join(dir, name)} },
		})
	}
	slices.SortStableFunc(subjects, func(a, b subject) int { return strings.Compare(a.name, b.name) })
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		plain := subject{name: name, files: objects[name], prove: proveObject, check: checkAs("ocfl-object"), hide: fileset.reseal}
		key, text := receiptOf(t, objects[name])
		outside := t.TempDir()
		clitest.WriteFile(t, filepath.Join(outside, "receipt.jsonl"), text)
		held := plain
		held.name, held.prove = name+", with its receipt", proveReceiptedObject
		held.check = func(dir string) []string {
			return []string{"check", "--key", key, "--against", dir, filepath.Join(outside, "receipt.jsonl")}
		}
		subjects = append(subjects, plain, held)
	}
	return append(subjects, receiptSubjects(t, objects["object of two versions"])...)
}

// receiptSubjects returns a receipt with its object, with a bag and with a folder of its files.
func receiptSubjects(t *testing.T, object fileset) (subjects []subject) {
	key, text := receiptOf(t, object)
	state := stateOf(t, object)
	bagged, plain, whole := fileset{}, fileset{}, fileset{}
	for name, content := range state {
		if file, ok := strings.CutPrefix(name, "producer/"); ok {
			bagged["data/"+file], plain[file], whole[file] = object[content], object[content], object[content]
		} else {
			whole[name] = object[content]
		}
	}
	bagged = bagged.declared("1.0").listed("sha512").tagged()
	check := func(dir string) []string {
		return []string{"check", "--key", key, "--against", filepath.Join(dir, "bag"), filepath.Join(dir, "receipt.jsonl")}
	}
	for name, files := range map[string]fileset{"bag": bagged, "folder": plain, "folder with ours": whole} {
		all, prove := fileset{"receipt.jsonl": []byte(text)}, proveBeside
		for name, data := range files {
			all["bag/"+name] = data
		}
		if name == "bag" {
			prove = proveTags
		}
		subjects = append(subjects, subject{name: "receipt with a " + name, files: all, argument: "receipt.jsonl", check: check, prove: prove})
	}
	slices.SortFunc(subjects, func(a, b subject) int { return strings.Compare(a.name, b.name) })
	return append(subjects,
		subject{name: "receipt", files: fileset{"receipt.jsonl": []byte(text)}, argument: "receipt.jsonl", prove: proveBeside, check: func(dir string) []string {
			return []string{"check", "--key", key, filepath.Join(dir, "receipt.jsonl")}
		}},
		subject{name: "receipt without a key", files: fileset{"receipt.jsonl": []byte(text)}, argument: "receipt.jsonl", prove: proveBeside, check: func(dir string) []string {
			return []string{"check", "--type", "receipt", filepath.Join(dir, "receipt.jsonl")}
		}},
	)
}

func checkAs(typ string) func(dir string) []string {
	return func(dir string) []string { return []string{"check", "--type", typ, dir} }
}

func readFiles(t *testing.T, folder string) fileset {
	t.Helper()
	files := fileset{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files[name], err = os.ReadFile(filepath.Join(folder, name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (f fileset) size() (total int) {
	for _, data := range f {
		total += len(data)
	}
	return total
}

func ownBag(version string, algorithms ...string) fileset {
	f := fileset{
		"data/a.txt": []byte("alpha"), "data/sub/b c.bin": []byte("\x00beta\xff"), "data/empty": nil,
		"bag-info.txt": []byte("Source-Organization: Example\nExternal-Description: long text\n  that goes on\nPayload-Oxum: 11.3\n"),
	}
	return f.declared(version).listed(algorithms...)
}

func (f fileset) declared(version string) fileset {
	return f.with("bagit.txt", "BagIt-Version: "+version+"\nTag-File-Character-Encoding: UTF-8\n")
}

func (f fileset) with(name, text string) fileset {
	f[name] = []byte(text)
	return f
}

func (f fileset) listed(algorithms ...string) fileset {
	for _, algorithm := range algorithms {
		f["manifest-"+algorithm+".txt"] = f.list(algorithm, f.under("data/"))
	}
	return f
}

func (f fileset) tagged() fileset {
	return f.with("tagmanifest-sha512.txt", string(f.list("sha512", f.without("data/"))))
}

func (fileset) list(algorithm string, files fileset) []byte {
	var text []byte
	for _, name := range files.names() {
		text = fmt.Appendf(text, "%s  %s\n", digestBy(algorithm, files[name]), name)
	}
	return text
}

func tagManifests(f fileset) []string {
	return slices.DeleteFunc(f.names(), func(name string) bool { return !strings.HasPrefix(name, "tagmanifest-") || strings.Contains(name, "/") })
}

// retag makes the tag manifests match the tag files.
func (f fileset) retag() {
	for _, name := range tagManifests(f) {
		f[name] = f.list(strings.TrimSuffix(strings.TrimPrefix(name, "tagmanifest-"), ".txt"), f.without("data/", "tagmanifest-"))
	}
}

// ownObject returns a valid object of two versions with logs and fixity.
func ownObject() fileset {
	f := fileset{
		"0=ocfl_object_1.1": []byte("ocfl_object_1.1\n"), "logs/2026.log": []byte("looked at\n"),
		"v1/content/producer/a.txt": []byte("alpha"), "v1/content/producer/b.txt": []byte("beta"), "v1/content/system/mrt-erc.txt": []byte("erc:\nwho: x\n"),
		"v2/content/producer/b.txt": []byte("better"),
	}
	by := func(name string) string { return digestBy("sha512", f[name]) }
	a, b, erc, better := by("v1/content/producer/a.txt"), by("v1/content/producer/b.txt"), by("v1/content/system/mrt-erc.txt"), by("v2/content/producer/b.txt")
	version := func(message string, state map[string]any) map[string]any {
		return map[string]any{
			"created": "2026-08-01T14:30:00Z", "message": message, "state": state,
			"user": map[string]any{"name": "Archive", "address": "mailto:a@example.org"},
		}
	}
	inventory := func(head string, manifest, versions map[string]any) {
		text, err := json.MarshalIndent(map[string]any{
			"id": "ark:/99999/fk4m", "type": "https://ocfl.io/1.1/spec/#inventory", "digestAlgorithm": "sha512", "head": head,
			"manifest": manifest, "versions": versions,
			"fixity": map[string]any{"md5": map[string]any{digestBy("md5", f["v1/content/producer/a.txt"]): []string{"v1/content/producer/a.txt"}}},
		}, "", "  ")
		if err != nil {
			panic(err)
		}
		f[head+"/inventory.json"], f["inventory.json"] = text, text
	}
	manifest := map[string]any{
		a: []string{"v1/content/producer/a.txt"}, b: []string{"v1/content/producer/b.txt"}, erc: []string{"v1/content/system/mrt-erc.txt"},
	}
	versions := map[string]any{"v1": version("first", map[string]any{
		a: []string{"producer/a.txt"}, b: []string{"producer/b.txt"}, erc: []string{"system/mrt-erc.txt"},
	})}
	inventory("v1", manifest, versions)
	manifest[better] = []string{"v2/content/producer/b.txt"}
	versions["v2"] = version("second", map[string]any{
		a: []string{"producer/a.txt", "producer/same.txt"}, better: []string{"producer/b.txt"}, erc: []string{"system/mrt-erc.txt"},
	})
	inventory("v2", manifest, versions)
	f.reseal()
	return f
}

// reseal updates all sidecars, and the root inventory from its head version's.
func (f fileset) reseal() {
	newest := ""
	for _, name := range f.names() {
		if ok, _ := path.Match("v*/inventory.json", name); ok && (newest == "" || len(name) > len(newest) || len(name) == len(newest) && name > newest) {
			newest = name
		}
	}
	if newest != "" && f["inventory.json"] != nil && f[newest] != nil {
		if slices.ContainsFunc(f.names(), func(name string) bool { return strings.HasPrefix(name, newest+".") && sidecarOf(f, name) }) { // so it is the root's that was changed
			f[newest] = f["inventory.json"]
		} else {
			f["inventory.json"] = f[newest]
		}
	}
	for _, name := range f.names() {
		if path.Base(name) != "inventory.json" {
			continue
		}
		var inv struct{ DigestAlgorithm string }
		if json.Unmarshal(f[name], &inv) != nil {
			continue
		}
		if digest := digestBy(inv.DigestAlgorithm, f[name]); digest != "" {
			f[name+"."+inv.DigestAlgorithm] = []byte(digest + "  inventory.json\n")
		}
	}
}

func readInventory(t *testing.T, f fileset) (inv struct {
	ID, Head string
	Manifest map[string][]string
	Versions map[string]struct{ State map[string][]string }
	Digest   string `json:"digestAlgorithm"`
},
) {
	t.Helper()
	if err := json.Unmarshal(f["inventory.json"], &inv); err != nil {
		t.Fatal(err)
	}
	return inv
}

// stateOf returns the newest version's content paths by logical path.
func stateOf(t *testing.T, f fileset) map[string]string {
	t.Helper()
	inv, state := readInventory(t, f), map[string]string{}
	for digest, names := range inv.Versions[inv.Head].State {
		for _, name := range names {
			state[name] = inv.Manifest[digest][0]
		}
	}
	return state
}

// receiptOf makes the receipt of an object's newest version, and its key.
func receiptOf(t *testing.T, f fileset) (publicKey, text string) {
	t.Helper()
	key, err := receipt.ParseKey(receipt.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	inv, state := readInventory(t, f), stateOf(t, f)
	at := time.Date(2026, 8, 1, 14, 30, 0, 0, time.UTC)
	var m receipt.Manifest
	var body bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(state)) {
		data := f[state[name]]
		body.Write(m.Add(receipt.File{Path: name, Size: int64(len(data)), Content: state[name], Digests: map[string]string{"sha512": digestBy("sha512", data)}}))
	}
	version := 0
	if _, err := fmt.Sscanf(inv.Head, "v%d", &version); err != nil {
		t.Fatal(err)
	}
	span := receipt.Span{First: 1, Count: 2, Before: receipt.Zero, After: receipt.Zero}
	for i, kind := range []string{"ingestion start", "ingestion end"} {
		e := receipt.Event{Seq: int64(i + 1), Object: inv.ID, ID: fmt.Sprint("event", i), Version: version, Type: kind, At: at, Agent: "Holdfast", Outcome: "success"}
		span.After = e.Hash(span.After)
		body.Write(e.Line(span.After))
	}
	head, signature := key.Sign(receipt.Header{
		Object: inv.ID, Version: version, Owner: "archive", LocalIDs: []string{"l1"}, Title: "A title", Created: at, Recorded: at,
		Files: m.Files, Bytes: m.Bytes, Manifest: m.Digest(), Events: span,
		Replicas: []receipt.Replica{{Storage: "file:///one", Verified: at, Inventory: inv.Digest + ":" + digestBy(inv.Digest, f["inventory.json"])}},
	})
	return key.Public().String(), string(receipt.Head(head, signature)) + body.String()
}

func zippedBag(t *testing.T, f fileset) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range f.names() {
		w, err := z.Create("bag/" + name)
		if err == nil {
			_, err = w.Write(f[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzippedBag(t *testing.T, f fileset) []byte {
	t.Helper()
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	for _, name := range f.names() {
		err := w.WriteHeader(&tar.Header{Name: "bag/" + name, Size: int64(len(f[name])), Mode: 0o644})
		if err == nil {
			_, err = w.Write(f[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
