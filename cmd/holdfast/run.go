package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// app is what every command works with.
type app struct {
	in       io.Reader
	out, err io.Writer

	// The flags of all commands that speak to a running Holdfast.
	dir   string
	quiet bool
	json  bool

	started bool   // the command line was understood
	again   string // the command line, to be typed again
	warned  bool   // of a token that travels by plain HTTP
}

// run is the whole program: it obeys args and returns the exit code. Configuration is read from the process's
// environment. When ctx ends, what is under way is put down and the code is 130, but for `up` and the roles, which drain and return 0.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{in: stdin, out: stdout, err: stderr, again: "holdfast"}
	for _, arg := range args {
		a.again += " " + node.ShellWord(arg)
	}
	root := a.root() //nolint:contextcheck // cobra hands the context to each command
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		// A flag after an unknown command is unknown, too, and says nothing to whoever typed it.
		at := strings.Count(cmd.CommandPath(), " ")
		if at < len(args) {
			if guess := a.guessed(cmd, args[at], args[at+1:]); guess != nil {
				err = guess
			}
		}
	}
	if err != nil && !a.started && !as[*fixError](err) {
		err = fix(&usageError{err}, "see "+cmd.CommandPath()+" --help")
	}
	a.complain(err)
	return codeOf(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "holdfast",
		Short:         "Preserve deposits: submit them, see what happens to them, get them back",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.started = true
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(
		a.upCommand(), a.registryCommand(), a.workerCommand(), a.brokerCommand(), a.submitCommand(), a.checkCommand(), a.receiptKeysCommand(), a.watchCommand(),
		a.batchCommand(), a.itemCommand(), a.objectCommand(), a.collectionCommand(), a.holdCommand(), a.queueCommand(), a.feedCommand(),
		a.graphCommand(), a.eventsCommand(), a.auditCommand(), a.tokenCommand(), a.uploadCommand(), a.loginCommand(), a.sessionCommand(),
		a.healthCommand(), a.migrateCommand(), a.storageCommand(), a.versionCommand(), basics(),
	)
	addHelp(root)
	return root
}

// group returns a command that has only commands below it.
func group(name, short string, below ...*cobra.Command) *cobra.Command {
	names := make([]string, len(below))
	for i, c := range below {
		names[i] = c.Name()
	}
	g := &cobra.Command{
		Use: name, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			text := "one of " + strings.Join(names, ", ") + " must follow"
			if len(args) > 0 {
				text = fmt.Sprintf("unknown command %q for %q: %s", args[0], cmd.CommandPath(), text)
			}
			return errors.New(text)
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	g.AddCommand(below...)
	return g
}

// needs returns a check that the arguments are one of each name; a name that ends in "..." stands for one or more.
func needs(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		open := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...")
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s is missing", strings.TrimSuffix(names[len(args)], "..."))
		case len(args) > len(names) && !open:
			return fmt.Errorf("%q is one argument too many", args[len(names)])
		}
		for i, arg := range args {
			if arg == "" { // a variable of a script that was not set
				return fmt.Errorf("%s is empty", strings.TrimSuffix(names[min(i, len(names)-1)], "..."))
			}
		}
		return nil
	}
}

// advised is a command of ours within a text.
var advised = regexp.MustCompile("`(holdfast [^`]+)`")

// runnable makes the commands that the Registry advises reach the service that advised them. It knows of no folder.
func (a *app) runnable(text string) string {
	if a.dir == "" {
		return text
	}
	return advised.ReplaceAllStringFunc(text, func(command string) string {
		if strings.Contains(command, "--dir") {
			return command
		}
		return strings.TrimSuffix(command, "`") + " --dir " + node.ShellWord(a.dir) + "`"
	})
}

// complain says on standard error what went wrong: one line an error, and one below it for each single fault.
func (a *app) complain(err error) {
	if err == nil {
		return
	}
	for _, e := range parts(err) {
		text := e.Error()
		var p *wire.Problem
		if errors.As(e, &p) && len(p.Faults) > 0 {
			text = strings.Replace(text, p.Error(), p.Detail, 1)
		}
		if text == "" {
			continue
		}
		text = a.runnable(text)
		if row, ok := rowOf(e); ok && row.fix != "" && !errors.As(e, new(*fixError)) {
			text += "; " + row.fix
		}
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = clean(lines[i])
		}
		a.note("holdfast: %s", strings.Join(lines, "\n  "))
		if p != nil {
			for _, f := range p.Faults {
				a.note("  %s", faultText(f))
			}
			if more := p.Total - int64(len(p.Faults)); more > 0 {
				a.note("  and %s more", registry.CountText(more))
			}
		}
	}
}

// parts takes joined errors apart. An error that wraps several in a sentence of its own stays whole.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	var lines []string
	for _, e := range joined.Unwrap() {
		all = append(all, parts(e)...)
		lines = append(lines, e.Error())
	}
	if err.Error() != strings.Join(lines, "\n") {
		return []error{err}
	}
	return all
}

// faultText is one fault of a manifest or request on one line.
func faultText(f wire.Fault) string {
	text := f.Message
	if f.Rule != "" && f.Expected+f.Found != "" {
		text = f.Rule // and what follows
	}
	for _, part := range [][2]string{{"expected", f.Expected}, {"found", f.Found}, {"fix", f.Fix}} {
		if part[1] != "" && !strings.Contains(text, part[1]) {
			text += "; " + part[0] + ": " + part[1]
		}
	}
	if f.Severity == "warning" {
		text = "warning: " + text
	}
	if f.Location != "" {
		text = f.Location + ": " + text
	}
	return clean(text)
}

// note says something to the person at the terminal. What cannot be said there can be said nowhere.
func (a *app) note(format string, args ...any) {
	_, _ = fmt.Fprintf(a.err, format+"\n", args...)
}

// width returns the columns of the terminal that w is, 0 when it is none.
func width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
