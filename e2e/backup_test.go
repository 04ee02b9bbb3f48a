package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// backupPath makes a backup and returns the path of its file.
func (h *holdfast) backupPath(folder string) string {
	h.t.Helper()
	made := rows[struct {
		Name string `json:"name"`
	}](h, "backup", "make", folder, "--dir", h.dir)
	return filepath.Join(folder, made[0].Name)
}

// TestBackup_DuringIngest: backups that are made while a batch is ingested, one of them just before
// the process is killed, restore to a Registry whose history is whole and which holds what could name
// an object twice, until an admin releases it.
func TestBackup_DuringIngest(t *testing.T) {
	t.Parallel()
	h := up(t, fourSlots)
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("alpha"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, code := h.submit(path)
	if code != 0 || len(s.Jobs) != 1 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	kept := s.Jobs[0].ObjectID
	place := t.TempDir()
	source := serveSlowly(t)
	h.must(0, "submit", source.server+"/batch.checkm")
	for deadline := time.Now().Add(patience); source.asked.Load() < slowFiles/2 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	taken := h.backupPath(place)
	if err := h.signal(syscall.SIGKILL); err == nil {
		t.Fatal("holdfast ended cleanly when it was killed")
	}
	offline := func(code int, args ...string) {
		t.Helper()
		if r := h.runIn("", args...); r.code != code { // it names the running one's folder by itself otherwise
			t.Fatalf("%v ended with %d, want %d: %s", args, r.code, code, r.stderr)
		}
	}
	offline(0, "backup", "verify", taken)

	restored := filepath.Join(t.TempDir(), "restored")
	offline(0, "backup", "restore", taken, "--dir", restored)
	offline(8, "backup", "restore", taken, "--dir", restored)
	if err := os.Rename(filepath.Join(h.dir, "storage"), filepath.Join(restored, "storage")); err != nil {
		t.Fatal(err)
	}
	h.dir = restored
	h.start()
	says(t, "the log", h.log.String(), "restored from a backup", filepath.Base(taken))
	says(t, "the queue", h.must(0, "queue", "status").stdout, "RESTORED", "accept")
	says(t, "the first page", h.page("/"), "This Registry was restored from a backup", "holdfast reconcile")
	holds := rows[registry.Hold](h, "hold", "list")
	if len(holds) != len(registry.RestoredStages()) {
		t.Errorf("%d holds, want one for each of %v", len(holds), registry.RestoredStages())
	}
	h.must(0, "object", "audit", "--all")
	h.must(0, "object", "show", kept)
	h.must(0, "submit", path, "--force") // it is accepted, and waits
	checkpoints := filepath.Join(restored, "storage", "extensions", "holdfast-checkpoints")
	if _, err := os.Stat(checkpoints); err == nil {
		t.Error("a checkpoint of the restored record was signed before anybody judged it")
	}
	terms := filepath.Join(t.TempDir(), "terms.yaml")
	if err := os.WriteFile(terms, []byte("preservation_level: full\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := h.run("object", "terms", kept, "--set", terms, "--reason", "x"); r.code == 0 || !strings.Contains(r.stderr, "restored from a backup") {
		t.Errorf("an event is written to the restored record: %+v", r)
	}

	for _, stage := range registry.RestoredStages() {
		h.must(0, "hold", "remove", "--scope", "stage", "--key", string(stage))
	}
	h.stop()
	h.start()
	if holds := rows[registry.Hold](h, "hold", "list"); len(holds) != 0 {
		t.Errorf("released holds came back: %v", holds)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(checkpoints); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("no checkpoint is written after the holds were released")
		}
	}
	h.must(0, "object", "terms", kept, "--set", terms, "--reason", "x")
	says(t, "the queue after a restart", h.must(0, "queue", "status").stdout, "RESTORED")
	h.must(0, "object", "verify", kept)
	h.must(0, "object", "audit", "--all")
}

// TestBackup_ByItself: with a place for backups, up makes one when the newest is too old, and keeps
// those that its rule keeps.
func TestBackup_ByItself(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	names := func() (all []string) {
		found, err := os.ReadDir(place)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			all = append(all, f.Name())
		}
		return all
	}
	h := up(t, "HOLDFAST_BACKUP_TO="+place, "HOLDFAST_BACKUP_EVERY=1h")
	for deadline := time.Now().Add(patience); !strings.Contains(h.log.String(), "backup made and verified"); {
		if time.Now().After(deadline) {
			t.Fatalf("no backup was made: %v", names())
		}
		time.Sleep(5 * time.Millisecond)
	}
	first := names()
	if len(first) != 1 {
		t.Fatalf("backups %v", first)
	}
	if r := h.runIn("", "backup", "verify", filepath.Join(place, first[0])); r.code != 0 {
		t.Errorf("verify ended with %d: %s", r.code, r.stderr)
	}
	report, today := filepath.Join(t.TempDir(), "report"), time.Now().UTC()
	h.must(0, "evidence", "--from", today.AddDate(0, 0, -1).Format(time.DateOnly), "--to", today.Format(time.DateOnly), "--out", report)
	csv, err := os.ReadFile(filepath.Join(report, "backups.csv"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, "the evidence report", string(csv), ","+first[0]+","+place+",")
	says(t, "the audit log", h.must(0, "audit", "list", "--types", registry.EventBackupMade).stdout, first[0])
	says(t, "the metrics", h.page("/metrics"), "holdfast_backup_timestamp_seconds 1.", "holdfast_backup_period_seconds 3600")
	h.stop()
	h.start()
	h.must(0, "submit", "--wait", filepath.Join(place, first[0])) // anything, after the look at the start
	if again := names(); !slices.Equal(first, again) {
		t.Errorf("after another start within the hour: %v, before %v", again, first)
	}
}
