package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReceipt: with receipt and key alone, a depositor can verify whether an export equals the
// deposit.
func TestReceipt(t *testing.T) {
	t.Parallel()
	h := up(t)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(in(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(in(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ok := func(r result) string {
		t.Helper()
		if r.code != 0 {
			t.Fatalf("ended with %d: %s%s", r.code, r.stdout, r.stderr)
		}
		return r.stdout
	}
	write("payload/a.txt", "alpha")
	write("payload/sub/b 100%.txt", "beta")
	first, _ := h.submit(in("payload"), "--local-id", "x", "--title", "Receipts")
	ark := first.Jobs[0].ARK
	ok(h.run("object", "receipt", ark, "--out", in("v1.jsonl")))
	if r := h.run("object", "receipt", ark, "--out", in("v1.jsonl")); r.code == 0 {
		t.Error("a receipt was written over another")
	}
	write("keys.pem", ok(h.run("receipt-keys", "--pem")))
	ok(h.run("object", "export", ark, "--out", in("plain")))
	ok(h.run("object", "export", ark, "--out", in("bag"), "--bag", "--system"))
	write("payload/a.txt", "changed")
	h.submit(in("payload"), "--local-id", "x", "--update")
	ok(h.run("object", "receipt", ark, "--out", in("v2.jsonl")))
	if again := ok(h.run("object", "receipt", ark, "--version", "1")); again != read(t, in("v1.jsonl")) {
		t.Error("the first version's receipt is another one now")
	}
	if r := h.run("object", "receipt", ark, "--version", "3"); r.code != 4 {
		t.Errorf("a receipt of a version that is not: %d %s", r.code, r.stderr)
	}
	doc := ok(h.run("object", "events", ark, "--premis"))
	for _, want := range []string{ark + "/v2/producer/a.txt", ark + "/v1/producer/a.txt", ark + "/v1/producer/sub/b 100%25.txt", "</premis>"} {
		if !strings.Contains(doc, want) {
			t.Errorf("the PREMIS document has no %s", want)
		}
	}
	h.stop()

	check := func(args ...string) result {
		t.Helper()
		return h.runIn(dir, append([]string{"check"}, args...)...)
	}
	var spans [2]struct {
		Events struct{ Before, After string } `json:"events"`
	}
	for i, name := range []string{"v1.jsonl", "v2.jsonl"} {
		head, _, _ := strings.Cut(read(t, in(name)), "\n")
		if err := json.Unmarshal([]byte(head), &spans[i]); err != nil {
			t.Fatal(err)
		}
		if out := ok(check(name, "--key", "keys.pem")); !strings.Contains(out, "valid receipt of "+ark) || !strings.Contains(out, "one of --key") {
			t.Errorf("%s: %s", name, out)
		}
	}
	if spans[1].Events.Before != spans[0].Events.After || spans[0].Events.After == "" {
		t.Errorf("the chain does not go on: %+v", spans)
	}
	if out := ok(check("v1.jsonl")); !strings.Contains(out, "its signer was not verified") {
		t.Errorf("without a key: %s", out)
	}
	object := filepath.Dir(globbed(t, filepath.Join(h.dir, "storage", "*", "*", "*", "*", "0=ocfl_object_1.1")))
	for _, folder := range []string{"plain", "bag", object} {
		ok(check("v1.jsonl", "--key", "keys.pem", "--against", folder))
	}
	ok(check("v2.jsonl", "--against", object))
	write("plain/a.txt", "alphA")
	write("plain/more.txt", "")
	if err := os.Remove(in("plain/sub/b 100%.txt")); err != nil {
		t.Fatal(err)
	}
	r := check("v1.jsonl", "--against", "plain", "--json")
	var verdict struct {
		Valid    bool `json:"valid"`
		Errors   int  `json:"errors"`
		ExitCode int  `json:"exit_code"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &verdict); err != nil || r.code != 6 || verdict.Valid || verdict.Errors != 3 || verdict.ExitCode != 6 {
		t.Errorf("a changed export: %d %+v (%v)\n%s", r.code, verdict, err, r.stdout)
	}
	for _, says := range []string{"file producer/a.txt", "its sha256 is", "b 100%25.txt", "it is missing in plain", "file more.txt", "not in the receipt"} {
		if !strings.Contains(r.stdout, says) {
			t.Errorf("a changed export: no %q in %s", says, r.stdout)
		}
	}
	for name, text := range map[string]string{
		"changed.jsonl": strings.Replace(read(t, in("v1.jsonl")), `"size":5`, `"size":6`, 1),
		"cut.jsonl":     read(t, in("v1.jsonl"))[:1500],
		"newer.jsonl":   `{"holdfast_receipt":4}`,
	} {
		write(name, text)
		if r := check(name); r.code != 6 || !strings.Contains(r.stdout, "INVALID") {
			t.Errorf("%s: %d %s%s", name, r.code, r.stdout, r.stderr)
		}
	}
	if r := check("v1.jsonl", "--key", strings.Repeat("00", 32)); r.code != 6 {
		t.Errorf("another's key: %d %s", r.code, r.stdout)
	}
	if r := check("v1.jsonl", "--key", "payload/a.txt"); r.code != 2 {
		t.Errorf("what is no key: %d %s", r.code, r.stderr)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func globbed(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v %v, want one", pattern, found, err)
	}
	return found[0]
}
