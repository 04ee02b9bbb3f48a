package e2e

import (
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/registry"
)

// TestSetup_DiesAnywhere kills holdfast setup when it has written the first file, the second, and so on,
// and when it has entered the first tokens. The next run completes it: no secret that was durable is
// replaced, no token is entered twice, and the admin's token is printed until it is noted as shown.
func TestSetup_DiesAnywhere(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("strace"); err != nil {
		proctest.Absent(t, "strace", err)
	}
	dir := t.TempDir()
	database := "sqlite:" + filepath.Join(dir, "registry.db")
	// run kills the program where a thread of it makes its nth call of one kind; 0: it does not.
	run := func(n int, call string, args ...string) (out string, killed bool) {
		t.Helper()
		cmd := exec.Command(binary, args...)
		if n > 0 {
			cmd = exec.Command("strace", append([]string{"-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", "inject=" + call + ":signal=KILL:when=" + strconv.Itoa(n), binary}, args...)...)
		}
		cmd.Env = append(os.Environ(), "HOLDFAST_DATABASE_URL="+database, "HOLDFAST_REDIS_URL=redis://redis:6379/0")
		var errs strings.Builder
		cmd.Stderr = &errs
		text, err := cmd.Output()
		if err != nil && n == 0 {
			t.Fatalf("%v: %v\n%s", args, err, errs.String())
		}
		return string(text), err != nil
	}
	kept := func(folder string) map[string]string {
		keys := map[string]string{}
		if text, err := os.ReadFile(filepath.Join(folder, "keys.json")); err == nil {
			if err := json.Unmarshal(text, &keys); err != nil {
				t.Fatal(err)
			}
		}
		return keys
	}

	deaths := 0
	var folder string
	for {
		folder = filepath.Join(dir, strconv.Itoa(deaths))
		_, killed := run(deaths+1, "renameat", "setup", "keys", folder)
		before := kept(folder)
		run(0, "", "setup", "keys", folder)
		after := kept(folder)
		for name, secret := range before {
			if after[name] != secret {
				t.Errorf("death %d: %s was replaced", deaths+1, name)
			}
		}
		files, err := filepath.Glob(filepath.Join(folder, "*", "*"))
		if err != nil || len(files) != len(registry.Stages())+5 {
			t.Errorf("death %d: files %v, %v", deaths+1, files, err)
		}
		if out, _ := run(0, "", "setup", "keys", folder); !strings.Contains(out, "nothing to do") {
			t.Errorf("death %d: a third run says %q", deaths+1, out)
		}
		if !killed {
			break
		}
		deaths++
	}
	if deaths == 0 {
		t.Error("it was never killed")
	}

	secret := regexp.MustCompile(`hf_\w+`)
	shown := secret.FindString(kept(folder)["TOKEN_ADMIN"])
	run(0, "", "migrate")
	printed := 0
	for n := 1; ; n += 6 {
		out, killed := run(n, "fdatasync,fsync", "setup", "tokens", folder)
		if found := secret.FindAllString(out, -1); len(found) > 0 {
			printed++
			if !slices.Equal(found, []string{shown}) {
				t.Errorf("it printed %v, want the admin's token alone", found)
			}
		}
		if !killed {
			break
		}
	}
	if out, killed := run(1, "renameat", "setup", "tokens", folder); killed || secret.MatchString(out) || !strings.Contains(out, " 0 of them new") {
		t.Errorf("a run when all is done: killed %t, %q", killed, out)
	}
	if _, there := kept(folder)["TOKEN_ADMIN"]; there || printed == 0 {
		t.Errorf("the admin's token was printed %d times; in the folder: %t", printed, there)
	}
	store, closeAll, err := node.OpenDatabase(t.Context(), database, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	tokens, err := store.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tok := range tokens {
		names = append(names, tok.Name)
	}
	want := []string{}
	for _, s := range registry.Stages() {
		want = append(want, "worker-"+string(s))
	}
	if diff := cmp.Diff(append(want, "admin"), names); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}

	// Another token for one stage: an entry of its own beside the earlier one.
	before := kept(folder)
	run(0, "", "setup", "keys", folder, "--renew", "download,secret-key")
	after := kept(folder)
	if out, _ := run(0, "", "setup", "keys", folder); !strings.Contains(out, "nothing to do") {
		t.Errorf("after --renew: %q", out)
	}
	if after["TOKEN_DOWNLOAD"] == before["TOKEN_DOWNLOAD"] || !strings.HasSuffix(after["SECRET_KEY"], ","+before["SECRET_KEY"]) || after["TOKEN_EXPAND"] != before["TOKEN_EXPAND"] {
		t.Error("--renew download,secret-key made other changes")
	}
}
