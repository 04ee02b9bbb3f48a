package redis_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/interim/interimtest"
	"github.com/holdfast/holdfast/interim/redis"
	"github.com/holdfast/holdfast/interim/redis/redistest"
	"github.com/holdfast/holdfast/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	server := redistest.Start(t)
	database := -1
	interimtest.Run(t, func(t *testing.T) interim.Store {
		// An empty database each, of the sixteen a server has.
		database++
		return open(t, strings.TrimSuffix(server.URL(), "0")+strconv.Itoa(database))
	})
}

func TestR26_SupersededWorkerIsNotFollowed(t *testing.T) {
	interimtest.Superseded(t, open(t, redistest.Start(t).URL()))
}

func TestWipedServerCostsOnlyRework(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	a := interim.Attempt{ItemID: "item", N: 1}
	if err := s.Put(t.Context(), a, map[string][]byte{"k": []byte("v")}); err != nil {
		t.Fatalf("put: %v", err)
	}
	server.Kill()
	if _, err := s.Get(t.Context(), a, "k"); err == nil || errors.Is(err, interim.ErrNotFound) {
		t.Errorf("get without a server: %v, want an error that is not ErrNotFound", err)
	}
	server.Restart()
	if _, err := s.Get(t.Context(), a, "k"); !errors.Is(err, interim.ErrNotFound) {
		t.Errorf("get from a wiped server: %v, want ErrNotFound", err)
	}
	if from, err := s.Adopt(t.Context(), interim.Attempt{ItemID: "item", N: 2}); err != nil || from != 0 {
		t.Errorf("adopt from a wiped server=%d, %v, want 0", from, err)
	}
	if err := s.Put(t.Context(), a, map[string][]byte{"k": []byte("again")}); err != nil {
		t.Errorf("put after the wipe: %v", err)
	}
}

func TestAppendonlyServerKeepsData(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, server.URL())
	a, next := interim.Attempt{ItemID: "item", N: 1}, interim.Attempt{ItemID: "item", N: 2}
	if err := s.Put(t.Context(), a, map[string][]byte{"k": []byte("v")}); err != nil {
		t.Fatalf("put: %v", err)
	}
	if _, err := s.Adopt(t.Context(), next); err != nil {
		t.Fatalf("adopt: %v", err)
	}
	server.Kill()
	server.Restart()
	if got, err := s.Get(t.Context(), next, "k"); err != nil || string(got) != "v" {
		t.Errorf("get after a restart=%q, %v, want v", got, err)
	}
}

func TestCheck(t *testing.T) {
	t.Run("nothing to say", func(t *testing.T) {
		s := open(t, redistest.Start(t, "--appendonly", "yes").URL())
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("check: %v, want nil", err)
		}
	})
	t.Run("appendonly no", func(t *testing.T) {
		s := open(t, redistest.Start(t).URL())
		var warning *redis.Warning
		if err := s.Check(t.Context()); !errors.As(err, &warning) || warning.Setting != "appendonly" || warning.Value != "no" {
			t.Errorf("check: %v, want a warning of appendonly no", err)
		}
	})
	t.Run("evicts", func(t *testing.T) {
		s := open(t, redistest.Start(t, "--appendonly", "yes", "--maxmemory-policy", "allkeys-lru").URL())
		var warning *redis.Warning
		if err := s.Check(t.Context()); !errors.As(err, &warning) || warning.Setting != "maxmemory-policy" {
			t.Errorf("check: %v, want a warning of maxmemory-policy", err)
		}
	})
	t.Run("hidden configuration", func(t *testing.T) {
		s := open(t, redistest.Start(t, "--rename-command", "CONFIG", "HIDDEN").URL())
		var warning *redis.Warning
		if err := s.Check(t.Context()); !errors.As(err, &warning) || warning.Value != "unknown" {
			t.Errorf("check: %v, want a warning of an unknown value", err)
		}
	})
	t.Run("no server", func(t *testing.T) {
		server := redistest.Start(t)
		server.Kill()
		var warning *redis.Warning
		if err := open(t, server.URL()).Check(t.Context()); err == nil || errors.As(err, &warning) {
			t.Errorf("check: %v, want an error that is not a warning", err)
		}
	})
}

