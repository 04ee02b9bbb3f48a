package main

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

// TestView saves a view, lists by it, replaces it when asked, and removes it.
func TestView(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole Holdfast")
	}
	dir := up(t)
	in := func(args ...string) clitest.Result { t.Helper(); return holdfast(t, append(args, "--dir", dir)...) }
	for _, name := range []string{"psalter", "harbour"} {
		in("submit", clitest.WriteFile(t, name+".txt", name), "--title", name, "--wait").Wants(t, exit.OK)
	}
	in("view", "list").Wants(t, exit.OK).Says(t, "view save NAME QUERY")
	saved := in("view", "save", "all of it", "action:batch", "--oldest", "--share", "--columns", "size,by").Wants(t, exit.OK)
	id, name, _ := strings.Cut(strings.TrimSpace(saved.Out), " ")
	if name != "all of it" {
		t.Errorf("saved %q", saved.Out)
	}
	in("view", "save", "all of it", "action:batch psalter").Wants(t, exit.Refused).Says(t, "--replace")
	list := in("item", "list", "--view", "all of it", "--json").Wants(t, exit.OK).Out
	if first := strings.Index(list, `"name":"psalter.txt"`); first < 0 || first > strings.Index(list, `"name":"harbour.txt"`) {
		t.Errorf("the oldest is not first:\n%s", list)
	}
	if list := in("item", "list", "--view", id, "harbour").Wants(t, exit.OK).Out; !strings.Contains(list, "harbour") || strings.Contains(list, "psalter") {
		t.Errorf("the view narrowed by a word:\n%s", list)
	}
	in("view", "save", "all of it", "action:batch psalter", "--replace").Wants(t, exit.OK).Says(t, "replaced: action:batch")
	if list := in("view", "list").Wants(t, exit.OK).Out; !strings.Contains(list, "action:batch psalter") || strings.Count(list, "all of it") != 1 {
		t.Errorf("views:\n%s", list)
	}
	in("item", "list", "--view", "nothing").Wants(t, exit.NotFound)
	in("view", "save", "x", "weather:fine").Wants(t, exit.Usage)
	in("view", "remove", "all of it", "nothing").Wants(t, exit.Partly).Says(t, "removed: all of it", "action:batch psalter")
	in("item", "list", "--view", id).Wants(t, exit.NotFound)
}
