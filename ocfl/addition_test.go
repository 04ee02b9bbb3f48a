package ocfl_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
)

// TestReadAddition checks that a version is committed alike from its inventory in memory and from a
// stored one, also a version that has content of earlier ones, padded names and another folder for
// content.
func TestReadAddition(t *testing.T) {
	stage := staging{newStore(t)}
	one := newObject(t, "ark:/99999/addition")
	var files []ocfl.File
	for i := range 300 {
		files = append(files, stage.file(t, fmt.Sprintf("folder %d/ä%03d", i%7, i), fmt.Sprint("content ", i%200)))
	}
	files = append(files, stage.file(t, "line\nbreak", "x"), stage.file(t, strings.Repeat("long/", 180)+"name", "y"))
	one, _ = plan(t, one, ocfl.Change{User: &user, Message: "1", Files: ocfl.Files(files)})
	two, _ := plan(t, one, ocfl.Change{User: &user, Message: "2", Files: ocfl.Files([]ocfl.File{
		stage.file(t, "again", "content 1"), stage.file(t, "new", "new"),
	})})
	inMemory, fromText := newRoot(t, newStore(t)), newRoot(t, newStore(t))
	space := fromText.Spill()
	defer space.Close()
	for n, inv := range []*ocfl.Inventory{one, two} {
		commit(t, inMemory, inv, stage)
		key := fmt.Sprintf("inventory %d", n)
		if _, err := storage.Put(t.Context(), stage.store, key, []byte(encode(t, inv))); err != nil {
			t.Fatal(err)
		}
		a, err := ocfl.ReadAddition(t.Context(), stage.store, key, n+1, inv.Algorithm, inventoryDigest(t, inv), space)
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		source := func(f ocfl.ContentFile) (storage.Store, string, error) {
			asked = append(asked, f.Path)
			return stage.source(f)
		}
		if err := fromText.CommitAddition(t.Context(), a, source, ocfl.CommitOptions{}); err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(asked) || len(asked) != len(inv.ContentFiles()) {
			t.Errorf("version %d: asked for %d files, in order: %t, want %d", n+1, len(asked), slices.IsSorted(asked), len(inv.ContentFiles()))
		}
		wantValid(t, fromText, inv.ID)
		have, err := fromText.Inventory(t.Context(), inv.ID, 0)
		if err != nil || encode(t, have) != encode(t, inv) {
			t.Errorf("version %d has another inventory, %v", n+1, err)
		}
	}
}

// TestReadAddition_Damaged checks that no part of a wrong or damaged inventory is used.
func TestReadAddition_Damaged(t *testing.T) {
	stage := staging{newStore(t)}
	inv, _ := plan(t, newObject(t, "ark:/99999/damaged"), ocfl.Change{User: &user, Message: "1", Files: ocfl.Files([]ocfl.File{stage.file(t, "a", "a")})})
	good := encode(t, inv)
	read := func(text string, n int, digest string) error {
		key := fmt.Sprintf("%d %s", n, digestOf("sha256", text+digest))
		if _, err := storage.Put(t.Context(), stage.store, key, []byte(text)); err != nil {
			t.Fatal(err)
		}
		space := newRoot(t, newStore(t)).Spill()
		defer space.Close()
		_, err := ocfl.ReadAddition(t.Context(), stage.store, key, n, inv.Algorithm, digest, space)
		return err
	}
	if err := read(good, 1, strings.ToUpper(inventoryDigest(t, inv))); err != nil {
		t.Errorf("a good inventory: %v", err)
	}
	var wrong *ocfl.DigestError
	if err := read(good[:len(good)-10], 1, inventoryDigest(t, inv)); !errors.As(err, &wrong) || wrong.Existing {
		t.Errorf("a cut inventory: %v, want a DigestError", err)
	}
	_, rest, _ := strings.Cut(good, `"manifest"`)
	for name, text := range map[string]string{
		"empty":              "",
		"no object":          "[]",
		"cut":                good[:len(good)-3],
		"more after the end": good + "{}",
		"two manifests":      strings.Replace(good, `"manifest"`, `"manifest": {}, "manifest"`, 1),
		"no manifest":        strings.Replace(good, `"manifest"`, `"fixity"`, 1),
		"an unknown key":     strings.Replace(good, `"manifest"`, `"Manifest"`, 1),
		"a wrong type":       strings.Replace(good, "https://ocfl.io/1.1", "https://ocfl.io/3", 1),
		"a wrong head":       strings.Replace(good, `"head": "v1"`, `"head": "v2"`, 1),
		"no id":              strings.Replace(good, inv.ID, "", 1),
		"a path of a parent": strings.Replace(good, "v1/content/a", "v1/content/../a", 1),
		"an absolute path":   strings.Replace(good, "v1/content/a", "/v1/content/a", 1),
		"a path no text":     strings.Replace(good, `"v1/content/a"`, "7", 1),
		"a digest no list":   `{"manifest"` + strings.Replace(rest, "[", `"`, 1),
		"not UTF-8":          strings.Replace(good, "v1/content/a", "v1/content/\xff", 1),
	} {
		var invalid *ocfl.InventoryError
		if err := read(text, 1, digestOf(inv.Algorithm, text)); !errors.As(err, &invalid) {
			t.Errorf("%s: %v, want an InventoryError", name, err)
		}
	}
	var invalid *ocfl.InventoryError
	if err := read(good, 2, inventoryDigest(t, inv)); !errors.As(err, &invalid) {
		t.Errorf("the inventory of another version: %v", err)
	}
	short := strings.Replace(good, inv.Manifest[0].Digest, "abc", 2)
	if err := read(short, 1, digestOf(inv.Algorithm, short)); err == nil {
		t.Error("a digest that is none was accepted")
	}
}
