package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAudit: an audit finds events that were cut off or rewritten in the database, and
// distinguishes a restored backup from both.
func TestAudit(t *testing.T) {
	t.Parallel()
	h := up(t)
	in := filepath.Join(t.TempDir(), "a.txt")
	deposit := func(text string, args ...string) string {
		t.Helper()
		if err := os.WriteFile(in, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s, code := h.submit(append([]string{in, "--local-id", "x"}, args...)...)
		if code != 0 {
			t.Fatalf("exit=%d summary=%+v", code, s)
		}
		return s.Jobs[0].ARK
	}
	folder := filepath.Join(h.dir, "storage", "extensions", "holdfast-checkpoints")
	checkpointed := func() {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			if found, err := filepath.Glob(filepath.Join(folder, "*.jsonl")); err != nil || len(found) > 0 {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("no checkpoint was made\n%s", h.log)
			}
		}
	}
	audit := func(code int, says ...string) {
		t.Helper()
		r := h.run("object", "audit", "--all")
		for _, part := range says {
			if !strings.Contains(r.stdout+r.stderr, part) {
				t.Errorf("%q is not in\n%s%s", part, r.stdout, r.stderr)
			}
		}
		if r.code != code {
			t.Errorf("exit code %d, want %d\n%s%s", r.code, code, r.stdout, r.stderr)
		}
	}
	database := filepath.Join(h.dir, "registry.db")
	ark := deposit("alpha")
	audit(0, "whole", ark, "no checkpoint in storage")
	h.stop()
	backup := read(t, database)
	h.start()
	deposit("beta", "--update")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	h.stop()
	h.start()
	checkpointed()
	audit(0, "whole     checkpoint", "whole     "+ark, "2 receipts", "1 checkpoint")
	h.stop()

	// Whoever can write the database cuts off the end, receipt and all.
	whole := read(t, database)
	h.query("registry.db", `DELETE FROM premis_event WHERE version = 2`)
	h.start()
	audit(1, "TAMPERED  "+ark, "the receipt of version 2 ends with")
	if r := h.run("object", "receipt", ark); r.code != 1 || !strings.Contains(r.stderr, "was truncated") {
		t.Errorf("the receipt: exit code %d, want 1\n%s", r.code, r.stderr)
	}
	h.stop()
	h.query("registry.db", `DELETE FROM receipt WHERE version = 2`)
	h.start()
	audit(1, "OLDER", "whole     "+ark, "1 checkpoint differ from")
	h.stop()

	// Or changes an event.
	restore(t, database, whole)
	h.query("registry.db", `UPDATE premis_event SET detail = 'nothing' WHERE seq = 2`)
	h.start()
	audit(1, "TAMPERED  "+ark, "event 2: ", "was changed")
	if r := h.run("object", "audit", ark); r.code != 1 {
		t.Errorf("of the object alone: exit code %d, want 1", r.code)
	}
	h.stop()

	// A backup from before the checkpoint is told as such.
	restore(t, database, backup)
	h.start("--paused", "restored from a backup") // what writes events now makes another chain than the one that was signed
	says(t, "the restored queue", h.must(0, "queue", "status").stdout, "paused", "restored from a backup")
	audit(1, "OLDER     the record is older than checkpoint", "restored from", "whole     "+ark)

	// Two people accept it, with or without a kill between; every audit tells of it from then on.
	ann, _ := h.token("--name", "ann", "--role", "admin")
	ben, _ := h.token("--name", "ben", "--role", "admin")
	if r := h.as(ann, "object", "accept-older", "--reason", "the disk died"); r.code != 0 || !strings.Contains(r.stdout, "older than checkpoint ") || !strings.Contains(r.stdout, ark+"  events ") || !strings.Contains(r.stderr, "--approve") {
		t.Fatalf("asked: %d %s%s", r.code, r.stdout, r.stderr)
	}
	_ = h.signal(syscall.SIGKILL)
	h.start()
	if r := h.as(ann, "object", "accept-older", "--approve"); r.code != 8 || !strings.Contains(r.stderr, "another person") {
		t.Errorf("her own approval: %d %s", r.code, r.stderr)
	}
	audit(1, "OLDER")
	unseen := h.as(ben, "object", "accept-older", "--approve")
	request := regexp.MustCompile(`--agrees-to ([0-9a-f]{32})`).FindStringSubmatch(unseen.stderr)
	if unseen.code == 0 || request == nil || !strings.Contains(unseen.stderr, ark+"  events ") || !strings.Contains(unseen.stderr, "ann requested it") {
		t.Fatalf("approved unseen: %d %s%s", unseen.code, unseen.stdout, unseen.stderr)
	}
	audit(1, "OLDER")
	if r := h.as(ben, "object", "accept-older", "--approve", "--agrees-to", request[1]); r.code != 0 || !strings.Contains(r.stdout, "checkpoint written in storage") {
		t.Fatalf("approved: %d %s%s", r.code, r.stdout, r.stderr)
	}
	_ = h.signal(syscall.SIGKILL)
	h.start()
	audit(0, "whole     checkpoint", "whole     "+ark, "ACCEPTED", "asked for by ann, approved by ben: the disk died", ark+"  events ")
	says(t, "the end of the pause", h.must(0, "queue", "resume").stderr, "released")
}

// restore replaces a database with an earlier copy.
func restore(t *testing.T, file, content string) {
	t.Helper()
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.RemoveAll(file + suffix); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