func TestCallsEndWithTheirContextWhenRedisHangs(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	if err := s.Check(t.Context()); err == nil {
		t.Fatal("check: nil, want a warning; it also warms a connection")
	}
	if err := server.Process().Signal(syscall.SIGSTOP); err != nil {
		t.Fatalf("stop the server: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Get(ctx, interim.Attempt{ItemID: "item", N: 1}, "k")
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		t.Errorf("get from a server that hangs: %v, want the context's error", err)
	}
}

func TestOpenKeepsThePasswordToItself(t *testing.T) {
	for _, bad := range []string{"redis://user:s3cret@host:port/0", "http://user:s3cret@host/0", "redis://user:s3cret@host/x", "redis://u:s3cret@ho st/0"} {
		_, err := redis.Open(bad, nil)
		if err == nil {
			t.Errorf("open %s: nil, want an error", bad)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("open: the error tells the password: %v", err)
		}
	}
}

// TestPutUnderMemoryPressure: a put for which Redis has no memory is refused as a whole.
func TestPutUnderMemoryPressure(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "4mb", "--maxmemory-policy", "noeviction")
	s := open(t, server.URL())
	a := interim.Attempt{ItemID: "item", N: 1}
	if err := s.Put(t.Context(), a, map[string][]byte{"k": []byte("before")}); err != nil {
		t.Fatalf("put: %v", err)
	}
	for i := range 64 {
		full := interim.Attempt{ItemID: "filler", N: int64(i + 1)}
		if err := s.Put(t.Context(), full, map[string][]byte{"k": make([]byte, 256<<10)}); err != nil {
			break // full
		}
	}
	err := s.Put(t.Context(), a, map[string][]byte{"k": []byte("after"), "l": make([]byte, 256<<10)})
	if err == nil {
		t.Fatal("put into a full server: nil, want an error")
	}
	if got, err := s.Get(t.Context(), a, "k"); err != nil || string(got) != "before" {
		t.Errorf("get=%q, %v, want the value from before", got, err)
	}
}

func open(t *testing.T, rawURL string) *redis.Store {
	t.Helper()
	s, err := redis.Open(rawURL, nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// Over TLS only the given authorities are trusted; the rest works as without TLS.
func TestOpen_TLS(t *testing.T) {
	plain, err := url.Parse(redistest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	admin, err := net.Dial("tcp", plain.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	answer := make([]byte, len("+OK"))
	if _, err := io.WriteString(admin, "CONFIG SET requirepass geheim\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(admin, answer); err != nil || string(answer) != "+OK" {
		t.Fatalf("set a password: %q, %v", answer, err)
	}
	site := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(site.Close)
	l, err := tls.Listen("tcp", "127.0.0.1:0", site.TLS)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { _ = l.Close() })
	all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", plain.Host)
			if err != nil {
				from.Close()
				continue
			}
			all.Go(func() { _, _ = io.Copy(to, from); to.Close() })
			all.Go(func() { _, _ = io.Copy(from, to); from.Close() })
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(site.Certificate())
	for _, c := range []struct {
		name, login string
		roots       *x509.CertPool
		fails       string // "" it works
	}{
		{"known", ":geheim@", roots, ""},
		{"unknown", ":geheim@", nil, "certificate"},
		{"no password", "", roots, "NOAUTH"},
	} {
		s, err := redis.Open("rediss://"+c.login+l.Addr().String()+"/0", c.roots)
		if err != nil {
			t.Fatal(err)
		}
		a := interim.Attempt{ItemID: "item", N: 1}
		err = s.Put(t.Context(), a, map[string][]byte{"k": []byte("v")})
		switch {
		case c.fails == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v, want an error of %s", c.name, err, c.fails)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestConnecting: to connect is no failed request, whatever the server's version.
func TestConnecting(t *testing.T) {
	failed := func() (lines []string) {
		w := httptest.NewRecorder()
		metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for line := range strings.Lines(w.Body.String()) {
			if strings.HasPrefix(line, "holdfast_redis_request_duration_seconds_count") && strings.Contains(line, `outcome="failed"`) {
				lines = append(lines, line)
			}
		}
		return lines
	}
	before := failed()
	if err := open(t, redistest.Start(t).URL()).Put(t.Context(), interim.Attempt{ItemID: "item", N: 1}, map[string][]byte{"k": []byte("v")}); err != nil {
		t.Fatal(err)
	}
	if after := failed(); !slices.Equal(before, after) {
		t.Errorf("failed requests: %q, before %q", after, before)
	}
}
