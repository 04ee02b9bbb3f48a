package deposit

import (
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

// depositing is a program with only the commands of this package.
var depositing = clitest.Commands(func(a *cli.App) []*cobra.Command { return []*cobra.Command{SubmitCommand(a), GraphCommand(a)} })

func TestGraph_BadFiles(t *testing.T) {
	clitest.NoEnvironment(t)
	t.Setenv("HOLDFAST_URL", "http://127.0.0.1:1")
	t.Setenv("HOLDFAST_TOKEN", "t")
	folder := t.TempDir()
	for _, tt := range []struct {
		name, text string
		code       exit.Code
		says       string
	}{
		{"no JSON", `nodes`, exit.Usage, "is not a graph"},
		{"a typing error", `{"nodes": [{"key": "a", "require": []}]}`, exit.Usage, `unknown field "require"`},
		{"two objects", `{"nodes": []} {"nodes": []}`, exit.Usage, "more than one"},
		{"payload and url", `{"nodes": [{"key": "a", "payload": "x", "url": "http://h/y"}]}`, exit.Usage, `node "a"`},
		{"bad type", `{"nodes": [{"key": "a", "payload": "x", "type": "zip"}]}`, exit.Usage, `node "a"`},
		{"no such file", `{"nodes": [{"key": "a", "payload": "` + folder + `/absent"}]}`, exit.NotFound, "absent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := clitest.WriteFile(t, filepath.Join(folder, "graph.json"), tt.text)
			depositing.Run(t, "", "graph", "prepare", file).Wants(t, tt.code).Says(t, tt.says)
		})
	}
	depositing.Run(t, "", "graph", "prepare", filepath.Join(folder, "absent.json")).Wants(t, exit.NotFound).Says(t, "absent.json")
	depositing.Run(t, "", "submit", "http://h/x", "--after", "id:later").Wants(t, exit.Usage).Says(t, "--after id:later", "ID:settled")
}
