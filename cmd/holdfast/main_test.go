package main

import (
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// holdfast runs the program as its users do.
func holdfast(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	return clitest.Program(execute).Run(t, "", args...)
}

// holdfastWith runs the program with something on standard input.
func holdfastWith(t *testing.T, stdin string, args ...string) clitest.Result {
	t.Helper()
	return clitest.Program(execute).Run(t, stdin, args...)
}

func TestUsage(t *testing.T) {
	clitest.NoEnvironment(t)
	t.Chdir(t.TempDir())
	for _, tt := range []struct {
		name string
		args []string
		says []string
	}{
		{"unknown command", []string{"frobnicate", "--dir", "x"}, []string{`unknown command "frobnicate"`, "holdfast --help"}},
		{"misspelt", []string{"sumbit", "a b"}, []string{`unknown command "sumbit"`, "`holdfast submit 'a b'`"}},
		{"misspelt below", []string{"item", "lst"}, []string{"`holdfast item list`"}},
		{"retry", []string{"retry", "01a20514", "--dir", "d"}, []string{"`holdfast item retry 01a20514 --dir d` or `holdfast item requeue 01a20514 --dir d`"}},
		{"status", []string{"status"}, []string{"`holdfast queue status`"}},
		{"why", []string{"why", "01a20514"}, []string{"`holdfast item why 01a20514`"}},
		{"failures", []string{"failures", "--dir", "d"}, []string{"`holdfast item failures --dir d`", "`holdfast batch failures --dir d`"}},
		{"report", []string{"report", "01a20514"}, []string{"`holdfast batch report 01a20514`"}},
		{"requeue of a batch", []string{"batch", "requeue", "01a20514"}, []string{"`holdfast item requeue 01a20514`"}},
		{"id too short", []string{"item", "show", "01a"}, []string{"8 characters"}},
		{"group alone", []string{"batch"}, []string{"give one of list, show, report, failures, update-report, cancel, delete, cleanup, hold, release"}},
		{"unknown below", []string{"item", "explode"}, []string{`unknown command "explode"`, "requeue"}},
		{"a synonym below", []string{"schedule", "add", "n"}, []string{`unknown command "add"`, "`holdfast schedule create n`"}},
		{"unknown flag", []string{"submit", "--colection", "x", "y"}, []string{"--colection", "holdfast submit --help"}},
		{"no payload", []string{"submit"}, []string{"PAYLOAD is missing"}},
		{"no id", []string{"batch", "show"}, []string{"ID is missing"}},
		{"one too many", []string{"batch", "show", "a", "b"}, []string{`unexpected argument "b"`}},
		{"bad type", []string{"submit", "--type", "zip", "x"}, []string{"--type zip", "container-batch-manifest"}},
		{"bad digest", []string{"submit", "--digest", "xyz", "x"}, []string{"--digest", "ALG:HEX"}},
		{"one ark for two", []string{"submit", "--ark", "ark:/99999/fk4x", "a", "b"}, []string{"--ark", "cannot be used with several payloads"}},
		{"nowhere", []string{"batch", "list"}, []string{"holdfast-data/client.json", "holdfast up", "--dir", "HOLDFAST_URL"}},
		{"less than nothing", []string{"item", "list", "--limit", "-1"}, []string{"--limit", "0 or more"}},
		{"listen nowhere", []string{"up", "--listen", "8080"}, []string{"--listen 8080", "127.0.0.1:8080"}},
		{"verify nothing", []string{"object", "verify"}, []string{"--all"}},
		{"export nowhere", []string{"object", "export", "ark:/99999/fk4x"}, []string{"--out PATH is missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := holdfast(t, tt.args...).Wants(t, exit.Usage).Says(t, tt.says...)
			if r.Out != "" {
				t.Errorf("a usage error on stdout: %q", r.Out)
			}
			if !strings.HasPrefix(r.Err, "holdfast: ") {
				t.Errorf("stderr does not begin with the program's name: %q", r.Err)
			}
		})
	}
}

func TestVersionAndHelp(t *testing.T) {
	if r := holdfast(t, "version").Wants(t, exit.OK); !strings.HasPrefix(r.Out, "holdfast dev go") {
		t.Errorf("version: %q", r.Out)
	}
	if r := holdfast(t, "submit", "--help").Wants(t, exit.OK); !strings.Contains(r.Out, "--idempotency-key") {
		t.Errorf("help of submit: %q", r.Out)
	}
	if r := holdfast(t, "object", "--help").Wants(t, exit.OK); strings.Count(r.Out, "\n  accept-older ") != 1 {
		t.Errorf("help of object: %q, want each command once", r.Out)
	}
}

func TestEnvironment(t *testing.T) {
	clitest.NoEnvironment(t)
	t.Setenv("HOLDFAST_TOKN", "x")
	t.Setenv("HOLDFAST_LEASE", "soon")
	r := holdfast(t, "batch", "list").Wants(t, exit.Usage).Says(t, "warning: HOLDFAST_TOKN: unknown", "did you mean HOLDFAST_TOKEN?", `HOLDFAST_LEASE: found "soon"; expected`)
	if n := strings.Count(r.Err, "holdfast: "); n != 1 {
		t.Errorf("%d lines begin with the program's name, want 1:\n%s", n, r.Err)
	}
	r = holdfast(t, "config", "--changed").Wants(t, exit.Usage).Says(t, "warning: HOLDFAST_TOKN: unknown")
	if !strings.Contains(r.Out, "HOLDFAST_TOKN   (unknown, no effect)") {
		t.Errorf("shown as\n%s", r.Out)
	}
}

func TestUnreachable(t *testing.T) {
	clitest.NoEnvironment(t)
	t.Setenv("HOLDFAST_URL", "http://127.0.0.1:1")
	holdfast(t, "batch", "list").Wants(t, exit.Usage).Says(t, "HOLDFAST_TOKEN is not")
	t.Setenv("HOLDFAST_TOKEN", "t")
	holdfast(t, "batch", "list").Wants(t, exit.Temporary).Says(t, "could not connect", "127.0.0.1:1", "holdfast up")
	holdfast(t, "health").Wants(t, exit.Temporary).Says(t, "127.0.0.1:1")
	holdfast(t, "submit", filepath.Join(t.TempDir(), "absent")).Wants(t, exit.NotFound).Says(t, "absent", "no such file")
}

func TestClientFileDamaged(t *testing.T) {
	clitest.NoEnvironment(t)
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "client.json"), `{"url":""`)
	holdfast(t, "batch", "list", "--dir", dir).Wants(t, exit.Failed).Says(t, "client.json is damaged", "start `holdfast up --dir "+dir+"` again")
}

