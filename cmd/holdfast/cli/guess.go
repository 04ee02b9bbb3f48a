package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
)

// guesses maps words that people try to the commands that they probably mean.
var guesses = map[string][]string{
	"status": {"queue status"}, "retry": {"item retry", "item requeue"}, "try": {"item retry"}, "rerun": {"item requeue"}, "restart": {"item requeue"},
	"failed": {"item failures"}, "errors": {"item failures"}, "list": {"batch list", "item list", "object list"}, "ls": {"batch list", "item list", "object list"},
	"jobs": {"item list"}, "job": {"item show"}, "batches": {"batch list"}, "objects": {"object list"}, "items": {"item list"}, "collections": {"collection list"},
	"tokens": {"token list"}, "holds": {"hold list"}, "logs": {"item history"}, "log": {"item history"}, "explain": {"item why"},
	"deposit": {"submit"}, "upload": {"submit"}, "add": {"submit"}, "ingest": {"submit"}, "get": {"object export"}, "download": {"object export"},
	"follow": {"watch"}, "wait": {"watch"}, "stop": {"item cancel"}, "kill": {"item cancel"}, "remove": {"item delete"}, "rm": {"item delete"},
	"serve": {"up"}, "start": {"up"}, "validate": {"check"},
}

// synonyms are words for the same act on different things.
var synonyms = [][]string{
	{"add", "create", "new", "put", "set", "init"}, {"remove", "delete", "rm"}, {"show", "get", "read"}, {"edit", "change", "update"}, {"list", "ls"},
}

// guessed returns the error for word, which is not a command of parent. The error names the
// probable commands, followed by rest, for the user to copy. It is nil if word is a flag or a
// command.
func (a *App) guessed(parent *cobra.Command, word string, rest []string) error {
	if !parent.HasSubCommands() || strings.HasPrefix(word, "-") {
		return nil
	}
	for _, c := range parent.Commands() {
		if c.Name() == word || c.HasAlias(word) {
			return nil
		}
	}
	paths := meant(parent, strings.ToLower(word))
	if len(paths) == 0 {
		return parent.Args(parent, []string{word})
	}
	for i, p := range paths {
		line := "holdfast " + p
		for _, arg := range rest {
			line += " " + node.ShellWord(arg)
		}
		paths[i] = "`" + line + "`"
	}
	return exit.Fix(exit.Usagef("unknown command %q for %q", word, parent.CommandPath()), "did you mean "+strings.Join(paths, " or ")+"?")
}

// meant returns the commands that a word may stand for: a similar name below parent, else a
// synonym below parent, else those of guesses, else the same name elsewhere.
func meant(parent *cobra.Command, word string) []string {
	root := parent.Root()
	var named, near []string
	for _, c := range root.Commands() {
		if c.Name() == word && parent != root {
			named = append(named, c.Name())
		}
		for _, below := range c.Commands() {
			if below.Name() == word && c != parent {
				named = append(named, c.Name()+" "+word)
			}
		}
	}
	for _, c := range parent.Commands() {
		near = append(near, c.Name())
	}
	if best := registry.Nearest(word, near); best != "" {
		return []string{strings.TrimPrefix(strings.TrimPrefix(parent.CommandPath(), root.Name())+" "+best, " ")}
	}
	for _, same := range synonyms {
		at := slices.IndexFunc(near, func(name string) bool { return slices.Contains(same, name) })
		if at >= 0 && parent != root && slices.Contains(same, word) {
			return []string{strings.TrimPrefix(parent.CommandPath(), root.Name()+" ") + " " + near[at]}
		}
	}
	if g := guesses[word]; len(g) > 0 {
		return slices.Clone(g)
	}
	const most = 4
	return named[:min(len(named), most)]
}
