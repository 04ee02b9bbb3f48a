package callback_test

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func key(t *testing.T, text string) callback.Key {
	t.Helper()
	k, err := callback.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const (
	oldKey = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newKey = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

// TestVerify_Known checks a signature of Standard Webhooks that was computed with openssl: printf
// %s msg_1.1700000000.{} | openssl dgst -sha256 -mac HMAC -macopt hexkey:000102...1f -binary |
// base64.
func TestVerify_Known(t *testing.T) {
	t.Parallel()
	header := map[string]string{
		"Webhook-Id": "msg_1", "Webhook-Timestamp": "1700000000", "Webhook-Signature": "v1,fhksJF5ElKjlPoT/jtefCO5XjQPvhf7Dhf/8R1ad9yU=",
	}
	id, err := callback.Verify(func(name string) string { return header[name] }, []byte("{}"), time.Unix(1700000100, 0), 5*time.Minute, key(t, newKey))
	if id != "msg_1" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "whsec_", "whsec_c2hvcnQ=", strings.TrimPrefix(newKey, "whsec_"), newKey + "!", "whsec_" + strings.Repeat("AAAA", 22)} {
		if _, err := callback.ParseKey(text); !errors.Is(err, callback.ErrKey) || text != "" && strings.Contains(err.Error(), text) && len(text) > 6 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// got is a message as a receiver has it.
type got struct {
	header http.Header
	body   string
}

// receiver answers as it is told to, and remembers.
func receiver(t *testing.T, answer http.HandlerFunc) (url string, messages func() []got) {
	t.Helper()
	seen := make(chan got, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- got{r.Header, string(body)}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() (all []got) {
		for {
			select {
			case g := <-seen:
				all = append(all, g)
			default:
				return all
			}
		}
	}
}

func client(t *testing.T, o callback.Options) *callback.Client {
	t.Helper()
	o.Guard = source.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	c := callback.New(o)
	t.Cleanup(c.Close)
	return c
}

// TestSend checks that a receiver can identify a message by its id, and verify it with either key
// of a rotation.
func TestSend(t *testing.T) {
	t.Parallel()
	url, messages := receiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	at := time.Now()
	m := callback.Message{ID: "msg_1", At: at, Body: []byte(`{"jobID":"j"}`)}
	status, err := client(t, callback.Options{}).Send(t.Context(), url+"/mc/j?token=hunter2", m, "Bearer b", key(t, newKey), key(t, oldKey))
	if status != http.StatusNoContent || err != nil {
		t.Fatalf("%d, %v", status, err)
	}
	all := messages()
	if len(all) != 1 || all[0].body != `{"jobID":"j"}` || all[0].header.Get("Idempotency-Key") != "msg_1" ||
		all[0].header.Get("Authorization") != "Bearer b" || all[0].header.Get("Content-Type") != "application/json" {
		t.Fatalf("%+v", all)
	}
	header := all[0].header.Get
	for _, k := range []string{oldKey, newKey} {
		if id, err := callback.Verify(header, m.Body, at, time.Minute, key(t, k)); id != "msg_1" || err != nil {
			t.Errorf("by %s: %q, %v", k, id, err)
		}
	}
	if _, err := callback.Verify(header, []byte(`{"jobID":"k"}`), at, time.Minute, key(t, newKey)); !errors.Is(err, callback.ErrSignature) {
		t.Errorf("another body: %v", err)
	}
	if _, err := callback.Verify(header, m.Body, at.Add(time.Hour), time.Minute, key(t, newKey)); !errors.Is(err, callback.ErrTime) {
		t.Errorf("an hour later: %v", err)
	}
	if _, err := callback.Verify(header, m.Body, at, time.Minute); !errors.Is(err, callback.ErrSignature) {
		t.Errorf("without a key: %v", err)
	}
}

func TestSend_Refused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		status int
		after  time.Duration
		says   []string
	}{
		{"an error with its reason", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, "no\x1b[31m such\n object "+strings.Repeat("x", 1000))
		}, 422, 0, []string{"HTTP 422", "no [31m such object", "x…"}},
		{"an error as a page", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<!DOCTYPE html><head><title>502</title><style>b{}</style></head><body><h1>Bad gateway</h1><p>Ask &lt;Ann&gt;.<br>Thanks")
		}, 502, 0, []string{"HTTP 502: Bad gateway Ask <Ann>. Thanks"}},
		{"a server that wants to be left alone", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, 503, 2 * time.Minute, []string{"HTTP 503"}},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, 307, 0, []string{"HTTP 307", "not followed"}},
		{"an end in the middle", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, 0, []string{"did not answer"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url, messages := receiver(t, tt.answer)
			status, err := client(t, callback.Options{}).Send(t.Context(), url+"/hunter2", callback.Message{ID: "m", At: time.Now(), Body: []byte("{}")}, "")
			var refused *callback.Error
			if !errors.As(err, &refused) || status != tt.status || refused.Status != tt.status || refused.AsksToWait() != tt.after {
				t.Fatalf("%d, %v", status, err)
			}
			for _, want := range append(tt.says, refused.Host) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, without %q", err, want)
				}
			}
			if len([]rune(err.Error())) > 300 || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it says %v", err)
			}
			if all := messages(); len(all) != 1 || all[0].header.Get("Webhook-Signature") != "" {
				t.Errorf("%d messages: %v", len(all), all)
			}
		})
	}
}

