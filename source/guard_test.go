package source_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast/holdfast/source"
)

func TestGuardCheck(t *testing.T) {
	t.Parallel()
	refused := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1", "169.254.169.254",
		"172.16.0.1", "172.31.255.255", "192.0.0.8", "192.168.1.1", "198.18.0.1", "198.19.255.255", "224.0.0.1", "239.1.1.1",
		"240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
		"64:ff9b:1::1", "2002:7f00:1::", "2001::1", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
		"168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", // metadata of clouds
		"::ffff:0:10.0.0.1", "3fff::1", "5f00::1", "4000::1", "8000::1", "1000::1", "::ffff:169.254.169.254%1", "2002:a9fe:a9fe::",
	}
	for _, s := range refused {
		var forbidden *source.ForbiddenError
		if err := (source.Guard{}).Check(netip.MustParseAddr(s)); !errors.As(err, &forbidden) {
			t.Errorf("%s: error %v, want a *ForbiddenError", s, err)
		}
	}
	for _, s := range []string{"1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "198.17.0.1", "198.20.0.1", "::ffff:8.8.8.8", "2606:4700::1111", "2a00::1"} {
		if err := (source.Guard{}).Check(netip.MustParseAddr(s)); err != nil {
			t.Errorf("%s: %v, want it allowed", s, err)
		}
	}
	if err := (source.Guard{}).Check(netip.Addr{}); err == nil {
		t.Error("the invalid address is allowed")
	}
	for _, address := range []string{"", "1.1.1.1", "localhost:80", "0:80", "2130706433:80", "0x7f.1:80", "0177.0.0.1:80", "1.1.1.1.:80", "[1.1.1.1]:80x"} {
		if err := (source.Guard{}).Control("tcp", address, nil); err == nil {
			t.Errorf("%q is allowed, and is no address and port", address)
		}
	}
	if err := (source.Guard{}).Control("udp4", "1.1.1.1:53", nil); err == nil {
		t.Error("UDP is allowed")
	}
}

func TestParseAllow(t *testing.T) {
	t.Parallel()
	allow, err := source.ParseAllow(" 127.0.0.1/32, 10.1.2.3/8,,::1 ,::ffff:192.168.0.0/112,fd00::/8")
	if err != nil {
		t.Fatal(err)
	}
	g := source.Guard{Allow: allow}
	for s, want := range map[string]bool{
		"127.0.0.1": true, "::ffff:127.0.0.1": true, "127.0.0.2": false, "10.9.9.9": true, "::1": true,
		"192.168.3.4": true, "192.169.0.1": true, "172.16.0.1": false, "fd00::1": true, "fe80::1": false,
	} {
		if got := g.Check(netip.MustParseAddr(s)) == nil; got != want {
			t.Errorf("%s allowed=%t, want %t", s, got, want)
		}
	}
	_, err = source.ParseAllow("10.0.0.0/8,localhost,10.0.0.0/33,::ffff:0:0/90")
	for _, item := range []string{"localhost", "10.0.0.0/33", "::ffff:0:0/90"} {
		if err == nil || !strings.Contains(err.Error(), item) {
			t.Errorf("error %v, want it to name %s", err, item)
		}
	}
}

// serveAt starts a server on another loopback address, which no test allows.
func serveAt(t *testing.T, address string, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Skipf("listen on %s: %v", address, err)
	}
	s := httptest.NewUnstartedServer(handler)
	_ = s.Listener.Close()
	s.Listener = listener
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func TestGuard_Forbidden(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	inside := serveAt(t, "127.0.0.2:0", func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	h := newHTTP(t, nil)
	for _, host := range []string{"127.0.0.2", "[::ffff:127.0.0.2]"} {
		target := "http://" + host + ":" + port + "/latest/meta-data"
		for _, address := range []string{target, s.URL + "/?to=" + target} {
			_, err := h.Open(t.Context(), address, source.Point{})
			wantFault(t, err, source.FaultForbidden, true)
			if !strings.Contains(err.Error(), "HOLDFAST_NET_ALLOW") || !strings.Contains(err.Error(), "127.0.0.2") {
				t.Errorf("error %q, want the address and the way out", err)
			}
		}
	}
	if reached.Load() != 0 {
		t.Error("a request reached the forbidden address")
	}
}

// TestGuard_TellsNoInternalAddress checks that internal addresses and name servers appear in the
// operators' log only and not in the error, which depositors see.
func TestGuard_TellsNoInternalAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer netip.Addr
		kind   source.Fault
	}{
		"refused by the guard": {netip.MustParseAddr("10.11.12.13"), source.FaultForbidden},
		"nobody listens":       {netip.MustParseAddr("127.0.0.1"), source.FaultConnection},
		"no such name":         {netip.Addr{}, source.FaultDNS},
	} {
		var log bytes.Buffer
		h := newHTTP(t, func(o *source.HTTPOptions) {
			o.Log, o.Resolver = slog.New(slog.NewTextHandler(&log, nil)), fakeDNS(t, func() netip.Addr { return c.answer })
		})
		_, err := h.Head(t.Context(), "http://archive.example.:1/f")
		var fault *source.Error
		if !errors.As(err, &fault) || fault.Kind != c.kind {
			t.Fatalf("%s: %v", name, err)
		}
		if anAddress.MatchString(err.Error()) {
			t.Errorf("%s: depositors are told %q", name, err)
		}
		if !strings.Contains(err.Error(), "archive.example") || !anAddress.MatchString(log.String()) {
			t.Errorf("%s: told %q, logged %q", name, err, log.String())
		}
	}
}

