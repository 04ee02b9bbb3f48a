package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// helpTexts has the long help of commands, one file each. The file is named by the words behind holdfast: "item requeue" is
// help/item-requeue.txt. docs/commands.md is made of the same texts.
//
//go:embed help/*.txt
var helpTexts embed.FS

// addHelp gives each command below cmd its long help. A text that the command made itself, such as the fields of a query,
// follows that of its file, or its short help when it has no file.
func addHelp(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		addHelp(c)
	}
	intro, err := helpTexts.ReadFile("help/" + helpName(cmd) + ".txt")
	if err != nil { // it has none
		intro = []byte(cmd.Short + ".")
	}
	cmd.Long = strings.TrimSpace(string(intro) + "\n\n" + cmd.Long)
	cmd.Long = strings.ReplaceAll(cmd.Long, "\n\n\n", "\n\n")
}

// helpName is the name of a command's help file, without its ending.
func helpName(cmd *cobra.Command) string {
	_, below, _ := strings.Cut(cmd.CommandPath(), " ")
	return strings.ReplaceAll(below, " ", "-")
}

// basics is a topic of help, and no command.
func basics() *cobra.Command {
	return &cobra.Command{Use: "basics", Short: "What holds for all commands: ids, lists, JSON, exit codes", Long: exitHelp()}
}

// exitHelp lists the exit codes.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n\n")
	for _, m := range exitMeanings() {
		fmt.Fprintf(&b, "    %-4d %s\n", m.code, m.means)
	}
	return b.String()
}