func TestConfig(t *testing.T) {
	clitest.NoEnvironment(t)
	t.Setenv("HOLDFAST_SECRET_KEY", "hunter2-hunter2-hunter2-hunter2-hunter2")
	t.Setenv("HOLDFAST_GRACE", "1m")
	r := holdfast(t, "config", "--changed").Wants(t, exit.OK)
	for _, want := range []string{"HOLDFAST_SECRET_KEY  (secret)  environment\n", "HOLDFAST_GRACE       1m        environment\n"} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("no %q in\n%s", want, r.Out)
		}
	}
	if strings.Contains(r.Out, "HOLDFAST_LISTEN") {
		t.Errorf("a default in\n%s", r.Out)
	}
	for _, args := range [][]string{{"config", "--json"}, {"config", "--for", "download"}} {
		if r := holdfast(t, args...); strings.Contains(r.Out+r.Err, "hunter2") || !strings.Contains(r.Out, "HOLDFAST_LISTEN") {
			t.Errorf("%s printed\n%s%s", args, r.Out, r.Err)
		}
	}
	// The settings come first, although some that the role needs are missing.
	r = holdfast(t, "config", "--for", "registry").Wants(t, exit.Usage)
	if !strings.Contains(r.Out, "HOLDFAST_DATABASE_URL") || strings.Contains(r.Out, "HOLDFAST_REDIS_URL") || !strings.Contains(r.Err, "HOLDFAST_DATABASE_URL: not set, and holdfast registry needs it") {
		t.Errorf("printed\n%s\n%s", r.Out, r.Err)
	}
	for role, full := range map[string]string{"up": "95", "worker": "80"} {
		if r := holdfast(t, "config", "--for", role, "--json"); !strings.Contains(r.Out, `{"name":"HOLDFAST_STAGING_FULL","value":"`+full+`"`) {
			t.Errorf("%s: staging is not full at %s %%:\n%s", role, full, r.Out)
		}
	}
	if r := holdfast(t, "config", "--for", "dowload").Wants(t, exit.Usage); !strings.Contains(r.Err, "roles and stages: registry") {
		t.Errorf("printed %s", r.Err)
	}
}
