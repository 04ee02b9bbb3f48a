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

// WithHelp sets the long help of cmd and of each command below it, and returns cmd. The text is a
// file named by the command's words: "item requeue" has help/item-requeue.txt; without a file it is
// the short help. A Long that the command has already, such as the fields of a query, follows. Call
// it before cmd is added to another command.
func WithHelp(texts embed.FS, cmd *cobra.Command) *cobra.Command {
	for _, c := range cmd.Commands() {
		WithHelp(texts, c)
	}
	intro, err := texts.ReadFile("help/" + strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".txt")
	if err != nil { // no file
		intro = []byte(cmd.Short + ".")
	}
	cmd.Long = strings.TrimSpace(string(intro) + "\n\n" + cmd.Long)
	cmd.Long = strings.ReplaceAll(cmd.Long, "\n\n\n", "\n\n")
	return cmd
}

// Basics returns the help topic "basics".
func Basics() *cobra.Command {
	return WithHelp(helpTexts, &cobra.Command{Use: "basics", Short: "Explain the rules for all commands: ids, lists, JSON, exit codes", Long: ExitHelp()})
}

// ExitHelp returns the list of exit codes.
func ExitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n\n")
	for _, m := range exit.Meanings() {
		fmt.Fprintf(&b, "    %-4d %s\n", m.Code, m.Text)
	}
	return b.String()
}
