package node_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
	"github.com/holdfast/holdfast/web/webserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }

// tests are those of the package; after them no PostgreSQL is left.
type tests struct{ *testing.M }

func (t tests) Run() int { return postgrestest.Main(t.M) }

func options(t *testing.T, dir string) node.UpOptions {
	t.Helper()
	template, err := noid.ParseTemplate("99999/fk4{.reeeeeeeek}")
	if err != nil {
		t.Fatal(err)
	}
	return node.UpOptions{
		Common: node.Common{Listen: "127.0.0.1:0", Version: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil))},
		Work:   node.Work{Template: template, StagingFull: 1, StagingFullUnestimated: 1},
		Dir:    dir,
	}
}

func readClient(t *testing.T, dir string) node.Client {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, node.ClientFile))
	if err != nil {
		t.Fatal(err)
	}
	var c node.Client
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestUp_ClientFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var tokens []string
	for range 2 {
		n, err := node.Up(t.Context(), options(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		c := readClient(t, dir)
		if c.URL != n.URL() || c.Token != n.Token() || c.Token == "" {
			t.Errorf("client file says %+v, the node %s and its token", c, n.URL())
		}
		tokens = append(tokens, c.Token)
		info, err := os.Stat(filepath.Join(dir, node.ClientFile))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("client file has mode %o, want 600", mode)
		}
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := n.Close(); err != nil {
			t.Errorf("close again: %v", err)
		}
	}
	if tokens[0] != tokens[1] {
		t.Error("a restart made a new token although the Registry knew the last one")
	}
}

func TestUp_Refusals(t *testing.T) {
	dir := t.TempDir()
	n, err := node.Up(t.Context(), options(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if _, err := node.Up(t.Context(), options(t, dir)); !errors.Is(err, node.ErrInUse) {
		t.Errorf("a second node on the folder: %v, want ErrInUse", err)
	}
	taken := options(t, t.TempDir())
	taken.Listen = n.URL()[len("http://"):]
	if _, err := node.Up(t.Context(), taken); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second node on the address: %v, want EADDRINUSE", err)
	}
	if left, _ := os.ReadDir(taken.Dir); len(left) > 1 {
		t.Errorf("the refused node left %d files behind", len(left))
	}
}

// outside returns an address of this machine that is not loopback.
func outside(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// Plain HTTP for a proxy on another machine is not served to other clients.
func TestUp_PlainForProxies(t *testing.T) {
	elsewhere := outside(t)
	for _, c := range []struct {
		name    string
		proxies string
		plain   bool
		want    int // of who comes from elsewhere
	}{
		{"another is the proxy", "198.51.100.0/24", false, http.StatusForbidden},
		{"it is the proxy", elsewhere + "/32", false, http.StatusOK},
		{"plain HTTP is meant", "198.51.100.0/24", true, http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(t, filepath.Join(t.TempDir(), "data"))
			o.Listen, o.Plain, o.Proxies = "0.0.0.0:0", c.plain, webserver.Proxies{netip.MustParsePrefix(c.proxies)}
			n, err := node.Up(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			u, err := url.Parse(n.URL())
			if err != nil {
				t.Fatal(err)
			}
			for host, want := range map[string]int{"127.0.0.1": http.StatusOK, elsewhere: c.want} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+net.JoinHostPort(host, u.Port())+"/healthz", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if answer.StatusCode != want {
					t.Errorf("to %s: %d, want %d", host, answer.StatusCode, want)
				}
			}
		})
	}
}
