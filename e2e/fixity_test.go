package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/mail/mailtest"
	"github.com/holdfast/holdfast/registry"
)

// TestFixity: the schedule finds damaged stored files and mends them from the other storage. A file
// that is right nowhere is shown to people until it is brought back, and told at once, and once, by mail
// and to a receiver that asked for it.
func TestFixity(t *testing.T) {
	t.Parallel()
	second := filepath.Join(t.TempDir(), "second")
	if err := os.Mkdir(second, 0o755); err != nil {
		t.Fatal(err)
	}
	mails := mailtest.Start(t, mailtest.Options{})
	var told heard
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var events []json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&events); err != nil {
			t.Errorf("what the receiver got: %v", err)
		}
		for _, e := range events {
			told.add(t, e)
		}
	}))
	t.Cleanup(receiver.Close)
	h := up(t, "HOLDFAST_STORAGE_URL=second=file://"+second, "HOLDFAST_FIXITY_DAYS=0.00001", // about a second
		"HOLDFAST_SMTP_URL="+mails.URL(), "HOLDFAST_MAIL_FROM=holdfast@example.org", "HOLDFAST_MAIL_OPERATORS=ops@example.org")
	h.must(0, "feed", "add", "damage", "--to", receiver.URL, "--actions", "fixity", "--states", "failed")
	h.storedIn("kept", registry.DefaultStorage, "second")
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("alpha"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, code := h.submit(path, "--collection", "kept")
	if code != 0 || len(s.Jobs) != 1 {
		t.Fatalf("exit=%d summary=%+v", code, s)
	}
	id := s.Jobs[0].ObjectID
	object := func() registry.Object { return h.object(id) }
	here, there := contentNamed(t, filepath.Join(h.dir, "storage"), "a.txt"), contentNamed(t, second, "a.txt")
	damage(t, here)
	if err := os.Remove(filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(there))), "inventory.json")); err != nil {
		t.Fatal(err)
	}
	h.until("both are mended", func() bool {
		return h.run("object", "verify", id).code == 0
	})
	if data, err := os.ReadFile(here); err != nil || string(data) != "alpha" {
		t.Errorf("mended to %q, %v", data, err)
	}
	says(t, "the events", h.must(0, "object", "events", id).stdout, "fixity check", "failure", "damaged in storage storage", "repaired in storage storage", "v1/inventory.json")

	report, today := filepath.Join(t.TempDir(), "report"), time.Now().UTC()
	day := today.Format(time.DateOnly)
	h.must(0, "evidence", "--from", today.AddDate(0, 0, -1).Format(time.DateOnly), "--to", day, "--out", report)
	says(t, "its incidents", read(t, filepath.Join(report, "incidents.csv")), "fixity check,failure,", "damaged in storage storage", "replication,success,", "repaired in storage storage")
	says(t, "its coverage", read(t, filepath.Join(report, "fixity.csv")), "\nsecond,", "\nstorage,", ",100.00,")
	says(t, "its check", h.runIn("", "check", report).stdout, ": valid evidence report", "signed by key")
	if r := h.must(0, "evidence", "--from", day, "--to", day, "--out", report+".zip"); !strings.Contains(r.stdout, "README.txt") {
		t.Errorf("the report as a zip: %s", r.stdout)
	}
	says(t, "the zip's check", h.runIn("", "check", report+".zip").stdout, ": valid evidence report")
	if err := os.WriteFile(filepath.Join(report, "incidents.csv"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := h.runIn("", "check", report); r.code != 6 || !strings.Contains(r.stdout, "incidents.csv was changed") {
		t.Errorf("the check of a changed report: %d %s", r.code, r.stdout)
	}

	damage(t, here)
	if err := os.Remove(there); err != nil {
		t.Fatal(err)
	}
	h.must(0, "object", "fixity", id, "--reason", "the disk sounds odd")
	h.until("the damage is shown", func() bool { return object().Damaged == 1 })
	h.until("its check waits for a person", func() bool { return len(h.list("action:fixity", "state:failed")) == 1 })
	says(t, "the queue", h.must(0, "queue", "status").stdout, "DAMAGED", "1 stored file")
	failed := h.list("action:fixity", "state:failed")[0]
	var alarms []mailtest.Mail
	hear := func() int {
		for _, m := range mails.Got() {
			if strings.Contains(m.Subject, "could not be mended") {
				alarms = append(alarms, m)
			}
		}
		return len(alarms)
	}
	h.until("operators have a mail", func() bool { return hear() > 0 })
	says(t, "the mail", alarms[0].Subject+alarms[0].Text, "1 stored file is damaged", "v1/content/producer/a.txt")
	h.until("the receiver was told", func() bool { _, events := told.all(); return len(events) > 0 })
	_, events := told.all()
	says(t, "the event", events[0], `"subject":"`+failed.ID+`"`, "v1/content/producer/a.txt")
	says(t, "the item", h.must(0, "item", "show", failed.ID).stdout, "v1/content/producer/a.txt", "system", "requeue")
	if err := os.WriteFile(here, []byte("alpha"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.must(0, "item", "requeue", failed.ID)
	h.until("it is right again", func() bool { return object().Damaged == 0 })
	if data, err := os.ReadFile(there); err != nil || string(data) != "alpha" {
		t.Errorf("the other storage has %q, %v", data, err)
	}
	if text := h.must(0, "queue", "status").stdout; strings.Contains(text, "DAMAGED") {
		t.Errorf("the queue still says\n%s", text)
	}

	if _, events := told.all(); hear() != 1 || len(events) != 1 {
		t.Errorf("the damage was told by %d mails and %d events, want one each", len(alarms), len(events))
	}

	// What lies in a storage and belongs to no object is found by the schedule, too.
	planted := filepath.Join(second, "abc", "lost.txt")
	if err := os.MkdirAll(filepath.Dir(planted), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(planted, []byte("whose is it?"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(planted, old, old); err != nil {
		t.Fatal(err)
	}
	h.until("the file is told of", func() bool { return len(h.list("action:tidy", "state:failed")) == 1 })
	sweep := h.list("action:tidy", "state:failed")[0]
	says(t, "the search", h.must(0, "item", "show", sweep.ID).stdout, `"abc/lost.txt" in storage second`, "requeue")
	says(t, "the list", h.must(0, "queue", "orphans", "--storages", "--older", "1h").stdout, "foreign", "abc/lost.txt in second", "belongs to no object")
	says(t, "the queue", h.must(0, "queue", "status").stdout, "FOREIGN FILES")
	if err := os.Remove(planted); err != nil {
		t.Fatal(err)
	}
	h.must(0, "item", "requeue", sweep.ID)
	h.until("nothing is left to tell of", func() bool { return len(h.list("action:tidy", "state:failed")) == 0 })
	if text := h.must(0, "queue", "status").stdout; strings.Contains(text, "FOREIGN") {
		t.Errorf("the queue still says\n%s", text)
	}
}

// object returns the API's view of an object.
func (h *holdfast) object(id string) (o registry.Object) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(h.must(0, "object", "show", id, "--json").stdout), &o); err != nil {
		h.t.Fatal(err)
	}
	return o
}

// TestFixity_StorageLost: an unmounted storage does not count as a new one. After an operator has
// made a new root, a lost storage is filled again from the other.
func TestFixity_StorageLost(t *testing.T) {
	t.Parallel()
	second := filepath.Join(t.TempDir(), "second")
	if err := os.Mkdir(second, 0o755); err != nil {
		t.Fatal(err)
	}
	address := "file://" + second
	h := up(t, "HOLDFAST_STORAGE_URL=second="+address)
	h.storedIn("kept", registry.DefaultStorage, "second")
	var ids []string
	for _, name := range []string{"a.txt", "b.txt"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte("alpha "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		s, code := h.submit(path, "--collection", "kept")
		if code != 0 || len(s.Jobs) != 1 {
			t.Fatalf("exit=%d summary=%+v", code, s)
		}
		ids = append(ids, s.Jobs[0].ObjectID)
	}
	h.stop()
	if err := os.Rename(second, second+" that was lost"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(second, 0o755); err != nil {
		t.Fatal(err)
	}
	start := exec.Command(binary, "up", "--dir", h.dir, "--listen", "127.0.0.1:0")
	start.Env = h.environment()
	refused := h.finish(start)
	says(t, "the start", refused.stderr, `storage "second"`, second, "mount the right volume", "holdfast storage init")
	if files, err := os.ReadDir(second); err != nil || len(files) > 0 {
		t.Fatalf("%v, %v is where nothing was mounted", files, err)
	}
	says(t, "init", h.runIn("", "storage", "init", address).stdout, "storage root made")
	h.start()
	h.must(0, "object", "fixity", "--all", "--reason", "the second disk was lost")
	for _, id := range ids {
		h.until(id+" is mended", func() bool { return h.run("object", "verify", id).code == 0 })
	}
	says(t, "the new storage", h.runIn("", "check", second).stdout, "valid")
}
