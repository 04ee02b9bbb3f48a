package sqlstore_test

import (
	"path/filepath"
	"testing"
)

// TestBulk_IsOneAuditEntry: every event that a bulk act writes names it, and no other event does.
func TestBulk_IsOneAuditEntry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	l := &life{clock: newClock()}
	l.s = open(t, path, l.clock.now)
	for _, c := range l.script() {
		if err := c.run(t.Context()); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	look := reader(t, path)
	bulks := column(t, look, `SELECT id FROM work_item WHERE action = 'bulk' AND status <> 'cancelled' ORDER BY id`)
	if len(bulks) != 3 {
		t.Fatalf("%d bulk acts", len(bulks))
	}
	for _, id := range bulks {
		// Of what it did to others: requeues of two jobs; cancels of two; a delete of two, of which
		// one ran before.
		if got := column(t, look, `SELECT COUNT(*) FROM event WHERE audit_id = '`+id+`' AND item_id <> '`+id+`'`); got[0] == "0" {
			t.Errorf("no event names bulk act %s", id)
		}
		if got := column(t, look, `SELECT COUNT(*) FROM event WHERE item_id = '`+id+`' AND type = 'submit' AND audit_id = ''`); got[0] != "1" {
			t.Errorf("bulk act %s has %s entries of its own", id, got[0])
		}
		if got := column(t, look, `SELECT DISTINCT actor FROM event WHERE audit_id = '`+id+`'`); len(got) != 1 || got[0] != "admin" {
			t.Errorf("bulk act %s acted as %v", id, got)
		}
	}
	withdrawn := column(t, look, `SELECT (SELECT COUNT(*) FROM event e WHERE e.audit_id = i.id AND e.item_id <> i.id) FROM work_item i WHERE action = 'bulk' AND status = 'cancelled'`)
	if len(withdrawn) != 1 || withdrawn[0] != "0" {
		t.Errorf("acts of what was withdrawn: %v", withdrawn)
	}
	strangers := column(t, look, `SELECT DISTINCT type FROM event WHERE audit_id <> '' AND type NOT IN ('requeue', 'cancel', 'delete', 'abort', 'submit')`)
	if len(strangers) > 0 {
		t.Errorf("events %v name a bulk act", strangers)
	}
}
