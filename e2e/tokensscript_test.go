package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTokensScript runs docker/tokens.sh with a stand-in for docker that runs the built binary. The
// script can run again, after an interruption and when all is done: existing tokens are kept, and
// removed ones are replaced.
func TestTokensScript(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script, err := os.ReadFile("../docker/tokens.sh")
	if err != nil {
		t.Fatal(err)
	}
	database := "sqlite:" + filepath.Join(dir, "registry.db")
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// docker compose ... run ... registry ARGS runs ARGS; with a file "broken" beside it, it fails
	// at the stage that stands there.
	write("docker", "#!/bin/sh\nset -eu\nwhile [ \"$1\" != registry ]; do shift; done\nshift\n"+
		"if [ -f \"$0.broken\" ]; then case \"$*\" in *\"$(cat \"$0.broken\")\"*) exit 1;; esac; fi\n"+
		"exec "+binary+" \"$@\"\n", 0o755)
	write("tokens.sh", string(script), 0o755)
	env := filepath.Join(dir, ".env")
	run := func() (made []string, err error) {
		t.Helper()
		cmd := exec.Command(filepath.Join(dir, "tokens.sh"))
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOLDFAST_DATABASE_URL="+database)
		out, err := cmd.Output()
		f, openErr := os.OpenFile(env, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if openErr != nil {
			t.Fatal(openErr)
		}
		defer f.Close()
		if _, err := f.Write(out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			name, secret, _ := strings.Cut(strings.TrimSpace(line), "=")
			if !strings.HasPrefix(secret, "hf_") {
				t.Errorf("it printed %q, want a setting with a token", line)
			}
			made = append(made, name)
		}
		return made, err
	}

	if out, err := exec.Command(binary, "migrate", "--database", database).CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	broken := write("docker.broken", "worker-process", 0o600)
	first, err := run()
	if err == nil || !slices.Contains(first, "HOLDFAST_TOKEN_DOWNLOAD") || slices.Contains(first, "HOLDFAST_TOKEN_PROCESS") {
		t.Fatalf("a run that breaks at process: %v, made %v", err, first)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	second, err := run()
	if err != nil || !slices.Contains(second, "HOLDFAST_TOKEN_PROCESS") || !slices.Contains(second, "HOLDFAST_TOKEN_ADMIN") {
		t.Fatalf("the run after it: %v, made %v", err, second)
	}
	for _, name := range second {
		if slices.Contains(first, name) {
			t.Errorf("%s was made twice", name)
		}
	}
	if third, err := run(); err != nil || len(third) != 0 {
		t.Errorf("a run when all is done: %v, made %v", err, third)
	}

	text, err := os.ReadFile(env)
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, secret, _ := strings.Cut(strings.TrimSpace(line), "=")
		tokens[name] = secret
	}
	before := maps.Clone(tokens)
	delete(tokens, "HOLDFAST_TOKEN_DOWNLOAD")
	var left strings.Builder
	for name, secret := range tokens {
		left.WriteString(name + "=" + secret + "\n")
	}
	write(".env", left.String(), 0o600)
	replaced, err := run()
	if err != nil || !slices.Equal(replaced, []string{"HOLDFAST_TOKEN_DOWNLOAD"}) {
		t.Errorf("a run after a line was taken out: %v, made %v", err, replaced)
	}
	text, err = os.ReadFile(env)
	if err != nil || strings.Contains(string(text), before["HOLDFAST_TOKEN_DOWNLOAD"]) {
		t.Errorf("the token that was replaced came back (%v)", err)
	}
}
