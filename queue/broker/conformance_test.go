package broker_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, opts broker.Options) *broker.Broker {
	t.Helper()
	b, err := broker.New(opts)
	if err != nil {
		t.Fatalf("new broker: %v", err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close broker: %v", err)
		}
	})
	if err := b.Listen("127.0.0.1:0"); err != nil {
		t.Fatalf("listen: %v", err)
	}
	return b
}

func TestConformance(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(t *testing.T) string { return open(t, broker.Options{}).Addr() })
}

// TestConformance_NSQD asks the nsqd that HOLDFAST_TEST_NSQD_ADDR names, else one of its own. It is
// skipped where nsqd cannot be built: not every module proxy has it.
func TestConformance_NSQD(t *testing.T) {
	t.Parallel()
	addr := os.Getenv("HOLDFAST_TEST_NSQD_ADDR")
	if addr == "" {
		addr = startNSQD(t)
	}
	queuetest.Run(t, func(*testing.T) string { return addr })
}

// startNSQD starts an nsqd on a free port and stops it when the test ends.
func startNSQD(t *testing.T) (addr string) {
	t.Helper()
	binary, dir := proctest.BuiltIfPossible(t, "nsqd"), t.TempDir()
	var server *proctest.Server
	err := proctest.OnFreePort(t, func(free string) (err error) {
		addr = free
		server, err = proctest.Start(exec.Command(binary, "--tcp-address", addr, "--http-address", "127.0.0.1:0", "--data-path", dir), func(ctx context.Context) bool {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			return err == nil && conn.Close() == nil
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.End(syscall.SIGTERM) })
	return addr
}