var anAddress = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+|\[::`)

func TestRedirects(t *testing.T) {
	t.Parallel()
	plain := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "plain") })
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/file":
			_, _ = io.WriteString(w, content)
		case "/empty":
			w.WriteHeader(http.StatusFound)
		default:
			w.Header().Set("Location", r.URL.Query().Get("to"))
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	})
	h := newHTTP(t, nil)
	body, err := h.Open(t.Context(), s.URL+"/name.tif?to=/file", source.Point{})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := readAll(t, body); data != content || err != nil || body.Info.URL != s.URL+"/file" || body.Info.Filename != "name.tif" {
		t.Errorf("data=%q err=%v info=%+v, want the file, by the name that was asked for", data, err, body.Info)
	}
	tests := []struct {
		path    string
		kind    source.Fault
		content bool
	}{
		{"/loop?to=/loop%3Fto=/loop%253Fto", source.FaultRedirect, false},
		{"/empty", source.FaultRedirect, false},
		{"/?to=file:///etc/passwd", source.FaultScheme, true},
		{"/?to=gopher://h/", source.FaultScheme, true},
		{"/?to=http:///", source.FaultRedirect, false},
		{"/?to=%25zz", source.FaultRedirect, false},
	}
	for _, tt := range tests {
		_, err := h.Open(t.Context(), s.URL+tt.path, source.Point{})
		wantFault(t, err, tt.kind, tt.content)
	}

	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL, http.StatusFound)
	}))
	defer secure.Close()
	trusting := newHTTP(t, func(o *source.HTTPOptions) {
		o.RootCAs = secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	})
	_, err = trusting.Open(t.Context(), secure.URL, source.Point{})
	wantFault(t, err, source.FaultRedirect, false)
}

func TestRedirects_KeepCredentialsHome(t *testing.T) {
	t.Parallel()
	var foreign atomic.Pointer[http.Header]
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		foreign.Store(&r.Header)
		_, _ = io.WriteString(w, content)
	})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); (user != "ann" || password != "p:w") && r.Header.Get("Authorization") != "Bearer t0ken" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL+"/f", http.StatusFound)
		case "/here":
			http.Redirect(w, r, "/f", http.StatusFound)
		default:
			_, _ = io.WriteString(w, content)
		}
	})
	h := newHTTP(t, nil)
	_, err := h.Head(t.Context(), s.URL+"/f")
	wantFault(t, err, source.FaultDenied, false)

	for _, value := range []string{"Basic YW5uOnA6dw==", "Bearer t0ken"} {
		authorized := h.Authorized(func(_ context.Context, origin string) (string, error) {
			if origin != s.URL {
				t.Errorf("asked for credentials of %s", origin)
			}
			return value, nil
		})
		for _, path := range []string{"/f", "/here", "/away"} {
			if _, err := authorized.Head(t.Context(), s.URL+path); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		for _, name := range []string{"Authorization", "Cookie", "Referer"} {
			if value := (*foreign.Load()).Get(name); value != "" {
				t.Errorf("another server was sent %s: %s", name, value)
			}
		}
	}
}

// TestCredentials_Unusable checks that an unusable credential is the system's fault and that no
// request is sent without it.
func TestCredentials_Unusable(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	h := newHTTP(t, func(o *source.HTTPOptions) { o.PerHost = 1 }).Authorized(func(context.Context, string) (string, error) {
		return "", errors.New("no key")
	})
	for range 3 { // the slot is given back each time
		_, err := h.Head(t.Context(), s.URL)
		if e := wantFault(t, err, source.FaultCredential, false); !strings.Contains(e.Error(), "no key") {
			t.Errorf("error %q, want the reason", e)
		}
	}
	if asked.Load() != 0 {
		t.Error("a request was sent without the credential")
	}
}

// TestGuard_Rebinding checks that a name whose address is public when it is checked and private
// when it is connected to is refused: the connected address is judged.
func TestGuard_Rebinding(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	outside := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	_, port, _ := net.SplitHostPort(outside.Listener.Addr().String())
	serveAt(t, "127.0.0.2:"+port, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	var inside atomic.Bool
	resolver := fakeDNS(t, func() netip.Addr {
		if inside.Load() {
			return netip.MustParseAddr("127.0.0.2")
		}
		return netip.MustParseAddr("127.0.0.1")
	})
	h := newHTTP(t, func(o *source.HTTPOptions) { o.Resolver = resolver })
	if _, err := h.Head(t.Context(), "http://rebind.example.:"+port+"/"); err != nil {
		t.Fatal(err)
	}
	inside.Store(true)
	_, err := h.Head(t.Context(), "http://rebind.example.:"+port+"/")
	wantFault(t, err, source.FaultForbidden, true)
	if reached.Load() != 0 {
		t.Error("a request reached the forbidden address")
	}
}

func TestHTTPUnknownName(t *testing.T) {
	t.Parallel()
	h := newHTTP(t, func(o *source.HTTPOptions) {
		o.Resolver = fakeDNS(t, func() netip.Addr { return netip.Addr{} })
	})
	_, err := h.Head(t.Context(), "http://nowhere.example./")
	wantFault(t, err, source.FaultDNS, false)
}

// fakeDNS returns a resolver that gives every name the address that answer returns, none for the
// invalid one.
func fakeDNS(t *testing.T, answer func() netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		query := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(reply(query[:n], answer()), from)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// reply answers a DNS query (RFC 1035, 4.1) with at most one A record.
func reply(query []byte, addr netip.Addr) []byte {
	const header, typeA = 12, 1
	end := header
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // the root, the type and the class
	message := slices.Concat(query[:2], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[header:end])
	if !addr.IsValid() {
		message[3] |= 3 // no such name
		return message
	}
	if binary.BigEndian.Uint16(query[end-4:]) != typeA {
		return message
	}
	message[7] = 1
	ip := addr.As4()
	return slices.Concat(message, []byte{0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4}, ip[:])
}
