package workers_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

// Damage to files derived from an inventory, in both storages at once, is recorded as a failure and
// mended from the version's own inventory.
func TestFixity_DerivedDamageIsAFailure(t *testing.T) {
	for _, path := range []string{"v1/inventory.json.sha256", "inventory.json", "inventory.json.sha256", "0=ocfl_object_1.1"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			for _, storage := range []string{first, second} {
				must(t, overwrite(p.file(storage, path), []byte("damaged")))
			}
			if it := p.check("v1/inventory.json"); it.Status != registry.Completed {
				t.Fatalf("the check is %s: %s", it.Status, it.Note)
			}
			p.right(first, "v1/inventory.json")
			p.right(second, "v1/inventory.json")
			p.damagedFiles(0)
			events := p.premises("v1/inventory.json")
			if len(events) != 2 || !strings.Contains(events[0], "fixity check failure") || !strings.Contains(events[0], "(its sidecar") ||
				!strings.Contains(events[1], "replication success") || !strings.Contains(events[1], "repaired") {
				t.Errorf("events %q, want the failure and its mend", events)
			}
		})
	}
}

// A damaged inventory that no storage has right is mended from the one in the object's root, which
// has the same bytes, even with only one storage. The history has the failure, then the mending.
func TestFixity_InventoryMendedFromItsRoot(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(strconv.FormatBool(gone), func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			for _, storage := range []string{first, second} {
				file := p.file(storage, "v1/inventory.json")
				if gone {
					must(t, os.Remove(file))
				} else {
					must(t, overwrite(file, []byte("damaged")))
				}
			}
			must(t, overwrite(p.file(first, "inventory.json"), []byte("damaged"))) // the other storage's root has it still
			if it := p.check("v1/inventory.json"); it.Status != registry.Completed {
				t.Fatalf("the check is %s: %s", it.Status, it.Note)
			}
			p.right(first, "v1/inventory.json")
			p.right(second, "v1/inventory.json")
			p.damagedFiles(0)
			events := p.premises("v1/inventory.json")
			if len(events) != 2 || !strings.Contains(events[0], "fixity check failure") || !strings.Contains(events[1], "repaired") {
				t.Errorf("events %q, want the failure and its mend", events)
			}
		})
	}
}

// The scheduled check finds a file that belongs to no version, fails, and waits for a person. When
// the file is gone, the check completes.
func TestFixity_ForeignFile(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	planted := []string{"v1/content/producer/planted.txt", "planted", "v1/planted"}
	for _, path := range planted {
		must(t, os.WriteFile(p.file(second, path), []byte("foreign"), 0o600))
	}
	it := p.check("v1/inventory.json")
	for _, path := range planted {
		if it.Status != registry.Failed || !strings.Contains(it.Note, strconv.Quote(path)+" in storage second") {
			t.Errorf("%s: the check is %s: %s", path, it.Status, it.Note)
		}
	}
	p.damagedFiles(1)
	events := p.premises("v1/inventory.json")
	if len(events) != 1 || !strings.Contains(events[0], "fixity check failure") || !strings.Contains(events[0], "damaged in storage second (files of no version") {
		t.Errorf("events %q", events)
	}
	for _, path := range planted {
		must(t, os.Remove(p.file(second, path)))
	}
	p.command(it.ID, registry.ActRequeue, "")
	p.runCheck(t.Context(), it.ID)
	if it = p.item(it.ID); it.Status != registry.Completed {
		t.Errorf("afterwards the check is %s: %s", it.Status, it.Note)
	}
	p.damagedFiles(0)
}

// A foreign file below an object's logs or extensions is found too, and waits for a person; the
// object's content counts as right.
func TestFixity_ForeignFileInLogs(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	planted := []string{"logs/notes.txt", "extensions/theirs/config.json"}
	for _, path := range planted {
		must(t, os.MkdirAll(filepath.Dir(p.file(second, path)), 0o700))
		must(t, os.WriteFile(p.file(second, path), []byte("foreign"), 0o600))
	}
	it := p.check("v1/inventory.json")
	for _, path := range planted {
		if it.Status != registry.Failed || !strings.Contains(it.Note, strconv.Quote(path)+" in storage second") {
			t.Errorf("%s: the check is %s: %s", path, it.Status, it.Note)
		}
	}
	p.damagedFiles(0)
	events := p.premises("v1/inventory.json")
	if len(events) != 1 || !strings.Contains(events[0], "fixity check success") || !strings.Contains(events[0], "good in storage second (files of no version in the object's logs") {
		t.Errorf("events %q", events)
	}
	for _, path := range planted {
		must(t, os.Remove(p.file(second, path)))
	}
	p.command(it.ID, registry.ActRequeue, "")
	p.runCheck(t.Context(), it.ID)
	if it = p.item(it.ID); it.Status != registry.Completed {
		t.Errorf("afterwards the check is %s: %s", it.Status, it.Note)
	}
}
