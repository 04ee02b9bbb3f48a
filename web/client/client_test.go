package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asking returns a client of a server that answers as handle does.
func asking(t *testing.T, handle http.HandlerFunc, o client.Options) *client.Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	c := client.New(server.URL+"/", "tok", o)
	t.Cleanup(c.Close)
	return c
}

func TestClient_NobodyThere(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	address := "http://" + l.Addr().String()
	c := client.New(address, "tok", client.Options{})
	t.Cleanup(c.Close)
	_, err = c.Item(t.Context(), "x")
	var unreached *client.ConnectError
	if !errors.As(err, &unreached) || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "holdfast up") {
		t.Errorf("error=%v, want a ConnectError with the address and what to do", err)
	}
}

func TestClient_BadAddress(t *testing.T) {
	c := client.New("http://a b", "tok", client.Options{})
	if _, err := c.Item(t.Context(), "x"); err == nil {
		t.Error("a bad address says nothing")
	}
}

func TestClient_Problems(t *testing.T) {
	for _, c := range []struct {
		name, kind, body string
		status           int
		code             wire.Code
		is               error
	}{
		{"ours", "application/problem+json; charset=utf-8", `{"status":404,"code":"not-found","detail":"no x"}`, 404, wire.CodeNotFound, registry.ErrNotFound},
		{"a conflict", "application/problem+json", `{"status":409,"code":"idempotency-conflict"}`, 409, wire.CodeIdempotency, registry.ErrIdempotencyConflict},
		{"later", "application/problem+json", `{"status":503,"code":"unavailable"}`, 503, wire.CodeUnavailable, context.DeadlineExceeded},
		{"somebody else's", "text/html", `<html>`, 502, wire.CodeInternal, nil},
		{"a broken one", "application/problem+json", `{`, 500, wire.CodeInternal, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := asking(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer tok" || r.URL.EscapedPath() != "/api/v1/items/a%2Fb" {
					t.Errorf("request=%s %v, want the token and the escaped id", r.URL.EscapedPath(), r.Header)
				}
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}, client.Options{})
			_, err := cl.Item(t.Context(), "a/b")
			var p *client.Problem
			if !errors.As(err, &p) || p.Status != c.status || p.Code != c.code {
				t.Fatalf("error=%#v, want %d %s", err, c.status, c.code)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error=%v, want it to be %v", err, c.is)
			}
			if c.is == nil && errors.Is(err, registry.ErrNotFound) {
				t.Error("anything is not found")
			}
		})
	}
}

func TestClient_TimeoutAndCancel(t *testing.T) {
	release := make(chan struct{})
	c := asking(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}, client.Options{Timeout: time.Millisecond})
	defer close(release)
	if _, err := c.Item(t.Context(), "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error=%v, want DeadlineExceeded", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Item(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("error=%v, want Canceled", err)
	}
}

func TestContent_Checks(t *testing.T) {
	const hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	text := "hello"
	c := asking(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(wire.DigestHeader, "md5:00, sha256:"+hello)
		_, _ = io.WriteString(w, text)
	}, client.Options{})
	read := func() error {
		in, err := c.Content(t.Context(), "ark:/1/2", 0, "a", "", 0)
		must(t, err)
		defer in.Close()
		_, err = io.ReadAll(in)
		return err
	}
	if err := read(); err != nil {
		t.Errorf("error=%v, want none", err)
	}
	text = "hellO"
	var wrong *client.DigestError
	if err := read(); !errors.As(err, &wrong) || wrong.Want != hello {
		t.Errorf("error=%v, want a DigestError", err)
	}
}
