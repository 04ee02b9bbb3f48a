// Package doctor has the command `holdfast doctor`: it checks a running installation, and the
// configuration of the process that it is called for.
//
// Each check is an entry of [checks]. It looks at one thing, reports what it found, and says what to
// do. All run at once, each with a time limit. A check changes nothing, except that it writes, reads
// and deletes a probe in each storage. What is printed never contains a secret (config.Hide).
package doctor

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Options of the command.
type options struct {
	role    string
	mailTo  string
	timeout time.Duration
}

// Command returns the command `holdfast doctor`.
func Command(a *cli.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check an installation: settings, databases, queue, storages, mail, clocks, versions", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.role, "for", "", "check as this `ROLE` or stage: up, registry, worker, or a stage (default by what is set)")
	f.StringVar(&o.mailTo, "mail", "", "send a test mail to this `ADDRESS`")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "the longest time for each check")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(roles(), cobra.ShellCompDirectiveNoFileComp))
	return cli.WithHelp(helpTexts, a.ClientFlags(cmd))
}

// roles returns what the flag --for takes.
func roles() []string {
	names := []string{roleUp, roleRegistry, roleWorker}
	for _, s := range registry.Stages() {
		names = append(names, string(s))
	}
	return names
}

func run(ctx context.Context, a *cli.App, o options) error {
	if o.role != "" && !slices.Contains(roles(), o.role) {
		return exit.Usagef("--for %s: unknown; roles and stages: %s", o.role, strings.Join(roles(), ", "))
	}
	if o.timeout <= 0 {
		return exit.Usagef("--timeout must be above 0, such as 10s")
	}
	s := examine(ctx, a, o)
	found := s.runAll(ctx, o.timeout)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := show(a, found); err != nil {
		return err
	}
	return verdict(found).Err()
}

// verdict returns the exit code: OK without faults, Usage if only settings are wrong, Temporary if
// services only do not answer, else Failed.
func verdict(found []Finding) exit.Code {
	var codes []exit.Code
	for _, f := range found {
		if f.Result == Fault {
			codes = append(codes, f.code)
		}
	}
	if code := exit.Together(codes); code != exit.Partly {
		return code
	}
	return exit.Failed
}

func show(a *cli.App, found []Finding) error {
	if a.JSON {
		for _, f := range found {
			if err := a.PrintJSON(f); err != nil {
				return err
			}
		}
		return nil
	}
	paint := terminal.PaintFor(a.Out)
	width := terminal.Width(a.Out)
	if width == 0 {
		width = 100
	}
	names := 0
	for _, f := range found {
		names = max(names, terminal.Cells(f.Check))
	}
	var b strings.Builder
	indent := strings.Repeat(" ", len("warning")+2)
	counts := map[Result]int{}
	for _, f := range found {
		counts[f.Result]++
		word := fmt.Sprintf("%-7s", f.Result)
		text := f.Found
		if f.About != "" {
			text = f.About + ": " + text
		}
		lines := terminal.Wrapped(terminal.Clean(text), max(width-len(indent)-names-2, 30), 0)
		fmt.Fprintf(&b, "%s  %-*s  %s\n", paint.Word(f.Result.meaning(), word), names, f.Check, lines[0])
		for _, l := range lines[1:] {
			b.WriteString(indent + strings.Repeat(" ", names+2) + l + "\n")
		}
		if f.Fix != "" {
			for _, l := range terminal.Wrapped("-> "+terminal.Clean(f.Fix), max(width-len(indent)-names-2, 30), 0) {
				b.WriteString(indent + strings.Repeat(" ", names+2) + l + "\n")
			}
		}
	}
	fmt.Fprintf(&b, "\n%s, %s, %d ok, %d skipped\n", terminal.Plural(int64(counts[Fault]), "fault", "faults"),
		terminal.Plural(int64(counts[Warning]), "warning", "warnings"), counts[OK], counts[Skipped])
	_, err := fmt.Fprint(a.Out, b.String())
	return err
}

// Result is what a check came to.
type Result string

// The results.
const (
	OK      Result = "ok"
	Warning Result = "warning" // it works, and should be changed
	Fault   Result = "fault"   // it does not work
	Skipped Result = "skipped" // it could not be checked
)

