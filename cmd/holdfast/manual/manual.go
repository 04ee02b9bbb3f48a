// Package manual has the command `holdfast man`: it writes the commands' help as manual pages.
package manual

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the command `holdfast man`.
func Command(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, &cobra.Command{
		Use: "man FOLDER", Short: "Write the manual pages", Args: cli.Needs("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n := 0
			for _, c := range withBelow(cmd.Root()) {
				file := filepath.Join(args[0], pageName(c)+".1")
				if err := os.WriteFile(file, []byte(page(c, a.Version)), 0o644); err != nil { //nolint:gosec // everybody may read it
					return fmt.Errorf("write a manual page: %w", err)
				}
				n++
			}
			a.Note("%d pages", n)
			return nil
		},
	})
}

// withBelow lists a command and all commands below it that people see.
func withBelow(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, b := range c.Commands() {
		if !b.Hidden {
			all = append(all, withBelow(b)...)
		}
	}
	return all
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page returns a command's help as a manual page (man(7)). It has no date, so that it is the same
// whenever it is written. Help texts are plain text: indented lines stay as they are, all others are
// filled.
func page(c *cobra.Command, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"Holdfast\"\n.nh\n.SH NAME\n%s \\- %s\n", strings.ToUpper(pageName(c)), "holdfast "+version, escape(pageName(c)), escape(c.Short))
	if c.Runnable() && !c.HasSubCommands() {
		fmt.Fprintf(&b, ".SH SYNOPSIS\n.nf\n%s\n.fi\n", escape(c.UseLine()))
	}
	b.WriteString(".SH DESCRIPTION\n" + prose(c.Long))
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n" + prose("    "+strings.TrimSpace(c.Example)))
	}
	options := ""
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			options += option(f)
		}
	})
	if options != "" {
		b.WriteString(".SH OPTIONS\n" + options)
	}
	var also []string
	if c.HasParent() {
		also = append(also, pageName(c.Parent()))
	}
	for _, below := range c.Commands() {
		if !below.Hidden {
			also = append(also, pageName(below))
		}
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, name := range also {
		end := ","
		if i == len(also)-1 {
			end = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", escape(name), end)
	}
	return b.String()
}

func option(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	return fmt.Sprintf(".TP\n\\fB%s\\fR %s\n%s\n", escape(name), escape(value), escape(usage))
}

// prose formats a help text.
func prose(text string) string {
	var b strings.Builder
	literal, begins := false, true
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		switch {
		case line == "":
			begins = true
			continue
		case indented && !literal:
			b.WriteString(".PP\n.nf\n")
		case !indented && literal:
			b.WriteString(".fi\n.PP\n")
		case begins && indented:
			b.WriteString("\n")
		case begins && b.Len() > 0:
			b.WriteString(".PP\n")
		case strings.HasPrefix(line, "- "):
			b.WriteString(".br\n")
		}
		literal, begins = indented, false
		b.WriteString(escape(line) + "\n")
	}
	if literal {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// escape returns a text whose signs mean nothing to troff.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
