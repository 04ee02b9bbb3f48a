package receipt_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry/receipt"
)

func checkpointOf(t testing.TB, k *receipt.Key, ends ...receipt.ChainEnd) []byte {
	t.Helper()
	var out bytes.Buffer
	w := receipt.NewCheckpointWriter(&out)
	for _, e := range ends {
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	out.Write(k.SignCheckpoint(w.End(time.Date(2026, 8, 1, 14, 30, 0, 0, time.UTC), "storage")))
	return out.Bytes()
}

func chainEnds() []receipt.ChainEnd {
	return []receipt.ChainEnd{
		{Object: "ark:/99999/fk4a", Seq: 7, Hash: strings.Repeat("0a", 32), Kept: 5}, {Object: "ark:/99999/fk4b", Seq: 12, Hash: strings.Repeat("0b", 32)},
	}
}

// TestDocs_Checkpoint: the commands for checkpoints in docs/receipt.md work as written.
func TestDocs_Checkpoint(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "openssl", "sha256sum", "sed", "tail"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here; it is needed to run what docs/receipt.md shows", tool)
		}
	}
	doc, err := os.ReadFile("../../docs/receipt.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(doc), "## Checkpoints")
	_, script, _ = strings.Cut(script, "```sh\n")
	script, _, ok := strings.Cut(script, "```")
	if !ok {
		t.Fatal("docs/receipt.md has no script for checkpoints")
	}
	text := string(checkpointOf(t, key(t, keyText), chainEnds()...))
	for name, tt := range map[string]struct {
		text string
		ok   bool
	}{
		"valid": {text, true}, "event": {strings.Replace(text, `"seq":7`, `"seq":6`, 1), false}, "end": {strings.Replace(text, "2026", "2027", 1), false},
	} {
		dir := t.TempDir()
		for file, content := range map[string]string{"checkpoint.jsonl": tt.text, "key.pem": key(t, keyText).Public().PEM()} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("sh", "-e", "-c", script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); (err == nil) != tt.ok {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestCheckpoint: a checkpoint gives back what was written, with a trusted key, and changing any
// byte makes it invalid.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	ours, theirs := key(t, keyText), key(t, otherText)
	text := checkpointOf(t, ours, chainEnds()...)
	read := func(text []byte, k *receipt.Key) ([]receipt.ChainEnd, receipt.Checkpoint, error) {
		var got []receipt.ChainEnd
		c, err := receipt.ReadCheckpoint(bytes.NewReader(text), []receipt.PublicKey{k.Public()}, receipt.CheckpointLines{End: func(e receipt.ChainEnd) error {
			got = append(got, e)
			return nil
		}})
		return got, c, err
	}
	got, c, err := read(text, ours)
	if diff := cmp.Diff(chainEnds(), got); err != nil || diff != "" || c.Objects != 2 || c.Storage != "storage" || c.Key != ours.Public().ID() {
		t.Errorf("%+v, %v\n%s", c, err, diff)
	}
	if _, _, err := read(text, theirs); !errors.Is(err, receipt.ErrCheckpoint) {
		t.Errorf("with another key: %v", err)
	}
	if _, _, err := read(append(bytes.Clone(text), '\n'), ours); !errors.Is(err, receipt.ErrCheckpoint) {
		t.Errorf("with more behind it: %v", err)
	}
	for i := range text {
		changed := bytes.Clone(text)
		changed[i] ^= 1
		if _, _, err := read(changed, ours); !errors.Is(err, receipt.ErrCheckpoint) {
			t.Fatalf("byte %d, %q, may be %q: %v", i, text[i], changed[i], err)
		}
		if _, _, err := read(text[:i], ours); !errors.Is(err, receipt.ErrCheckpoint) {
			t.Fatalf("cut off after %d bytes: %v", i, err)
		}
	}
	one := checkpointOf(t, ours, chainEnds()[:1]...)
	lines, less := strings.SplitAfter(string(text), "\n"), strings.SplitAfter(string(one), "\n")
	if _, _, err := read([]byte(strings.Join(lines[:3], "")+strings.Join(less[2:], "")), ours); !errors.Is(err, receipt.ErrCheckpoint) {
		t.Errorf("with the signature of another: %v", err)
	}
	stop := io.ErrClosedPipe
	if _, err := receipt.ReadCheckpoint(bytes.NewReader(text), nil, receipt.CheckpointLines{End: func(receipt.ChainEnd) error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
}

// TestCheckpoint_Accepted: a checkpoint with accepted gaps gives them back as written. Changing any
// byte makes it invalid, and the usual steps verify it.
func TestCheckpoint_Accepted(t *testing.T) {
	t.Parallel()
	k := key(t, keyText)
	accepted := receipt.Accepted{
		At: time.Date(2026, 8, 2, 9, 0, 0, 0, time.UTC), Checkpoint: "2026-08-01.jsonl", Heads: "sha256:" + strings.Repeat("0c", 32),
		AskedBy: "ann", ApprovedBy: "ben", Reason: "the disk died; \"backup\" of Monday",
	}
	gap := receipt.Gap{Object: "ark:/99999/fk4a", After: 7, To: 9, Hash: strings.Repeat("0d", 32)}
	var out bytes.Buffer
	w := receipt.NewCheckpointWriter(&out)
	for _, err := range []error{w.Accept(accepted), w.Gap(gap), w.Add(chainEnds()[0]), w.Add(chainEnds()[1])} {
		if err != nil {
			t.Fatal(err)
		}
	}
	out.Write(k.SignCheckpoint(w.End(accepted.At, "storage")))
	text := out.Bytes()
	read := func(text []byte) (got []any, err error) {
		_, err = receipt.ReadCheckpoint(bytes.NewReader(text), []receipt.PublicKey{k.Public()}, receipt.CheckpointLines{
			Accepted: func(a receipt.Accepted) error { got = append(got, a); return nil },
			Gap:      func(g receipt.Gap) error { got = append(got, g); return nil },
			End:      func(e receipt.ChainEnd) error { got = append(got, e); return nil },
		})
		return got, err
	}
	got, err := read(text)
	if diff := cmp.Diff([]any{accepted, gap, chainEnds()[0], chainEnds()[1]}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for i := range text {
		changed := bytes.Clone(text)
		changed[i] ^= 1
		if _, err := read(changed); !errors.Is(err, receipt.ErrCheckpoint) {
			t.Fatalf("byte %d, %q, may be %q: %v", i, text[i], changed[i], err)
		}
	}
	lines := strings.SplitAfter(string(text), "\n")
	lines[1], lines[3] = lines[3], lines[1]
	if _, err := read([]byte(strings.Join(lines, ""))); !errors.Is(err, receipt.ErrCheckpoint) {
		t.Errorf("an acceptance behind the ends: %v", err)
	}
}

// TestCheckpoint_Earlier: checkpoints of earlier formats are read; what they do not say is 0. A line of one
// format is none of another.
func TestCheckpoint_Earlier(t *testing.T) {
	t.Parallel()
	k := key(t, keyText)
	const end, kept = `{"object":"ark:/99999/fk4a","seq":7,"hash":"HASH"}`, `{"object":"ark:/99999/fk4a","seq":7,"hash":"HASH","kept":5}`
	const accepted = `{"accepted":{"at":"2026-08-02T09:00:00.000000Z","checkpoint":"c","heads":"h","asked_by":"a","approved_by":"b","reason":"r"}}`
	for name, tt := range map[string]struct {
		format string
		lines  []string
		kept   int64 // -1: it is not valid
	}{
		"1": {"1", []string{end}, 0}, "2": {"2", []string{accepted, end}, 0}, "3": {"3", []string{accepted, kept}, 5},
		"1 with accepted": {"1", []string{accepted, end}, -1}, "1 with kept": {"1", []string{kept}, -1}, "2 with kept": {"2", []string{kept}, -1},
		"3 without kept": {"3", []string{end}, -1}, "4": {"4", []string{kept}, -1}, "3 with less than nothing": {"3", []string{strings.Replace(kept, ":5", ":-5", 1)}, -1},
	} {
		text := strings.ReplaceAll(`{"holdfast_checkpoint":`+tt.format+"}\n"+strings.Join(tt.lines, "\n")+"\n", "HASH", strings.Repeat("0a", 32))
		sum := sha256.Sum256([]byte(text))
		text += string(k.SignCheckpoint(receipt.Checkpoint{At: time.Unix(0, 0), Storage: "s", Objects: 1, Heads: "sha256:" + hex.EncodeToString(sum[:])}))
		var got []receipt.ChainEnd
		lines := receipt.CheckpointLines{End: func(e receipt.ChainEnd) error {
			got = append(got, e)
			return nil
		}}
		_, err := receipt.ReadCheckpoint(strings.NewReader(text), []receipt.PublicKey{k.Public()}, lines)
		if tt.kept < 0 && !errors.Is(err, receipt.ErrCheckpoint) || tt.kept >= 0 && (err != nil || len(got) != 1 || got[0].Kept != tt.kept) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		lines.Anyone = true
		if _, err := receipt.ReadCheckpoint(strings.NewReader(text), nil, lines); (err == nil) != (tt.kept >= 0) {
			t.Errorf("%s, whoever signed it: %v", name, err)
		}
		if _, err := receipt.ReadCheckpoint(strings.NewReader(strings.Replace(text, `"seq":7`, `"seq":8`, 1)), nil, lines); !errors.Is(err, receipt.ErrCheckpoint) {
			t.Errorf("%s, changed, whoever signed it: %v", name, err)
		}
	}
}
