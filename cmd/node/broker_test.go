package node_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
)

// The embedded broker listens on loopback, and serves no other process there.
func TestUp_Broker(t *testing.T) {
	var log lines
	o := options(t, t.TempDir())
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	n, err := node.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	m := regexp.MustCompile(`the broker of this process listens" nsqd=(\S+)`).FindStringSubmatch(log.String())
	if m == nil {
		t.Fatalf("the log does not tell its address: %s", log.String())
	}
	if addr, err := netip.ParseAddrPort(m[1]); err != nil || !addr.Addr().IsLoopback() {
		t.Errorf("it listens on %s", m[1])
	}
	if _, err := queue.Inspect(t.Context(), m[1], ""); !errors.Is(err, queue.ErrRefused) {
		t.Errorf("a stranger: %v, want ErrRefused", err)
	}
	p, err := queue.OpenProducer(t.Context(), queue.ProducerConfig{Addrs: []string{m[1]}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	if err := p.Publish(ctx, "ingest.download", "forged"); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("a stranger published: %v", err)
	}
}

// A broker listens where other machines can reach it only with --remote.
func TestNewBroker_Remote(t *testing.T) {
	for _, c := range []struct{ tcp, http, flag string }{
		{"0.0.0.0:0", "127.0.0.1:0", "--tcp-address"}, {"127.0.0.1:0", "0.0.0.0:0", "--http-address"}, {"127.0.0.1:0", "127.0.0.1:0", ""},
	} {
		for _, remote := range []bool{false, true} {
			var log lines
			n, err := node.NewBroker(t.Context(), node.BrokerOptions{
				Common: node.Common{Listen: c.http, Log: slog.New(slog.NewTextHandler(&log, nil))}, TCP: c.tcp, Remote: remote,
			})
			var need *node.NeedError
			switch refused := !remote && c.flag != ""; {
			case refused && (!errors.As(err, &need) || need.Setting != c.flag || !errors.Is(err, broker.ErrRemote) || !strings.Contains(need.Fix, "--remote")):
				t.Errorf("%+v: %v, want it refused", c, err)
			case !refused && err != nil:
				t.Errorf("%+v remote=%t: %v", c, remote, err)
			case remote != strings.Contains(log.String(), "serves other machines"):
				t.Errorf("%+v remote=%t: log %s", c, remote, log.String())
			}
			if err == nil {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
