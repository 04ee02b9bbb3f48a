package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// bagged are the flags of an export with the form of a restored tar.
var bagged = []string{"--tar", "--bag"}

// TestRestore restores an object with a depositor's token, byte for byte, although the service is
// killed meanwhile, and checks who else may.
func TestRestore(t *testing.T) {
	t.Parallel()
	h := up(t)
	ark, want := large(t, h)
	mine, _ := h.token("--name", "mine", "--role", "depositor", "--collection", "default")
	h.storedIn("theirs", registry.DefaultStorage)
	other, _ := h.token("--name", "other", "--role", "depositor", "--collection", "theirs")
	out := filepath.Join(t.TempDir(), "restored.tar")
	if r := h.as(other, "object", "restore", ark, "--out", out); r.code != 4 {
		t.Errorf("somebody else's restore ended with %d: %s", r.code, r.stderr)
	}
	for _, kill := range []time.Duration{0, 20 * time.Millisecond, 60 * time.Millisecond} {
		r := h.as(mine, "object", "restore", ark, "--reason", "a fire", "--json")
		if r.code != 0 {
			t.Fatalf("asked for: %d %s", r.code, r.stderr)
		}
		time.Sleep(kill) // wherever it is by then
		if err := h.signal(syscall.SIGKILL); err == nil {
			t.Fatal("it was not killed")
		}
		h.start()
	}
	r := h.as(mine, "object", "restore", ark, "--out", out)
	if r.code != 0 {
		t.Fatalf("restore ended with %d: %s", r.code, r.stderr)
	}
	says(t, "the command", r.stdout, ark, "v1", "sha256", out)
	if diff := cmp.Diff(want, payload(t, out, bagged)); diff != "" {
		t.Error("what was restored differs from what was submitted")
	}
	if r := h.runIn("", "check", out); r.code != 0 {
		t.Errorf("the bag is judged with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := h.as(mine, "object", "restore", ark, "--out", out); r.code != 8 || !strings.Contains(r.stderr, out) {
		t.Errorf("over a file that is there: %d %s", r.code, r.stderr)
	}
	list := rows[registry.Restoration](h, "object", "restores", ark)
	if len(list) != 1 || list[0].Status != registry.RestoreReady || list[0].AskedBy != "mine" || list[0].Reason != "a fire" || list[0].ExpiresAt.Sub(*list[0].ReadyAt) != 7*24*time.Hour {
		t.Errorf("restores %+v", list)
	}
	says(t, "the list", h.must(0, "object", "restores", ark).stdout, "ready", "mine")
	says(t, "the events", h.must(0, "object", "events", ark).stdout, "dissemination", list[0].SHA256, "for mine")
	again := h.as(mine, "object", "restore", ark)
	says(t, "asked again", again.stdout+again.stderr, "can be fetched until", "--out")
	h.must(4, "object", "restore", ark, "--version", "2")
	h.must(4, "object", "restore", "ark:/99999/none")
	h.must(2, "object", "restore", ark, "--version", "-1")
	if r := h.as(other, "object", "restores", ark); r.code != 4 {
		t.Errorf("somebody else's list ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}

	terms := filepath.Join(t.TempDir(), "terms.yaml")
	if err := os.WriteFile(terms, []byte("embargo_until: \"2999-01-01\"\nembargo_reason: the donor's letter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.must(0, "object", "terms", ark, "--set", terms, "--reason", "asked by the donor")
	for _, args := range [][]string{{"object", "export", ark}, {"object", "export", ark, "--system"}, {"object", "export", ark, "--bag"}, {"object", "export", ark, "--tar", "--bag"}, {"object", "restore", ark}} {
		place := t.TempDir()
		r := h.as(mine, append(args, "--out", filepath.Join(place, "a"))...)
		if r.code == 0 || !strings.Contains(r.stderr, "2999-01-01") || !strings.Contains(r.stderr, "the donor's letter") {
			t.Errorf("under embargo %v ended with %d: %s", args, r.code, r.stderr)
		}
		if left, err := os.ReadDir(place); err != nil || len(left) > 0 {
			t.Errorf("under embargo %v left %v, %v", args, left, err)
		}
	}
	folder := filepath.Join(t.TempDir(), "admins")
	h.must(0, "object", "export", ark, "--out", folder)
	says(t, "what an admin's export says", read(t, filepath.Join(folder, "holdfast-terms.txt")), "Embargo-Until: 2999-01-01\n", "Embargo-Reason: the donor's letter\n")
	if r := h.as(mine, "object", "show", ark); r.code != 0 || !strings.Contains(r.stdout, "2999-01-01") {
		t.Errorf("what describes it: %d %s%s", r.code, r.stdout, r.stderr)
	}
}

// TestRestore_FetchGoesOn interrupts the download in every way. An incomplete file has no name, and
// the same command fetches only the missing bytes.
func TestRestore_FetchGoesOn(t *testing.T) {
	t.Parallel()
	h := up(t)
	ark, want := large(t, h)
	h.must(0, "object", "restore", ark, "--wait")
	total := rows[registry.Restoration](h, "object", "restores", ark)[0].SizeBytes
	for how, code := range map[string]int{"killed": -1, "interrupted": 130, "cut": 5} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			const limit = 4 * mib
			p := newTap(t, h.url(), limit, how == "cut")
			folder := t.TempDir()
			out := filepath.Join(folder, "bag.tar")
			run := func() *exec.Cmd {
				cmd := exec.Command(binary, "object", "restore", ark, "--out", out)
				cmd.Env = append(h.environment(), "HOLDFAST_URL="+p.URL, "HOLDFAST_TOKEN="+h.secret())
				return cmd
			}
			cmd := run()
			end := h.launch(cmd)
			p.stop(t, cmd, how, folder)
			if r := end(); r.code != code || code > 0 && !strings.Contains(r.stderr, "To resume: holdfast object restore "+ark) {
				t.Errorf("ended with %d, want %d: %s", r.code, code, r.stderr)
			}
			if _, err := os.Lstat(out); err == nil {
				t.Error("it has its name before it is whole")
			}
			if how == "killed" { // and what lies there is spoilt meanwhile: then all of it is fetched
				parts, err := filepath.Glob(filepath.Join(folder, ".bag.tar.*"))
				if err != nil || len(parts) != 1 {
					t.Fatalf("parts %v, %v", parts, err)
				}
				spoil(t, parts[0], 1000)
				limitless := total - limit + total
				p.open()
				if r := h.finish(run()); r.code != 0 || p.count() > limitless+mib {
					t.Fatalf("the second run ended with %d after %d bytes: %s", r.code, p.count(), r.stderr)
				}
			} else {
				p.open()
				if r := h.finish(run()); r.code != 0 {
					t.Fatalf("the second run ended with %d: %s", r.code, r.stderr)
				}
				if came := p.count(); came > total-limit+mib {
					t.Errorf("%d bytes were fetched again, want about %d of %d", came, total-limit, total)
				}
			}
			if diff := cmp.Diff(want, payload(t, out, bagged)); diff != "" {
				t.Error("what was fetched differs from what was submitted")
			}
			if left, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(left) > 0 {
				t.Errorf("left: %v %v", left, err)
			}
		})
	}
}

// TestRestore_Expires: an expired tar cannot be fetched, its record stays, and another restore can
// be made.
func TestRestore_Expires(t *testing.T) {
	t.Parallel()
	h := up(t, "HOLDFAST_RESTORE_DAYS=0.00002") // about two seconds
	ark, _ := large(t, h)
	h.must(0, "object", "restore", ark, "--wait")
	h.until("its time is over", func() bool {
		return rows[registry.Restoration](h, "object", "restores", ark)[0].Status == registry.RestoreRemoved
	})
	h.must(0, "object", "restore", ark)
	if list := rows[registry.Restoration](h, "object", "restores", ark); len(list) != 2 || list[1].SHA256 == "" {
		t.Errorf("restores %+v", list)
	}
}

// TestRoles_Objects restores and checks an object in a fleet whose workers share only buckets.
func TestRoles_Objects(t *testing.T) {
	t.Parallel()
	source := newChaosSource(t, 1)
	f := newFleet(t, fleetSpec{s3: true, workers: append(slices.Clone(few), "restore,fixity,deliver,delete")})
	s, code := f.submit(source.url + "/bag.zip")
	if code != 0 || len(s.Jobs) != 1 {
		t.Fatalf("submit: exit=%d summary=%+v", code, s)
	}
	ark, out := s.Jobs[0].ObjectID, filepath.Join(t.TempDir(), "restored.tar")
	f.must(0, "object", "restore", ark, "--out", out)
	if r := f.runIn("", "check", out); r.code != 0 {
		t.Errorf("the bag is judged with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	exported := filepath.Join(t.TempDir(), "exported.tar")
	f.must(0, append([]string{"object", "export", ark, "--out", exported}, bagged...)...)
	if diff := cmp.Diff(payload(t, exported, bagged), payload(t, out, bagged)); diff != "" {
		t.Errorf("what was restored differs from what is exported (-exported +restored):\n%s", diff)
	}
	before := f.object(ark).CheckedAt
	f.must(0, "object", "fixity", ark, "--reason", "to be sure")
	f.until("every file was read again", func() bool { return f.object(ark).CheckedAt.After(before) })
}