func (r Result) meaning() terminal.Meaning {
	return map[Result]terminal.Meaning{OK: terminal.Good, Warning: terminal.Waiting, Fault: terminal.Bad, Skipped: terminal.Quiet}[r]
}

// Finding is one line of the result.
type Finding struct {
	Check  string `json:"check"`
	About  string `json:"about,omitempty"` // what it looked at, such as the name of a storage
	Result Result `json:"result"`
	Found  string `json:"found"`
	Fix    string `json:"fix,omitempty"` // what to do

	code exit.Code // of a fault
}

// report collects the findings of a check about one thing.
type report struct {
	about string
	list  []Finding
}

func (r *report) add(result Result, found, fix string, code exit.Code) {
	r.list = append(r.list, Finding{About: r.about, Result: result, Found: found, Fix: fix, code: code})
}

func (r *report) ok(format string, args ...any) { r.add(OK, fmt.Sprintf(format, args...), "", exit.OK) }

func (r *report) skip(format string, args ...any) {
	r.add(Skipped, fmt.Sprintf(format, args...), "", exit.OK)
}
func (r *report) warn(found, fix string)  { r.add(Warning, found, fix, exit.OK) }
func (r *report) fault(found, fix string) { r.add(Fault, found, fix, exit.Failed) }

// skipFor reports that the service could not be asked.
func (r *report) skipFor(err error) {
	if node.IsDown(err) {
		r.skip("the service does not answer")
		return
	}
	r.skip("the service does not tell: %s", err)
}

// failed reports the error of a service or place, whose address is in the setting. It may pass if the
// service only does not answer. fix is the advice if the error does not tell a
// better one, or setting is "".
func (r *report) failed(err error, setting, fix string) {
	code := exit.Failed
	switch {
	case node.IsDown(err):
		code = exit.Temporary
	case exit.Of(err) == exit.NoSpace:
		code = exit.NoSpace
	}
	if setting != "" {
		fix = node.Remedy(err, setting, fix)
	}
	r.add(Fault, node.Plain(err), fix, code)
}

// check looks at one subject. An empty report says that the subject does not apply here.
type check struct {
	name string
	run  func(ctx context.Context, s *site, r *report)
}

// checks are all checks, in the order of the output.
var checks = []check{
	{"settings", checkSettings},
	{"service", checkService},
	{"pages", checkPages},
	{"token", checkToken},
	{"workers", checkWorkers},
	{"clock", checkClock},
	{"database", checkDatabase},
	{"backup", checkBackup},
	{"nsq", checkQueue},
	{"redis", checkRedis},
	{"staging", checkStaging},
	{"storage", checkStorages},
	{"mail", checkMail},
	{"clamd", checkClamd},
	{"siegfried", checkSiegfried},
	{"ezid", checkEZID},
	{"certificate", checkCertificate},
	{"disk", checkDisk},
	{"files", checkFiles},
}

// runAll runs all checks at once and returns what they found, in the order of checks. A check that
// does not return within its time, such as one that hangs in a file system, is left behind.
func (s *site) runAll(ctx context.Context, timeout time.Duration) (found []Finding) {
	checks := checks
	if s.absent {
		checks = checks[:1] // without its folder, there is nothing else to look at
	}
	results := make([]chan []Finding, len(checks))
	for i, c := range checks {
		results[i] = make(chan []Finding, 1)
		go func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			done := make(chan []Finding, 1)
			go func() {
				var r report
				c.run(ctx, s, &r)
				done <- r.list
			}()
			select {
			case list := <-done:
				results[i] <- list
			case <-time.After(timeout + timeout/2):
				results[i] <- []Finding{{Result: Fault, Found: "it does not end within " + timeout.String(), Fix: "see what it hangs in, or give it more time by --timeout", code: exit.Temporary}}
			}
		}()
	}
	for i, c := range checks {
		for _, f := range <-results[i] {
			f.Check = c.name
			f.Found, f.Fix = s.hide(f.Found), s.hide(f.Fix)
			found = append(found, f)
		}
	}
	return found
}

func (s *site) hide(text string) string { return config.Hide(text, s.service.Token) }
