package cli

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

//go:embed help/*.txt
var helpTexts embed.FS

// WithHelp gives cmd and each command below it its long help, and returns cmd. The texts are files
// named by a command's words: "item requeue" has help/item-requeue.txt. A text that the command
// made itself, such as the fields of a query, follows that of its file, or its short help when it
// has no file. docs/commands.md is made of the same texts. Call it before cmd goes below another
// command.
func WithHelp(texts embed.FS, cmd *cobra.Command) *cobra.Command {
	for _, c := range cmd.Commands() {
		WithHelp(texts, c)
	}
	intro, err := texts.ReadFile("help/" + strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".txt")
	if err != nil { // it has none
		intro = []byte(cmd.Short + ".")
	}
	cmd.Long = strings.TrimSpace(string(intro) + "\n\n" + cmd.Long)
	cmd.Long = strings.ReplaceAll(cmd.Long, "\n\n\n", "\n\n")
	return cmd
}

// Basics is a topic of help, and no command.
func Basics() *cobra.Command {
	return WithHelp(helpTexts, &cobra.Command{Use: "basics", Short: "Explain the rules for all commands: ids, lists, JSON, exit codes", Long: ExitHelp()})
}

// ExitHelp lists the exit codes.
func ExitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n\n")
	for _, m := range exit.Meanings() {
		fmt.Fprintf(&b, "    %-4d %s\n", m.Code, m.Text)
	}
	return b.String()
}
