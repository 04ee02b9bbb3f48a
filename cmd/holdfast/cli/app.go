// Package cli is the kernel of all commands. App has the streams and common flags of one run. It
// connects to the service, resolves short ids, asks questions, prints rows, and reports errors.
//
// Standard output gets data only, standard error everything else. Run prints an error once, at its
// end; a command that has printed its errors itself returns an exit.Code. An App is for one
// goroutine and one run.
//
// The package knows no command, except by the words that people mistake for commands.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// App is one run of the program.
type App struct {
	Version  string // of the program
	In       io.Reader
	Out, Err io.Writer

	// The flags of all commands that speak to a running Holdfast.
	Dir   string
	Quiet bool
	JSON  bool

	started bool           // the command line was valid
	flags   *pflag.FlagSet // of the command; nil before it starts
	Again   string         // the command line, for the user to repeat
	warned  bool           // that the token travels by plain HTTP
	unknown bool           // names of settings were warned of

	ctx context.Context //nolint:containedctx // of the one run that the app is for; cobra hands the same to each command
}

// New returns an app for one run of the program.
func New(version string, stdin io.Reader, stdout, stderr io.Writer) *App {
	return &App{Version: version, In: stdin, Out: stdout, Err: stderr, ctx: context.Background()}
}

// Root returns the command `holdfast` with these commands below it.
func (a *App) Root(below ...*cobra.Command) *cobra.Command {
	const short = "Preserve deposits: submit them, see what happens to them, get them back"
	root := &cobra.Command{
		Use:           "holdfast",
		Short:         short,
		Long:          short + ".",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			a.started, a.flags = true, cmd.Flags()
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(below...)
	a.complete(root)
	return root
}

// Run executes args, the words after `holdfast`, prints errors and returns the exit code. If ctx
// ends, the command stops its work and the code is 130. `up` and the roles drain instead, and the
// code is 0.
func (a *App) Run(ctx context.Context, root *cobra.Command, args []string) exit.Code {
	a.ctx = ctx
	a.Again = "holdfast"
	for _, arg := range args {
		a.Again += " " + node.ShellWord(arg)
	}
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		// After an unknown command any flag is unknown, too: the command is the better error.
		at := strings.Count(cmd.CommandPath(), " ")
		if at < len(args) {
			if guess := a.guessed(cmd, args[at], args[at+1:]); guess != nil {
				err = guess
			}
		}
	}
	if err != nil && !a.started && !exit.As[*exit.FixError](err) {
		err = exit.Usagef("%w", err)
	}
	if help := cmd.CommandPath() + " --help"; exit.Misused(err) && !strings.Contains(err.Error(), help) {
		err = exit.Fix(err, "see "+help)
	}
	a.Complain(err)
	return exit.Of(err)
}

// Group returns a command that only has subcommands.
func Group(name, short string, below ...*cobra.Command) *cobra.Command {
	names := make([]string, len(below))
	for i, c := range below {
		names[i] = c.Name()
	}
	g := &cobra.Command{
		Use: name, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			text := "give one of " + strings.Join(names, ", ")
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

// Needs returns a check that the arguments are one for each name. A last name that ends in "..."
// stands for one or more.
func Needs(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		open := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...")
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s is missing", strings.TrimSuffix(names[len(args)], "..."))
		case len(args) > len(names) && !open:
			return fmt.Errorf("unexpected argument %q", args[len(names)])
		}
		for i, arg := range args {
			if arg == "" { // probably an unset variable of a script
				return fmt.Errorf("%s is empty", strings.TrimSuffix(names[min(i, len(names)-1)], "..."))
			}
		}
		return nil
	}
}

// advised matches a command of ours within a text.
var advised = regexp.MustCompile("`(holdfast [^`]+)`")

// runnable adds --dir to the commands within a text, because the Registry that advises them does
// not know the folder.
func (a *App) runnable(text string) string {
	if a.Dir == "" {
		return text
	}
	return advised.ReplaceAllStringFunc(text, func(command string) string {
		if strings.Contains(command, "--dir") {
			return command
		}
		return strings.TrimSuffix(command, "`") + " --dir " + node.ShellWord(a.Dir) + "`"
	})
}

// Complain prints an error on standard error: a line for each error, and a line below it for each
// fault.
func (a *App) Complain(err error) {
	if err == nil {
		return
	}
	for _, e := range exit.Parts(err) {
		text := e.Error()
		var p *wire.Problem
		if errors.As(e, &p) && len(p.Faults) > 0 {
			text = strings.Replace(text, p.Error(), p.Detail, 1)
		}
		if text == "" {
			continue
		}
		text = a.runnable(text)
		if fix := exit.Advice(e); fix != "" {
			text += "; " + fix
		}
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = terminal.Clean(lines[i])
		}
		a.Note("holdfast: %s", strings.Join(lines, "\n  "))
		if p != nil {
			for _, f := range p.Faults {
				f.Location = a.typed(f.Location)
				a.Note("  %s", faultText(f))
			}
			if more := p.Total - int64(len(p.Faults)); more > 0 {
				a.Note("  and %s more", registry.CountText(more))
			}
		}
	}
}

// typed returns where the user typed what a fault of a request is about: the flag of a field, if the
// command has one, and "" for its argument, which the error names.
func (a *App) typed(location string) string {
	in, field, _ := strings.Cut(location, ".") // such as body.local_ids[0]
	switch in {
	case "path":
		return ""
	case "body", "query":
		if at := strings.IndexAny(field, ".["); at >= 0 {
			field = field[:at]
		}
		name := strings.ReplaceAll(field, "_", "-")
		for _, flag := range []string{name, strings.TrimSuffix(name, "s")} {
			if a.flags != nil && a.flags.Lookup(flag) != nil {
				return "--" + flag
			}
		}
	}
	return location
}

// faultText returns a fault of a manifest or request as one line.
func faultText(f wire.Fault) string {
	text := f.Message
	if f.Rule != "" && f.Expected+f.Found != "" {
		text = f.Rule // expected and found follow
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
	return terminal.Clean(text)
}

// Note writes a line to standard error. It ignores write errors.
func (a *App) Note(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Err, format+"\n", args...)
}

// CommandLine returns a command for the user to type, which reaches the same service.
func (a *App) CommandLine(command string, args ...string) string {
	words := append([]string{"holdfast", command}, args...)
	if a.Dir != "" {
		words = append(words, "--dir", node.ShellWord(a.Dir))
	}
	return strings.Join(words, " ")
}

// PrintJSON writes v as one line of JSON.
func (a *App) PrintJSON(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	_, err = a.Out.Write(append(raw, '\n'))
	return err
}
