package ocfl_test

import (
	"bytes"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// FuzzInventory checks that validation of any inventory ends with a verdict, and that a valid
// object can be read, used for another version and written again, and stays valid.
func FuzzInventory(f *testing.F) {
	valid := newSample(ocfl.Spec11)
	f.Add(valid.files[v1Inv].Data)
	f.Add(valid.files[rootInv].Data)
	f.Add([]byte(`{"id": "x", "versions": {"v1": {"state": {"a": ["b", "b/c"]}}}, "manifest": {"A": [], "a": [1]}}`))
	f.Add([]byte(`{"head": [[{}]], "fixity": null, "manifest": 3, "versions": {"v1": null, "v0": 1, "v01": {}}}`))
	f.Add([]byte("{\"id\": \"\xff\"}"))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		files := fstest.MapFS{
			"0=ocfl_object_1.1": {Data: []byte("ocfl_object_1.1\n")}, "v1/content/a.txt": {Data: []byte("a")},
			rootInv: {Data: data}, v1Inv: {Data: data},
		}
		for _, algorithm := range []string{ocfl.SHA512, ocfl.SHA256} {
			files[rootInv+"."+algorithm] = &fstest.MapFile{Data: []byte(digestOf(algorithm, string(data)) + " inventory.json\n")}
		}
		report, err := ocfl.ValidateFS(t.Context(), files, ocfl.ValidateOptions{})
		if err != nil {
			t.Fatalf("no verdict: %v", err)
		}
		errorsLeft := slices.DeleteFunc(report.Errors(), func(f ocfl.Fault) bool {
			return f.Code == "E001" || f.Code == "E015" || f.Code == "E058" // of the sidecars that this test writes
		})
		if len(errorsLeft) > 0 {
			return
		}
		readAgain(t, report.ID, data)
	})
}

// readAgain reads a valid inventory as part of a root and goes on from it.
func readAgain(t *testing.T, id string, data []byte) {
	t.Helper()
	store := storagetest.NewMemory()
	root, err := ocfl.OpenRoot(t.Context(), store, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	base, _ := root.ObjectKey(id)
	for name, content := range map[string][]byte{
		rootInv: data, rootInv + ".sha512": []byte(digestOf(ocfl.SHA512, string(data)) + " inventory.json\n"),
		rootInv + ".sha256": []byte(digestOf(ocfl.SHA256, string(data)) + " inventory.json\n"),
	} {
		if _, err := storage.Put(t.Context(), store, base+"/"+name, content); err != nil {
			t.Fatal(err)
		}
	}
	inv, err := root.Inventory(t.Context(), id, 0)
	if err != nil {
		t.Fatalf("a valid inventory cannot be read: %v\n%s", err, data)
	}
	added := ocfl.File{Path: "added", Digest: inv.Manifest[0].Digest}
	next, _, err := ocfl.NewVersion(inv, ocfl.Change{Files: ocfl.Files([]ocfl.File{added}), Created: created(1)})
	if err != nil {
		return // the path is taken, or padding runs out
	}
	var once bytes.Buffer
	if err := next.Encode(&once); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{
		"0=ocfl_object_1.1": {Data: []byte("ocfl_object_1.1\n")}, rootInv: {Data: once.Bytes()}, "v1/content/a.txt": {Data: []byte("a")},
	}
	report, err := ocfl.ValidateFS(t.Context(), files, ocfl.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range report.Errors() {
		switch fault.Code {
		case "E058", "E010", "E046", "E038": // no sidecar, no folder of the new version
		default:
			t.Errorf("written again: %s\n%s", fault, once.Bytes())
		}
	}
}