// TestSend_Guard checks that nothing is sent to an address that the guard refuses, whatever a name
// resolves to.
func TestSend_Guard(t *testing.T) {
	t.Parallel()
	url, messages := receiver(t, func(http.ResponseWriter, *http.Request) {})
	c := callback.New(callback.Options{})
	t.Cleanup(c.Close)
	for _, address := range []string{url, strings.Replace(url, "127.0.0.1", "localhost", 1), "http://169.254.169.254/latest", "ftp://127.0.0.1/", "http://[::1", "http://"} {
		if _, err := c.Send(t.Context(), address, callback.Message{ID: "m", At: time.Now()}, ""); err == nil {
			t.Errorf("%s was told", address)
		}
	}
	if all := messages(); len(all) != 0 {
		t.Errorf("it was told %v", all)
	}
}

// TestSend_TLS checks that nothing is sent to a receiver with an untrusted certificate.
func TestSend_TLS(t *testing.T) {
	t.Parallel()
	told := false
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told = true }))
	server.Config.ErrorLog = nil
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	if _, err := client(t, callback.Options{}).Send(t.Context(), server.URL, callback.Message{ID: "m", At: time.Now()}, "Bearer b"); err == nil || told {
		t.Errorf("%v, told %v", err, told)
	}
}

// TestSend_Hangs checks that a receiver that never answers costs a bounded time.
func TestSend_Hangs(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	url, _ := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	defer close(hang)
	_, err := client(t, callback.Options{Timeout: 50 * time.Millisecond}).Send(t.Context(), url, callback.Message{ID: "m", At: time.Now()}, "")
	if err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("%v", err)
	}
}

// TestError_OneCause checks that all failures of a receiver that is down are one group, and that
// refusals, bad addresses and bad certificates are other groups.
func TestError_OneCause(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	hang := make(chan struct{})
	defer close(hang)
	silent, _ := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	abrupt, _ := receiver(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	busy, _ := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, r.Header.Get("Webhook-Id"), http.StatusServiceUnavailable)
	})
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	hasty, patient := client(t, callback.Options{Timeout: 100 * time.Millisecond}), client(t, callback.Options{})
	refused := func(address, id string) *callback.Error {
		t.Helper()
		c := patient
		if address == silent {
			c = hasty
		}
		_, err := c.Send(t.Context(), address, callback.Message{ID: id, At: time.Now()}, "")
		var e *callback.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", address, err)
		}
		return e
	}
	cause := func(e *callback.Error) string {
		return registry.CauseOf(registry.Notify, registry.SystemFault, e.ErrorCode(), "receiver.test:443", e.Error()).Fingerprint()
	}
	down := cause(refused(gone.URL, "a"))
	for address, code := range map[string]string{silent: "no-answer", abrupt: "no-answer", gone.URL: "no-answer"} {
		e := refused(address, "b")
		if e.ErrorCode() != code || e.ErrorHost() != strings.TrimPrefix(address, "http://") || cause(e) != down {
			t.Errorf("%v: code %s of host %s", e, e.ErrorCode(), e.ErrorHost())
		}
	}
	for address, code := range map[string]string{
		busy: "http-503", untrusted.URL: "tls", "http://169.254.169.254/": "forbidden", "http://nowhere.invalid/": "dns", "http://[::1": "url",
	} {
		first, second := refused(address, "first"), refused(address, "second")
		if first.ErrorCode() != code || cause(first) == down || cause(first) != cause(second) || first.Remedy() == "" {
			t.Errorf("%v: code %s, want %s", first, first.ErrorCode(), code)
		}
	}
}

// TestDocs checks that the commands of docs/callbacks.md compute the signature that is sent.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/callbacks.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for line := range strings.Lines(string(page)) {
		if code, ok := strings.CutPrefix(line, "    "); ok && (strings.HasPrefix(code, "hex=") || strings.HasPrefix(code, "printf %s ")) {
			script.WriteString(code)
		}
	}
	url, messages := receiver(t, func(http.ResponseWriter, *http.Request) {})
	if _, err := client(t, callback.Options{}).Send(t.Context(), url, callback.Message{ID: "msg_1", At: time.Unix(1700000000, 0), Body: []byte(`{"a":"ü"}`)}, "", key(t, newKey)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script.String())
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "id=msg_1", "timestamp=1700000000", `body={"a":"ü"}`)
	if err := os.WriteFile(filepath.Join(cmd.Dir, "key"), []byte(newKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if want := messages()[0].header.Get("Webhook-Signature"); err != nil || "v1,"+strings.TrimSpace(string(out)) != want {
		t.Errorf("%s\n%s (%v), want %s", script.String(), out, err, want)
	}
}
