package e2e

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/proctest"
)

// previous returns the program of the version before this one.
func previous(t *testing.T) string {
	t.Helper()
	script := exec.Command("../scripts/previous.sh")
	out, err := script.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		if exit.ExitCode() == noHistory && shallow() {
			t.Skipf("a clone without history has no version before this one: %s", exit.Stderr)
		}
		err = errors.Join(err, errors.New(string(exit.Stderr)))
	}
	if err != nil {
		proctest.Absent(t, "the program of the version before", err)
	}
	return strings.TrimSpace(string(out))
}

// noHistory is the exit code of scripts/previous.sh where the commit is not in the clone.
const noHistory = 3

// shallow reports whether this is no clone with its whole history.
func shallow() bool {
	out, err := exec.Command("git", "rev-parse", "--is-shallow-repository").Output()
	return err != nil || strings.TrimSpace(string(out)) == "true"
}

// becomes replaces a process by one of another program: it is stopped in order, and started again.
func (p *process) becomes(binary string) {
	p.t.Helper()
	p.stop()
	p.binary = binary
	p.start()
}

// TestUpgrade upgrades a fleet while it works, as docs/operating.md says: the schema first, below the
// programs of the version before; then the Registry; then the workers, one by one. Downloads are
// under way at each step. Everything that was submitted before, between and after is preserved once,
// and nobody is charged for it (R27).
func TestUpgrade(t *testing.T) {
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "SQLite" && os.Getenv("TEST_ALL") == "" {
				t.Skip("on SQLite it runs with TEST_ALL=1 only")
			}
			upgrade(t, name == "PostgreSQL")
		})
	}
}

func upgrade(t *testing.T, postgres bool) {
	before := previous(t)
	s := serveSlowly(t)
	f := newFleet(t, fleetSpec{workers: few, postgres: postgres, binary: before, client: before, env: []string{fourSlots}})
	registry := f.proc("registry", 0)
	var old map[string]int
	alike := func() bool { // all workers have told their version, the same one
		old = f.versions()
		return len(old) == 1 && slices.Contains(slices.Collect(maps.Values(old)), len(f.workers()))
	}
	f.until("all workers are alive", alike)
	// underWay submits a batch, whose files are held back, and waits until workers ask for some.
	var batches []string
	underWay := func() (goOn func()) {
		t.Helper()
		goOn = s.halt()
		asked := s.asked.Load()
		batches = append(batches, f.begin(s.server+"/batch.checkm", "--force"))
		f.until("downloads are under way", func() bool { return s.asked.Load() > asked })
		return goOn
	}

	goOn := underWay()
	if !postgres {
		registry.stop() // a SQLite file is one process's
	}
	// A release may have the schema of the one before. A SQLite file is migrated by its Registry's start.
	if postgres && schemaOf(t, before) != schemaOf(t, binary) {
		f.refused(f.role(registry, []string{"HOLDFAST_LISTEN=127.0.0.1:0"}, "registry", "--wait", "0s"), 2, "HOLDFAST_DATABASE_URL", "run: holdfast migrate")
	}
	if r := f.role(registry, nil, "migrate"); r.code != 0 {
		t.Fatalf("migrate ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if !postgres {
		registry.start()
	}
	goOn()
	f.watch(batches[0]) // everything of the version before, on the new schema

	goOn = underWay()
	registry.becomes(binary)
	f.client = binary
	goOn()
	f.watch(batches[1]) // workers of the version before, with the new Registry

	goOn = underWay()
	for _, worker := range f.workers() {
		worker.becomes(binary)
	}
	was := old
	if f.until("all workers are of the new version", alike); maps.Equal(old, was) {
		t.Errorf("the workers' version is %v, before and after the upgrade", old)
	}
	goOn()
	f.watch(batches[2])
	for _, it := range rows[struct {
		ID    string `json:"id"`
		Tries int    `json:"tries"`
	}](f.holdfast, "item", "list", "--limit", "500") {
		if it.Tries != 0 {
			t.Errorf("item %s was charged with %d tries for an upgrade", it.ID, it.Tries)
		}
	}
	f.soundAfterUpgrade()
	f.stopAll()
	f.checkInvariants()
}

// soundAfterUpgrade checks that every object is right. Workers of a version from before receipts lay beside the
// bytes wrote none; the next fixity check of each object does.
func (f *fleet) soundAfterUpgrade() {
	f.t.Helper()
	objects := 0
	for line := range strings.Lines(f.run("object", "verify", "--all", "--json").stdout) {
		var report struct {
			ObjectID string `json:"object_id"`
			Valid    bool   `json:"valid"`
			Faults   []struct{ Code, Path, Message string }
		}
		if err := json.Unmarshal([]byte(line), &report); err != nil {
			f.t.Fatalf("verify printed %q: %v", line, err)
		}
		objects++
		notWritten := false
		for _, fault := range report.Faults {
			switch {
			case fault.Code == "R008" && fault.Path == "extensions/holdfast-evidence/v1.receipt.jsonl" && fault.Message == "it is missing":
				notWritten = true
			case !strings.HasPrefix(fault.Code, "W"):
				f.t.Errorf("object %s: %+v", report.ObjectID, fault)
			}
		}
		if !report.Valid && !notWritten {
			f.t.Errorf("an object is not right: %s", line)
		}
	}
	if objects == 0 {
		f.t.Error("no object was verified")
	}
}

// schemaOf is the version of the schema that a program makes.
func schemaOf(t *testing.T, program string) (version int64) {
	t.Helper()
	out, err := exec.Command(program, "migrate", "--json", "--database", "sqlite:"+filepath.Join(t.TempDir(), "registry.db")).Output()
	var made struct{ To int64 }
	if err == nil {
		err = json.Unmarshal(out, &made)
	}
	if err != nil || made.To < 1 {
		t.Fatalf("%s migrate: %v, %s", program, err, out)
	}
	return made.To
}

// versions are the versions of the workers that serve, with their numbers.
func (f *fleet) versions() map[string]int {
	f.t.Helper()
	_, text := f.get("/api/v1/workers")
	var all struct {
		Rows []struct {
			Version  string `json:"version"`
			Draining bool   `json:"draining"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		f.t.Fatal(err)
	}
	found := map[string]int{}
	for _, w := range all.Rows {
		if !w.Draining {
			found[w.Version]++
		}
	}
	return found
}
