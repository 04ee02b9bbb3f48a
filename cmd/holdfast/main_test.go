package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/cmd/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what a run of the program came to.
type result struct {
	code     int
	out, err string
}

// holdfast runs the program as its users do.
func holdfast(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return result{code: code, out: out.String(), err: errs.String()}
}

// wants fails the test unless the program ended with this code.
func (r result) wants(t *testing.T, code outcome) result {
	t.Helper()
	if r.code != int(code) {
		t.Fatalf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", r.code, code, r.out, r.err)
	}
	return r
}

// says fails the test unless standard error has all of these.
func (r result) says(t *testing.T, parts ...string) result {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(r.err, p) {
			t.Errorf("stderr does not say %q:\n%s", p, r.err)
		}
	}
	if strings.Contains(r.err, "goroutine ") {
		t.Errorf("a stack trace for a user:\n%s", r.err)
	}
	return r
}

// noEnvironment takes every variable of ours away.
func noEnvironment(t *testing.T) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, config.Prefix+"_") {
			t.Setenv(name, "")
		}
	}
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestUsage(t *testing.T) {
	noEnvironment(t)
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
		{"group alone", []string{"batch"}, []string{"one of list, show, report, failures, update-report, delete, cleanup, hold, release must follow"}},
		{"unknown below", []string{"item", "explode"}, []string{`unknown command "explode"`, "requeue"}},
		{"unknown flag", []string{"submit", "--colection", "x", "y"}, []string{"--colection", "holdfast submit --help"}},
		{"no payload", []string{"submit"}, []string{"PAYLOAD is missing"}},
		{"no id", []string{"batch", "show"}, []string{"ID is missing"}},
		{"one too many", []string{"batch", "show", "a", "b"}, []string{`"b" is one argument too many`}},
		{"bad type", []string{"submit", "--type", "zip", "x"}, []string{"--type zip", "container-batch-manifest"}},
		{"bad digest", []string{"submit", "--digest", "xyz", "x"}, []string{"--digest", "ALG:HEX"}},
		{"one ark for two", []string{"submit", "--ark", "ark:/99999/fk4x", "a", "b"}, []string{"--ark", "one payload only"}},
		{"nowhere", []string{"batch", "list"}, []string{"holdfast-data/client.json", "holdfast up", "--dir", "HOLDFAST_URL"}},
		{"less than nothing", []string{"item", "list", "--limit", "-1"}, []string{"--limit", "0 or more"}},
		{"listen nowhere", []string{"up", "--listen", "8080"}, []string{"--listen 8080", "127.0.0.1:8080"}},
		{"verify nothing", []string{"object", "verify"}, []string{"--all"}},
		{"export nowhere", []string{"object", "export", "ark:/99999/fk4x"}, []string{"--out PATH is missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := holdfast(t, tt.args...).wants(t, exitUsage).says(t, tt.says...)
			if r.out != "" {
				t.Errorf("a usage error on stdout: %q", r.out)
			}
			if !strings.HasPrefix(r.err, "holdfast: ") {
				t.Errorf("stderr does not begin with the program's name: %q", r.err)
			}
		})
	}
}

func TestVersionAndHelp(t *testing.T) {
	if r := holdfast(t, "version").wants(t, exitOK); !strings.HasPrefix(r.out, "holdfast dev go") {
		t.Errorf("version: %q", r.out)
	}
	if r := holdfast(t, "submit", "--help").wants(t, exitOK); !strings.Contains(r.out, "--idempotency-key") {
		t.Errorf("help of submit: %q", r.out)
	}
	if r := holdfast(t, "object", "--help").wants(t, exitOK); strings.Count(r.out, "\n  accept-older ") != 1 {
		t.Errorf("help of object: %q, want each command once", r.out)
	}
}

func TestEnvironment(t *testing.T) {
	noEnvironment(t)
	t.Setenv("HOLDFAST_TOKN", "x")
	t.Setenv("HOLDFAST_LEASE", "soon")
	r := holdfast(t, "batch", "list").wants(t, exitUsage).says(t, "HOLDFAST_TOKN: unknown; did you mean HOLDFAST_TOKEN?", `HOLDFAST_LEASE: found "soon"; expected`)
	if n := strings.Count(r.err, "holdfast: "); n != 2 {
		t.Errorf("%d lines begin with the program's name, want 2:\n%s", n, r.err)
	}
}

func TestUnreachable(t *testing.T) {
	noEnvironment(t)
	t.Setenv("HOLDFAST_URL", "http://127.0.0.1:1")
	holdfast(t, "batch", "list").wants(t, exitUsage).says(t, "HOLDFAST_TOKEN is not")
	t.Setenv("HOLDFAST_TOKEN", "t")
	holdfast(t, "batch", "list").wants(t, exitTemporary).says(t, "cannot reach", "127.0.0.1:1", "holdfast up")
	holdfast(t, "health").wants(t, exitTemporary).says(t, "127.0.0.1:1")
	holdfast(t, "submit", filepath.Join(t.TempDir(), "absent")).wants(t, exitNotFound).says(t, "absent", "no such file")
}

func TestClientFileDamaged(t *testing.T) {
	noEnvironment(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "client.json"), `{"url":""`)
	holdfast(t, "batch", "list", "--dir", dir).wants(t, exitFailed).says(t, "client.json is damaged", "start `holdfast up --dir "+dir+"` again")
}

func TestComplain(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"joined", errors.Join(one, errors.Join(two, nil)), "holdfast: one\nholdfast: two\n"},
		{"in a sentence", fmt.Errorf("start %w, then %w", one, two), "holdfast: start one, then two\n"},
		{"joined in a sentence", fmt.Errorf("read: %w", errors.Join(one, two)), "holdfast: read: one\n  two\n"},
		{"with a fix", fix(one, "do that"), "holdfast: one; do that\n"},
		{"from the table", fmt.Errorf("open x: %w", os.ErrNotExist), "holdfast: open x: file does not exist; check the path\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var errs bytes.Buffer
			(&app{err: &errs}).complain(tt.err)
			if errs.String() != tt.want {
				t.Errorf("said %q, want %q", errs.String(), tt.want)
			}
		})
	}
}

func TestOutcomeIsSilent(t *testing.T) {
	var errs bytes.Buffer
	a := &app{err: &errs}
	a.complain(errors.Join(exitPartly, nil))
	if errs.Len() > 0 {
		t.Errorf("said %q about what has been said", errs.String())
	}
}
