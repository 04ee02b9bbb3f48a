package check

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry/receipt"
)

// An OCFL object compared with a receipt is validated as a whole, because files outside the receipt
// may be damaged.
func TestCheck_ReceiptAgainstObject(t *testing.T) {
	clitest.NoEnvironment(t)
	key, text := receiptOf(t, ownObject())
	receipt := clitest.WriteFile(t, filepath.Join(t.TempDir(), "receipt.jsonl"), text)
	for name, damage := range map[string]func(fileset){
		"":                         func(fileset) {},
		"root inventory":           func(f fileset) { f["inventory.json"] = append(slices.Clone(f["inventory.json"]), ' ') },
		"declaration":              func(f fileset) { f["0=ocfl_object_1.1"] = []byte("ocfl\n") },
		"sidecar":                  func(f fileset) { delete(f, "inventory.json.sha512") },
		"version before":           func(f fileset) { f["v1/content/producer/b.txt"] = []byte("betb") },
		"inventory of that":        func(f fileset) { delete(f, "v1/inventory.json") },
		"file that nobody knows":   func(f fileset) { f["v2/content/producer/more.txt"] = []byte("more") },
		"another object's receipt": nil,
	} {
		files, want := ownObject(), exit.Content
		switch {
		case name == "":
			want = exit.OK
			damage(files)
		case damage == nil: // with files that are the same
			for file, data := range files {
				if strings.Contains(file, "inventory.json") {
					files[file] = []byte(strings.ReplaceAll(string(data), "fk4m", "fk4n"))
				}
			}
			files.reseal()
		default:
			damage(files)
		}
		dir := t.TempDir()
		if !become(t, dir, nil, files) {
			t.Fatal(name)
		}
		if r := runCheck(t, "check", "--key", key, "--against", dir, receipt); r.Code != want {
			t.Errorf("%s: exit code %d, want %d\n%s%s", name, r.Code, want, r.Out, r.Err)
		}
	}
}

