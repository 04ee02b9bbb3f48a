package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// TestFolder_Shown: a folder that was sent is shown as a folder, with as many files as its depositor put into it.
func TestFolder_Shown(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole Holdfast")
	}
	dir := up(t)
	folder := filepath.Join(t.TempDir(), "photos")
	for _, name := range []string{"a.txt", "sub/b.txt", "sub/deeper/c.txt"} {
		writeFile(t, filepath.Join(folder, name), name)
	}
	in := func(args ...string) result { t.Helper(); return holdfast(t, append(args, "--dir", dir)...) }
	in("submit", folder, "--wait").wants(t, exitOK)
	for _, line := range strings.Split(strings.TrimSpace(in("item", "list", "--json").wants(t, exitOK).out), "\n") {
		var it registry.WorkItem
		if err := json.Unmarshal([]byte(line), &it); err != nil {
			t.Fatal(err)
		}
		if it.Name != "photos/" {
			t.Errorf("%s is called %q, want photos/", it.Action, it.Name)
		}
		if it.Action != registry.Batch {
			continue
		}
		show := in("batch", "show", it.ID).wants(t, exitOK).out
		for _, want := range []string{"photos/", "3/3"} {
			if !strings.Contains(show, want) {
				t.Errorf("the batch does not say %q:\n%s", want, show)
			}
		}
		if strings.Contains(show, "photos.tar") {
			t.Errorf("the batch shows the file that the folder was packed into:\n%s", show)
		}
	}
}
