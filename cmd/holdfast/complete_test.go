package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
)

// TestComplete: shells complete ids, names, stages and states from the running service, and nothing
// without one, silently.
func TestComplete(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole Holdfast")
	}
	dir := up(t)
	file := filepath.Join(t.TempDir(), "a.txt")
	clitest.WriteFile(t, file, "a")
	holdfast(t, "submit", file, "--wait", "--dir", dir).Wants(t, exit.OK)
	id := func(args ...string) string {
		t.Helper()
		var row struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal([]byte(holdfast(t, append(args, "--json", "--dir", dir)...).Wants(t, exit.OK).Out), &row); err != nil {
			t.Fatal(err)
		}
		return row.ID
	}
	batch, item := id("batch", "list"), id("item", "list", "action:ingest")
	// complete returns what a shell offers for the last of these words.
	complete := func(dir string, words ...string) []string {
		t.Helper()
		r := holdfast(t, append([]string{"__complete", words[0], "--dir", dir}, words[1:]...)...).Wants(t, exit.OK)
		if strings.Contains(r.Err, "holdfast:") || strings.Contains(r.Err, "warning") {
			t.Errorf("%v says %q", words, r.Err)
		}
		var out []string
		for line := range strings.Lines(r.Out) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, ":") {
				value, _, _ := strings.Cut(line, "\t")
				out = append(out, value)
			}
		}
		return out
	}
	for _, c := range []struct {
		words       []string
		want, never string
	}{
		{[]string{"batch", "show", ""}, batch, item},
		{[]string{"item", "show", ""}, item, ""},
		{[]string{"item", "show", item[:20]}, item, ""},
		{[]string{"item", "requeue", item, ""}, batch, ""},
		{[]string{"watch", ""}, batch, ""},
		{[]string{"object", "show", "ark:"}, "ark:/99999/", "no object"},
		{[]string{"object", "show", "ark:/99999/x", ""}, "", "ark:/99999/"},
		{[]string{"collection", "show", "d"}, "default", item},
		{[]string{"submit", "--collection", ""}, "default", ""},
		{[]string{"item", "requeue", "--from", "d"}, string(registry.Download), string(registry.Process)},
		{[]string{"item", "list", "st"}, "state:", "collection:"},
		{[]string{"item", "list", "state:f"}, "state:failed", "state:completed"},
		{[]string{"item", "requeue", "--match", "collection:"}, "collection:default", ""},
		{[]string{"token", "revoke", ""}, "", item},
		{[]string{"item", "list", "--status", ""}, "failed", ""},
		{[]string{"hold", "add", "--scope", "s"}, "stage", "collection"},
		{[]string{"hold", "add", "--scope", "stage", "--key", "d"}, "download", "default"},
		{[]string{"hold", "add", "--scope", "collection", "--key", "d"}, "default", "download"},
	} {
		got := complete(dir, c.words...)
		has := func(start string) bool {
			return slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, start) })
		}
		if c.want != "" && !has(c.want) || c.never != "" && has(c.never) {
			t.Errorf("%v is completed to %v; want %q, never %q", c.words, got, c.want, c.never)
		}
	}
	if got := complete(t.TempDir(), "item", "show", ""); len(got) != 0 {
		t.Errorf("without a service there is %v", got)
	}
}
