package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/callback"
)

// TestCallback: a receiver gets the outcomes of jobs, can verify the sender, and gets a redelivery
// on request.
func TestCallback(t *testing.T) {
	t.Parallel()
	const key = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	parsed, err := callback.ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	type message struct {
		JobID, JobStatus, PrimaryID, JobStatusMessage string
		id                                            string
	}
	var mu sync.Mutex
	var told []message
	down := true
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		id, err := callback.Verify(r.Header.Get, body, time.Now(), time.Minute, parsed)
		m := message{id: id}
		if err != nil || json.Unmarshal(body, &m) != nil || r.URL.Path != "/mc/"+m.JobID {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		told = append(told, m)
	}))
	t.Cleanup(receiver.Close)
	messages := func() []message {
		mu.Lock()
		defer mu.Unlock()
		return append([]message(nil), told...)
	}
	h := up(t, "HOLDFAST_NOTIFY_MAX_ATTEMPTS=1")
	h.collection("told", `"callback": {"url": "`+receiver.URL+`/mc/{job}", "goes_on": true}`)
	set := exec.Command(binary, "collection", "credential", "set", "told", "signing:2026", "--signing", "--dir", h.dir)
	set.Env, set.Stdin = h.environment(), strings.NewReader(key+"\n")
	if r := h.finish(set); r.code != 0 {
		t.Fatalf("set ended with %d: %s", r.code, r.stderr)
	}
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("alpha"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, code := h.submit(path, "--collection", "told")
	if code != 0 || len(s.Jobs) != 1 {
		t.Fatalf("while the receiver is down: exit=%d summary=%+v", code, s)
	}
	job := s.Jobs[0].ItemID
	says(t, "the item", h.must(0, "item", "show", job).stdout, "delivery", "outcome Completed for "+receiver.URL, "not delivered", "HTTP 503")
	waits := h.list("action:deliver", "state:processing")
	if len(waits) != 1 {
		t.Fatalf("%d deliveries go on, want one", len(waits))
	}
	mu.Lock()
	down = false
	mu.Unlock()
	h.must(0, "item", "redeliver", job, "--reason", "it is back")
	h.until("it is told", func() bool { return len(messages()) > 0 })
	h.until("it is noted", func() bool {
		return strings.Contains(h.must(0, "item", "show", job).stdout, "delivered at")
	})
	if m := messages()[0]; m.JobID != job || m.JobStatus != "COMPLETED" || m.PrimaryID != s.Jobs[0].ObjectID || m.id != "msg_"+job+"_completed" {
		t.Errorf("told %+v", m)
	}

	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	fails, code := h.submit(gone.URL+"/missing.txt", "--type", "file", "--collection", "told")
	if code == 0 || len(fails.Jobs) != 1 {
		t.Fatalf("a file that is not there: exit=%d summary=%+v", code, fails)
	}
	h.until("the failure is told", func() bool { return len(messages()) > 1 })
	if m := messages()[1]; m.JobID != fails.Jobs[0].ItemID || m.JobStatus != "FAILED" || !strings.Contains(m.JobStatusMessage, "404") {
		t.Errorf("told %+v", m)
	}
	says(t, "a job without a callback", h.run("item", "redeliver", s.BatchID).stderr, "no mail server")
}