// Events that lie beside an object's bytes are verified like a receipt, but have no files.
func TestCheck_Events(t *testing.T) {
	clitest.NoEnvironment(t)
	key, err := receipt.ParseKey(receipt.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	before := strings.Repeat("ab", 32)
	var lines []byte
	hash := before
	for seq := int64(5); seq <= 6; seq++ {
		e := receipt.Event{Seq: seq, Object: "ark:/99999/fk4m", ID: fmt.Sprint(seq), Version: 1, Type: "fixity check", Agent: "Holdfast", Outcome: "success"}
		hash = e.Hash(hash)
		lines = append(lines, e.Line(hash)...)
	}
	h := receipt.EventsHeader{Object: "ark:/99999/fk4m", Events: receipt.Span{First: 5, Count: 2, Before: before, After: hash}}
	dir := t.TempDir()
	good := clitest.WriteFile(t, filepath.Join(dir, "events-0000000005-0000000006.jsonl"), string(key.SignEvents(h))+string(lines))
	bad := clitest.WriteFile(t, filepath.Join(dir, "bad.jsonl"), string(key.SignEvents(h))+strings.Replace(string(lines), "success", "failure", 1))
	var none *receipt.Key
	unsigned := clitest.WriteFile(t, filepath.Join(dir, "unsigned.jsonl"), string(none.SignEvents(h))+string(lines))
	for _, tt := range []struct {
		args  []string
		code  exit.Code
		words []string
	}{
		{[]string{"--key", key.Public().String(), good}, exit.OK, []string{"valid events 5 to 6 of ark:/99999/fk4m", "the key is one of --key"}},
		{[]string{"--json", good}, exit.OK, []string{`"type":"events"`, `"first_event":5`, `"trusted":false`}},
		{[]string{bad}, exit.Content, []string{"INVALID events", "event 5"}},
		{[]string{unsigned}, exit.OK, []string{"not signed: nothing shows who made it"}},
	} {
		r := runCheck(t, append([]string{"check"}, tt.args...)...).Wants(t, tt.code)
		for _, word := range tt.words {
			if !strings.Contains(r.Out, word) {
				t.Errorf("check %q does not say %q:\n%s", tt.args, word, r.Out)
			}
		}
	}
	runCheck(t, "check", "--against", dir, good).Wants(t, exit.Usage).Says(t, "no files to compare")
}

// Tombstones and checkpoints of a storage root are verified like a receipt.
func TestCheck_StorageRoot(t *testing.T) {
	clitest.NoEnvironment(t)
	key, err := receipt.ParseKey(receipt.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	tombstone := receipt.Tombstone{
		Object: "ark:/99999/fk4m", Reason: "asked to", AskedBy: "ann", AskedAt: at, ApprovedBy: "ben", ApprovedAt: at, Last: receipt.Remains{Version: 2}, LastHash: receipt.Zero,
	}
	var checkpoint strings.Builder
	w := receipt.NewCheckpointWriter(&checkpoint)
	if err := w.Add(receipt.ChainEnd{Object: "ark:/99999/fk4m", Seq: 3, Hash: strings.Repeat("ab", 32), Kept: 2}); err != nil {
		t.Fatal(err)
	}
	checkpoint.Write(key.SignCheckpoint(w.End(at, "main")))
	var none *receipt.Key
	texts := map[string]string{"tombstone": string(key.SignTombstone(tombstone)), "checkpoint": checkpoint.String(), "unsigned": string(none.SignTombstone(tombstone))}
	dir := t.TempDir()
	other := strings.Repeat("cd", 32)
	for _, tt := range []struct {
		text  string
		args  []string
		code  exit.Code
		words []string
	}{
		{texts["tombstone"], []string{"--key", key.Public().String()}, exit.OK, []string{"valid tombstone of ark:/99999/fk4m, which had 2 versions: asked for by ann, approved by ben", "the key is one of --key"}},
		{texts["tombstone"], nil, exit.OK, []string{"its signer was not verified"}},
		{texts["tombstone"], []string{"--json"}, exit.OK, []string{`"type":"tombstone"`, `"object_id":"ark:/99999/fk4m"`, `"trusted":false`, `"faults":[]`}},
		{texts["tombstone"], []string{"--key", other}, exit.Content, []string{"INVALID tombstone", "not among the keys given"}},
		{strings.Replace(texts["tombstone"], "ben", "bob", 1), nil, exit.Content, []string{"INVALID tombstone", "it was changed after signing"}},
		{texts["unsigned"], nil, exit.OK, []string{"not signed: nothing shows who made it"}},
		{texts["unsigned"], []string{"--key", other}, exit.Content, []string{"it is not signed"}},
		{texts["checkpoint"], []string{"--key", key.Public().String()}, exit.OK, []string{"valid checkpoint of storage main, made at 2026-08-01 12:00:00 UTC, with the chains of 1 object", "the key is one of --key"}},
		{texts["checkpoint"], []string{"--json"}, exit.OK, []string{`"type":"checkpoint"`, `"storage":"main"`, `"objects":1`, `"trusted":false`}},
		{texts["checkpoint"], []string{"--key", other}, exit.Content, []string{"INVALID checkpoint", "not among the keys given"}},
		{strings.Replace(texts["checkpoint"], `"kept":2`, `"kept":1`, 1), nil, exit.Content, []string{"INVALID checkpoint", "changed after signing"}},
	} {
		path := clitest.WriteFile(t, filepath.Join(dir, "file"), tt.text)
		r := runCheck(t, append([]string{"check", path}, tt.args...)...).Wants(t, tt.code)
		for _, word := range tt.words {
			if !strings.Contains(r.Out, word) {
				t.Errorf("check %q does not say %q:\n%s", tt.args, word, r.Out)
			}
		}
	}
	path := clitest.WriteFile(t, filepath.Join(dir, "file"), texts["tombstone"])
	runCheck(t, "check", "--against", dir, path).Wants(t, exit.Usage).Says(t, "no files to compare")
}

// A receipt with a damaged beginning is invalid when --type names it; a folder without Holdfast's
// own files is reported as such.
func TestCheck_ReceiptType(t *testing.T) {
	clitest.NoEnvironment(t)
	_, text := receiptOf(t, ownObject())
	dir := t.TempDir()
	good := clitest.WriteFile(t, filepath.Join(dir, "good.jsonl"), text)
	bad := clitest.WriteFile(t, filepath.Join(dir, "bad.jsonl"), strings.Replace(text, "holdfast_receipt", "holdfast_receipr", 1))
	runCheck(t, "check", "--type", "receipt", good).Wants(t, exit.OK)
	if r := runCheck(t, "check", "--type", "receipt", bad).Wants(t, exit.Content); !strings.Contains(r.Out, "INVALID receipt") {
		t.Errorf("%s", r.Out)
	}
	files := filepath.Join(dir, "files")
	for name, data := range map[string]string{"a.txt": "alpha", "same.txt": "alpha", "b.txt": "better"} {
		clitest.WriteFile(t, filepath.Join(files, name), data)
	}
	if r := runCheck(t, "check", "--against", files, good).Wants(t, exit.OK); !strings.Contains(r.Out, "1 file is not in it") {
		t.Errorf("%s", r.Out)
	}
}
