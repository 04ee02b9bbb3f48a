package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestOneBadJob_OthersComplete: a manifest with a missing file fails only its own job, as a content
// fault.
func TestOneBadJob_OthersComplete(t *testing.T) {
	row := func(r *http.Request, name string) string { return self(r) + "/" + name + " | | | | | " + name }
	answers := map[string]http.HandlerFunc{
		"/good.txt": content("good"),
		"/gone.txt": status(http.StatusGone),
		"/good.checkm": func(w http.ResponseWriter, r *http.Request) {
			content(manifest("mrt-ingest-manifest", row(r, "good.txt")))(w, r)
		},
		"/missing.checkm": func(w http.ResponseWriter, r *http.Request) {
			content(manifest("mrt-ingest-manifest", row(r, "good.txt"), row(r, "not-there.txt"), row(r, "gone.txt")))(w, r)
		},
		"/batch.checkm": func(w http.ResponseWriter, r *http.Request) {
			content(manifest("mrt-batch-manifest", row(r, "good.checkm"), row(r, "missing.checkm")))(w, r)
		},
	}
	server := serve(t, answers)
	h := up(t)
	s, code := h.submit(server + "/batch.checkm")
	if code != 3 || s.State != "Failed" || s.Completed != 1 || s.Failed != 1 {
		t.Fatalf("exit=%d summary=%+v, want 3 and one of each", code, s)
	}
	for _, j := range s.Jobs {
		if j.Name == "good.checkm" && j.State != "Completed" {
			t.Errorf("the good job is %+v", j)
		}
		if j.Name != "missing.checkm" {
			continue
		}
		if j.State != "Failed" || j.ErrorClass != "content" {
			t.Errorf("the bad job is %+v, want Failed, content", j)
		}
		// Every file that is wrong is named, not the first one only.
		for _, name := range []string{"not-there.txt", "404", "gone.txt", "410"} {
			if !strings.Contains(j.Error, name) {
				t.Errorf("error %q does not name %s", j.Error, name)
			}
		}
	}
}

// TestFaultClasses: each kind of answer of a source has the right error class.
func TestFaultClasses(t *testing.T) {
	body := strings.Repeat("0123456789", 100)
	server := serve(t, map[string]http.HandlerFunc{
		"/ok.txt":   content(body),
		"/401.txt":  status(http.StatusUnauthorized),
		"/403.txt":  status(http.StatusForbidden),
		"/404.txt":  status(http.StatusNotFound),
		"/410.txt":  status(http.StatusGone),
		"/500.txt":  status(http.StatusInternalServerError),
		"/503.txt":  status(http.StatusServiceUnavailable),
		"/html.txt": content("<html>not a manifest"),
		"/short.txt": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, body[:500])
			if hj, ok := w.(http.Hijacker); ok {
				if c, _, err := hj.Hijack(); err == nil {
					c.Close()
				}
			}
		},
	})
	busy := serve(t, map[string]http.HandlerFunc{"/429.txt": status(http.StatusTooManyRequests)})
	// With one attempt, a fault of the system shows at once instead of after its retries.
	h := up(t, "HOLDFAST_MAX_ATTEMPTS=1")
	const wrong = "1111111111111111111111111111111111111111111111111111111111111111"
	tests := []struct {
		name, url string
		args      []string
		class     string
		code      int
		mentions  string
	}{
		{name: "404", url: server + "/404.txt", class: "content", code: 6, mentions: "404"},
		{name: "410", url: server + "/410.txt", class: "content", code: 6, mentions: "410"},
		{name: "wrong digest", url: server + "/ok.txt", args: []string{"--type", "file", "--digest", "sha256:" + wrong}, class: "content", code: 6, mentions: wrong},
		{name: "corrupt manifest", url: server + "/html.txt", args: []string{"--type", "object-manifest"}, class: "content", code: 6, mentions: "object-manifest"},
		{name: "corrupt container", url: server + "/ok.txt", args: []string{"--type", "container"}, class: "content", code: 6, mentions: "ok.txt"},
		{name: "not a bag", url: server + "/ok.txt", args: []string{"--type", "bag"}, class: "content", code: 6, mentions: "ok.txt"},
		{name: "401", url: server + "/401.txt", args: []string{"--type", "file"}, class: "system", code: 1, mentions: "401"},
		{name: "403", url: server + "/403.txt", args: []string{"--type", "file"}, class: "system", code: 1, mentions: "403"},
		{name: "429", url: busy + "/429.txt", args: []string{"--type", "file"}, class: "system", code: 1, mentions: "429"},
		{name: "500", url: server + "/500.txt", args: []string{"--type", "file"}, class: "system", code: 1, mentions: "500"},
		{name: "503", url: server + "/503.txt", args: []string{"--type", "file"}, class: "system", code: 1, mentions: "503"},
		{name: "cut off", url: server + "/short.txt", args: []string{"--type", "file"}, class: "system", code: 1, mentions: "short.txt"},
		{name: "refused", url: "http://127.0.0.1:1/x.txt", args: []string{"--type", "file"}, class: "system", code: 1, mentions: "127.0.0.1:1"},
		{name: "no such host", url: "http://no-such-host.invalid/x.txt", args: []string{"--type", "file"}, class: "system", code: 1, mentions: "no-such-host.invalid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h.t = t
			s, code := h.submit(append([]string{tt.url}, tt.args...)...)
			if code != tt.code || s.State != "Failed" {
				t.Errorf("exit=%d state=%s, want %d and Failed", code, s.State, tt.code)
			}
			class, text := s.ErrorClass, s.Error
			if len(s.Jobs) == 1 {
				class, text = s.Jobs[0].ErrorClass, s.Jobs[0].Error
			}
			if class != tt.class || !strings.Contains(text, tt.mentions) {
				t.Errorf("class=%s error=%q, want %s and a mention of %q", class, text, tt.class, tt.mentions)
			}
		})
	}
}

// TestWrongSize: a file whose size differs from the depositor's is a content fault.
func TestWrongSize(t *testing.T) {
	server := serve(t, map[string]http.HandlerFunc{
		"/file.txt": content("four"),
		"/m.checkm": func(w http.ResponseWriter, r *http.Request) {
			content(manifest("mrt-ingest-manifest", self(r)+"/file.txt | | | 5 | | file.txt"))(w, r)
		},
	})
	h := up(t)
	s, code := h.submit(server + "/m.checkm")
	if code != 6 || len(s.Jobs) != 1 || s.Jobs[0].ErrorClass != "content" || !strings.Contains(s.Jobs[0].Error, "5 bytes") {
		t.Errorf("exit=%d summary=%+v, want 6 and an error that names 5 bytes", code, s)
	}
}

// TestLoopbackIsRefused: without HOLDFAST_NET_ALLOW sources on this machine are refused.
func TestLoopbackIsRefused(t *testing.T) {
	asked := false
	server := serve(t, map[string]http.HandlerFunc{"/secret.txt": func(w http.ResponseWriter, _ *http.Request) {
		asked = true
		fmt.Fprint(w, "secret")
	}})
	h := up(t, "HOLDFAST_NET_ALLOW=")
	s, code := h.submit(server+"/secret.txt", "--type", "file")
	if code != 6 || len(s.Jobs) != 1 || !strings.Contains(s.Jobs[0].Error, "HOLDFAST_NET_ALLOW") {
		t.Errorf("exit=%d summary=%+v, want 6 and the way to allow it", code, s)
	}
	if asked {
		t.Error("the server was asked all the same")
	}
}
