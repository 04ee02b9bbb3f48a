package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/web/wire"
)

// A forger with access to storage can make files, inventories and sidecars agree. They differ from
// the Registry's record, and `object verify` says where.
func TestVerify_FindsConsistentForgery(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole Holdfast")
	}
	dir := up(t)
	in := func(args ...string) clitest.Result { t.Helper(); return holdfast(t, append(args, "--dir", dir)...) }
	folder := filepath.Join(t.TempDir(), "deposit")
	clitest.WriteFile(t, filepath.Join(folder, "a.txt"), "what was deposited")
	clitest.WriteFile(t, filepath.Join(folder, "b.txt"), "beside it")
	s := in("submit", folder, "--wait", "--json", "--local-id", "forged").Wants(t, exit.OK).Summary(t)
	ark := s.Jobs[0].ARK
	clitest.WriteFile(t, filepath.Join(folder, "c.txt"), "added later")
	in("submit", folder, "--wait", "--json", "--local-id", "forged", "--update").Wants(t, exit.OK)
	object := objectFolder(t, filepath.Join(dir, "storage"))
	// SHA-256 is the collection's choice, but new to the validator.
	if r := in("object", "verify", ark).Wants(t, exit.OK).Says(t, "against the Registry's record"); strings.Contains(r.Out, "W004") {
		t.Errorf("verify finds fault with the recorded algorithm:\n%s", r.Out)
	}
	if r := holdfast(t, "check", object); !strings.Contains(r.Out, "W004") {
		t.Errorf("check does not advise SHA-512:\n%s", r.Out)
	}
	forge(t, object, "what was deposited", "what was not, ever")
	r := holdfast(t, "check", object)
	if r.Code != exit.OK {
		t.Fatalf("the forgery is not consistent:\n%s%s", r.Out, r.Err)
	}
	r = in("object", "verify", ark).Wants(t, exit.Failed)
	for _, part := range []string{"DAMAGED", "R004", "v1/inventory.json", "v2/inventory.json", "R005", "producer/a.txt", "in version 1"} {
		if !strings.Contains(r.Out, part) {
			t.Errorf("verify does not say %q:\n%s", part, r.Out)
		}
	}
	if strings.Contains(r.Out, "b.txt") {
		t.Errorf("verify accuses a file that is as it was:\n%s", r.Out)
	}
	var report wire.VerifyReport
	if err := json.Unmarshal([]byte(in("object", "verify", ark, "--json").Wants(t, exit.Failed).Out), &report); err != nil || report.Valid || report.Against != wire.AgainstRecord {
		t.Errorf("report %+v (%v), want it compared with the record", report, err)
	}
	forge(t, object, "what was not, ever", "what was deposited")
	in("object", "verify", ark).Wants(t, exit.OK)
}

// objectFolder returns the folder of the only object of a storage root.
func objectFolder(t *testing.T, root string) (folder string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "0=ocfl_object_") {
			folder = filepath.Dir(path)
		}
		return err
	})
	if err != nil || folder == "" {
		t.Fatalf("no object in %s: %v", root, err)
	}
	return folder
}

// forge replaces content bytes, and makes all inventories and sidecars of the object agree.
func forge(t *testing.T, object, before, after string) {
	t.Helper()
	digest := func(b []byte) string { sum := sha256.Sum256(b); return hex.EncodeToString(sum[:]) }
	rewrite := func(path string, change func([]byte) []byte) {
		data, err := os.ReadFile(path)
		if err == nil {
			err = errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, change(data), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var inventories []string
	err := filepath.WalkDir(object, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if d.Name() == "inventory.json" {
			inventories = append(inventories, path)
		}
		if data, err := os.ReadFile(path); err == nil && string(data) == before {
			rewrite(path, func([]byte) []byte { return []byte(after) })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range inventories {
		var sum string
		rewrite(path, func(text []byte) []byte {
			text = bytes.ReplaceAll(text, []byte(digest([]byte(before))), []byte(digest([]byte(after))))
			sum = digest(text)
			return text
		})
		rewrite(path+".sha256", func([]byte) []byte { return []byte(sum + " inventory.json\n") })
	}
}
