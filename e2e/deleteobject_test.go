package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestObject_Deletion deletes an object as two people. One person alone cannot. It checks what
// remains, and that the identifiers are not used again.
func TestObject_Deletion(t *testing.T) {
	t.Parallel()
	h := up(t)
	file := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(file, []byte("to be deleted"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, code := h.submit(file, "--local-id", "l1")
	if code != 0 {
		t.Fatalf("%d %+v", code, s)
	}
	ark := s.Jobs[0].ObjectID
	person := func(name, role string) func(args ...string) result {
		var made struct{ Secret string }
		r := h.run("token", "create", "--name", name, "--role", role, "--json")
		if err := json.Unmarshal([]byte(r.stdout), &made); err != nil || made.Secret == "" {
			t.Fatalf("%v: %s%s", err, r.stdout, r.stderr)
		}
		h.env = append(h.env, "HOLDFAST_URL="+h.url())
		return func(args ...string) result {
			t.Helper()
			was := h.env
			defer func() { h.env = was }()
			h.env = append(append([]string{}, was...), "HOLDFAST_TOKEN="+made.Secret)
			return h.runIn("", args...)
		}
	}
	ann, ben, viewer := person("ann", "operator"), person("ben", "admin"), person("vic", "viewer")

	for _, args := range [][]string{{}, {"--reason", "x", "--approve"}} {
		if r := ann(append([]string{"object", "delete", ark}, args...)...); r.code != 2 {
			t.Errorf("%v ended with %d: %s", args, r.code, r.stderr)
		}
	}
	if r := viewer("object", "delete", ark, "--reason", "spite"); r.code != 8 {
		t.Errorf("a viewer asks: %d %s", r.code, r.stderr)
	}
	if r := ben("object", "delete", ark, "--approve"); r.code != 8 {
		t.Errorf("nobody has asked: %d %s", r.code, r.stderr)
	}
	if r := ann("object", "delete", ark, "--reason", "rights were withdrawn"); r.code != 0 || !strings.Contains(r.stderr, "--approve") {
		t.Errorf("asked: %d %s", r.code, r.stderr)
	}
	if r := ann("object", "delete", ark, "--approve"); r.code != 8 || !strings.Contains(r.stderr, "two people") {
		t.Errorf("her own approval: %d %s", r.code, r.stderr)
	}
	// The admin who has made her token might be her.
	if r := h.run("object", "delete", ark, "--approve"); r.code != 8 || !strings.Contains(r.stderr, "two people") {
		t.Errorf("the approval of who made her token: %d %s", r.code, r.stderr)
	}
	if r := ann("object", "delete", ark, "--withdraw"); r.code != 0 {
		t.Errorf("withdrawn: %d %s", r.code, r.stderr)
	}
	if r := ben("object", "delete", ark, "--approve"); r.code != 8 {
		t.Errorf("approved what was withdrawn: %d %s", r.code, r.stderr)
	}
	h.must(0, "object", "verify", ark)
	if r := ann("object", "delete", ark, "--reason", "rights were withdrawn"); r.code != 0 {
		t.Errorf("asked again: %d %s", r.code, r.stderr)
	}
	if r := ben("object", "deletions", "--json"); r.code != 0 || strings.Count(r.stdout, ark) != 1 || !strings.Contains(r.stdout, "rights were withdrawn") || !strings.Contains(r.stdout, `"ann"`) {
		t.Errorf("what waits for him: %d %s%s", r.code, r.stdout, r.stderr)
	}
	r := ben("object", "delete", ark, "--approve")
	if r.code != 0 {
		t.Fatalf("approved: %d %s", r.code, r.stderr)
	}
	if r := ben("object", "deletions"); r.code != 0 || strings.Contains(r.stdout, ark) {
		t.Errorf("it waits for nobody any more: %d %s", r.code, r.stdout)
	}
	h.must(0, "watch", strings.TrimSpace(r.stdout))

	shown := h.run("object", "show", ark)
	for _, word := range []string{"deleted", "ann", "ben", "rights were withdrawn", "sha256:", "a.txt"} {
		if shown.code != 0 || !strings.Contains(shown.stdout, word) {
			t.Errorf("object show (%d) is without %q:\n%s", shown.code, word, shown.stdout)
		}
	}
	if r := h.run("object", "events", ark); !strings.Contains(r.stdout, "deletion") {
		t.Errorf("events:\n%s", r.stdout)
	}
	for _, args := range [][]string{{"object", "verify", ark}, {"object", "export", ark, "--out", filepath.Join(t.TempDir(), "x")}, {"object", "delete", ark, "--reason", "again"}} {
		if r := h.run(args...); r.code != 4 || !strings.Contains(r.stderr, "rights were withdrawn") {
			t.Errorf("%v ended with %d: %s", args, r.code, r.stderr)
		}
	}
	page, err := http.NewRequest(http.MethodGet, h.url()+"/objects/"+ark, nil)
	if err != nil {
		t.Fatal(err)
	}
	page.Header.Set("Authorization", "Bearer "+h.secret())
	answer, err := http.DefaultClient.Do(page)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), "rights were withdrawn") || strings.Contains(string(text), "/content?") {
		t.Errorf("page: %d %v\n%s", answer.StatusCode, err, text)
	}
	for name := range files(t, h.place("storage")) {
		if strings.Contains(name, "producer") || strings.Contains(name, "inventory") {
			t.Errorf("left in storage: %s", name)
		}
	}
	if r := h.run("object", "verify", "--all"); r.code != 0 {
		t.Errorf("verify --all over a deleted object: %d %s%s", r.code, r.stdout, r.stderr)
	}
	again, code := h.submit(file, "--local-id", "l1", "--force")
	if code != 6 || !strings.Contains(again.Jobs[0].Error, "was deleted") || !strings.Contains(again.Jobs[0].Error, "ben") {
		t.Errorf("the local id of a deleted object: %d %+v", code, again)
	}
}
