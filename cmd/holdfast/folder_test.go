package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
)

// TestFolder_Shown: a submitted folder is shown as a folder, with the number of its files.
func TestFolder_Shown(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole Holdfast")
	}
	dir := up(t)
	folder := filepath.Join(t.TempDir(), "photos")
	for _, name := range []string{"a.txt", "sub/b.txt", "sub/deeper/c.txt"} {
		clitest.WriteFile(t, filepath.Join(folder, name), name)
	}
	in := func(args ...string) clitest.Result { t.Helper(); return holdfast(t, append(args, "--dir", dir)...) }
	in("submit", folder, "--wait").Wants(t, exit.OK)
	for _, line := range strings.Split(strings.TrimSpace(in("item", "list", "--json").Wants(t, exit.OK).Out), "\n") {
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
		show := in("batch", "show", it.ID).Wants(t, exit.OK).Out
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
