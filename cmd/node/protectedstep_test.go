package node_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/web/wire"
)

// TestUp_ProtectsItsTask: a process on ECS asks ECS's agent for the protection of its task while a step
// runs. An agent that fails delays and fails nothing.
func TestUp_ProtectsItsTask(t *testing.T) {
	for name, fails := range map[string]bool{"the agent answers": false, "the agent fails": true} {
		t.Run(name, func(t *testing.T) {
			first, asked, once := "", make(chan struct{}), sync.Once{}
			agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				once.Do(func() {
					first = fmt.Sprint(r.Method, r.URL, string(body), err)
					close(asked)
				})
				if fails {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				_, _ = fmt.Fprintf(w, `{"protection":{"ProtectionEnabled":%t}}`, strings.Contains(string(body), "true"))
			}))
			defer agent.Close()
			t.Setenv("ECS_AGENT_URI", agent.URL)
			source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				select { // the step that fetches goes on once protection was asked for
				case <-asked:
				case <-r.Context().Done():
				}
				http.ServeContent(w, r, "", time.Time{}, strings.NewReader("content"))
			}))
			defer source.Close()
			_, d := newDeposits(t, nil)
			d.completes(d.submit(wire.SubmitRequest{URL: source.URL + "/file", Type: "file"}), 2*time.Minute)
			if want := `PUT/task-protection/v1/state{"ExpiresInMinutes":10,"ProtectionEnabled":true}<nil>`; first != want {
				t.Errorf("the agent was asked %s, want %s", first, want)
			}
		})
	}
}
