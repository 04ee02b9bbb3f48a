package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config/configtest"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

// arguments are examples of the arguments of commands, by their names in the line of use.
var arguments = map[string]string{
	"ARK": "ark:/99999/fk4x", "ID": "01a20514-0000-7000-8000-000000000001", "ADDRESS": "file:///absent", "STAGE": "download", "FILE": "/absent", "PAYLOAD": "/absent",
	"LIMIT": "1", "CHECKPOINT": "1", "N": "1",
}

// argumentName matches an argument in a line of use, such as ID, [ID] or PAYLOAD... .
var argumentName = regexp.MustCompile(`^\[?([A-Z][A-Z-]*)(\.\.\.)?\]?$`)

// TestWrong runs each command wrongly: with an unknown flag, with too few and too many arguments, with
// ids that are none, and without a service. Each run says what is wrong, with what, and what to do, in
// lines that begin with the program's name, and prints nothing else. And none asks Parameter Store for
// settings: it has the address and the token that it needs.
func TestWrong(t *testing.T) {
	clitest.NoEnvironment(t)
	t.Chdir(t.TempDir())
	store := configtest.ParameterStore(t)
	t.Setenv("HOLDFAST_PARAMETERS", "/holdfast")
	t.Setenv("HOLDFAST_URL", "http://127.0.0.1:1")
	t.Setenv("HOLDFAST_TOKEN", "t")
	t.Setenv("HOLDFAST_DATABASE_URL", "sqlite:/absent/registry.db")
	t.Setenv("HOLDFAST_REDIS_URL", "redis://127.0.0.1:1/0")
	for _, cmd := range commands(root(cli.New("dev", strings.NewReader(""), io.Discard, io.Discard))) {
		if cmd.HasSubCommands() || !cmd.Runnable() || slices.Contains([]string{"help", "completion"}, cmd.Name()) {
			continue
		}
		path := strings.Fields(cmd.CommandPath())[1:]
		t.Run(strings.Join(path, " "), func(t *testing.T) {
			wrongly(t, cmd, path)
		})
	}
	if n := store.Requests(); n > 0 {
		t.Errorf("%d requests to Parameter Store, want 0", n)
	}
}

func wrongly(t *testing.T, cmd *cobra.Command, path []string) {
	t.Helper()
	var right, bad []string
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(strings.TrimLeft(word, "[("), "-") {
			break // flags, with their values
		}
		if m := argumentName.FindStringSubmatch(word); m != nil && !strings.HasPrefix(word, "[") {
			example := arguments[m[1]]
			if example == "" {
				example = "absent"
			}
			right, bad = append(right, example), append(bad, "?")
		}
	}
	run := func(name string, args ...string) clitest.Result {
		args = slices.Concat(path, args)
		r := holdfast(t, args...)
		t.Logf("%s: holdfast %s\n[%d] %s%s", name, strings.Join(args, " "), r.Code, r.Out, r.Err)
		return r
	}
	usage := func(name, says string, args ...string) {
		r := run(name, args...)
		if r.Code != exit.Usage || r.Out != "" || !strings.HasPrefix(r.Err, "holdfast: ") || !strings.Contains(r.Err, says) || !strings.Contains(r.Err, "see "+cmd.CommandPath()+" --help") {
			t.Errorf("%s: code %d, printed %q and %q; want %q", name, r.Code, r.Out, r.Err, says)
		}
	}
	usage("unknown flag", "--no-such-flag", append([]string{"--no-such-flag"}, right...)...)
	if len(right) > 0 {
		usage("argument missing", "is missing", right[:len(right)-1]...)
	}
	if slices.Contains([]string{"up", "registry", "worker", "broker", "doctor", "config", "version", "setup", "bench"}, path[0]) {
		return // they need more settings, or succeed
	}
	if strings.Join(path, " ") == "backup make" {
		return // a backup holds all settings in force, so it reads them all
	}
	for name, args := range map[string][]string{"without a service": right, "no such thing": bad} {
		if r := run(name, args...); r.Code == exit.OK || r.Code == exit.Failed || r.Out != "" || !strings.HasPrefix(r.Err, "holdfast: ") || !advises(r.Err) {
			t.Errorf("%s: code %d, printed %q and %q", name, r.Code, r.Out, r.Err)
		}
	}
}

// advises reports whether an error says what to do: after a semicolon, or in the sentence of a question
// that was not answered.
func advises(text string) bool { return strings.Contains(text, "; ") }
