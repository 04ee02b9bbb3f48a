package check

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/storage/open"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// storageRoot makes a storage root with two objects in a store and returns their folders.
func storageRoot(t *testing.T, s storage.Store) (folders []string) {
	t.Helper()
	root, err := ocfl.OpenRoot(t.Context(), s, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	source, err := dir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if _, err := storage.Put(t.Context(), source, "a", []byte("alpha")); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512([]byte("alpha"))
	digest := hex.EncodeToString(sum[:])
	for _, id := range []string{"ark:/99999/fk1", "ark:/99999/fk2"} {
		inv, err := ocfl.New(id, ocfl.SHA512)
		if err == nil {
			inv, _, err = ocfl.NewVersion(inv, ocfl.Change{
				Files:   ocfl.Files([]ocfl.File{{Path: "a.txt", Digest: digest}}),
				Message: "m", User: &ocfl.User{Name: "n", Address: "mailto:n@example.org"}, Created: time.Unix(1, 0),
			})
		}
		if err == nil {
			err = root.Commit(t.Context(), inv, func(ocfl.ContentFile) (storage.Store, string, error) { return source, "a", nil }, ocfl.CommitOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		folder, err := root.ObjectKey(id)
		if err != nil {
			t.Fatal(err)
		}
		folders = append(folders, folder)
	}
	return folders
}

// An OCFL object and a storage root are validated offline, with a result for each object of a root.
func TestCheck_OCFL(t *testing.T) {
	clitest.NoEnvironment(t)
	path := t.TempDir()
	s, err := dir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	folders := storageRoot(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	object := filepath.Join(path, folders[0])
	r := runCheck(t, "check", path, object).Wants(t, exit.OK)
	for _, line := range []string{
		path + " " + folders[0] + ": valid ocfl-object 1.1, 1 file, 5 B", path + " " + folders[1] + ": valid ocfl-object 1.1",
		path + ": valid ocfl-root 1.1, 2 objects, 2 files, 10 B", object + ": valid ocfl-object 1.1",
	} {
		if !strings.Contains(r.Out, line) {
			t.Errorf("%q is not in\n%s", line, r.Out)
		}
	}
	content := filepath.Join(object, "v1", "content", "a.txt")
	if err := os.Chmod(content, 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, content, "alphA")
	clitest.WriteFile(t, filepath.Join(path, "stray", "file"), "x")
	r = runCheck(t, "check", "--json", path).Wants(t, exit.Content)
	lines := strings.Split(strings.TrimSpace(r.Out), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want one for each object and one for the root:\n%s", len(lines), r.Out)
	}
	valid := map[string]bool{}
	for _, line := range lines {
		var v struct {
			Path  string
			Type  string
			Valid bool
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		valid[v.Path] = v.Valid
	}
	if len(valid) != 3 || valid[path] || valid[path+" "+folders[0]] || !valid[path+" "+folders[1]] {
		t.Errorf("verdicts = %v", valid)
	}
	r = runCheck(t, "check", path).Wants(t, exit.Content)
	for _, part := range []string{"INVALID ocfl-root 1.1, 2 objects", "1 of 2 objects are not valid", "stray/file: E072", "v1/content/a.txt: E092"} {
		if !strings.Contains(r.Out, part) {
			t.Errorf("%q is not in\n%s", part, r.Out)
		}
	}
	// What has lost its declaration is judged when somebody says what it is.
	if err := os.Remove(filepath.Join(path, "0=ocfl_1.1")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	runCheck(t, "check", "--type", "ocfl-root", path).Wants(t, exit.Content)
}

// A bucket is validated like a folder.
func TestCheck_OCFLInBucket(t *testing.T) {
	clitest.NoEnvironment(t)
	server := s3test.Start(t)
	s3test.Setenv(t)
	address := server.Address("store/root")
	s, err := open.URL(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	folders := storageRoot(t, s)
	defer s.Close()
	r := runCheck(t, "check", address, server.Address("store/root/"+folders[1])).Wants(t, exit.OK)
	for _, part := range []string{"valid ocfl-root 1.1, 2 objects, 2 files, 10 B", folders[1] + "?path_style=true", "valid ocfl-object 1.1, 1 file, 5 B"} {
		if !strings.Contains(r.Out, part) {
			t.Errorf("%q is not in\n%s", part, r.Out)
		}
	}
	if err := s.Replace(t.Context(), folders[0]+"/inventory.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	runCheck(t, "check", address).Wants(t, exit.Content)
	runCheck(t, "check", server.Address("store")).Wants(t, exit.Usage).Says(t, "neither an OCFL object nor a storage root")
	runCheck(t, "check", "s3://user:secret@bucket/x").Wants(t, exit.Usage).Says(t, "credentials are not allowed")
}
