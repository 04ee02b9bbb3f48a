package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// item is an item as `--json` prints it.
type item struct {
	ID         string     `json:"id"`
	Action     string     `json:"action"`
	Name       string     `json:"name"`
	Stage      string     `json:"stage"`
	State      string     `json:"state"`
	Collection string     `json:"collection"`
	ErrorClass string     `json:"error_class"`
	Note       string     `json:"note"`
	Tries      int        `json:"tries"`
	RetryCount int        `json:"retry_count"`
	RunAt      time.Time  `json:"run_at"`
	CreatedAt  time.Time  `json:"created_at"`
	FinishedAt *time.Time `json:"finished_at"`
	HeldBy     *struct {
		Scope  string `json:"scope"`
		Key    string `json:"key"`
		Reason string `json:"reason"`
		Actor  string `json:"actor"`
	} `json:"held_by"`
}

// why is the answer of `item why --json`.
type why struct {
	Reason   string `json:"reason"`
	Sentence string `json:"sentence"`
}

// begin submits one payload and returns its batch's id.
func (h *holdfast) begin(args ...string) string {
	h.t.Helper()
	out := rows[struct {
		BatchID string `json:"batch_id"`
	}](h, append([]string{"submit", "-q"}, args...)...)
	if len(out) == 0 || out[0].BatchID == "" {
		h.t.Fatalf("submit %v answered %+v", args, out)
	}
	return out[0].BatchID
}

// item is an item as it is now.
func (h *holdfast) item(id string) item {
	h.t.Helper()
	found := rows[item](h, "item", "show", id)
	if len(found) != 1 {
		h.t.Fatalf("item show %s printed %+v", id, found)
	}
	return found[0]
}

// list is all items that match.
func (h *holdfast) list(query ...string) []item {
	h.t.Helper()
	return rows[item](h, append([]string{"item", "list", "--limit", "0"}, query...)...)
}

// job is the one job of a batch, once there is one.
func (h *holdfast) job(batch string) (it item) {
	h.t.Helper()
	h.until("batch "+batch+" has its job", func() bool {
		found := h.list("--batch", batch)
		if len(found) == 1 {
			it = found[0]
		}
		return len(found) == 1
	})
	return it
}

// becomes waits until an item is in a state.
func (h *holdfast) becomes(id, state string) (it item) {
	h.t.Helper()
	h.until("item "+id+" is "+state, func() bool {
		it = h.item(id)
		return it.State == state
	})
	return it
}

// until waits until a condition is met, and fails the test when it is not for too long.
func (h *holdfast) until(what string, met func() bool) {
	h.t.Helper()
	h.within(patience, what, met)
}

// within is until with another time.
func (h *holdfast) within(most time.Duration, what string, met func() bool) {
	h.t.Helper()
	for begun := time.Now(); ; {
		asked := time.Now()
		if met() {
			return
		}
		if asked.Sub(begun) > most {
			h.t.Fatalf("it did not come about that %s: %+v", what, h.list())
		}
		// Most conditions start a command, which takes a core: it is left to others most of the time, and
		// the more the longer it takes.
		time.Sleep(max(10*time.Millisecond, 3*time.Since(asked), time.Since(begun)/10))
	}
}

// must runs a command that has to end with an exit code.
func (h *holdfast) must(code int, args ...string) result {
	h.t.Helper()
	r := h.run(args...)
	if r.code != code {
		h.t.Errorf("%s ended with %d, want %d: %s%s", strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	return r
}

// says fails the test unless a text has all these parts.
func says(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s says %q, without %q", what, text, p)
		}
	}
}

// address is where the service is, and the token of its first admin.
func (h *holdfast) address() (url, token string) {
	h.t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.dir, "client.json"))
	if err != nil {
		h.t.Fatal(err)
	}
	var at struct{ URL, Token string }
	if err := json.Unmarshal(raw, &at); err != nil {
		h.t.Fatal(err)
	}
	return at.URL, at.Token
}

// get reads an address of the service as its first admin.
func (h *holdfast) get(path string) (status int, text []byte) {
	h.t.Helper()
	url, token := h.address()
	q, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, url+path, http.NoBody)
	if err != nil {
		h.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err = io.ReadAll(answer.Body); err != nil {
		h.t.Fatal(err)
	}
	return answer.StatusCode, text
}

// collection makes a collection; more are further fields of its profile, as JSON.
func (h *holdfast) collection(name string, more ...string) {
	h.t.Helper()
	url, token := h.address()
	body := fmt.Sprintf(`{"name": %q, "owner": "ark:/99999/owner", "collections": ["ark:/99999/%s"]%s}`, name, name,
		strings.Join(append([]string{""}, more...), ", "))
	q, err := http.NewRequestWithContext(h.t.Context(), http.MethodPut, url+"/api/v1/collections/"+name, bytes.NewReader([]byte(body)))
	if err != nil {
		h.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Idempotency-Key", name)
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(answer.Body)
		h.t.Fatalf("making collection %s was answered with %s: %s", name, answer.Status, text)
	}
}

// filesBatch is a batch manifest of n small files at the server that it is asked from.
func filesBatch(n int, name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rows := make([]string, n)
		for i := range rows {
			rows[i] = fmt.Sprintf("%s/%s%d.txt | | | | | %s%d.txt", self(r), name, i, name, i)
		}
		content(manifest("mrt-single-file-batch-manifest", rows...))(w, r)
	}
}
